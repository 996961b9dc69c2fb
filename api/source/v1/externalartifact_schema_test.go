package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// externalArtifactContract: its maker reports, so that it has none of the fields by which our controllers report.
func externalArtifactContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "externalartifacts",
			Singular:   "externalartifact",
			ShortNames: []string{"ea"},
			Kind:       "ExternalArtifact",
			ListKind:   "ExternalArtifactList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
			{Name: "Source", Type: "string", JSONPath: ".spec.sourceRef.name"},
		},
		without: []string{"status.contentConfigChecksum", "status.lastHandledReconcileAt", "status.observedGeneration"},
		fields: map[string]string{
			"spec":                      "object",
			"spec.sourceRef":            "object",
			"spec.sourceRef.apiVersion": "string",
			"spec.sourceRef.kind":       "string required",
			"spec.sourceRef.name":       "string required",
			"spec.sourceRef.namespace":  "string",

			"status": "object",
		},
	}
}
