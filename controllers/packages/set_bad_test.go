package packages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/extension/extensiontest"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
	"sluice.dev/sluice/tests/upstream"
)

// TestABadTargetIsReportedAlone: each is named with what is wrong with it, and all others have their variants.
func TestABadTargetIsReportedAlone(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.named(nil, "there")
	bad := map[string]struct{ reason, want string }{
		"missing-key":   {"a key that is not there is an error", "no such key: nowhere"},
		"no-text":       {"a result is a text", "must be a text"},
		"runs-away":     {"what runs away is stopped", "cost limit"},
		"no-repository": {"a Repository has to be there", `there is no Repository "gone"`},
		"twin-one":      {"of two that lead to one place, none has it", "ConfigMap twin-two leads to package twin of Repository there as well"},
		"twin-two":      {"nor has the other", "ConfigMap twin-one leads to package twin of Repository there as well"},
	}
	for name := range bad {
		p.create(p.target(name))
	}
	p.create(p.target("good-one"), p.target("good-two"))
	const name = "target.name == "
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cluster": "yes"}}},
		Template: &packagesv1.VariantTemplate{
			DeletionPolicy: packagesv1.DeletionOrphan,
			Downstream: &packagesv1.DownstreamTemplate{
				RepoExpr: name + "'no-repository' ? 'gone' : 'there'", PackageExpr: "target.name.startsWith('twin') ? 'twin' : target.name",
			},
			LabelExprs: []packagesv1.MapExpr{{Key: "a", ValueExpr: name + "'missing-key' ? target.labels.nowhere : " + name + "'no-text' ? target.labels : " +
				name + "'runs-away' ? [1, 2, 3].map(i, target.annotations.long.replace('', target.annotations.long))[0] : 'fine'"}},
		},
	})
	p.spread(set, "there/good-one", "there/good-two")
	until(p, set, "all problems", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return int(s.Status.ProblemCount) == len(bad) && int(s.Status.Targets) == len(bad)+2 &&
			conditions.GetReason(s, "Ready") == packagesv1.TargetsFailedReason, fmt.Sprintf("%+v", s.Status)
	})
	for _, problem := range set.Status.Problems {
		target := strings.TrimPrefix(problem.Target, "targets[0], ConfigMap ")
		if of, isBad := bad[target]; !isBad || !strings.Contains(problem.Message, of.want) {
			t.Errorf("%s: %s is reported with %q", of.reason, problem.Target, problem.Message)
		}
	}
}

// TestAnExpressionThatRunsAwayIsNamed in the condition, by its target, its field and its text; what is too long to be compiled is
// refused with the set.
func TestAnExpressionThatRunsAwayIsNamed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.mayRead()
	p.named(nil, "there")
	p.create(p.target("one"))
	list := "[" + strings.TrimSuffix(strings.Repeat("1, ", 20), ", ") + "]"
	away := list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0))) ? 'yes' : 'no'"
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cluster": "yes"}}},
		Template: &packagesv1.VariantTemplate{
			DeletionPolicy: packagesv1.DeletionOrphan, Downstream: &packagesv1.DownstreamTemplate{Repo: "there", PackageExpr: "target.name"},
			LabelExprs: []packagesv1.MapExpr{{Key: "a", ValueExpr: away}},
		},
	})
	until(p, set, "the target and the expression are named", func(s *packagesv1.PackageVariantSet) (bool, string) {
		message := conditions.GetMessage(s, "Ready")
		return conditions.GetReason(s, "Ready") == packagesv1.TargetsFailedReason && strings.Contains(message, "targets[0], ConfigMap one") &&
			strings.Contains(message, "spec.targets[0].template.labelExprs[0].valueExpr") && strings.Contains(message, "cost limit"), said(s)
	})
	var all []packagesv1.MapExpr
	for i := range 17 {
		all = append(all, packagesv1.MapExpr{Key: fmt.Sprint("key-", i), ValueExpr: "'a'" + strings.Repeat(" ", 4093)})
	}
	p.ask(set, func() { set.Spec.Targets[0].Template.LabelExprs = all })
	until(p, set, "what is too long is refused at the first look", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsStalled(s) && conditions.GetReason(s, "Ready") == packagesv1.InvalidSpecReason && strings.Contains(said(s), "at most 65536 are allowed"), said(s)
	})
}

