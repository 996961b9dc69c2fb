package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// TestPreviewsComeTrue installs random pairs of releases, after people did random things to the objects, and holds what
// becomes of each object against the preview of the second release.
//
// SLUICE_TORTURE_PREVIEWS is how many pairs are installed, SLUICE_TORTURE_SEED the first one's seed: a failure prints its own.
func TestPreviewsComeTrue(t *testing.T) {
	t.Parallel()
	count, first := setting(t, "SLUICE_TORTURE_PREVIEWS", 4), setting(t, "SLUICE_TORTURE_SEED", 1)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			p := pairOf(uint64(seed))
			if wrong := p.install(t); wrong != "" {
				t.Errorf("SLUICE_TORTURE_PREVIEWS=1 SLUICE_TORTURE_SEED=%d: %s, with\n%+v", seed, wrong, p)
			}
		})
	}
}

// subject is an object of a pair: its value in each release, where 0 says that the release lacks it, and what people do.
type subject struct {
	Kind   string
	Values [2]int
	// Fixed says that it cannot be changed in place.
	Fixed bool
	// Annotation is one in the second release.
	Annotation string
	// Before and Between are what somebody does to it before the first release, and between the two.
	Before, Between deed
}

// pair are two releases, and what is asked of the second.
type pair struct {
	Subjects []subject
	Force    bool
	Adopt    modulesv1.AdoptPolicy
	// NoPrune and Percent are spec.prune; 0 is the default.
	NoPrune bool
	Percent int32
	// LostOf and Lost are a right that is lost between the releases.
	LostOf, Lost string
	// Sibling is the subject that another installation claims; -1 is none.
	Sibling int
}

// pairOf is what is installed, which the seed alone decides.
func pairOf(seed uint64) pair {
	random := rand.New(rand.NewPCG(seed, 1))
	among := func(weight int) bool { return random.IntN(weight) == 0 }
	p := pair{Force: among(2), NoPrune: among(8), Sibling: -1}
	p.Adopt = []modulesv1.AdoptPolicy{"", "", modulesv1.AdoptAlways, modulesv1.AdoptNever}[random.IntN(4)]
	if among(4) {
		p.Percent = int32(1 + random.IntN(60))
	}
	if among(3) {
		p.LostOf, p.Lost = deployable[random.IntN(len(deployable))], []string{"patch", "delete"}[random.IntN(2)]
	}
	for range 3 + random.IntN(6) {
		s := subject{
			Kind: []string{"ConfigMap", "ConfigMap", "Secret", "ServiceAccount"}[random.IntN(4)], Values: [2]int{random.IntN(4), random.IntN(4)},
		}
		s.Fixed = among(4) && (s.Kind == "ConfigMap" || s.Kind == "Secret")
		if s.Values[0] == 0 {
			s.Before = []deed{"", "", makes}[random.IntN(3)]
		} else {
			s.Before = []deed{"", "", "", makes}[random.IntN(4)]
		}
		if s.Fixed {
			// The first release has to be installed.
			s.Before = ""
		}
		s.Between = []deed{"", "", removes, edits, keeps, remakes}[random.IntN(6)]
		s.Annotation = []string{"", "", "", "", "Ignore", "IfNotPresent"}[random.IntN(6)]
		if s.Values[0] != 0 && (s.Values[0] == s.Values[1] || s.Annotation == "IfNotPresent") {
			// What drifts is healed whatever is installed, and no preview speaks of it.
			s.Between = ""
		}
		p.Subjects = append(p.Subjects, s)
	}
	if among(3) {
		p.Sibling = random.IntN(len(p.Subjects))
	}
	return p
}

// install installs both releases, and returns what went wrong; "" is nothing.
func (p pair) install(t *testing.T) string {
	t.Helper()
	r := newRig(t)
	defer r.halt()
	p.ready(r)
	return p.hold(r)
}

