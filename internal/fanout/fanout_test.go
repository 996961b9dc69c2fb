package fanout_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// set has one target with the template.
func set(template *packagesv1.VariantTemplate) *packagesv1.PackageVariantSetSpec {
	return &packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: "web"},
		Targets:  []packagesv1.Target{{Template: template}},
	}
}

// compile compiles a set.
func compile(tb testing.TB, spec *packagesv1.PackageVariantSetSpec) (*fanout.Set, error) {
	tb.Helper()
	c, err := fanout.NewCompiler()
	if err != nil {
		tb.Fatal(err)
	}
	return c.Compile("uid/1", spec)
}

// cluster is a target.
func cluster(name string) fanout.Target {
	return fanout.Target{
		Name: "Cluster " + name, Repo: name, Package: "web",
		Value: fanout.Seen(name, "team", map[string]string{"region": "north"}, map[string]string{"long": strings.Repeat("a", 2000)}),
	}
}

// repositories knows of every Repository but one.
func repositories(name string) (map[string]any, bool) {
	return fanout.Seen(name, "team", map[string]string{"tier": "edge"}, nil), name != "missing"
}

func upstream() map[string]any {
	return fanout.Seen("blueprints", "team", map[string]string{"of": "core"}, nil)
}

func TestATemplateIsFilledIn(t *testing.T) {
	t.Parallel()
	template := &packagesv1.VariantTemplate{
		Downstream:      &packagesv1.DownstreamTemplate{RepoExpr: "repoDefault + '-config'", PackageExpr: "target.labels.region + '/' + packageDefault"},
		Labels:          map[string]string{"a": "b", "region": "nowhere"},
		LabelExprs:      []packagesv1.MapExpr{{Key: "region", ValueExpr: "target.labels.region.upperAscii()"}, {KeyExpr: "'tier-' + repository.labels.tier", Value: new("")}},
		AnnotationExprs: []packagesv1.MapExpr{{Key: "from", ValueExpr: "upstream.labels.of + ' ' + upstream.name"}},
		PackageContext: &packagesv1.PackageContextTemplate{
			PackageContext: packagesv1.PackageContext{Data: map[string]string{"a": "b"}, RemoveKeys: []string{"old"}},
			DataExprs:      []packagesv1.MapExpr{{Key: "where", ValueExpr: "target.name.split('-')[1]"}}, RemoveKeyExprs: []string{"'not-' + target.labels.region"},
		},
		Injectors: []packagesv1.InjectorTemplate{{NameExpr: "target.name"}, {Injector: packagesv1.Injector{Name: "all"}}},
		Bindings: []packagesv1.BindingTemplate{
			{BindingTarget: packagesv1.BindingTarget{Name: "a"}, From: packagesv1.BindingSourceTemplate{LiteralExpr: `target.labels.region + '"'`}},
			{
				BindingTarget: packagesv1.BindingTarget{Name: "b", Path: "data.c"},
				From: packagesv1.BindingSourceTemplate{Object: &packagesv1.BindingObjectTemplate{
					BindingObject: packagesv1.BindingObject{APIVersion: "v1", Kind: "ConfigMap"}, NameExpr: "target.name",
				}},
			},
		},
		NamespaceExpr: "target.?labels.team.orValue('none')",
		Pipeline: &packagesv1.PipelineTemplate{Mutators: []packagesv1.FunctionTemplate{{
			Function:       packagesv1.Function{Image: "set-labels", ConfigMap: map[string]string{"a": "b"}},
			ConfigMapExprs: []packagesv1.MapExpr{{Key: "cluster", ValueExpr: "target.name"}},
		}}},
		Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalInitial},
	}
	s, err := compile(t, set(template))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Variants([]fanout.Target{cluster("edge-1")}, upstream(), repositories)
	at := packagesv1.Downstream{Repo: "edge-1-config", Package: "north/web"}
	want := fanout.Wanted{
		Targets: map[packagesv1.Downstream]fanout.Target{at: cluster("edge-1")},
		Variants: map[packagesv1.Downstream]packagesv1.PackageVariantSpec{at: {
			Upstream: packagesv1.Upstream{Repo: "blueprints", Package: "web"}, Downstream: at,
			Labels:         map[string]string{"a": "b", "region": "NORTH", "tier-edge": ""},
			Annotations:    map[string]string{"from": "core blueprints"},
			PackageContext: &packagesv1.PackageContext{Data: map[string]string{"a": "b", "where": "1"}, RemoveKeys: []string{"old", "not-north"}},
			Injectors:      []packagesv1.Injector{{Name: "edge-1"}, {Name: "all"}},
			Bindings: []packagesv1.Binding{
				{BindingTarget: packagesv1.BindingTarget{Name: "a"}, From: packagesv1.BindingSource{Literal: &packagesv1.Literal{JSON: `"north\""`}}},
				{
					BindingTarget: packagesv1.BindingTarget{Name: "b", Path: "data.c"},
					From:          packagesv1.BindingSource{Object: &packagesv1.BindingObject{APIVersion: "v1", Kind: "ConfigMap", Name: "edge-1"}},
				},
			},
			Namespace: "none",
			Pipeline: &packagesv1.Pipeline{Mutators: []packagesv1.Function{{
				Image: "set-labels", ConfigMap: map[string]string{"a": "b", "cluster": "edge-1"},
			}}},
			AdoptionPolicy: packagesv1.AdoptNone, DeletionPolicy: packagesv1.DeletionDelete, ConflictPolicy: packagesv1.ConflictLocal,
			Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalInitial},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variants (-want +got):\n%s", diff)
	}
	if template.PackageContext.RemoveKeys[0] != "old" || len(template.Labels) != 2 {
		t.Error("the template itself was changed")
	}
}

func TestWhatIsWrongWithATemplateIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		template packagesv1.VariantTemplate
		want     []string
	}{
		{"every expression that does not compile is named", packagesv1.VariantTemplate{
			Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "'a' +"}, NamespaceExpr: "nobody.name",
		}, []string{"spec.targets[0].template.downstream.repoExpr", "spec.targets[0].template.namespaceExpr"}},
		{"the repository follows from its name", packagesv1.VariantTemplate{
			Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "repository.name"},
		}, []string{"downstream.repoExpr", "repository"}},
		{"a result is a text", packagesv1.VariantTemplate{
			LabelExprs: []packagesv1.MapExpr{{Key: "a", ValueExpr: "1 + 1"}},
		}, []string{"template.labelExprs[0].valueExpr", "int in place of string"}},
		{"a binding's are named by their place", packagesv1.VariantTemplate{
			Bindings: []packagesv1.BindingTemplate{{From: packagesv1.BindingSourceTemplate{LiteralExpr: "1"}}},
		}, []string{"template.bindings[0].from.literalExpr", "int in place of string"}},
		{"regular expressions take any time", packagesv1.VariantTemplate{
			NamespaceExpr: "target.name.matches('a+') ? 'a' : 'b'",
		}, []string{"template.namespaceExpr", "regular expressions"}},
	} {
		_, err := compile(t, set(&test.template))
		for _, words := range test.want {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v does not say %q", test.reason, err, words)
			}
		}
	}
}

func TestATargetWithAProblemHarmsNoOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		expr   string
		bad    fanout.Target
		want   string
	}{
		{"a key that is missing is an error", "target.labels.region + repoDefault", fanout.Target{Name: "Cluster bad", Repo: "bad", Value: fanout.Seen("bad", "", nil, nil)}, "no such key"},
		{"a result is a text", "target.name", fanout.Target{Name: "Cluster bad", Repo: "bad", Value: map[string]any{"name": int64(1)}}, "must be a text"},
		{"a Repository has to be there", "target.name", cluster("missing"), `no Repository "missing"`},
		{"an expression that runs away is stopped", "[1, 2, 3].map(i, target.name.replace('', target.name))[0] + repoDefault", fanout.Target{
			Name: "Cluster bad", Repo: "bad", Value: map[string]any{"name": strings.Repeat("a", fanout.MaxText)},
		}, "cost limit"},
		{"a long text is left out", "target.?annotations.long.hasValue() ? 'seen' : target.annotations[target.name]", cluster("bad"), "no such key"},
	} {
		s, err := compile(t, set(&packagesv1.VariantTemplate{Downstream: &packagesv1.DownstreamTemplate{RepoExpr: test.expr, Package: "web"}}))
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		good := cluster("good")
		good.Value["annotations"] = map[string]any{"good": "good"}
		got := s.Variants([]fanout.Target{test.bad, good}, upstream(), repositories)
		if len(got.Variants) != 1 || len(got.Problems) != 1 {
			t.Fatalf("%s: %d variants and the problems %v", test.reason, len(got.Variants), got.Problems)
		}
		if problem := got.Problems[0]; problem.Target.Name != test.bad.Name || !strings.Contains(problem.Err.Error(), test.want) {
			t.Errorf("%s: %s: %v", test.reason, problem.Target, problem.Err)
		}
		if got.Unwanted()(fanout.There{Downstream: packagesv1.Downstream{Repo: "before"}, Target: test.bad.Key()}) {
			t.Errorf("%s: what the target had before would go", test.reason)
		}
	}
}

