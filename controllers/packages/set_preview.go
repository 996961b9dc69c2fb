package packages

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fanout"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/status"
)

const (
	// maxNames is how many files and objects the preview of a target names. All targets together name namesOfAll, but each as many as
	// the status of a variant does.
	maxNames   = 1000
	namesOfAll = 50_000
)

// foresight works out what would become of the variants of a set: of each, what its own dry run would say. The variants need not be
// there, and nothing is written for it.
type foresight struct {
	*sets

	obj *packagesv1.PackageVariantSet
	key types.NamespacedName
	// variants plans as a variant does, but what it looks up is looked up for the set.
	variants *variants
	there    map[string]*packagesv1.PackageVariant
	names    int
	// before is what was worked out in the round before, and after what is in this one, by the name of the variant.
	before, after map[string]*worked
	targets       []foreseen
	// edit names the templates: of what fails and of what selects nothing, nothing else tells which edit it comes of.
	edit    string
	pending int
	again   time.Duration
}

// foreseen is what would become of a target.
type foreseen struct {
	packagesv1.TargetPreview

	// content names all that is not in the preview itself.
	content string
	isCut   bool
}

// foresee works out the preview of what is wanted, as far as the repositories have answered.
func (k *sets) foresee(ctx context.Context, obj *packagesv1.PackageVariantSet, there map[string]*packagesv1.PackageVariant, wanted fanout.Wanted) *foresight {
	key := client.ObjectKeyFromObject(obj)
	planning := k.shared
	planning.Lookups = lookupsOfSet{k.shared.Previews, key}
	f := &foresight{
		sets: k, obj: obj, key: key, variants: &variants{shared: planning}, there: there, before: k.previews.of(key), after: map[string]*worked{},
		names: min(max(namesOfAll/max(len(wanted.Variants), 1), packagesv1.MaxChangedFiles), maxNames), edit: editOf(obj),
	}
	for _, downstream := range wanted.Places() {
		spec := wanted.Variants[downstream]
		f.look(ctx, packagesv1.TargetPreview{
			Target: wanted.Targets[downstream].Key(), Repo: downstream.Repo, Package: spec.GetDownstreamPackage(),
		}, objectName(obj.Name, downstream.Repo, downstream.Package), spec)
	}
	for _, p := range wanted.Problems {
		f.fail(packagesv1.TargetPreview{Target: p.Target.Key()}, failure.Retry(packagesv1.TargetsFailedReason, p.Err), "")
	}
	for _, v := range untargeted(obj.Name, there, wanted) {
		f.targets = append(f.targets, foreseen{TargetPreview: packagesv1.TargetPreview{
			Target: v.Annotations[packagesv1.TargetAnnotation], Repo: v.Spec.Downstream.Repo, Package: v.Spec.GetDownstreamPackage(),
			Change: packagesv1.PreviewDeleted, Message: "the variant goes, with deletionPolicy " + string(v.Spec.DeletionPolicy),
		}, content: string(v.Spec.DeletionPolicy)})
	}
	for name := range f.before {
		if f.after[name] == nil {
			k.shared.Previews.Forget(setOrderer(key, name).NamespacedName)
			k.shared.desk.forget(setOrderer(key, name))
		}
	}
	k.previews.keep(key, f.after)
	return f
}

// look works out what would become of the package of a target.
func (f *foresight) look(ctx context.Context, is packagesv1.TargetPreview, name string, spec packagesv1.PackageVariantSpec) {
	have := f.there[name]
	isSame, intent := have != nil && isSameBut(have, spec), specDigest(spec)
	spec.DryRun = true
	v := &packagesv1.PackageVariant{ObjectMeta: metav1.ObjectMeta{Namespace: f.obj.Namespace, Name: name}, Spec: spec}
	if have != nil {
		v.Status.Downstream, v.Status.Adopted = have.Status.Downstream, have.Status.Adopted
	}
	f.after[name] = &worked{} // It may have something looked up.
	l := &look{}
	b, err := f.variants.brief(ctx, v, l)
	if err == nil {
		err = b.down.checkKnown(b.downstream)
	}
	if err == nil {
		l.state = b.down.Snapshot().Package(b.downstream)
		l.open, err = f.shared.claim(ctx, b, l.state)
	}
	if err != nil {
		f.fail(is, err, "")
		return
	}
	f.again = kernel.Sooner(f.again, f.variants.again(l))
	w := &worked{adopts: true}
	if change := f.variants.step(v, b, l); change != nil {
		if w = f.work(v, b, l, change); w == nil {
			f.pending++
			return
		}
		f.after[name] = w
	}
	is.Message = fit(l.missing(), maxProblemText)
	switch {
	case w.adopts && isSame:
		is.Change = packagesv1.PreviewUnchanged
	case w.adopts && have == nil:
		is.Change, is.Message = packagesv1.PreviewUnchanged, "the package is taken over as it is"
	case w.adopts:
		is.Change, is.Message = packagesv1.PreviewChanged, "the package stays as it is, and its variant becomes another"
	case l.open == nil && branchOf(l.state) == nil:
		is.Change = packagesv1.PreviewCreated
	default:
		is.Change = packagesv1.PreviewChanged
	}
	if w.adopts {
		f.targets = append(f.targets, foreseen{TargetPreview: is, content: intent + treeOf(l)})
		return
	}
	is.Files, is.Objects, is.Conflicts, is.ConflictCount = w.files, w.objects, w.conflicts, w.conflictCount
	if w.err != nil {
		f.fail(is, w.err, w.content)
		return
	}
	f.targets = append(f.targets, foreseen{TargetPreview: is, content: intent + w.content, isCut: w.isCut})
}