// ready installs the first release, and asks for the second.
func (p pair) ready(r *rig) {
	r.t.Helper()
	r.asDeployer()
	for i, s := range p.Subjects {
		if s.Before == makes {
			r.byHand(p.manifest(i, 9, ""))
		}
	}
	r.in.Target = r.target("1.0.0", p.files(0))
	r.settle("it is installed", settled)
	if p.Sibling >= 0 {
		r.claimedByOther(p.manifest(p.Sibling, 5, ""))
	}
	for i := range p.Subjects {
		p.between(r, i)
	}
	r.in.Spec.Force, r.in.Spec.Adopt, r.in.Spec.Prune = p.Force, p.Adopt, &modulesv1.PrunePolicy{Enabled: new(!p.NoPrune)}
	if p.Percent > 0 {
		r.in.Spec.Prune.MaxPercent = new(p.Percent)
	}
	if p.Lost != "" {
		r.loses(p.LostOf, p.Lost)
	}
	r.in.Target = r.target("2.0.0", p.files(1))
}

// hold holds what follows against what was told.
func (p pair) hold(r *rig) string {
	plan, err := r.engine.Plan(r.t.Context(), r.in)
	check(r.t, err)
	bare, err := r.engine.Preview(r.t.Context(), r.in, engine.EvidenceNone)
	check(r.t, err)
	told := r.preview()
	if diff := cmp.Diff(plan, bare.Plan) + cmp.Diff(plan, told.Plan); diff != "" {
		return "plan and preview differ:\n" + diff
	}
	counts := map[engine.Action]int32{}
	for _, row := range bare.Rows {
		counts[row.Action]++
	}
	want := map[engine.Action]int32{engine.ActionCreate: plan.Create, engine.ActionChange: plan.Update, engine.ActionRemove: plan.Delete}
	for action, count := range want {
		if counts[action] != count {
			return fmt.Sprintf("the plan has %d to %s, and the preview %d", count, action, counts[action])
		}
	}
	r.t.Logf("%v, blocked by %+v", actions(told), told.Blockers)
	return r.comesTrue(told)
}

// between does what people do to a subject between the releases.
func (p pair) between(r *rig, i int) {
	r.t.Helper()
	s, gvk := p.Subjects[i], p.kind(i)
	live := r.get(gvk, p.name(i))
	switch {
	case live == nil && s.Between == remakes:
		r.byHand(p.manifest(i, 8, ""))
	case live == nil:
	case s.Between == removes, s.Between == remakes:
		check(r.t, env.Client.Delete(r.t.Context(), live))
		if s.Between == remakes {
			r.byHand(p.manifest(i, 8, ""))
		}
	case s.Between == keeps:
		r.edit(gvk, p.name(i), `{"metadata":{"annotations":{"modules.sluice.dev/prune":"disabled"}}}`)
	case s.Between == edits && s.Kind == "ConfigMap" && !s.Fixed:
		r.edit(gvk, p.name(i), `{"data":{"key":"edited"}}`)
	case s.Between == edits:
		r.edit(gvk, p.name(i), `{"metadata":{"labels":{"value":"edited"}}}`)
	}
}

// claimedByOther has another installation ask for the object.
func (r *rig) claimedByOther(manifest string) {
	r.t.Helper()
	other := r.sibling("valkey")
	other.in.Target = other.target("1.0.0", map[string]string{"a.yaml": manifest})
	for range 3 {
		_, err := other.engine.Reconcile(r.t.Context(), other.in)
		r.t.Logf("the other installation: %v", err)
	}
}

// files are the pair's first or second release, which has always something in it.
func (p pair) files(release int) map[string]string {
	files := configMapFiles("always", "1")
	for i, s := range p.Subjects {
		if value := s.Values[release]; value != 0 {
			annotation := ""
			if release == 1 {
				annotation = s.Annotation
			}
			files[p.name(i)+".yaml"] = p.manifest(i, value, annotation)
		}
	}
	return files
}

func (pair) name(i int) string { return fmt.Sprintf("subject-%d", i) }

func (p pair) kind(i int) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: p.Subjects[i].Kind}
}

// manifest is a subject with a value.
func (p pair) manifest(i, value int, annotation string) string {
	s := p.Subjects[i]
	text := fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n  labels: {value: v%d}\n", s.Kind, p.name(i), value)
	if annotation != "" {
		text += fmt.Sprintf("  annotations: {%s: %s}\n", engine.SSAAnnotation, annotation)
	}
	if s.Fixed {
		text += "immutable: true\n"
	}
	switch s.Kind {
	case "ConfigMap":
		text += fmt.Sprintf("data: {key: v%d}\n", value)
	case "Secret":
		text += fmt.Sprintf("stringData: {key: v%d}\n", value)
	}
	return text
}
