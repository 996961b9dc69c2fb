#!/usr/bin/env bash
# Builds the tools that go.tools.mod pins, once for each set of versions, and prints the folder that holds them.
# Links to the newest set stand beside it, for editors. Everything else goes to standard error.
set -euo pipefail
cd "$(dirname "$0")/.."

key=$(cat go.tools.mod go.tools.sum tests/tools.sh <(go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-12)
cache="${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/tools"
tools="$cache/$key"

# What is complete is never written to: it may be another's, or lie on a disk that nobody writes to.
if [ ! -e "$tools/.complete" ]; then
	mkdir -p "$tools"
	# Two builds at once would only wait for each other's packages.
	exec 9>"$tools/.lock"
	flock 9
fi
if [ ! -e "$tools/.complete" ]; then
	started=$(date +%s)
	echo "tools: building golangci-lint, controller-gen, crd-ref-docs and gotestsum (once; kept in $tools)" >&2
	CGO_ENABLED=0 go build -modfile=go.tools.mod -trimpath -ldflags "-s -w" -o "$tools/" tool >&2
	for program in "$tools"/*; do
		ln -sfn "$program" "$cache/$(basename "$program")"
	done
	touch "$tools/.complete"
	echo "tools: built in $(($(date +%s) - started)) s" >&2
fi
echo "$tools"