func TestTwoTargetsOfOnePlaceHaveNone(t *testing.T) {
	t.Parallel()
	s, err := compile(t, set(&packagesv1.VariantTemplate{Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "target.labels.region"}}))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Variants([]fanout.Target{cluster("a"), cluster("b")}, upstream(), repositories)
	if len(got.Variants) != 0 || len(got.Problems) != 2 || !strings.Contains(got.Problems[0].Err.Error(), "Cluster b leads to package web of Repository north as well") {
		t.Errorf("%d variants and the problems %v", len(got.Variants), got.Problems)
	}
	if got.Unwanted()(fanout.There{Downstream: packagesv1.Downstream{Repo: "north", Package: "web"}}) {
		t.Error("the variant that is there already would go")
	}
}

// TestManyProblemsAreLookedThroughOnce: thousands of variants are asked about in each round, with as many problems.
//
//nolint:paralleltest // It counts allocations, which are those of all tests.
func TestManyProblemsAreLookedThroughOnce(t *testing.T) {
	w := fanout.Wanted{}
	for i := range 1000 {
		w.Problems = append(w.Problems, fanout.Problem{Target: cluster(fmt.Sprintf("edge-%d", i))})
	}
	unwanted := w.Unwanted()
	allocs := testing.AllocsPerRun(10, func() {
		if unwanted(fanout.There{Target: w.Problems[999].Target.Name + ", web"}) || !unwanted(fanout.There{Target: "Cluster other, web"}) {
			t.Error("a variant whose target has a problem is unwanted, or one that has none is not")
		}
	})
	if allocs > 10 {
		t.Errorf("to ask about two variants makes %v texts", allocs)
	}
}

// TestTenThousandTargetsTakeLittleMemory: as many as a set may have, with expressions for most of what may be one.
//
//nolint:paralleltest // It measures the memory of the process.
func TestTenThousandTargetsTakeLittleMemory(t *testing.T) {
	s, err := compile(t, set(rich()))
	if err != nil {
		t.Fatal(err)
	}
	targets := make([]fanout.Target, 10_000)
	for i := range targets {
		targets[i] = cluster(fmt.Sprintf("edge-%05d", i))
	}
	held := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := held()
	wanted := s.Variants(targets, upstream(), repositories)
	bytes := int64(held()) - int64(before)
	if t.Logf("%d variants hold %d KiB", len(wanted.Variants), bytes>>10); len(wanted.Variants) != len(targets) || bytes > 64<<20 {
		t.Errorf("%d variants hold %d MiB", len(wanted.Variants), bytes>>20)
	}
}

// TestTheOrderOfTargetsIsIrrelevant: whatever the order, the same variants and problems come of it.
func TestTheOrderOfTargetsIsIrrelevant(t *testing.T) {
	t.Parallel()
	s, err := compile(t, set(&packagesv1.VariantTemplate{Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "target.name.substring(0, 2)"}}))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var targets []fanout.Target
		for i := range random.IntN(20) {
			targets = append(targets, cluster(fmt.Sprintf("%c%d-%d", 'a'+rune(random.IntN(3)), random.IntN(5), i)))
		}
		targets = append(targets, cluster("x"))
		want := s.Variants(targets, upstream(), repositories)
		if len(want.Problems) == 0 || want.Problems[len(want.Problems)-1].Target.Name != "Cluster x" {
			t.Fatalf("a name that is too short had no problem: %v", want.Problems)
		}
		random.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
		if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(s.Variants(targets, upstream(), repositories))); diff != "" {
			t.Fatalf("in another order (-before +after):\n%s", diff)
		}
	}
}

func TestTheGuard(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason                string
		there, going, percent int
		want                  bool
	}{
		{"nothing goes", 0, 0, 50, true},
		{"half of them may", 10, 5, 50, true},
		{"more may not", 10, 6, 50, false},
		{"nor all", 1, 1, 50, false},
		{"without a guard all may", 10, 10, 0, true},
		{"with all of it none may", 10, 1, 100, false},
		{"one of three", 3, 1, 50, true},
		{"two of three", 3, 2, 50, false},
	} {
		if got := fanout.MayGo(test.there, test.going, test.percent); got != test.want {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

func BenchmarkVariant(b *testing.B) {
	s, err := compile(b, set(&packagesv1.VariantTemplate{
		Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "'cluster-' + target.name", PackageExpr: "target.labels.region + '/' + packageDefault"},
		LabelExprs: []packagesv1.MapExpr{{Key: "region", ValueExpr: "target.labels.region"}},
	}))
	if err != nil {
		b.Fatal(err)
	}
	targets, seen := []fanout.Target{cluster("edge")}, upstream()
	b.ReportAllocs()
	for b.Loop() {
		s.Variants(targets, seen, repositories)
	}
}
