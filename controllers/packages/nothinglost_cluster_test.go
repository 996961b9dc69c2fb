package packages_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// revisionsIn are the PackageRevisions that are in one of the states, by their names.
func (s *sandbox) revisionsIn(states ...packagesv1.Lifecycle) (found []packagesv1.PackageRevision) {
	var list packagesv1.PackageRevisionList
	s.check(env.Client.List(s.Context(), &list, client.InNamespace(s.namespace)))
	for _, r := range list.Items {
		if r.Status.Commit != "" && slices.Contains(states, r.Status.Lifecycle) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b packagesv1.PackageRevision) int {
		return len(a.Name) - len(b.Name) + compareNames(a.Name, b.Name)
	})
	return found
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1000
	case a > b:
		return 1000
	}
	return 0
}

// asks has an approver ask for another lifecycle of a revision that is in one. Where none is, one is brought there from the state before.
func (s *sandbox) asks(step sequenceStep, before, from, to packagesv1.Lifecycle) string {
	r, ok := chosen(s.revisionsIn(from), step.a)
	if !ok {
		if r, ok = chosen(s.revisionsIn(before), step.a); !ok {
			return "no revision is " + string(from)
		}
		from, to = before, from
	}
	patch := fmt.Sprintf(`{"spec":{"lifecycle":%q}}`, to)
	if to == packagesv1.LifecycleDeleted || from == packagesv1.LifecycleProposed && to == packagesv1.LifecyclePublished {
		patch = s.approves(&r, from, to, step.b%4 > 0)
	}
	err := env.Client.Patch(s.Context(), &r, client.RawPatch(types.MergePatchType, []byte(patch)))
	return fmt.Sprintf("%s of %s at %.8s: %s -> %s: %v", path.Join(r.Spec.Repository, r.Spec.Package), r.Spec.Workspace, r.Status.Commit, from, to, err)
}

// approves notes an approval of the commit that a revision names, and returns the approver's request. A careless approver names no conflicts:
// where there are some, nothing is approved.
func (s *sandbox) approves(r *packagesv1.PackageRevision, from, to packagesv1.Lifecycle, isCareful bool) string {
	a, conflicts := s.sees(r), s.conflicts(r)
	switch {
	case a == nil:
	case from == packagesv1.LifecycleDraft || to == packagesv1.LifecycleDeleted && from == packagesv1.LifecycleProposed:
		s.ledger.discarded[a.commit] = true
	case to == packagesv1.LifecycleDeleted:
		s.ledger.gone = append(s.ledger.gone, a)
	case conflicts == "" || isCareful:
		s.ledger.published = append(s.ledger.published, a)
	}
	named := ""
	if conflicts != "" && isCareful {
		named = fmt.Sprintf(`,"approvedConflicts":%q`, conflicts)
	}
	return fmt.Sprintf(`{"spec":{"lifecycle":%q,"approvedCommit":%q%s}}`, to, r.Status.Commit, named)
}

// conflicts is the digest of the conflicts that a revision has; empty for none.
func (s *sandbox) conflicts(r *packagesv1.PackageRevision) string {
	shown := &unstructured.Unstructured{}
	shown.SetGroupVersionKind(packagesv1.GroupVersion.WithKind(packagesv1.PackageRevisionKind))
	if env.Client.Get(s.Context(), client.ObjectKeyFromObject(r), shown) != nil {
		return ""
	}
	digest, _, _ := unstructured.NestedString(shown.Object, "status", "conflictDigest")
	return digest
}

// sees has an approver look at the commit that a revision names; nil where that cannot be read.
func (s *sandbox) sees(r *packagesv1.PackageRevision) *approval {
	files, err := s.read.filesOf(r.Status.Commit)
	if err != nil {
		return nil
	}
	return &approval{branch: branches[r.Spec.Repository], folder: r.Spec.Package, commit: r.Status.Commit, files: ownFiles(files, r.Spec.Package)}
}

