package packages_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// fleet is a plane with a repository of blueprints and three clusters, of which one is a canary. Each rollout in it has a package
// and a set of its own.
type fleet struct {
	*plane

	blueprints *upstream.Edited
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{plane: newPlane(t)}
	f.blueprints = f.repository("blueprints")
	f.blueprints.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "blueprints\n"}))
	for name, wave := range map[string]string{"canary": "first", "north": "second", "south": "second"} {
		f.cluster(name, map[string]string{"fleet": "yes", "wave": wave})
	}
	f.mayRead()
	return f
}

// cluster makes a repository of the fleet.
func (f *fleet) cluster(name string, labels map[string]string) {
	f.Helper()
	made := f.upstreams.Repository(name + ".git")
	made.AcceptPushes()
	made.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	r := f.packages(name)
	r.Labels = labels
	f.create(f.source(name, f.server), r)
}

// rollout is a set of the fleet with waves.
type rollout struct {
	*fleet

	name string
	set  *packagesv1.PackageVariantSet
}

// rollout makes a set whose package is at v1 everywhere, in a test of its own.
func (f *fleet) rollout(t *testing.T, name string, change ...func(*packagesv1.PackageVariantSetSpec)) *rollout {
	t.Helper()
	own, plane := *f, *f.plane
	own.plane, plane.T = &plane, t
	r := &rollout{fleet: &own, name: name}
	r.release("v1", "1.0.0")
	r.set = &packagesv1.PackageVariantSet{ObjectMeta: r.meta(name), Spec: packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: name}, ServiceAccountName: "reader",
		Targets: []packagesv1.Target{{
			RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}},
			Template: &packagesv1.VariantTemplate{
				Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}, DeletionPolicy: packagesv1.DeletionOrphan,
			},
		}},
		Rollout: &packagesv1.Rollout{Waves: []packagesv1.Wave{
			{Name: "first", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "first"}}},
			{Name: "second"},
		}},
	}}
	for _, c := range change {
		c(&r.set.Spec)
	}
	r.create(r.set)
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	return r
}

// release publishes a revision of the package upstream.
func (r *rollout) release(revision, image string) {
	r.Helper()
	files := map[string]string{
		r.name + "/Kptfile":         strings.ReplaceAll(kptfile, "app", r.name),
		r.name + "/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image),
	}
	r.blueprints.Tag(r.name+"/"+revision, r.blueprints.Commit("main", r.name+" "+revision, upstream.Text(files)), false)
}

// look is where the variants and the waves are, with all that was written seen.
func (r *rollout) look(ctx context.Context) (variants, waves string) {
	var list packagesv1.PackageVariantList
	if err := env.Client.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return err.Error(), ""
	}
	var all []string
	for _, v := range list.Items {
		if metav1.IsControlledBy(&v, r.set) {
			all = append(all, fmt.Sprintf("%s %s", v.Spec.Downstream.Repo, progress(&v)))
		}
	}
	slices.Sort(all)
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(r.set), r.set); err != nil {
		return err.Error(), ""
	}
	if s := r.set.Status.Rollout; s != nil {
		for _, w := range s.Waves {
			waves += strings.TrimSpace(fmt.Sprintf(", %s %s %s", w.Name, w.State, w.Reason))
		}
	}
	return strings.Join(all, ", "), strings.TrimPrefix(waves, ", ")
}

// progress is the revision that a variant is to be made of, with a label of the template, and whether that is published.
func progress(v *packagesv1.PackageVariant) string {
	text := fmt.Sprintf("v%d", v.Spec.Upstream.Revision)
	if label := v.Spec.Labels["edit"]; label != "" {
		text += " " + label
	}
	switch {
	case v.Spec.Upstream.Commit == "":
		return text + " not held"
	case v.Status.ObservedGeneration != v.Generation || !conditions.IsReady(v):
		return text + " " + strings.TrimSpace(conditions.GetReason(v, "Ready"))
	case v.Status.Change != nil:
		return text + " drafted"
	}
	return text + " published"
}

// until waits until the variants and the waves are there.
func (r *rollout) until(variants, waves string) {
	r.Helper()
	testenv.Eventually(r.T, fmt.Sprintf("%s; %s", variants, waves), func(ctx context.Context) (bool, string) {
		has, states := r.look(ctx)
		return has == variants && states == waves, fmt.Sprintf("%s; %s; %s", has, states, said(r.set))
	})
}

// edit changes the set.
func (r *rollout) edit(change func(*packagesv1.PackageVariantSetSpec)) {
	r.Helper()
	r.ask(r.set, func() { change(&r.set.Spec) })
}

func template(label string) func(*packagesv1.PackageVariantSetSpec) {
	return func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Labels = map[string]string{"edit": label} }
}

func pause(wave int, is bool) func(*packagesv1.PackageVariantSetSpec) {
	return func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.Waves[wave].Pause = is }
}

func manual(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Approval = nil }

func TestWaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for name, story := range map[string]func(*testing.T, *fleet){
		"upstream": upstreamInWaves,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, f)
		})
	}
	_ = maps.Keys[map[string]int]
	_ = intstr.FromInt32
}

// upstreamInWaves: a new revision reaches the second wave when the first is published with it, and no pause holds it.
func upstreamInWaves(t *testing.T, f *fleet) {
	r := f.rollout(t, "web", pause(1, true))
	if at := r.set.Status.Rollout; at.Upstream.Revision != "v1" || !conditions.IsTrue(r.set, packagesv1.RolledOutCondition) {
		t.Errorf("the first revision: %+v", at)
	}
	r.release("v2", "2.0.0")
	r.until("canary v2 published, north v1 published, south v1 published", "first Done, second Waiting Paused")
	if c := conditions.Get(r.set, packagesv1.RolledOutCondition); c == nil || c.Message != "Wave second: The wave is paused" || !conditions.IsReady(r.set) {
		t.Errorf("what is waited for is not said: %+v", c)
	}
	r.edit(pause(1, false))
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Done")
}
