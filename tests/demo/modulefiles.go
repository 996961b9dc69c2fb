package main

import "fmt"

// memberKinds are the kinds of what a release of the module holds.
const memberKinds = "crd,serviceaccounts,services,configmaps"

// moduleFiles is a release of the module as its authors publish it. The second one has another setting and one object
// less.
func moduleFiles(version string) map[string]string {
	files := map[string]string{"crd.yaml": crdFile, "service.yaml": serviceFile}
	if version == "1.0.0" {
		files["settings.yaml"] = fmt.Sprintf(settingsFile, "64mb")
		files["migration.yaml"] = migrationFile
		return files
	}
	files["settings.yaml"] = fmt.Sprintf(settingsFile, "128mb")
	return files
}

const crdFile = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: redises.cache.example.com
spec:
  group: cache.example.com
  scope: Namespaced
  names: {kind: Redis, plural: redises, singular: redis}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
      additionalPrinterColumns:
        - {name: Size, type: string, jsonPath: .spec.size}
`

const serviceFile = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: redis-operator
---
apiVersion: v1
kind: Service
metadata:
  name: redis-operator
spec:
  selector: {app: redis-operator}
  ports: [{port: 443, targetPort: 9443}]
`

const settingsFile = `apiVersion: v1
kind: ConfigMap
metadata:
  name: redis-settings
data:
  maxmemory: %s
`

const migrationFile = `apiVersion: v1
kind: ConfigMap
metadata:
  name: redis-migration
data:
  from: "0.9"
`

// moduleManifest says where the channels point.
const moduleManifest = `apiVersion: modules.sluice.dev/v1alpha1
kind: Module
metadata:
  name: redis
spec:
  description: A cache that survives its nodes
  defaultChannel: regular
  channels:
    - {name: regular, version: 1.0.0}
    - {name: fast, version: 2.0.0}
---
`

// templateManifest takes a version, a repository and a digest.
const templateManifest = `apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleTemplate
metadata:
  name: redis-%[1]s
spec:
  moduleName: redis
  version: %[1]s
  artifact:
    oci:
      repository: %[2]s
      digest: %[3]s
      tag: %[1]s
      insecure: true
  managedResources:
    - {group: cache.example.com, version: v1, kind: Redis}
---
`

// deployerManifest is the account that the module is installed as, and what it may do.
const deployerManifest = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: deployer
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: deployer
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects:
  - {kind: ServiceAccount, name: deployer, namespace: demo}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: deployer-redis
rules:
  - apiGroups: [apiextensions.k8s.io]
    resources: [customresourcedefinitions]
    verbs: [get, list, watch, create, patch, delete]
  - apiGroups: [cache.example.com]
    resources: [redises]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: deployer-redis
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deployer-redis}
subjects:
  - {kind: ServiceAccount, name: deployer, namespace: demo}
`

const installationManifest = `apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleInstallation
metadata:
  name: redis
spec:
  module:
    name: redis
    channel: regular
  serviceAccountName: deployer
`

const cacheManifest = `apiVersion: cache.example.com/v1
kind: Redis
metadata:
  name: sessions
spec:
  size: small
`
