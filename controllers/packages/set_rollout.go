package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
)

// marks say on a variant at which revision it is, and at which it was made.
type marks struct{ revision, joined string }

func marksOf(v *packagesv1.PackageVariant) marks {
	return marks{v.Annotations[packagesv1.RevisionAnnotation], v.Annotations[packagesv1.JoinedAnnotation]}
}

// rolling is a rollout as it is looked at.
type rolling struct {
	*sets

	obj     *packagesv1.PackageVariantSet
	there   map[string]*packagesv1.PackageVariant
	rollout *fanout.Rollout
	found   *finding
	seen    map[string]any
	history []*setRevision
	// made are the revisions with compiled expressions, by name.
	made map[string]*madeRevision
	crew []*place
	// unknown are the targets that wait for a revision that is held.
	unknown []fanout.Problem
	// gates says which object of a gate is not ready, once they are read, and again when to look again.
	gates     string
	gatesRead bool
	again     time.Duration
}

// madeRevision makes variants of a revision.
type madeRevision struct {
	*setRevision

	set *fanout.Set
	// wasThere says of each target of the spec whether the revision knows it.
	wasThere []bool
}

// rollOut works out which variant is to be at which revision now. What it cannot find upstream is returned beside: all else goes on
// with the newest revision that there is.
func (k *sets) rollOut(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread, compiled *fanout.Set, found *finding) (lacks, err error) {
	r := &rolling{sets: k, obj: obj, there: s.there, found: found, seen: found.upstream(), made: map[string]*madeRevision{}}
	if r.rollout, err = fanout.NewRollout(obj.Spec.Rollout); err != nil {
		return nil, failure.Stall(packagesv1.InvalidSpecReason, err)
	}
	if r.history, err = k.history(ctx, obj); err != nil {
		return nil, err
	}
	if lacks, err = r.revise(ctx, compiled); err != nil {
		return nil, err
	}
	if len(r.history) == 0 {
		return nil, lacks
	}
	if err = r.hold(ctx, s); err != nil {
		return nil, err
	}
	if err = r.gather(s.there); err != nil {
		return nil, err
	}
	return lacks, r.decide(ctx, s, compiled)
}

func (r *rolling) newest() *setRevision { return r.history[len(r.history)-1] }

// content is what variants are to be made of now.
func (k *sets) content(ctx context.Context, obj *packagesv1.PackageVariantSet) (content revisionContent, err error) {
	up := obj.Spec.Upstream
	m, err := k.shared.repository(ctx, in(obj, up.Repo))
	if err == nil {
		err = k.shared.inBudget(ctx, obj, func(ctx context.Context) error {
			at, err := m.find(ctx, up)
			content = contentOf(obj, at, m.directory)
			return err
		})
	}
	if err != nil {
		return content, fmt.Errorf("upstream: %w", err)
	}
	return content, nil
}

// revise makes what upstream and the templates are now the newest revision.
func (r *rolling) revise(ctx context.Context, compiled *fanout.Set) (lacks, err error) {
	content, err := r.content(ctx, r.obj)
	if err != nil {
		return err, nil
	}
	if r.history, err = r.sets.revise(ctx, r.obj, r.history, content, r.holds(content, compiled)); err == nil {
		newest := r.newest()
		r.made[newest.Name] = &madeRevision{newest, compiled, slices.Repeat([]bool{true}, len(r.obj.Spec.Targets))}
	}
	return nil, err
}

// decide makes a plan, and says what each variant is to be by it.
func (r *rolling) decide(ctx context.Context, s *spread, compiled *fanout.Set) error {
	newest, now := r.newest(), r.shared.Clock.Now()
	moment := fanout.Moment{Done: newest.done(), Now: now, Gate: func(wave int) string { return r.closed(ctx, compiled, wave) }}
	for _, p := range r.crew {
		moment.Members = append(moment.Members, p.member)
	}
	plan := r.rollout.Plan(moment)
	if err := r.note(ctx, newest, plan.Done); err != nil {
		return err
	}
	used := map[string]bool{}
	places := map[string]*place{}
	for i, p := range r.crew {
		p.decide(r, plan.Newest[i], plan.At[i])
		places[p.key()] = p
		used[p.marks.revision] = true
	}
	for _, v := range s.there {
		used[marksOf(v).revision] = true
	}
	s.marks = map[packagesv1.Downstream]marks{}
	s.wanted = fanout.Gather(r.found.found, func(t fanout.Target) (packagesv1.PackageVariantSpec, error) {
		p := places[keyOfTarget(t)]
		s.marks[p.spec.Downstream] = p.marks
		return p.spec, p.err
	})
	s.wanted.Problems = append(s.wanted.Problems, r.unknown...)
	s.again = kernel.Sooner(s.again, kernel.Sooner(r.again, plan.Again))
	s.rollout, s.waits, s.isStopped = r.report(plan), plan.Waits, plan.IsStopped
	return r.collect(ctx, r.history, used)
}

