package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func bucketContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "buckets",
			Singular:   "bucket",
			Kind:       "Bucket",
			ListKind:   "BucketList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Endpoint", Type: "string", JSONPath: ".spec.endpoint"},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
		},
		rules: apiextensionsv1.ValidationRules{
			{
				Rule:    "self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)",
				Message: "STS configuration is only supported for the 'aws' and 'generic' Bucket providers",
			},
			{
				Rule:    "self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'",
				Message: "'aws' is the only supported STS provider for the 'aws' Bucket provider",
			},
			{
				Rule:    "self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'",
				Message: "'ldap' is the only supported STS provider for the 'generic' Bucket provider",
			},
			{
				Rule:    "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)",
				Message: "spec.sts.secretRef is not required for the 'aws' STS provider",
			},
			{
				Rule:    "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)",
				Message: "spec.sts.certSecretRef is not required for the 'aws' STS provider",
			},
			{
				Rule:    "self.provider != 'generic' || !has(self.serviceAccountName)",
				Message: "ServiceAccountName is not supported for the 'generic' Bucket provider",
			},
			{
				Rule:    "!has(self.secretRef) || !has(self.serviceAccountName)",
				Message: "cannot set both .spec.secretRef and .spec.serviceAccountName",
			},
		},
		fields: map[string]string{
			"spec":                        "object rule=" + bucketRules,
			"spec.bucketName":             "string required",
			"spec.certSecretRef":          "object",
			"spec.certSecretRef.name":     "string required",
			"spec.endpoint":               "string required",
			"spec.ignore":                 "string",
			"spec.insecure":               "boolean",
			"spec.interval":               `string required pattern=^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
			"spec.prefix":                 "string",
			"spec.provider":               `string default="generic" enum="generic"|"aws"|"gcp"|"azure"`,
			"spec.proxySecretRef":         "object",
			"spec.proxySecretRef.name":    "string required",
			"spec.region":                 "string",
			"spec.secretRef":              "object",
			"spec.secretRef.name":         "string required",
			"spec.serviceAccountName":     "string",
			"spec.sts":                    "object",
			"spec.sts.certSecretRef":      "object",
			"spec.sts.certSecretRef.name": "string required",
			"spec.sts.endpoint":           "string required pattern=^(http|https)://.*$",
			"spec.sts.provider":           `string required enum="aws"|"ldap"`,
			"spec.sts.secretRef":          "object",
			"spec.sts.secretRef.name":     "string required",
			"spec.suspend":                "boolean",
			"spec.timeout":                `string default="60s" pattern=^([0-9]+(\.[0-9]+)?(ms|s|m))+$`,

			"status.observedIgnore": "string",
			"status.url":            "string",
		},
	}
}

// bucketRules are the rules of spec in one line, as describe writes them.
const bucketRules = "self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)" +
	" rule=self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'" +
	" rule=self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'" +
	" rule=!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)" +
	" rule=!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)" +
	" rule=self.provider != 'generic' || !has(self.serviceAccountName)" +
	" rule=!has(self.secretRef) || !has(self.serviceAccountName)"
