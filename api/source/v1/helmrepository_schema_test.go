package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func helmRepositoryContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "helmrepositories",
			Singular:   "helmrepository",
			ShortNames: []string{"helmrepo"},
			Kind:       "HelmRepository",
			ListKind:   "HelmRepositoryList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "URL", Type: "string", JSONPath: ".spec.url"},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
		},
		fields: map[string]string{
			"spec":                                 "object",
			"spec.accessFrom":                      "object",
			"spec.accessFrom.namespaceSelectors":   "array required",
			"spec.accessFrom.namespaceSelectors[]": "object",
			"spec.accessFrom.namespaceSelectors[].matchLabels":   "object",
			"spec.accessFrom.namespaceSelectors[].matchLabels{}": "string",
			"spec.certSecretRef":      "object",
			"spec.certSecretRef.name": "string required",
			"spec.insecure":           "boolean",
			"spec.interval":           `string pattern=^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
			"spec.passCredentials":    "boolean",
			"spec.provider":           `string default="generic" enum="generic"|"aws"|"azure"|"gcp"`,
			"spec.secretRef":          "object",
			"spec.secretRef.name":     "string required",
			"spec.suspend":            "boolean",
			"spec.timeout":            `string pattern=^([0-9]+(\.[0-9]+)?(ms|s|m))+$`,
			"spec.type":               `string enum="default"|"oci"`,
			"spec.url":                "string required pattern=^(http|https|oci)://.*$",

			"status.url": "string",
		},
	}
}
