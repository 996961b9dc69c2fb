package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// artifactGeneratorContract is of another group than the sources, which its objects copy from.
func artifactGeneratorContract() contract {
	alias := "pattern=^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)"
	return contract{
		group: "source.extensions.fluxcd.io", version: "v1beta1",
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "artifactgenerators", Singular: "artifactgenerator", ShortNames: []string{"ag"}, Kind: "ArtifactGenerator", ListKind: "ArtifactGeneratorList",
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
		},
		without: []string{
			"status.contentConfigChecksum", "status.observedGeneration", "status.artifact", "status.artifact.digest", "status.artifact.lastUpdateTime",
			"status.artifact.metadata", "status.artifact.metadata{}", "status.artifact.path", "status.artifact.revision", "status.artifact.size", "status.artifact.url",
		},
		fields: map[string]string{
			"spec":                              "object",
			"spec.artifacts":                    "array required other=maxItems: 1000\nminItems: 1",
			"spec.artifacts[]":                  "object",
			"spec.artifacts[].copy":             "array required other=minItems: 1",
			"spec.artifacts[].copy[]":           "object",
			"spec.artifacts[].copy[].exclude":   "array other=maxItems: 100",
			"spec.artifacts[].copy[].exclude[]": "string",
			"spec.artifacts[].copy[].from":      "string required maxLength=1024 " + alias + "/(.*)$",
			"spec.artifacts[].copy[].strategy":  `string enum="Overwrite"|"Merge"|"Extract"`,
			"spec.artifacts[].copy[].to":        "string required maxLength=1024 pattern=^@(artifact)/(.*)$",
			"spec.artifacts[].name":             "string required maxLength=253",
			"spec.artifacts[].originRevision":   "string maxLength=64 " + alias + "$",
			"spec.artifacts[].revision":         "string maxLength=64 " + alias + "$",
			"spec.commonMetadata":               "object",
			"spec.commonMetadata.annotations":   "object",
			"spec.commonMetadata.annotations{}": "string",
			"spec.commonMetadata.labels":        "object",
			"spec.commonMetadata.labels{}":      "string",
			"spec.pathPattern":                  "string maxLength=1024 " + alias + "/(.*)$",
			"spec.sources":                      "array required other=maxItems: 1000\nminItems: 1",
			"spec.sources[]":                    "object",
			"spec.sources[].alias":              "string required maxLength=63 pattern=^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$",
			"spec.sources[].kind":               `string required enum="Bucket"|"GitRepository"|"OCIRepository"|"HelmChart"|"ExternalArtifact"`,
			"spec.sources[].name":               "string required maxLength=253 pattern=^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
			"spec.sources[].namespace":          "string minLength=1 maxLength=63 pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",

			"status":                       "object",
			"status.inventory":             "array",
			"status.inventory[]":           "object",
			"status.inventory[].digest":    "string required",
			"status.inventory[].filename":  "string required",
			"status.inventory[].name":      "string required",
			"status.inventory[].namespace": "string required",
			"status.observedSourcesDigest": "string",
		},
	}
}
