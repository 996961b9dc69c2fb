package kpt_test

import (
	"errors"
	"testing"

	"sluice.dev/sluice/internal/kpt"
)

func FuzzOpen(f *testing.F) {
	for _, text := range []string{
		points, whole, packageContext, "a: 1\n---\n---\n# c\n...\nb: 2", "%YAML 1.1\n---\napiVersion: v1\nkind: X\n...\n",
		"apiVersion: v1\nkind: &a X\nmetadata: {name: *a, annotations: {kpt.dev/config-injection: required}}\n",
		"apiVersion: v1\nkind: X\nmetadata: &m\n  name: a\n  annotations: &a\n    <<: *a\n", "\ufeffapiVersion: v1\r\nkind: X\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := kpt.Package{"a.yaml": {Content: text, Mode: 0o644}, "Kptfile": {Content: []byte(kptfile), Mode: 0o644}}
		resources, err := kpt.Open(p)
		if syntax := (*kpt.SyntaxError)(nil); err != nil {
			if !errors.As(err, &syntax) {
				t.Fatalf("the error is %T: %v", err, err)
			}
			return
		}
		same, err := resources.Package()
		if err != nil || !same.Equal(p) {
			t.Fatalf("what nobody changed became %q: %v", same["a.yaml"].Content, err)
		}
		found, err := resources.Points()
		if err != nil {
			return
		}
		for _, point := range found {
			if err := point.Inject("x", map[string]any{"spec": map[string]any{"a": "b"}, "data": map[string]any{"c": "d"}}); err != nil {
				t.Fatal(err)
			}
		}
		injected, err := resources.Package()
		if err != nil {
			t.Fatal(err)
		}
		again, err := kpt.Open(injected)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, injected["a.yaml"].Content, err)
		}
		if len(again.Items) != len(resources.Items) {
			t.Fatalf("%q became %q: %d objects and not %d", text, injected["a.yaml"].Content, len(again.Items), len(resources.Items))
		}
	})
}

func FuzzKptfile(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(kptfile + "pipeline:\n  mutators: &m\n  - image: x\n  validators: *m\n"))
	f.Add([]byte(kptfile + "upstream: {git: {repo: r}}\nstatus: null\ninfo:\n"))
	f.Add([]byte(kptfile + "pipeline:\n" + bomb()))
	owner := kpt.Owner{Namespace: "a", Name: "b"}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := kpt.ReadFacts(text); err != nil {
			return
		}
		k, err := parseKptfile(text)
		if err != nil {
			return
		}
		if _, err := k.Pipeline(); err != nil {
			return
		}
		k.SetName("name")
		k.SetLabel("a", "b")
		k.SetAnnotation("a", "no")
		k.SetUpstream(kpt.Upstream{Repo: "r", Directory: "d", Ref: "f", Strategy: "s"})
		k.SetLock(kpt.Lock{Repo: "r", Directory: "d", Ref: "f", Commit: "0123"})
		k.SetInjectionStatus([]string{"config.injection.A.b"}, []kpt.Condition{{Type: "config.injection.A.b", Status: "True"}})
		if err := k.SetOwnFunctions(owner, kpt.Pipeline{Mutators: []kpt.Function{{Image: "x"}}}); err != nil {
			t.Fatal(err)
		}
		written := bytesOf(t, k)
		again, err := parseKptfile([]byte(written))
		if err != nil {
			t.Fatalf("%q became %q: %v", text, written, err)
		}
		pipeline, err := again.Pipeline()
		if err != nil || len(pipeline.Mutators) == 0 || pipeline.Mutators[0].Image != "x" {
			t.Fatalf("%q became %q: %+v, %v", text, written, pipeline, err)
		}
		facts := again.Facts()
		if facts.Name != "name" || facts.Labels["a"] != "b" || facts.Annotations["a"] != "no" || facts.Lock.Commit != "0123" || facts.Upstream.Strategy != "s" {
			t.Fatalf("%q became %q: %+v", text, written, facts)
		}
	})
}
