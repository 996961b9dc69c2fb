package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/view"
)

// TestRemedies: the page's words for what a condition says.
func TestRemedies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason                            string
		kind, condition, because, message string
		stalled                           bool
		want                              []string
	}{
		"Plain":     {"a reason with one row", "ModuleInstallation", "Ready", "EmptyRender", "no objects", false, []string{"Correct path, or publish a release that is mended."}},
		"Stalled":   {"the disposition tells rows apart", "ModuleInstallation", "Ready", "DependencyNotReady", "", true, []string{"Correct it."}},
		"Condition": {"so does the condition", "ModuleInstallation", "UpToDate", "DependencyNotReady", "", false, []string{"Wait, or mend what the message names."}},
		"Quoted": {
			"and so does a message that the page quotes", "Bucket", "FetchFailed", "BucketOperationFailed", "bucket 'b' not found", false,
			[]string{"Correct spec.bucketName, spec.endpoint or spec.region."},
		},
		"Unknown": {"no page, no remedy", "ModuleInstallation", "Ready", "Odd", "", false, nil},
		"Foreign": {"nor for other kinds", "Deployment", "Ready", "EmptyRender", "", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, one := range view.Remedies(tc.kind, tc.condition, tc.because, tc.message, tc.stalled) {
				got = append(got, one.Remedy)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
