package docs_test

import (
	"path/filepath"
	"regexp"
	"testing"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

var (
	ownMetric = regexp.MustCompile(`^(sluice|gotk)(_[a-z]+)+$`)
	fullName  = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// TestMetricsAreDocumented: each metric that the program registers has a row, and no row is about one that is gone.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	root := testenv.Root()
	words, err := docs.ReadWords(filepath.Join(root, "internal", "app"), filepath.Join(root, "internal", "event"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for text := range words.Strings {
		if ownMetric.MatchString(text) {
			want[text] = true
		}
	}
	for _, collector := range fluxmetrics.NewRecorder().Collectors() {
		for _, name := range described(collector) {
			want[name] = true
		}
	}
	got := map[string]bool{}
	for _, table := range page(t, "docs/operations.md").Tables() {
		for _, name := range table.Column("Metric") {
			if ownMetric.MatchString(name) {
				got[name] = true
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics in docs/operations.md (-as the program has them +as documented):\n%s", diff)
	}
}

func described(collector prometheus.Collector) []string {
	descriptions := make(chan *prometheus.Desc, 16)
	go func() {
		defer close(descriptions)
		collector.Describe(descriptions)
	}()
	var names []string
	for description := range descriptions {
		if match := fullName.FindStringSubmatch(description.String()); match != nil {
			names = append(names, match[1])
		}
	}
	return names
}
