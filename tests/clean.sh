#!/usr/bin/env bash
# Fails when the working tree differs from what is committed, and shows how.
set -euo pipefail
cd "$(dirname "$0")/.."

# The tree may be another user's, as where a container runs as root.
changes=$(git -c safe.directory='*' status --porcelain)
[ -z "$changes" ] && exit 0

git -c safe.directory='*' --no-pager diff --stat HEAD >&2
echo "verify: the tree differs from what is committed; commit these after make generate fmt:" >&2
echo "$changes" >&2
exit 1
