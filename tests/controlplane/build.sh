#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager and kubectl from Go modules, once for each set of versions,
# and prints the folder that holds them (the value of KUBEBUILDER_ASSETS). Everything else goes to standard error.
set -euo pipefail
cd "$(dirname "$0")"

programs="etcd kube-apiserver kube-controller-manager kubectl"
version=$(GOFLAGS=-mod=readonly go list -m -f '{{.Version}}' k8s.io/kubernetes)
key=$(cat go.mod go.sum build.sh ./*/main.go <(go env GOVERSION GOOS GOARCH) | sha256sum | cut -c1-12)
cache="${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/controlplane"
assets="$cache/$version-$key"

missing=
for program in $programs; do
	[ -x "$assets/$program" ] || missing=yes
done
# What is complete is never written to: it may be another's, or lie on a disk that nobody writes to.
if [ -z "$missing" ]; then
	touch "$assets" 2>/dev/null || true # The day of the last use, for the removal below.
	echo "$assets"
	exit 0
fi

mkdir -p "$assets"
# Two builds at once would only wait for each other's packages.
exec 9>"$assets/.lock"
flock 9

stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
stamp+=" -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$version") -X k8s.io/component-base/version.gitTreeState=clean"
for program in $programs; do
	[ -x "$assets/$program" ] && continue
	started=$(date +%s)
	echo "controlplane: building $program $version (once; kept in $assets)" >&2
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w $stamp" -o "$assets/$program.tmp" "./$program" >&2
	mv "$assets/$program.tmp" "$assets/$program"
	echo "controlplane: $program built in $(($(date +%s) - started)) s" >&2
done

# Versions that nobody has used for long are of no more use; only folders made by this script are removed.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name 'v*-*' ! -path "$assets" -mtime +30 -exec rm -rf {} + 2>/dev/null || true
echo "$assets"
