package catalog_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/catalog"
)

// TestMemo: it decides as if it remembered nothing, for whichever namespace asks, in whatever order.
func TestMemo(t *testing.T) {
	t.Parallel()
	shared := 0
	for seed := range uint64(worlds / 4) {
		w := makeWorld(seed)
		memo := catalog.NewMemo(now)
		if len(w.system.modules) > 0 && w.oneIn(2) {
			w.system.modules[0].Admits = func(namespace string) bool { return namespace != "team-1" }
		}
		system := w.system.catalogue()
		locals := map[string]*catalog.Contents{}
		for i := range 12 {
			namespace := fmt.Sprintf("team-%d", i%4)
			switch {
			case i%5 == 4:
				namespace = systemNamespace
				locals[namespace] = system
			case locals[namespace] == nil && i%2 == 0:
				locals[namespace] = catalog.New(namespace, nil, nil)
			case locals[namespace] == nil:
				locals[namespace] = catalog.New(namespace, w.local.releases, w.local.modules)
			}
			request, installed := w.request, w.installed
			request.Namespace = namespace
			if installed.Current != nil && installed.Current.Namespace == localNamespace && w.oneIn(2) {
				own := *installed.Current
				own.Namespace = namespace
				installed.Current = &own
			}
			index := catalog.Index{Local: locals[namespace], System: system}
			got, want := memo.Resolve(request, installed, index), catalog.Resolve(request, installed, index, now)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, namespace %s: -without a memory +with it:\n%s", seed, namespace, diff)
			}
			if got.Target != nil {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("nothing was found anywhere: the test looks at nothing")
	}
}

func BenchmarkMemo(b *testing.B) {
	index, memo := system(thousand(), foo("stable=1.50.0")), catalog.NewMemo(now)
	for i := 0; b.Loop(); i++ {
		request := latest()
		request.Namespace = fmt.Sprintf("team-%d", i%1000)
		if d := memo.Resolve(request, runs("1.40.0"), index); d.Target == nil {
			b.Fatal(d.Hold)
		}
	}
}
