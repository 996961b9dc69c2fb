package variant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/variant"
)

// point is a document that is one, of the kind "group/version kind".
func point(apiVersion, kind, name string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: " + name +
		"\n  annotations:\n    kpt.dev/config-injection: required\n---\n"
}

func pointsOf(t *testing.T, documents ...string) []kpt.Point {
	t.Helper()
	all := ""
	for _, document := range documents {
		all += document
	}
	p := kpt.Package{"points.yaml": {Content: []byte(all), Mode: 0o644}}
	points, err := variant.MarksOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return variant.Distinct(points, points).Points
}

func TestSources(t *testing.T) {
	t.Parallel()
	net, dns := point("v1", "ConfigMap", "net"), point("v1", "ConfigMap", "dns")
	site, secret := point("infra.example/v1", "Site", "site"), point("v1", "Secret", "pass")
	configMaps := variant.Lookup{Version: "v1", Kind: "ConfigMap", Namespace: "n"}
	named := func(injector int, name string) variant.Lookup {
		lookup := configMaps
		lookup.Injector, lookup.Name = injector, name
		return lookup
	}
	one := func(name string, content map[string]any) variant.Found {
		return variant.Found{Objects: []variant.Object{{Namespace: "n", Name: name, Content: content}}}
	}
	source := func(point, name string, content map[string]any) variant.Source {
		return variant.Source{Version: "v1", Kind: "ConfigMap", Point: point, Namespace: "n", Name: name, Content: content}
	}
	a, b := data("a", "1"), data("b", "2")
	cases := map[string]struct {
		reason    string
		points    []kpt.Point
		injectors []variant.Injector
		lookups   []variant.Lookup
		found     map[variant.Lookup]variant.Found
		want      []variant.Source
	}{
		"by name": {
			"Two points of a kind get the objects of their names, whichever injector stands first.",
			pointsOf(t, net, dns),
			[]variant.Injector{{Kind: new("ConfigMap"), Namespace: "n", Name: "dns"}, {Namespace: "n", Name: "net"}},
			[]variant.Lookup{named(0, "dns"), named(1, "net")},
			map[variant.Lookup]variant.Found{named(0, "dns"): one("dns", a), named(1, "net"): one("net", b)},
			[]variant.Source{source("", "dns", a), source("", "net", b)},
		},
		"own name": {
			"Without a name, an object has to have the point's.",
			pointsOf(t, net, dns),
			[]variant.Injector{{Namespace: "n"}},
			[]variant.Lookup{named(0, "dns"), named(0, "net")},
			map[variant.Lookup]variant.Found{named(0, "dns"): one("dns", a), named(0, "net"): one("net", b)},
			[]variant.Source{source("dns", "dns", a), source("net", "net", b)},
		},
		"by point": {
			"An injector may be for a point alone, and then goes before others.",
			pointsOf(t, net, dns),
			[]variant.Injector{{Namespace: "n", Name: "all"}, {Point: "net", Namespace: "n", Name: "eu"}},
			[]variant.Lookup{named(0, "all"), named(1, "eu")},
			map[variant.Lookup]variant.Found{named(0, "all"): one("all", a), named(1, "eu"): one("eu", b)},
			[]variant.Source{source("", "all", a), source("net", "eu", b)},
		},
		"first": {
			"Of several for every point the first is taken that has an object, and the others change nothing.",
			pointsOf(t, net),
			[]variant.Injector{{Namespace: "n", Name: "x"}, {Namespace: "n", Name: "y"}, {Namespace: "n", Name: "z"}},
			[]variant.Lookup{named(0, "x"), named(1, "y"), named(2, "z")},
			map[variant.Lookup]variant.Found{named(1, "y"): one("y", a), named(2, "z"): one("z", b)},
			[]variant.Source{source("", "y", a)},
		},
		"kinds": {
			"An object is of its point's group, version and kind; of it, what the kind holds is taken.",
			pointsOf(t, net, site),
			[]variant.Injector{
				{Group: new(""), Namespace: "n", Name: "eu"},
				{Group: new("infra.example"), Version: new("v2"), Name: "eu"},
				{Group: new("infra.example"), Version: new("v1"), Kind: new("Site"), Name: "eu"},
			},
			[]variant.Lookup{named(0, "eu"), {Injector: 2, Group: "infra.example", Version: "v1", Kind: "Site", Name: "eu"}},
			map[variant.Lookup]variant.Found{
				named(0, "eu"): one("eu", map[string]any{"data": map[string]any{"a": "1"}, "binaryData": map[string]any{"b": "Mg=="}, "metadata": 1, "immutable": true}),
				{Injector: 2, Group: "infra.example", Version: "v1", Kind: "Site", Name: "eu"}: {
					Objects: []variant.Object{{Name: "eu", Content: map[string]any{"spec": map[string]any{"x": 1}, "status": 2}}},
				},
			},
			[]variant.Source{
				source("", "eu", map[string]any{"data": map[string]any{"a": "1"}, "binaryData": map[string]any{"b": "Mg=="}}),
				{Group: "infra.example", Version: "v1", Kind: "Site", Name: "eu", Content: map[string]any{"spec": map[string]any{"x": 1}}},
			},
		},
		"ambiguous": {
			"Of several that are selected none is taken, and no other injector is asked.",
			pointsOf(t, net),
			[]variant.Injector{{Namespace: "n", Selects: true}, {Namespace: "n", Name: "z"}},
			[]variant.Lookup{named(0, ""), named(1, "z")},
			map[variant.Lookup]variant.Found{
				named(0, ""):  {Objects: []variant.Object{{Name: "b"}, {Name: "a"}}},
				named(1, "z"): one("z", b),
			},
			[]variant.Source{{
				Version: "v1", Kind: "ConfigMap", Reason: variant.ReasonAmbiguous, Message: "2 resources are selected: a, b",
			}},
		},
		"refused": {
			"What may not be looked at is told.",
			pointsOf(t, net),
			[]variant.Injector{{Namespace: "n", Name: "x"}},
			[]variant.Lookup{named(0, "x")},
			map[variant.Lookup]variant.Found{named(0, "x"): {Refusal: "configmaps is\nforbidden"}},
			[]variant.Source{{Version: "v1", Kind: "ConfigMap", Reason: variant.ReasonForbidden, Message: `configmaps is\nforbidden`}},
		},
		"empty": {
			"An object that holds nothing fills nothing.",
			pointsOf(t, net),
			[]variant.Injector{{Namespace: "n", Name: "x"}},
			[]variant.Lookup{named(0, "x")},
			map[variant.Lookup]variant.Found{named(0, "x"): one("x", map[string]any{"spec": 1, "data": nil})},
			[]variant.Source{{
				Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x", Content: map[string]any{},
				Reason: variant.ReasonNoResource, Message: `resource "x" has none of the fields [data binaryData]`,
			}},
		},
		"secret": {
			"Secrets are not even looked up unless it is allowed.",
			pointsOf(t, secret),
			[]variant.Injector{{Namespace: "n", Name: "x"}},
			[]variant.Lookup{},
			nil,
			[]variant.Source{{
				Version: "v1", Kind: "Secret", Point: "pass", Reason: variant.ReasonForbidden,
				Message: "no injector that allows Secrets has one for it",
			}},
		},
		"allowed": {
			"Of a Secret its data and type are taken where it is allowed.",
			pointsOf(t, secret),
			[]variant.Injector{{Namespace: "n", Name: "x"}, {Namespace: "n", Name: "x", AllowSecrets: true}},
			[]variant.Lookup{{Injector: 1, Version: "v1", Kind: "Secret", Namespace: "n", Name: "x"}},
			map[variant.Lookup]variant.Found{
				{Injector: 1, Version: "v1", Kind: "Secret", Namespace: "n", Name: "x"}: one("x", map[string]any{"type": "Opaque", "data": 1, "immutable": true}),
			},
			[]variant.Source{{
				Version: "v1", Kind: "Secret", Namespace: "n", Name: "x", Content: map[string]any{"type": "Opaque", "data": 1},
			}},
		},
		"nothing": {"Without injectors nothing fills a point.", pointsOf(t, net), nil, []variant.Lookup{}, nil, []variant.Source{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.lookups, variant.Lookups(tc.points, tc.injectors)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, variant.Sources(tc.points, tc.injectors, tc.found)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
