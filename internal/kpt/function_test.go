package kpt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

func TestAFunctionIsKnownByItsImagesName(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"set-labels": "set-labels",
		"ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2": "set-labels",
		"localhost:5000/set-labels":                            "set-labels",
		"localhost:5000/x/set-labels@sha256:0123":              "set-labels",
		"localhost:5000/x/set-labels:v1@sha256:0123":           "set-labels",
		"gcr.io/kpt-fn/set-labels:unstable":                    "set-labels",
		"set-labels/other":                                     "other",
		"":                                                     "",
	} {
		if diff := cmp.Diff(want, kpt.ImageName(image)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}