// TestAFunctionThatMisbehavesHarmsNoOther: of the targets of one set, each with a module of its own, those are drafted whose modules do what
// they should. The others say which function it is and what it did, and the set names the first of them.
func TestAFunctionThatMisbehavesHarmsNoOther(t *testing.T) {
	t.Parallel()
	world := extensiontest.New(t, wasm.Options{MaxMemory: 4 << 20, Timeout: 2 * time.Second})
	p := newPlane(t, func(p *plane) { p.renderer = function.New(function.Options{Custom: world}) })
	p.stocked(readme)
	if err := world.Allow(world.Policy(t, "functions/*")); err != nil {
		t.Fatal(err)
	}
	bad := map[string]struct {
		module []byte
		says   string
	}{
		"loops":     {wasmtest.Loop(), "more than 2s"},
		"allocates": {wasmtest.Allocate(), "bytes of memory, and 4194304 are allowed"},
		"asks":      {wasmtest.Ask("env", "system"), `asks for "system" of "env"`},
	}
	by := func(name string, module []byte) packagesv1.Target {
		return packagesv1.Target{
			Repositories: []packagesv1.RepositoryTarget{{Name: "cluster", PackageNames: []string{name}}},
			Template: &packagesv1.VariantTemplate{Pipeline: &packagesv1.PipelineTemplate{Mutators: []packagesv1.FunctionTemplate{{
				Function: packagesv1.Function{Image: world.PublishSigned(t, "functions/"+name, module)},
			}}}},
		}
	}
	set := p.set(by("good-one", wasmtest.Replace('?', '!')), func(spec *packagesv1.PackageVariantSetSpec) {
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			spec.Targets = append(spec.Targets, by(name, bad[name].module))
		}
		spec.Targets = append(spec.Targets, by("good-two", wasmtest.Replace('?', '.')))
	})
	until(p, set, "the good ones are drafted, and the first bad one is named", func(s *packagesv1.PackageVariantSet) (bool, string) {
		message := conditions.GetMessage(s, "Ready")
		return s.Status.Variants == 5 && s.Status.ReadyVariants == 2 && s.Status.OpenVariants == 2 &&
			strings.Contains(message, "3 of these fail, such as that of targets[1], Repository cluster: RenderFailed") &&
			strings.Contains(message, bad["allocates"].says), fmt.Sprintf("%s %+v", said(s), s.Status)
	})
	for _, v := range p.spread(set, "cluster/allocates", "cluster/asks", "cluster/good-one", "cluster/good-two", "cluster/loops") {
		if of, isBad := bad[v.Spec.Downstream.Package]; isBad {
			fails(p, &v, packagesv1.RenderFailedReason, v.Spec.Downstream.Package+" (")
			fails(p, &v, packagesv1.RenderFailedReason, of.says)
		}
	}
}

// target is an object that a set selects.
func (p *plane) target(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: name, Labels: map[string]string{"cluster": "yes"}, Annotations: map[string]string{"long": strings.Repeat("a", 1000)},
	}}
}

// crowd answers for the API server with more objects than anybody wants to make.
type crowd struct {
	count, lists atomic.Int64
}

func (c *crowd) meet(r *http.Request) *http.Response {
	if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.URL.Query().Get("watch") != "" {
		return nil
	}
	c.lists.Add(1)
	// All pages of a list are of one moment.
	var from, count int64
	if _, err := fmt.Sscanf(r.URL.Query().Get("continue"), "%d of %d", &from, &count); err != nil {
		count = c.count.Load()
	}
	limit, _ := strconv.ParseInt(r.URL.Query().Get("limit"), 10, 64)
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	list.ResourceVersion = "1"
	for i := from; i < min(from+limit, count); i++ {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: fmt.Sprintf("target-%05d", i), ResourceVersion: "1", UID: "uid"},
		})
	}
	if from+limit < count {
		list.Continue = fmt.Sprintf("%d of %d", from+limit, count)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))),
	}
}