// work has the package made by its Repository, in one round with all others. What came of it stands as long as all that it came of is
// the same; nil until there is something.
func (f *foresight) work(v *packagesv1.PackageVariant, b *brief, l *look, change *pkgrepo.Change) *worked {
	policy := v.Spec.GetConflictPolicy()
	o := order{
		from: setOrderer(f.key, v.Name), key: l.keyOf(b, change.Kind, policy), of: b.down.Repository, uid: f.obj.UID, generation: f.obj.Generation,
		made: &made{isPreview: true},
	}
	now, known := f.shared.Clock.Now(), f.before[v.Name]
	if known == nil || known.key != o.key {
		known = nil
	} else if known.retry.IsZero() {
		return known
	}
	change.Make = (&maker{brief: b, shared: f.shared, policy: policy, workspace: change.Workspace, timeout: f.shared.Allowed(v.Spec.GetTimeout()), previews: f.names, kept: o.made}).make
	o.change = *change
	found := f.shared.desk.collect(o)
	if found == nil {
		if known == nil || !now.Before(known.retry) {
			f.shared.desk.order(b.downRepo, o)
		}
		return known
	}
	w := newWorked(found)
	if w.err != nil && failure.Of(w.err).Disposition != failure.Stalls {
		w.retry = now.Add(f.shared.RequeueDependency)
	}
	return w
}

// fail says of a target that its package cannot be made.
func (f *foresight) fail(is packagesv1.TargetPreview, err error, content string) {
	is.Change, is.Message = packagesv1.PreviewFailed, fit(err.Error(), maxProblemText)
	_, is.Reason = (status.Table{}).Explain(err)
	if failure.Of(err).Disposition != failure.Stalls {
		f.again = kernel.Sooner(f.again, f.shared.RequeueDependency) // Not everything tells when it is mended.
	}
	f.targets = append(f.targets, foreseen{TargetPreview: is, content: content})
}

// treeOf is the package that there is.
func treeOf(l *look) string {
	if l.open != nil {
		return l.open.Tree
	}
	return branchOf(l.state).Tree
}

// isSameBut tells whether a variant is what it is to be, but for where upstream is.
func isSameBut(have *packagesv1.PackageVariant, spec packagesv1.PackageVariantSpec) bool {
	spec.Upstream = have.Spec.Upstream
	return isVariant(have, spec)
}

// specDigest names what a variant is to be, but for where upstream is: what comes of that is in the package.
func specDigest(spec packagesv1.PackageVariantSpec) string {
	spec.Upstream = packagesv1.Upstream{}
	return digestOf(spec)
}

// editOf names the templates of a set, in whatever order.
func editOf(obj *packagesv1.PackageVariantSet) string {
	templates := make([]string, 0, len(obj.Spec.Targets))
	for i := range obj.Spec.Targets {
		templates = append(templates, digestOf(obj.Spec.Targets[i].Template))
	}
	slices.Sort(templates)
	return digestOf(templates)
}

// lookupsOfSet has a set told of what is looked up for its variants.
type lookupsOfSet struct {
	Lookups

	set types.NamespacedName
}

// Watch implements Lookups.
func (l lookupsOfSet) Watch(variant types.NamespacedName, identity cluster.Identity, wants []lookups.Want) {
	l.Lookups.Watch(setOrderer(l.set, variant.Name).NamespacedName, identity, wants)
}

// Forget implements Lookups.
func (l lookupsOfSet) Forget(variant types.NamespacedName) {
	l.Lookups.Forget(setOrderer(l.set, variant.Name).NamespacedName)
}
