#!/usr/bin/env bash
# Writes what is made from the Go types and their markers: deepcopy code, CRDs, the controllers' role, API reference.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(tests/tools.sh)

"$tools/controller-gen" object paths=./api/...
"$tools/controller-gen" crd paths=./api/... output:crd:artifacts:config=config/crd/bases
"$tools/controller-gen" rbac:roleName=sluice-source paths=./controllers/... output:rbac:artifacts:config=config/rbac
"$tools/crd-ref-docs" --log-level=ERROR --renderer=markdown --config=config/reference.yaml \
	--source-path=api/source/v1 --output-path=docs/reference-source-v1.md
