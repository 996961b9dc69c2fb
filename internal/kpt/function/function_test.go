package function

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		if diff := cmp.Diff(want, Name(image)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}

func TestNothingElseRuns(t *testing.T) {
	t.Parallel()
	for _, entry := range []struct{ image, exec string }{
		{image: "example.com/set-label"}, {image: "SET-LABELS"}, {exec: "set-labels"}, {}, {image: "set-labels", exec: "rm"},
	} {
		if _, _, err := lookup(entry.image, entry.exec); !errors.Is(err, ErrUnknownFunction) {
			t.Errorf("%+v: %v", entry, err)
		}
	}
}

func TestAFunctionThatBreaksIsAnError(t *testing.T) {
	t.Parallel()
	err := guard(func() error { panic("oh") })
	if !errors.Is(err, ErrPanic) {
		t.Fatal(err)
	}
	want := "package sub: set-labels (mine): rendering broke: oh"
	if diff := cmp.Diff(want, blame(err, "sub", "set-labels", "mine").Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
