package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/pkgrepo"
)

// The keys of a Secret that commits are signed with.
const (
	pgpKey        = "git.asc"
	sshKey        = "identity"
	passphraseKey = "passphrase"
)

// carryOut carries out all that is ordered. What needs no package to be made goes first, in one fetch and one push with what the history
// lets go of: it does not wait for slow packages. Then packages are made, as far as the round has time for them.
func (k *repositories) carryOut(ctx context.Context, obj *packagesv1.Repository, m *mirror) pruned {
	p := k.carryOutReady(ctx, obj, m)
	k.carryOutAll(ctx, obj, m, k.orders(ctx, obj, m, true), nil)
	return p
}

// orders takes the orders that still stand.
func (k *repositories) orders(ctx context.Context, obj *packagesv1.Repository, m *mirror, makes bool) []order {
	taken := k.shared.desk.take(client.ObjectKeyFromObject(obj), makes)
	return slices.DeleteFunc(taken, func(o order) bool { return k.isWithdrawn(ctx, m, o) })
}

// carryOutReady carries out the orders for which nothing has to be made, and removes leftovers.
func (k *repositories) carryOutReady(ctx context.Context, obj *packagesv1.Repository, m *mirror) (p pruned) {
	orders := k.orders(ctx, obj, m, false)
	leftovers, err := k.leftovers(ctx, obj, m)
	if errors.Is(err, errUnread) {
		p.wait, err = k.shared.RequeueDependency, nil
	}
	result := k.carryOutAll(ctx, obj, m, orders, leftovers)
	if len(leftovers) > 0 {
		p.gone, err = result.Gone, cmp.Or(err, result.Err)
		k.tellGone(ctx, result)
	}
	p.err, p.refused, p.isMore = err, refusedBy(obj, m), len(leftovers) == pkgrepo.MaxLeftovers
	return p
}

// carryOutAll carries out orders together, and tells those who gave them. It returns what became of the leftovers.
func (k *repositories) carryOutAll(ctx context.Context, obj *packagesv1.Repository, m *mirror, orders []order, leftovers []pkgrepo.Leftover) pkgrepo.Result {
	changes := make([]pkgrepo.Change, 0, len(orders)+1)
	for _, o := range orders {
		changes = append(changes, o.change)
	}
	if len(leftovers) > 0 {
		changes = append(changes, pkgrepo.Change{Kind: pkgrepo.Prune, Leftovers: leftovers})
	}
	if len(changes) == 0 {
		return pkgrepo.Result{}
	}
	results := make([]pkgrepo.Result, len(changes))
	for i := range results {
		results[i].Err = errBroken
	}
	// Whatever becomes of this round, nobody waits for it for ever.
	defer func() {
		for i, o := range orders {
			if errors.Is(results[i].Err, pkgrepo.ErrPostponed) {
				k.shared.desk.postpone(client.ObjectKeyFromObject(obj), o)
				continue
			}
			k.shared.Changed(o.change.Kind, results[i].Err)
			k.shared.desk.settle(o, results[i])
		}
	}()
	k.apply(ctx, obj, m, changes, results)
	return results[len(changes)-1]
}

// apply carries out changes in the budget. Those that come upon too little are begun anew when there is what they asked for.
func (k *repositories) apply(ctx context.Context, obj *packagesv1.Repository, m *mirror, changes []pkgrepo.Change, results []pkgrepo.Result) {
	left := make([]int, len(changes))
	for i := range changes {
		left[i] = i
	}
	waited := k.shared.inBudget(ctx, obj, func(ctx context.Context) error {
		again := make([]pkgrepo.Change, len(left))
		for i, at := range left {
			again[i] = changes[at]
		}
		for i, result := range m.Apply(ctx, again) {
			results[left[i]] = result
		}
		left = slices.DeleteFunc(left, func(at int) bool { return !errors.Is(results[at].Err, memory.ErrShortage) })
		if len(left) == 0 {
			return nil
		}
		return results[left[0]].Err
	})
	for _, at := range left {
		results[at].Err = waited
	}
}

// isWithdrawn drops an order whose object has been edited, suspended or deleted since it was given, or that was given for another
// repository: it may have waited for long.
func (k *repositories) isWithdrawn(ctx context.Context, m *mirror, o order) bool {
	if o.of != m.Repository {
		k.shared.desk.drop(o)
		return true
	}
	giver := client.Object(&packagesv1.PackageVariant{})
	switch o.from.kind {
	case ofRevision:
		giver = &packagesv1.PackageRevision{}
	case ofSet:
		giver = &packagesv1.PackageVariantSet{}
	}
	if o.change.Kind == pkgrepo.Remove {
		// A variant may have begun to keep the package since the approval.
		if keeper, err := k.shared.liveKeeper(ctx, m, o.change.Package, ""); err != nil || keeper != "" {
			k.shared.desk.drop(o)
			return true
		}
	}
	err := k.shared.Client.Get(ctx, objectOf(o.from.NamespacedName), giver)
	if err != nil && !apierrors.IsNotFound(err) || err == nil && giver.GetUID() == o.uid && giver.GetGeneration() == o.generation {
		return false
	}
	k.shared.desk.drop(o)
	return true
}

// errBroken says that a round ended before its orders were carried out.
var errBroken = errors.New("the round of the repository broke off; see the controller's log")

