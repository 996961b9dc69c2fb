package packages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// place is a target with its variant, of what the variant is and what it is to be.
type place struct {
	target fanout.Target
	have   *packagesv1.PackageVariant
	member fanout.Member
	// newest is what the newest revision wants. The error says why it cannot.
	newest packagesv1.PackageVariantSpec
	// spec, marks and err are what was decided.
	spec  packagesv1.PackageVariantSpec
	marks marks
	err   error
}

// keyOfTarget tells a target from all others of its set.
func keyOfTarget(t fanout.Target) string { return fmt.Sprintf("%d, %s", t.Index, t.Key()) }

func (p *place) key() string { return keyOfTarget(p.target) }

// gather finds the variants of the targets, and what is to be known of them.
func (r *rolling) gather(there map[string]*packagesv1.PackageVariant) error {
	targets, variants := map[string]int{}, map[string][]*packagesv1.PackageVariant{}
	for _, t := range r.found.found {
		targets[t.Key()]++
	}
	for _, v := range there {
		if key := v.Annotations[packagesv1.TargetAnnotation]; v.DeletionTimestamp.IsZero() {
			variants[key] = append(variants[key], v)
		}
	}
	if _, err := r.at(r.newest()); err != nil {
		return err
	}
	for _, t := range r.found.found {
		p := &place{target: t}
		if p.newest, p.err = r.variant(t, r.newest()); t.Err != nil {
			p.err = t.Err // What it sees is less than it should be.
		}
		if own := variants[t.Key()]; targets[t.Key()] == 1 && len(own) == 1 {
			p.have = own[0]
		} else {
			p.have = cmp.Or(there[r.nameOf(p.newest, p.err)], r.before(t, own))
		}
		if p.have != nil && !p.have.DeletionTimestamp.IsZero() {
			p.have = nil // It is made once more when it is gone.
		}
		p.member = r.member(p)
		r.crew = append(r.crew, p)
	}
	return nil
}

// nameOf is what a variant is called; nothing where there is none.
func (r *rolling) nameOf(spec packagesv1.PackageVariantSpec, err error) string {
	if err != nil {
		return ""
	}
	return objectName(r.obj.Name, spec.Downstream.Repo, spec.Downstream.Package)
}

// before is which of several variants was made for the target: the one that is where its own revision has it.
func (r *rolling) before(t fanout.Target, several []*packagesv1.PackageVariant) *packagesv1.PackageVariant {
	for _, v := range several {
		if then := r.named(marksOf(v).revision); then != nil && r.nameOf(r.variant(t, then)) == v.Name {
			return v
		}
	}
	return nil
}

// member is what the rollout has to know.
func (r *rolling) member(p *place) fanout.Member {
	m := fanout.Member{Name: strings.ReplaceAll(p.key(), "\n", " "), Wave: r.rollout.Wave(p.target.Labels), IsNew: p.have == nil}
	if m.IsNew {
		return m
	}
	v, newest := p.have, r.newest().Name
	has := marksOf(v)
	m.Name = packagesv1.PackageVariantKind + " " + v.Name
	m.IsFree = v.Undecodable != "" || has.revision == "" && v.Spec.Upstream.Commit == ""
	isSame := p.err == nil && isVariant(v, p.newest)
	m.IsCurrent = p.err == nil && (isSame || has.revision == newest)
	m.HasJoined = has.joined == newest && has.revision == newest
	m.IsOpen, m.IsDone = v.Status.Change != nil, isSame && hasPublished(v)
	if at := r.named(has.revision); at != nil {
		m.At = at.Revision
	}
	switch {
	case p.err != nil:
		m.Failure = p.err.Error()
	case m.IsCurrent:
		m.Failure = failureOf(v)
	}
	return m
}

// isVariant tells whether a variant is what it is to be. What the template does not say is people's.
func isVariant(v *packagesv1.PackageVariant, spec packagesv1.PackageVariantSpec) bool {
	return v.Undecodable == "" && equality.Semantic.DeepEqual(v.Spec, peoples(v, spec))
}

// peoples is the spec with what people have set in the variant.
func peoples(v *packagesv1.PackageVariant, spec packagesv1.PackageVariantSpec) packagesv1.PackageVariantSpec {
	spec.DryRun, spec.Suspend, spec.Interval, spec.Timeout = v.Spec.DryRun, v.Spec.Suspend, v.Spec.Interval, v.Spec.Timeout
	return spec
}

// hasPublished tells whether the variant says that what its spec wants is published, and nothing else under way.
func hasPublished(v *packagesv1.PackageVariant) bool {
	return v.Status.ObservedGeneration == v.Generation && conditions.IsReady(v) && !v.Spec.Suspend &&
		v.Status.Published != nil && v.Status.Change == nil && !conditions.IsTrue(v, packagesv1.UpdatePendingCondition)
}

// failureOf says why the variant is not what its spec wants. One that waits for a Repository to be read does not fail yet, nor does one
// that somebody else came before.
func failureOf(v *packagesv1.PackageVariant) string {
	if conditions.GetReason(v, "Ready") == packagesv1.RepositoryNotReadyReason {
		return ""
	}
	return troubleOf(v)
}

// troubleOf says why the variant is not what its spec wants, whatever it waits for.
func troubleOf(v *packagesv1.PackageVariant) string {
	ready := conditions.Get(v, "Ready")
	// The status observes no generation whose failure is tried again; the condition does.
	if ready == nil || ready.ObservedGeneration != v.Generation || ready.Status != "False" || ready.Reason == packagesv1.ProgressingReason {
		return ""
	}
	return ready.Reason + ": " + ready.Message
}

// decide says what the variant is to be: what the newest revision wants, or else what it is.
func (p *place) decide(r *rolling, newest bool, number int64) {
	if newest || p.err != nil {
		p.spec, p.marks = p.newest, r.moved(p)
		return
	}
	if p.have == nil {
		then := r.numbered(number)
		p.spec, p.err = r.variant(p.target, then)
		p.marks = marks{then.Name, then.Name}
		if p.err == errNotThen { //nolint:errorlint // It is never wrapped.
			// The target is newer than the revision: its template is, too, but upstream has to wait.
			p.spec, p.err = p.newest, nil
			p.spec.Upstream = then.Pin
		}
		return
	}
	p.spec, p.marks = p.have.Spec, marksOf(p.have)
	p.spec.Approval = r.approval(p.target, p.spec.Approval)
	if then := r.named(p.marks.revision); then != nil {
		if spec, err := r.variant(p.target, then); err == nil {
			p.spec = spec
		}
	}
}

// moved are the marks of a variant that is to be what the newest revision wants. One that is that already, though it was made by
// another, is left alone.
func (r *rolling) moved(p *place) marks {
	newest := r.newest().Name
	switch {
	case p.have == nil, p.member.IsFree:
		return marks{newest, newest}
	case isVariant(p.have, p.newest), marksOf(p.have).revision == newest:
		return marksOf(p.have)
	}
	return marks{newest, ""} // Where it has joined counts for that revision alone, which may come back.
}
