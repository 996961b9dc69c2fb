package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// providerRule is the only rule of the kind that spans two fields.
const providerRule = "!has(self.serviceAccountName) || (has(self.provider) && (self.provider == 'azure' || self.provider == 'aws'))"

func gitRepositoryContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "gitrepositories",
			Singular:   "gitrepository",
			ShortNames: []string{"gitrepo"},
			Kind:       "GitRepository",
			ListKind:   "GitRepositoryList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "URL", Type: "string", JSONPath: ".spec.url"},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
		},
		rules: apiextensionsv1.ValidationRules{{
			Rule:    providerRule,
			Message: "serviceAccountName can only be set when provider is 'azure' or 'aws'",
		}},
		fields: map[string]string{
			"spec":                           "object rule=" + providerRule,
			"spec.ignore":                    "string",
			"spec.include":                   "array",
			"spec.include[]":                 "object",
			"spec.include[].fromPath":        "string",
			"spec.include[].repository":      "object required",
			"spec.include[].repository.name": "string required",
			"spec.include[].toPath":          "string",
			"spec.interval":                  `string required pattern=^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
			"spec.provider":                  `string enum="generic"|"aws"|"azure"|"github"`,
			"spec.proxySecretRef":            "object",
			"spec.proxySecretRef.name":       "string required",
			"spec.recurseSubmodules":         "boolean",
			"spec.ref":                       "object",
			"spec.ref.branch":                "string",
			"spec.ref.commit":                "string",
			"spec.ref.name":                  "string",
			"spec.ref.semver":                "string",
			"spec.ref.tag":                   "string",
			"spec.secretRef":                 "object",
			"spec.secretRef.name":            "string required",
			"spec.serviceAccountName":        "string",
			"spec.sparseCheckout":            "array",
			"spec.sparseCheckout[]":          "string",
			"spec.suspend":                   "boolean",
			"spec.timeout":                   `string default="60s" pattern=^([0-9]+(\.[0-9]+)?(ms|s|m))+$`,
			"spec.url":                       "string required pattern=^(http|https|ssh)://.*$",
			"spec.verify":                    "object",
			"spec.verify.mode":               `string default="HEAD" enum="head"|"HEAD"|"Tag"|"TagAndHEAD"`,
			"spec.verify.secretRef":          "object required",
			"spec.verify.secretRef.name":     "string required",

			"status.includedArtifacts":                 "array",
			"status.includedArtifacts[]":               "object",
			"status.includedArtifacts[].digest":        "string required pattern=" + digestPattern,
			"status.includedArtifacts[].metadata":      "object",
			"status.includedArtifacts[].metadata{}":    "string",
			"status.includedArtifacts[].path":          "string required",
			"status.includedArtifacts[].revision":      "string required",
			"status.includedArtifacts[].size":          "integer format=int64",
			"status.includedArtifacts[].url":           "string required",
			"status.observedIgnore":                    "string",
			"status.observedInclude":                   "array",
			"status.observedInclude[]":                 "object",
			"status.observedInclude[].fromPath":        "string",
			"status.observedInclude[].repository":      "object required",
			"status.observedInclude[].repository.name": "string required",
			"status.observedInclude[].toPath":          "string",
			"status.observedRecurseSubmodules":         "boolean",
			"status.observedSparseCheckout":            "array",
			"status.observedSparseCheckout[]":          "string",
			"status.sourceVerificationMode":            "string",

			"status.includedArtifacts[].lastUpdateTime": "string required format=date-time",
		},
	}
}
