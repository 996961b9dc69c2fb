package chart_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/helm/chart"
)

// described are the descriptions among files.
func described(texts map[string]string) map[string]string {
	only := maps.Clone(texts)
	maps.DeleteFunc(only, func(name, _ string) bool { return !chart.IsDescription(name) })
	return only
}

// part is what of a tree the package of a chart may be made of, as its descriptions alone tell.
func part(t *testing.T, texts map[string]string, at string) map[string]string {
	t.Helper()
	places, err := chart.Places(t.Context(), files(described(texts)), at, chart.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	only := maps.Clone(texts)
	maps.DeleteFunc(only, func(name, _ string) bool {
		return !slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(name, place+"/") })
	})
	return only
}

// TestPlacesAreBounded: who writes a chart decides how much is remembered of it.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	many, long := "dependencies:\n", "dependencies:\n- {name: a, repository: 'file://"+strings.Repeat("a", 5000)+"'}\n"
	for i := range 1001 {
		many += fmt.Sprintf("- {name: a, repository: 'file://../%d'}\n", i)
	}
	for _, text := range []string{many, long} {
		_, err := chart.Places(t.Context(), files(map[string]string{"app/Chart.yaml": text}), "app", chart.Limits{})
		if !errors.Is(err, chart.ErrDependency) || len(err.Error()) > 300 {
			t.Errorf("got %v", err)
		}
	}
}

func TestPlacesAreWhatAChartRefersTo(t *testing.T) {
	t.Parallel()
	needs := func(list string) string { return "name: app\nversion: 1.0.0\ndependencies:\n" + list }
	for name, tc := range map[string]struct {
		texts map[string]string
		at    string
		want  []string
	}{
		"itself":          {nil, "./charts//app/", []string{"charts/app"}},
		"a climbing path": {nil, "../../charts/app", []string{"charts/app"}},
		"the root":        {nil, "", []string{"."}},
		"a package":       {nil, "charts/app.tgz", []string{"charts/app.tgz"}},
		"from the chart, from the root, and in turn": {map[string]string{
			"charts/app/Chart.yaml": needs("- {name: a, repository: 'file://../a'}\n- {name: b, repository: 'file:///b'}\n"),
			"charts/a/Chart.yaml":   needs("- {name: c, repository: 'file://../../c/'}\n"),
		}, "charts/app", []string{"charts/app", "charts/a", "b", "c"}},
		"a circle": {map[string]string{
			"charts/app/Chart.yaml": needs("- {name: a, repository: 'file://../a'}\n"), "charts/a/Chart.yaml": needs("- {name: app, repository: 'file://../app'}\n"),
		}, "charts/app", []string{"charts/app", "charts/a"}},
		"locks, and charts of the first kind": {map[string]string{
			"app/Chart.lock": needs("- {name: a, repository: 'file://../a'}\n"), "app/requirements.yaml": needs("- {name: b, repository: 'file://../b'}\n"),
			"app/requirements.lock": needs("- {name: c, repository: 'file://../c'}\n"),
		}, "app", []string{"app", "a", "b", "c"}},
		"in the charts folder": {map[string]string{
			"app/Chart.yaml": needs("- {name: a}\n"), "app/charts/a/Chart.yaml": needs("- {name: b, repository: 'file://../../../b'}\n"),
		}, "app", []string{"app", "app/charts/a", "b"}},
		"nothing outside, and nothing of others": {map[string]string{
			"app/Chart.yaml": needs("- {name: a, repository: 'file://../../../etc'}\n- {name: b, repository: 'https://b.example'}\n- {name: c, repository: '@c'}\n"),
		}, "app", []string{"app", "etc"}},
		"what is no YAML refers to nothing": {map[string]string{"app/Chart.yaml": "{{"}, "app", []string{"app"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := chart.Places(t.Context(), files(tc.texts), tc.at, chart.Limits{})
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}
