#!/usr/bin/env bash
# Writes what is made from the Go types and their markers: deepcopy code, CRDs, the controllers' role, API reference.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(tests/tools.sh)

"$tools/controller-gen" object crd paths=./api/... output:crd:artifacts:config=config/crd/bases
"$tools/controller-gen" rbac:roleName=sluice-source,fileName=role.yaml paths=./controllers/source/... output:rbac:artifacts:config=config/rbac
"$tools/controller-gen" rbac:roleName=sluice-modules,fileName=modules_role.yaml paths=./controllers/modules/... output:rbac:artifacts:config=config/rbac
"$tools/controller-gen" rbac:roleName=sluice-packages,fileName=packages_role.yaml paths=./controllers/packages/... output:rbac:artifacts:config=config/rbac
"$tools/crd-ref-docs" --log-level=ERROR --renderer=markdown --config=config/reference.yaml \
	--source-path=api/source/v1 --output-path=docs/reference-source-v1.md
"$tools/crd-ref-docs" --log-level=ERROR --renderer=markdown --config=config/reference.yaml \
	--source-path=api/extensions/v1beta1 --output-path=docs/reference-extensions-v1beta1.md
"$tools/crd-ref-docs" --log-level=ERROR --renderer=markdown --config=config/reference.yaml \
	--source-path=api/modules/v1alpha1 --output-path=docs/reference-modules-v1alpha1.md
"$tools/crd-ref-docs" --log-level=ERROR --renderer=markdown --config=config/reference.yaml \
	--source-path=api/packages/v1alpha1 --output-path=docs/reference-packages-v1alpha1.md
go run ./tests/docs/remedies >internal/view/remedies.tsv
