#!/usr/bin/env bash
# Builds the programs that tests need beside the product's own module, servers and Helm's command: each folder here with a main.go
# is one. They are built once for each set of versions, and the folder that holds them is printed. Everything else goes to standard
# error.
set -euo pipefail
cd "$(dirname "$0")"

programs=$(for main in */main.go; do dirname "$main"; done)
key=$(cat go.mod go.sum build.sh ./*/*.go <(go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-12)
cache="${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/servers"
built="$cache/v-$key"

azurite=3.35.0 # The last one for Node.js 20.

missing=
for program in $programs; do
	[ -x "$built/$program" ] || missing=yes
done
if command -v npm >/dev/null && [ ! -e "$built/azurite" ] && [ ! -e "$built/no-azurite" ]; then
	missing=yes
fi
# What is complete is never written to: it may be another's, or lie on a disk that nobody writes to.
if [ -z "$missing" ]; then
	touch "$built" 2>/dev/null || true # The day of the last use, for the removal below.
	echo "$built"
	exit 0
fi

mkdir -p "$built"
# Two builds at once would only wait for each other's packages.
exec 9>"$built/.lock"
flock 9
for program in $programs; do
	[ -x "$built/$program" ] && continue
	started=$(date +%s)
	echo "servers: building $program (once; kept in $built)" >&2
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w" -o "$built/$program.tmp" "./$program" >&2
	mv "$built/$program.tmp" "$built/$program"
	echo "servers: $program built in $(($(date +%s) - started)) s" >&2
done

# Azurite is Microsoft's emulator of Azure's storage, and takes Node.js. Tests that want it say so and are skipped without it.
if command -v npm >/dev/null && [ ! -e "$built/azurite" ] && [ ! -e "$built/no-azurite" ]; then
	echo "servers: installing azurite $azurite (once; kept in $built)" >&2
	if npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$built/azurite.tmp" "azurite@$azurite" >&2; then
		rm -rf "$built/azurite" && mv "$built/azurite.tmp" "$built/azurite"
	else
		echo "servers: azurite cannot be installed here; tests do without" >&2
		rm -rf "$built/azurite.tmp" && touch "$built/no-azurite"
	fi
fi

# Versions that nobody has used for long are of no more use; only folders made by this script are removed.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name 'v-*' ! -path "$built" -mtime +30 -exec rm -rf {} + 2>/dev/null || true
echo "$built"