// report shows the plan. A state keeps the time since when it is.
func (r *rolling) report(plan fanout.Plan) *packagesv1.RolloutStatus {
	newest := r.newest()
	made := &packagesv1.RolloutStatus{Revision: newest.Name, Upstream: &newest.Upstream, Waves: plan.Waves}
	var before []packagesv1.WaveStatus
	if last := r.obj.Status.Rollout; last != nil && last.Revision == newest.Name {
		before = last.Waves
	}
	for i := range made.Waves {
		w := &made.Waves[i]
		w.Message = printable.Line(w.Message, maxProblemText)
		at := slices.IndexFunc(before, func(b packagesv1.WaveStatus) bool {
			return b.Name == w.Name && b.State == w.State && b.Reason == w.Reason && b.Since != nil
		})
		since := metav1.NewTime(r.shared.Clock.Now())
		if at >= 0 {
			since = *before[at].Since
		}
		if done, known := plan.Done[w.Name]; known && w.State == packagesv1.WaveDone {
			since = metav1.NewTime(done)
		}
		w.Since = new(metav1.NewTime(since.Truncate(0).UTC()).Rfc3339Copy())
	}
	return made
}

// variants are those that the set has made before, by name.
func (k *sets) variants(ctx context.Context, obj *packagesv1.PackageVariantSet) (map[string]*packagesv1.PackageVariant, error) {
	var list packagesv1.PackageVariantList
	err := k.shared.Client.List(ctx, &list, client.InNamespace(obj.Namespace), client.MatchingFields{ownerIndex: string(obj.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the variants: %w", err)
	}
	all := make([]*packagesv1.PackageVariant, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	k.written.overlay(client.ObjectKeyFromObject(obj), all)
	there := make(map[string]*packagesv1.PackageVariant, len(all))
	for _, v := range all {
		there[v.Name] = v
	}
	return there, nil
}

// errNotThen is a target that a revision does not know.
var errNotThen = errors.New("the revision that is rolled out does not know the target yet")

// at makes variants of a revision.
func (r *rolling) at(revision *setRevision) (*madeRevision, error) {
	if known := r.made[revision.Name]; known != nil {
		return known, nil
	}
	spec, wasThere := revision.spec(r.obj)
	set, err := r.compiler.Compile(fmt.Sprintf("%s/%d/%s", r.obj.UID, r.obj.Generation, revision.Name), spec)
	if err != nil {
		return nil, err
	}
	r.made[revision.Name] = &madeRevision{revision, set, wasThere}
	return r.made[revision.Name], nil
}

// variant is what the variant of a target is at a revision.
func (r *rolling) variant(t fanout.Target, revision *setRevision) (packagesv1.PackageVariantSpec, error) {
	made, err := r.at(revision)
	switch {
	case err != nil:
		return packagesv1.PackageVariantSpec{}, err
	case !made.wasThere[t.Index]:
		return packagesv1.PackageVariantSpec{}, errNotThen
	}
	spec, err := made.set.Variant(t, r.seen, r.found.seen)
	spec.Upstream, spec.Approval = revision.Pin, r.approval(t, spec.Approval)
	return spec, err
}

// approval is who approves by a revision, unless the set leaves that to people by now: who has edited it so has chosen the targets, and
// may have no right to approve.
func (r *rolling) approval(t fanout.Target, then *packagesv1.Approval) *packagesv1.Approval {
	now := &packagesv1.PackageVariantSpec{}
	if template := r.obj.Spec.Targets[t.Index].Template; template != nil {
		now.Approval = template.Approval
	}
	if now.GetApprovalPolicy() == packagesv1.ApprovalManual {
		return now.Approval
	}
	return then
}

// numbered is the revision of the number, and named the one of the name; nil where it is gone.
func (r *rolling) numbered(number int64) *setRevision {
	return r.first(func(s *setRevision) bool { return s.Revision == number })
}

func (r *rolling) named(name string) *setRevision {
	return r.first(func(s *setRevision) bool { return s.Name == name })
}

func (r *rolling) first(is func(*setRevision) bool) *setRevision {
	if at := slices.IndexFunc(r.history, is); at >= 0 {
		return r.history[at]
	}
	return nil
}

// unroll drops the revisions of a set that has no rollout any more. Its variants say whether there are any.
func (k *sets) unroll(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	for _, v := range s.there {
		if marksOf(v) == (marks{}) {
			continue
		}
		history, err := k.history(ctx, obj)
		if err != nil {
			return err
		}
		return k.collect(ctx, append(history, nil), nil)
	}
	return nil
}
