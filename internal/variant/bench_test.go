package variant_test

import (
	"fmt"
	"maps"
	"testing"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/variant"
)

// BenchmarkUpdate is one of many variants that people edited, when upstream moves.
func BenchmarkUpdate(b *testing.B) {
	read := func(version string) variant.Blueprint {
		p := kpt.Package{}
		for name, content := range map[string]string{"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n"} {
			p[name] = kpt.File{Content: []byte(content), Mode: 0o644}
		}
		for i := range 20 {
			text := fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d%d\nspec:\n  replicas: 1\n  selector:\n    matchLabels:\n      app: d\n"+
				"  template:\n    metadata:\n      labels:\n        app: d\n    spec:\n      containers:\n      - name: c\n        image: x:%s\n", i, version)
			p[fmt.Sprintf("d%d.yaml", i)] = kpt.File{Content: []byte(text), Mode: 0o644}
		}
		return variant.Blueprint{Repo: "r", Directory: "web", Ref: version, Commit: version, Package: p}
	}
	last := variant.Version{Blueprint: read("v1"), Config: config()}
	next := variant.Version{Blueprint: read("v2"), Config: config()}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		last.Config.Labels["n"], next.Config.Labels["n"] = fmt.Sprint(n), fmt.Sprint(n)
		renderer := function.New(function.Options{})
		first, err := variant.Desired(b.Context(), last, "", renderer)
		if err != nil {
			b.Fatal(err)
		}
		local := maps.Clone(first.Package)
		local["mine.yaml"] = kpt.File{Content: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"), Mode: 0o644}
		outcome, err := variant.Update(b.Context(), variant.Request{Last: &last, Next: next, Local: local, Policy: merge.Fail}, renderer)
		if err != nil || len(outcome.Package) != 24 {
			b.Fatal(err, len(outcome.Package))
		}
	}
}
