package function

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
