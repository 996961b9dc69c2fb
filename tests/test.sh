#!/usr/bin/env bash
# Runs the tests of the packages given, of all without any. The control plane is built first, so that its time does
# not count as a test's.
set -euo pipefail
cd "$(dirname "$0")/.."
# What takes longest comes first, as it would run alone at the end.
[ $# -gt 0 ] || set -- ./tests/e2e ./...

tests/needs.sh
tools=$(tests/quietly.sh tests/tools.sh)
KUBEBUILDER_ASSETS=$(tests/quietly.sh tests/controlplane/build.sh)
tests/quietly.sh tests/servers/build.sh >/dev/null
export KUBEBUILDER_ASSETS PATH="$PATH:/usr/sbin"

(cd tests/controlplane && CGO_ENABLED=0 go vet -trimpath ./...)
(cd tests/servers && CGO_ENABLED=0 go vet -trimpath ./...)
# What go vet finds in tests, make verify has found.
"$tools/gotestsum" --format pkgname-and-test-fails --format-hide-empty-pkg -- -race -vet=off -timeout 90m "$@"