// TestThereAreTenThousandTargetsAtMost: more of them are refused by their number, what is made stays, and a status of as many problems
// names the first of them.
func TestThereAreTenThousandTargetsAtMost(t *testing.T) {
	t.Parallel()
	many := &crowd{}
	many.count.Store(10_000)
	p := newPlane(t, func(p *plane) { p.meet = many.meet })
	p.mayRead()
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap"},
		Template:       &packagesv1.VariantTemplate{NamespaceExpr: "target.labels.region"},
	})
	until(p, set, "ten thousand problems", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.Targets == 10_000 && s.Status.ProblemCount == 10_000 && len(s.Status.Problems) == 50, said(s)
	})
	many.count.Store(10_001)
	p.ask(set, func() { set.Spec.Targets[0].ObjectSelector.MatchLabels = map[string]string{"another": "selection"} })
	until(p, set, "one more is refused", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.GetReason(s, "Ready") == packagesv1.InvalidSpecReason && strings.Contains(said(s), "spec.targets[0]") &&
			strings.Contains(said(s), "more than 10000 of kind ConfigMap; make several sets"), said(s)
	})
	many.count.Store(3)
	p.answered(set, "fewer")
	until(p, set, "as many as may be go on", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.Targets == 3, fmt.Sprint(said(s), many.lists.Load())
	})
}

// TestAsManyTargetsAsMayBeAllHaveTheirVariants: one round makes each of them, once, and the next one asks for nothing. With SLUICE_TORTURE there
// are as many as a set may have.
func TestAsManyTargetsAsMayBeAllHaveTheirVariants(t *testing.T) {
	t.Parallel()
	targets := int64(120)
	if os.Getenv("SLUICE_TORTURE") != "" {
		targets = 10_000
	}
	many := &crowd{}
	many.count.Store(targets)
	p := newPlane(t, func(p *plane) { p.meet = many.meet })
	p.mayRead()
	p.named(nil, "there")
	set := p.set(packagesv1.Target{
		ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap"},
		Template: &packagesv1.VariantTemplate{
			DeletionPolicy: packagesv1.DeletionOrphan, Downstream: &packagesv1.DownstreamTemplate{Repo: "there", PackageExpr: "target.name"},
			LabelExprs: []packagesv1.MapExpr{{Key: "of", ValueExpr: "target.name.upperAscii()"}},
		},
	}, func(spec *packagesv1.PackageVariantSetSpec) { spec.Timeout = &metav1.Duration{Duration: time.Hour} })
	until(p, set, "each target has its variant", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && int64(s.Status.Targets) == targets && int64(s.Status.Variants) == targets && s.Status.ProblemCount == 0, said(s)
	})
	var list packagesv1.PackageVariantList
	if err := env.Client.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
		t.Fatal(err)
	}
	if int64(len(list.Items)) != targets {
		t.Errorf("there are %d variants of %d targets", len(list.Items), targets)
	}
	p.answered(set, "again")
	p.events.mu.Lock()
	defer p.events.mu.Unlock()
	spread := 0
	for _, told := range p.events.events {
		if told == set.Name+" Normal "+packagesv1.VariantsChangedReason {
			spread++
		}
	}
	if spread != 1 {
		t.Errorf("%d rounds made or changed variants, not one", spread)
	}
}

// TestARepositoryThatCannotBeWrittenHarmsNoOther: the variant says what is wrong, and the others of the set are drafted.
func TestARepositoryThatCannotBeWrittenHarmsNoOther(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.stocked(readme)
	locked := p.upstreams.Repository("locked.git")
	locked.Commit("main", "begin", upstream.Text(readme))
	dead := p.source("dead", p.server)
	dead.Spec.URL = "http://127.0.0.1:1/dead.git"
	p.create(p.source("locked", p.server), p.packages("locked"), dead, p.packages("dead"))
	var all []packagesv1.RepositoryTarget
	for _, name := range []string{"cluster", "locked", "dead", "missing"} {
		all = append(all, packagesv1.RepositoryTarget{Name: name})
	}
	set := p.set(packagesv1.Target{Repositories: all})
	until(p, set, "one is drafted, and one a problem", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.Variants == 3 && s.Status.ReadyVariants == 1 && s.Status.OpenVariants == 1 && s.Status.ProblemCount == 1 &&
			strings.Contains(s.Status.Problems[0].Message, `no Repository "missing"`), fmt.Sprintf("%+v", s.Status)
	})
	for _, v := range p.spread(set, "cluster/app", "dead/app", "locked/app") {
		switch v.Spec.Downstream.Repo {
		case "dead":
			fails(p, &v, packagesv1.RepositoryNotReadyReason, "dead")
		case "locked":
			fails(p, &v, packagesv1.PushFailedReason, "403 Forbidden")
		}
	}
	p.ask(set, func() { set.Spec.Targets[0].Repositories = all[:3] })
	until(p, set, "the condition names one", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return strings.Contains(conditions.GetMessage(s, "Ready"), "3 targets have their variants; 2 of these fail, such as that of targets[0], Repository dead: RepositoryNotReady"), said(s)
	})
}
