package v1_test

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func helmChartContract() contract {
	return contract{
		names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural:     "helmcharts",
			Singular:   "helmchart",
			ShortNames: []string{"hc"},
			Kind:       "HelmChart",
			ListKind:   "HelmChartList",
			Categories: []string{"all", "fluxcd", "fluxcd-sources"},
		},
		columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Chart", Type: "string", JSONPath: ".spec.chart"},
			{Name: "Version", Type: "string", JSONPath: ".spec.version"},
			{Name: "Source Kind", Type: "string", JSONPath: ".spec.sourceRef.kind"},
			{Name: "Source Name", Type: "string", JSONPath: ".spec.sourceRef.name"},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
			{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
			{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
		},
		rules: apiextensionsv1.ValidationRules{{
			Rule:    "!has(self.verify) || self.sourceRef.kind == 'HelmRepository'",
			Message: "spec.verify is only supported when spec.sourceRef.kind is 'HelmRepository'",
		}},
		fields: map[string]string{
			"spec":                          "object rule=!has(self.verify) || self.sourceRef.kind == 'HelmRepository'",
			"spec.chart":                    "string required",
			"spec.ignoreMissingValuesFiles": "boolean",
			"spec.interval":                 `string required pattern=^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
			"spec.reconcileStrategy":        `string default="ChartVersion" enum="ChartVersion"|"Revision"`,
			"spec.sourceRef":                "object required",
			"spec.sourceRef.apiVersion":     "string",
			"spec.sourceRef.kind":           `string required enum="HelmRepository"|"GitRepository"|"Bucket"`,
			"spec.sourceRef.name":           "string required",
			"spec.suspend":                  "boolean",
			"spec.valuesFiles":              "array",
			"spec.valuesFiles[]":            "string",
			"spec.verify":                   "object",
			"spec.version":                  `string default="*"`,

			"spec.verify.matchOIDCIdentity":           "array",
			"spec.verify.matchOIDCIdentity[]":         "object",
			"spec.verify.matchOIDCIdentity[].issuer":  "string required",
			"spec.verify.matchOIDCIdentity[].subject": "string required",
			"spec.verify.provider":                    `string required default="cosign" enum="cosign"|"notation"`,
			"spec.verify.secretRef":                   "object",
			"spec.verify.secretRef.name":              "string required",

			"status.observedChartName":              "string",
			"status.observedSourceArtifactRevision": "string",
			"status.observedValuesFiles":            "array",
			"status.observedValuesFiles[]":          "string",
			"status.url":                            "string",
		},
	}
}
