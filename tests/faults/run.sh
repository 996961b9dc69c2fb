#!/usr/bin/env bash
# Puts faults back into a copy of the tree, one at a time, and fails unless the random sequences find each of them. Arguments are
# patches; without any, all of this folder are taken. A line of a patch says which rule has to be reported as broken. SLUICE_TORTURE is
# how many sequences are played for each fault at most.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- tests/faults/*.patch

KUBEBUILDER_ASSETS=$(tests/quietly.sh tests/controlplane/build.sh)
export KUBEBUILDER_ASSETS SLUICE_TORTURE="${SLUICE_TORTURE:-500}" PATH="$PATH:/usr/sbin"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tree"
git ls-files -z | xargs -0 cp --parents --target-directory="$copy/tree"

missed=0
for patch in "$@"; do
	(cd "$copy/tree" && git apply) <"$patch"
	(cd "$copy/tree" && go test -c -o "$copy/packages.test" ./controllers/packages)
	(cd "$copy/tree/controllers/packages" && "$copy/packages.test" -test.run '^TestNoWorkOfAPersonIsLost$' -test.failfast -test.timeout=6h) >"$copy/log" 2>&1 || true
	rule=$(sed -n 's/^Finds: //p' "$patch")
	if told=$(grep -Em1 "SLUICE_TORTURE_SEED=.*($rule)" "$copy/log"); then
		echo "$(basename "$patch"): found: ${told#*SLUICE_TORTURE=1 }" | cut -c1-300
	else
		echo "$(basename "$patch"): not found"
		tail -20 "$copy/log"
		missed=1
	fi
	(cd "$copy/tree" && git apply --reverse) <"$patch"
done
exit "$missed"
