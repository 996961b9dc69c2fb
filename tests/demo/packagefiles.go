package main

import "fmt"

// packageFiles is the blueprint as its authors keep it: a Deployment, and settings that every cluster fills itself.
func packageFiles(image string) map[string]string {
	return map[string]string{
		"web/Kptfile":         kptfile,
		"web/deployment.yaml": fmt.Sprintf(webFile, image),
		"web/settings.yaml":   webSettingsFile,
	}
}

const kptfile = `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
info:
  description: A web server that knows its region
`

// webFile takes the tag of the image.
const webFile = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1 # enough for most clusters
  template:
    spec:
      containers:
        - name: web
          image: example.com/web:%s
`

const webSettingsFile = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations:
    kpt.dev/config-injection: required
data:
  region: none
`

// packageRepositoryManifest takes a name and a URL.
const packageRepositoryManifest = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: %[1]s
spec:
  url: %[2]s
  interval: 1h
---
apiVersion: packages.sluice.dev/v1alpha1
kind: Repository
metadata:
  name: %[1]s
spec:
  gitRepositoryRef: {name: %[1]s}
  interval: 1s
---
`

// packagerManifest is the account that settings are read as, and a person who edits packages and may not approve them.
const packagerManifest = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: packager
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: packager
rules:
  - {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: packager
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: packager}
subjects:
  - {kind: ServiceAccount, name: packager, namespace: demo}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: editors
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
  - {apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}
---
`

// variantManifest takes the name of a cluster. What is injected there is a ConfigMap of that name.
const variantManifest = `apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s
data:
  region: %[1]s
---
apiVersion: packages.sluice.dev/v1alpha1
kind: PackageVariant
metadata:
  name: web-%[1]s
spec:
  upstream: {repo: blueprints, package: web}
  downstream: {repo: %[1]s}
  labels: {example.com/cluster: %[1]s}
  namespace: web
  injectors:
    - {kind: ConfigMap, point: settings, name: %[1]s}
  serviceAccountName: packager
---
`
