package failure_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/failure"
)

func TestOf(t *testing.T) {
	t.Parallel()
	base := errors.New("base")
	cases := map[string]struct {
		reason string
		err    error
		want   *failure.Error
	}{
		"Nil":       {reason: "no error is no failure", err: nil, want: nil},
		"Plain":     {reason: "an error that says nothing is retried", err: base, want: &failure.Error{Err: base}},
		"Stall":     {reason: "a stall is found", err: failure.Stall("URLInvalid", base), want: &failure.Error{Disposition: failure.Stalls, Reason: "URLInvalid", Err: base}},
		"Wrapped":   {reason: "wrapping keeps the disposition", err: fmt.Errorf("open: %w", failure.Wait("NotFound", time.Second, base)), want: &failure.Error{Disposition: failure.Waits, Reason: "NotFound", After: time.Second, Err: base}},
		"Outermost": {reason: "the outermost failure decides", err: failure.Stall("Outer", failure.Retry("Inner", base)), want: &failure.Error{Disposition: failure.Stalls, Reason: "Outer", Err: failure.Retry("Inner", base)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same := cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })
			if diff := cmp.Diff(tc.want, failure.Of(tc.err), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Err" }, same)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
