package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

// TestWhatIsNotFoundSaysWhereAndWhatElse: a name is mistyped more often than it is missing.
func TestWhatIsNotFoundSaysWhereAndWhatElse(t *testing.T) {
	t.Parallel()
	named := func(modules ...string) []catalog.Release {
		var releases []catalog.Release
		for _, module := range modules {
			releases = append(releases, of("1.0.0", func(r *catalog.Release) { r.Module, r.Template = module, module+"-1.0.0" }))
		}
		return releases
	}
	module := func(name string, edits ...func(*catalog.Request)) catalog.Request {
		return edit(edit(ask(), func(r *catalog.Request) { r.Name = name }), edits...)
	}
	shelves := both(named("redis", "kafka"), named("redis-operator", "reds", "redisson", "redes"))
	alone := catalog.Index{Local: catalog.New(localNamespace, named("redis"), nil)}
	closed := catalog.Index{
		Local:  catalog.New(localNamespace, nil, nil),
		System: catalog.New(systemNamespace, named("redis", "reds"), []catalog.Module{{Name: "reds", Admits: func(string) bool { return false }}}),
	}
	own := catalog.New(systemNamespace, named("redis"), nil)
	for name, tc := range map[string]struct {
		reason  string
		request catalog.Request
		index   catalog.Index
		want    string
	}{
		"both": {
			"both catalogues were looked in, and the likeliest names come first", module("redsi"), shelves,
			"There is no module redsi in namespace team-a, and in namespace sluice-system; similar: reds, redes, redis",
		},
		"beginning": {
			"a name may be cut short, or too long", module("redis-op"), shelves,
			"There is no module redis-op in namespace team-a, and in namespace sluice-system; similar: redisson, redis, redis-operator",
		},
		"long": {
			"only so much of names is compared", module(strings.Repeat("redis", 8) + "-one"), both(named(strings.Repeat("redis", 8)+"-two", strings.Repeat("kafka", 8)+"-one"), nil),
			"There is no module " + strings.Repeat("redis", 8) + "-one in namespace team-a, and in namespace sluice-system; similar: " + strings.Repeat("redis", 8) + "-two",
		},
		"nothing like it": {
			"what is not similar is no help", module("postgresql"), shelves,
			"There is no module postgresql in namespace team-a, and in namespace sluice-system",
		},
		"no system": {
			"that there is no second catalogue explains a lot", module("rediss"), alone,
			"There is no module rediss in namespace team-a, and in the System catalogue, for which no namespace is set; similar: redis",
		},
		"own": {
			"the two may be one", module("rediss"),
			catalog.Index{Local: own, System: own},
			"There is no module rediss in namespace sluice-system; similar: redis",
		},
		"named": {
			"where was not looked counts only if it has the very name", module("reds", from(modulesv1.CatalogLocal)), shelves,
			"There is no module reds in namespace team-a; similar: redis; the System catalogue has one: to use that, set catalog to it",
		},
		"not for this namespace": {
			"what a module's team has not opened is neither a help nor told", module("redi"), closed,
			"There is no module redi in namespace team-a, and in namespace sluice-system; similar: redis",
		},
		"not for this namespace, elsewhere": {
			"nor is it in the other catalogue", module("reds", from(modulesv1.CatalogLocal)), closed,
			"There is no module reds in namespace team-a",
		},
		"template not for this namespace": {
			"nor are its releases", template("redi-1.0.0", func(r *catalog.Request) { r.Name = "" }), closed,
			"There is no template redi-1.0.0 in namespace team-a, and in namespace sluice-system; similar: redis-1.0.0",
		},
		"template": {
			"templates have names too", template("redis-1.0", func(r *catalog.Request) { r.Name = "" }), shelves,
			"There is no template redis-1.0 in namespace team-a, and in namespace sluice-system; similar: redis-1.0.0, redes-1.0.0, reds-1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := catalog.Resolve(tc.request, nothing, tc.index, now)
			if d.Hold == nil {
				t.Fatalf("%s: found %+v", tc.reason, d.Target)
			}
			if diff := cmp.Diff(tc.want, d.Hold.Message); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