// deletes is kubectl delete, without waiting.
func (s *sandbox) deletes(obj client.Object) string {
	err := env.Client.Delete(s.Context(), obj)
	return fmt.Sprintf("%s: %v", obj.GetName(), err)
}

// replaces is kubectl replace --force: delete, wait, create. A hurried operator does not wait for long.
func (s *sandbox) replaces(obj client.Object) string {
	said := s.deletes(obj)
	for range 60 {
		old, _ := obj.DeepCopyObject().(client.Object)
		if err := env.Client.Get(s.Context(), client.ObjectKeyFromObject(obj), old); apierrors.IsNotFound(err) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Sprintf("%s; made again: %v", said, env.Client.Create(s.Context(), obj))
}

// deletesVariant deletes one of all variants, those of the set among them.
func (s *sandbox) deletesVariant(step sequenceStep) string {
	var list packagesv1.PackageVariantList
	s.check(env.Client.List(s.Context(), &list, client.InNamespace(s.namespace)))
	v, ok := chosen(list.Items, step.a)
	if !ok {
		return "no variant"
	}
	if len(v.OwnerReferences) > 0 {
		s.fleet.excused[v.Name] = true
	}
	return s.deletes(&v)
}

// deletesRevision deletes any PackageRevision: by that, nothing is approved and nothing is lost.
func (s *sandbox) deletesRevision(step sequenceStep) string {
	all := s.revisionsIn(packagesv1.LifecycleDraft, packagesv1.LifecycleProposed, packagesv1.LifecyclePublished, packagesv1.LifecycleDeletionProposed)
	if step.b%2 == 0 {
		all = s.revisionsIn(packagesv1.LifecycleDraft, packagesv1.LifecycleProposed, packagesv1.LifecycleDeletionProposed)
	}
	r, ok := chosen(all, step.a)
	if !ok {
		return "no revision"
	}
	return fmt.Sprintf("%s of %s: %s", r.Spec.Workspace, path.Join(r.Spec.Repository, r.Spec.Package), s.deletes(&r))
}

// deletesSet deletes the set. The cluster's garbage collector, which no test has, deletes the variants of one that is gone.
func (s *sandbox) deletesSet() string {
	s.fleet.accepted = nil
	said := s.deletes(s.setObject())
	var list packagesv1.PackageVariantList
	s.check(env.Client.List(s.Context(), &list, client.InNamespace(s.namespace)))
	for i := range list.Items {
		if len(list.Items[i].OwnerReferences) > 0 {
			said += "; " + s.deletes(&list.Items[i])
		}
	}
	return said
}

// applies is kubectl apply of all objects that people want: missing objects are created, and changed ones are reset.
func (s *sandbox) applies() (said string) {
	for _, want := range s.wanted() {
		err := env.Client.Create(s.Context(), want)
		if err == nil {
			said += want.GetName() + " made; "
			continue
		}
		if !apierrors.IsAlreadyExists(err) {
			said += err.Error() + "; "
		}
		s.relabels(want, want.GetLabels())
	}
	return said
}

// relabels gives an object the labels.
func (s *sandbox) relabels(obj client.Object, labels map[string]string) {
	have, _ := obj.DeepCopyObject().(client.Object)
	if env.Client.Get(s.Context(), client.ObjectKeyFromObject(obj), have) != nil || maps.Equal(have.GetLabels(), labels) {
		return
	}
	have.SetLabels(labels)
	_ = env.Client.Update(s.Context(), have)
}

// unlabels takes the label of one of the set's targets away.
func (s *sandbox) unlabels(step sequenceStep) string {
	var obj client.Object
	name, _ := chosen([]string{"f1", "f2", "dev", "prod"}, step.a)
	if branches[name] != "" {
		obj = &packagesv1.Repository{ObjectMeta: s.meta(name)}
	} else {
		obj = &corev1.ConfigMap{ObjectMeta: s.meta(name)}
	}
	s.relabels(obj, nil)
	return name
}

// edits changes a variant as people want it, and the object.
func (s *sandbox) edits(step sequenceStep, change func(v *kept)) string {
	name, _ := chosen(slices.Sorted(maps.Keys(s.variants)), step.a)
	v := s.variants[name]
	policies := s.ledger.policies[v.at]
	if policies == nil {
		policies = map[packagesv1.ApprovalPolicy]bool{}
		s.ledger.policies[v.at] = policies
	}
	policies[v.policy] = true
	change(v)
	return fmt.Sprintf("%s: %+v: %v", name, *v, s.updates(name))
}

// updates writes the spec of a variant, if it is there.
func (s *sandbox) updates(name string) error {
	want := s.variantObject(name)
	for {
		have := &packagesv1.PackageVariant{}
		if err := env.Client.Get(s.Context(), client.ObjectKeyFromObject(want), have); err != nil {
			return err
		}
		have.Spec = want.Spec
		if err := env.Client.Update(s.Context(), have); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// suspendsRepository suspends one of the two, or takes that back.
func (s *sandbox) suspendsRepository(name string, isSuspended bool) string {
	s.suspended[name] = isSuspended
	patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, isSuspended)
	err := env.Client.Patch(s.Context(), &packagesv1.Repository{ObjectMeta: s.meta(name)}, client.RawPatch(types.MergePatchType, []byte(patch)))
	return fmt.Sprintf("%s suspended: %t: %v", name, isSuspended, err)
}

// resumes takes all suspensions back.
func (s *sandbox) resumes() (said string) {
	for _, name := range slices.Sorted(maps.Keys(s.variants)) {
		if s.variants[name].isSuspended {
			s.variants[name].isSuspended = false
			said += fmt.Sprintf("%s: %v; ", name, s.updates(name))
		}
	}
	for name := range branches {
		if s.suspended[name] {
			said += s.suspendsRepository(name, false) + "; "
		}
	}
	return said
}

// acknowledges lets the variants go that the set's guard keeps, if it keeps any. People accept the remaining ones.
func (s *sandbox) acknowledges() string {
	set := s.setObject()
	err := env.Client.Get(s.Context(), client.ObjectKeyFromObject(set), set)
	if err != nil || set.Status.DeletionGuard == nil || set.Status.DeletionGuard.Digest == "" {
		return "the guard keeps nothing"
	}
	s.fleet.accepted = nil
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, packagesv1.AllowDeletionAnnotation, set.Status.DeletionGuard.Digest)
	err = env.Client.Patch(s.Context(), set, client.RawPatch(types.MergePatchType, []byte(patch)))
	return fmt.Sprintf("%s: %v", set.Status.DeletionGuard.Digest, err)
}

// baseline is the number of variants that people accepted: all that the set had when it first came to rest.
type baseline struct {
	accepted map[string]bool
	// excused are those that people have deleted themselves, by name.
	excused map[string]bool
}

// ofSet are the variants that the set has, by their places.
func (s *sandbox) ofSet() map[string]bool {
	there := map[string]bool{}
	var list packagesv1.PackageVariantList
	s.check(env.Client.List(s.Context(), &list, client.InNamespace(s.namespace)))
	for _, v := range list.Items {
		if len(v.OwnerReferences) > 0 && v.DeletionTimestamp.IsZero() {
			there[v.Spec.Downstream.Repo+"/"+v.Spec.Downstream.Package] = true
			delete(s.fleet.excused, v.Name)
		}
	}
	return there
}

// guardHolds checks that of the set's variants that people accepted no more than half are gone.
func (s *sandbox) guardHolds() string {
	if len(s.fleet.accepted) == 0 {
		return ""
	}
	there, gone := s.ofSet(), []string{}
	for at := range s.fleet.accepted {
		if !there[at] {
			gone = append(gone, at)
		}
	}
	if left := len(s.fleet.accepted) - len(gone) + len(s.fleet.excused); len(gone) > 0 && left*2 < len(s.fleet.accepted) {
		slices.Sort(gone)
		return fmt.Sprintf("the set has let go of %v, of %d targets that people accepted", gone, len(s.fleet.accepted))
	}
	return ""
}
