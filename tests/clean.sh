#!/usr/bin/env bash
# Fails when the working tree differs from what is committed, and shows how.
set -euo pipefail
cd "$(dirname "$0")/.."

changes=$(git status --porcelain)
[ -z "$changes" ] && exit 0

git --no-pager diff --stat HEAD >&2
echo "verify: the tree differs from what is committed; commit these after make generate fmt:" >&2
echo "$changes" >&2
exit 1
