package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func ociRepositoryContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "ocirepositories",
			Singular:   "ocirepository",
			ShortNames: []string{"ocirepo"},
			Kind:       "OCIRepository",
			ListKind:   "OCIRepositoryList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "URL", Type: "string", JSONPath: ".spec.url"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		},
		fields: map[string]string{
			"spec":                                    "object",
			"spec.certSecretRef":                      "object",
			"spec.certSecretRef.name":                 "string required",
			"spec.ignore":                             "string",
			"spec.insecure":                           "boolean",
			"spec.interval":                           `string required pattern=^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
			"spec.layerSelector":                      "object",
			"spec.layerSelector.mediaType":            "string",
			"spec.layerSelector.operation":            `string enum="extract"|"copy"`,
			"spec.provider":                           `string default="generic" enum="generic"|"aws"|"azure"|"gcp"`,
			"spec.proxySecretRef":                     "object",
			"spec.proxySecretRef.name":                "string required",
			"spec.ref":                                "object",
			"spec.ref.digest":                         "string",
			"spec.ref.semver":                         "string",
			"spec.ref.semverFilter":                   "string",
			"spec.ref.tag":                            "string",
			"spec.secretRef":                          "object",
			"spec.secretRef.name":                     "string required",
			"spec.serviceAccountName":                 "string",
			"spec.suspend":                            "boolean",
			"spec.timeout":                            `string default="60s" pattern=^([0-9]+(\.[0-9]+)?(ms|s|m))+$`,
			"spec.url":                                "string required pattern=^oci://.*$",
			"spec.verify":                             "object",
			"spec.verify.matchOIDCIdentity":           "array",
			"spec.verify.matchOIDCIdentity[]":         "object",
			"spec.verify.matchOIDCIdentity[].issuer":  "string required",
			"spec.verify.matchOIDCIdentity[].subject": "string required",
			"spec.verify.provider":                    `string required default="cosign" enum="cosign"|"notation"`,
			"spec.verify.secretRef":                   "object",
			"spec.verify.secretRef.name":              "string required",
			"spec.verify.trustedRootSecretRef":        "object",
			"spec.verify.trustedRootSecretRef.name":   "string required",

			"status.observedIgnore":                  "string",
			"status.observedLayerSelector":           "object",
			"status.observedLayerSelector.mediaType": "string",
			"status.observedLayerSelector.operation": `string enum="extract"|"copy"`,
			"status.url":                             "string",
		},
	}
}