// tell wakes those who have to do with what has moved.
func (k *repositories) tell(ctx context.Context, key types.NamespacedName, before, after *pkgrepo.Snapshot) {
	users, err := k.users(ctx, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the variants of the repository; they follow at their interval")
	}
	moved := movedPackages(before, after)
	for i := range users {
		user := &users[i]
		if user.Spec.Upstream.Repo == key.Name || before == nil || moved.concerns(user.Spec.GetDownstreamPackage()) {
			k.shared.WakeVariant(client.ObjectKeyFromObject(user))
		}
	}
	k.tellSets(ctx, key)
	was := map[string]*pkgrepo.Revision{}
	if before != nil {
		was = shown(key.Name, before)
	}
	is := shown(key.Name, after)
	for name, r := range is {
		if !isSame(was[name], r) || moved.concerns(r.Package) {
			k.shared.revisions.wake(types.NamespacedName{Namespace: key.Namespace, Name: name})
		}
	}
	for name := range was {
		if is[name] == nil { // It may be left out alone.
			k.shared.revisions.wake(types.NamespacedName{Namespace: key.Namespace, Name: name})
		}
	}
}

// tellSets wakes the sets that say themselves when their variants take what is new in the repository, and those with a preview: it
// may have been of what was there before.
func (k *repositories) tellSets(ctx context.Context, key types.NamespacedName) {
	var list packagesv1.PackageVariantSetList
	if err := k.shared.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot find the sets of the repository; they follow at their interval")
	}
	for i := range list.Items {
		set := &list.Items[i]
		if set.Spec.Rollout != nil && set.Spec.Upstream.Repo == key.Name || set.Spec.DryRun || set.Status.Preview != nil {
			k.shared.sets.wake(client.ObjectKeyFromObject(set))
		}
	}
}

// moved are the packages that two looks at a repository saw differently, and above the folders that these are in.
type moved struct{ packages, above map[string]bool }

func movedPackages(before, after *pkgrepo.Snapshot) moved {
	m := moved{map[string]bool{}, map[string]bool{}}
	add := func(name string) {
		m.packages[name] = true
		for name = path.Dir(name); name != "." && name != "/"; name = path.Dir(name) {
			m.above[name] = true
		}
	}
	for name, p := range after.Packages {
		if !isSamePackage(before.Package(name), p) {
			add(name)
		}
	}
	if before != nil {
		for name := range before.Packages {
			if after.Package(name) == nil {
				add(name)
			}
		}
	}
	return m
}

// concerns tells whether the package has moved, or one that it is in or that is in it.
func (m moved) concerns(name string) bool {
	if m.above[name] {
		return true
	}
	for ; name != "." && name != "/"; name = path.Dir(name) {
		if m.packages[name] {
			return true
		}
	}
	return false
}

// isSame tells whether two looks at a revision saw the same.
func isSame(a, b *pkgrepo.Revision) bool {
	return a != nil && a.Commit == b.Commit && a.Lifecycle == b.Lifecycle && a.Ref == b.Ref
}

// isSamePackage tells whether two looks at a package saw the same. Where it is not on the branch, or not there, it is nil.
func isSamePackage(a, b *pkgrepo.Package) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := func(a, b pkgrepo.Revision) bool {
		return isSame(&a, &b) && a.Tree == b.Tree && (a.Err == nil) == (b.Err == nil)
	}
	sameBranch := a.Branch == b.Branch || a.Branch != nil && b.Branch != nil &&
		a.Branch.Tree == b.Branch.Tree && (a.Branch.Err == nil) == (b.Branch.Err == nil)
	return sameBranch && slices.EqualFunc(a.Open, b.Open, same) && slices.EqualFunc(a.Published, b.Published, same)
}

// identify says who commits are by, and what they are signed with.
func (k *repositories) identify(ctx context.Context, obj *packagesv1.Repository, settings *pkgrepo.Settings) error {
	commit := ptr.Deref(obj.Spec.Commit, packagesv1.CommitSpec{})
	author := cmp.Or(ptr.Deref(commit.Author, packagesv1.Identity{}), packagesv1.Identity{Name: "Sluice", Email: "sluice@" + obj.Namespace + ".invalid"})
	committer := cmp.Or(ptr.Deref(commit.Committer, packagesv1.Identity{}), author)
	settings.Author, settings.Committer = pkgrepo.Person(author), pkgrepo.Person(committer)
	if commit.SigningKeySecretRef == nil {
		k.shared.signers.forget(client.ObjectKeyFromObject(obj))
		return nil
	}
	const field = "spec.commit.signingKeySecretRef"
	data, err := k.shared.Credentials.Data(ctx, obj.Namespace, commit.SigningKeySecretRef.Name, field)
	if err != nil {
		return failure.Retry(packagesv1.SecretNotFoundReason, err)
	}
	key := cmp.Or(string(data[pgpKey]), string(data[sshKey]))
	if key == "" {
		return failure.Retry(packagesv1.SecretNotFoundReason, fmt.Errorf("%s: Secret %s has neither %s nor %s", field, commit.SigningKeySecretRef.Name, pgpKey, sshKey))
	}
	signer, err := k.shared.signers.open(client.ObjectKeyFromObject(obj), key, string(data[passphraseKey]))
	if err != nil {
		return failure.Retry(packagesv1.SigningKeyInvalidReason, fmt.Errorf("%s: Secret %s: %w", field, commit.SigningKeySecretRef.Name, err))
	}
	settings.Signer = signer
	return nil
}
