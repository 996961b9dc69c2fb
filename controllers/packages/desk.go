package packages

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/pkgrepo"
)

const (
	// gatherDelay is how long a repository waits for more orders after the last one, so that they go in one push. It waits on
	// while more are expected, and gatherMost is how long the first of them waits at most.
	gatherDelay = 300 * time.Millisecond
	gatherMost  = 15 * time.Second
)

// orderer is who gave an order, and has one at a time: an object, or a set for one of its variants, 'set/variant'.
type orderer struct {
	kind string
	types.NamespacedName
}

// setOrderer is a set, for one of its variants.
func setOrderer(set types.NamespacedName, variant string) orderer {
	return orderer{ofSet, types.NamespacedName{Namespace: set.Namespace, Name: set.Name + "/" + variant}}
}

// objectOf is the object behind an orderer's name.
func objectOf(key types.NamespacedName) types.NamespacedName {
	key.Name, _, _ = strings.Cut(key.Name, "/")
	return key
}

// order is what an object wants done to a package.
type order struct {
	from orderer
	// key names what is wanted and of what state of the repository: an order of the same key has the same outcome, unless
	// that is a failure of the moment.
	key    string
	change pkgrepo.Change
	// of is the repository as it was known when the order was given: what is somewhere else by now is another one.
	of *pkgrepo.Repository
	// uid and generation are those of the object when it gave the order. Of another one, the order does not stand any more.
	uid        types.UID
	generation int64
	// made is filled in while the order is carried out.
	made *made
}

// outcome is what became of an order.
type outcome struct {
	key    string
	result pkgrepo.Result
	made   *made
	// isTold says that its object has seen it.
	isTold bool
}

// desk has the orders for all repositories. The objects that give them work out what they want from what is in memory; the
// repository takes them all at once, so that they cost one fetch and one push. What is lost with the process is ordered
// again: whether something is left to do is read from Git alone.
type desk struct {
	mu       sync.Mutex
	waiting  map[types.NamespacedName]*tray
	inHand   map[orderer]string
	outcomes map[orderer]*outcome
	// written are those of the orders that wrote an open change last: what comes later may find nothing left to do.
	written map[orderer]*outcome
	// costs are how long the packages of orders took to be made the last time.
	costs map[orderer]time.Duration
	// woken are the variants that are to be looked at and were not yet, and keptIn lists those of a repository.
	woken  map[types.NamespacedName]struct{}
	keptIn func(repository types.NamespacedName) []packagesv1.PackageVariant
	// repositories are woken when there are orders for them, and givers when these are carried out.
	repositories *waker
	givers       map[string]*waker
}

// tray has the orders that wait for one repository.
type tray struct {
	orders map[orderer]order
	// first is when the first of them came, and last the last.
	first, last time.Time
	// isDue says that they are gathered, and the repository is told.
	isDue bool
}

func newDesk(repositories *waker, givers map[string]*waker) *desk {
	return &desk{
		waiting: map[types.NamespacedName]*tray{}, inHand: map[orderer]string{}, outcomes: map[orderer]*outcome{},
		written: map[orderer]*outcome{}, costs: map[orderer]time.Duration{},
		woken:        map[types.NamespacedName]struct{}{},
		keptIn:       func(types.NamespacedName) []packagesv1.PackageVariant { return nil },
		repositories: repositories, givers: givers,
	}
}

// ask gives an order to a repository, in the place of what the same object had ordered before, and returns what became of it
// when it was carried out last; nil as long as it was not. An outcome that the object has seen is one of before: the order
// is carried out once more.
func (d *desk) ask(repository types.NamespacedName, o order) (found *outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.outcomes[o.from]; known != nil && known.key == o.key {
		found = known
		if !known.isTold {
			known.isTold = true
			return found
		}
	}
	if d.inHand[o.from] != o.key {
		d.put(repository, o)
	}
	return found
}

// collect hands over what became of an order, and forgets it; nil as long as it was not carried out.
func (d *desk) collect(o order) *outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.outcomes[o.from]
	if known == nil || known.key != o.key {
		return nil
	}
	delete(d.outcomes, o.from)
	return known
}

// order gives an order to a repository, in the place of what the same object had ordered before.
func (d *desk) order(repository types.NamespacedName, o order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inHand[o.from] != o.key {
		d.put(repository, o)
	}
}

// last is what became of the object's order that was carried out last, and of the one that wrote its open change; nil if none was.
func (d *desk) last(from orderer) (last, wrote *outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outcomes[from], d.written[from]
}

// put is called with the lock held.
func (d *desk) put(repository types.NamespacedName, o order) {
	t := d.waiting[repository]
	if t == nil {
		t = &tray{orders: map[orderer]order{}, first: time.Now()}
		d.waiting[repository] = t
		time.AfterFunc(gatherDelay, func() { d.ring(repository, t) })
	}
	if t.orders[o.from].key != o.key {
		t.last = time.Now()
	}
	t.orders[o.from] = o
}

// ring tells the repository that its orders are gathered, or waits on: more have come meanwhile.
func (d *desk) ring(repository types.NamespacedName, t *tray) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[repository] != t {
		return
	}
	wait := time.Until(t.last.Add(gatherDelay))
	if wait <= 0 && d.expects(repository) {
		wait = gatherDelay
	}
	if wait = min(wait, time.Until(t.first.Add(gatherMost))); wait > 0 {
		time.AfterFunc(wait, func() { d.ring(repository, t) })
		return
	}
	t.isDue = true
	d.repositories.wake(repository)
}

// expects tells whether more orders for a repository are about to come: a variant was woken, or was written by somebody, and
// nobody has looked at it since. It is called with the lock held.
func (d *desk) expects(repository types.NamespacedName) bool {
	for _, v := range d.keptIn(repository) {
		ready := conditions.Get(&v, meta.ReadyCondition)
		_, isWoken := d.woken[client.ObjectKeyFromObject(&v)]
		if v.Spec.Suspend || !v.DeletionTimestamp.IsZero() {
			continue // Who goes orders by itself, and does not hold up others.
		}
		if isWoken || ready == nil || ready.ObservedGeneration != v.Generation {
			return true
		}
	}
	return false
}

// wakes says that a variant is woken, and looks that it is looked at.
func (d *desk) wakes(variant types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.woken[variant] = struct{}{}
}

func (d *desk) looks(variant types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.woken, variant)
}

// take takes orders for a repository, once they are gathered: those for which a package has to be made, or all others.
func (d *desk) take(repository types.NamespacedName, makes bool) []order {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.waiting[repository]
	if t == nil || !t.isDue {
		return nil
	}
	taken := make([]order, 0, len(t.orders))
	for from, o := range t.orders {
		if (o.change.Make != nil) != makes {
			continue
		}
		delete(t.orders, from)
		d.inHand[o.from] = o.key
		o.change.Cost = d.costs[o.from]
		taken = append(taken, o)
	}
	switch {
	case len(t.orders) == 0:
		delete(d.waiting, repository)
	case makes:
		d.repositories.wake(repository) // They came after all others were taken.
	}
	slices.SortFunc(taken, func(a, b order) int { return strings.Compare(a.from.String(), b.from.String()) })
	return taken
}

// postpone has an order wait for the next round of its repository, which begins at once, unless its object has ordered something else.
func (d *desk) postpone(repository types.NamespacedName, o order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inHand[o.from] != o.key {
		return
	}
	delete(d.inHand, o.from)
	if t := d.waiting[repository]; t == nil || t.orders[o.from].key == "" {
		d.put(repository, o)
	}
}

// settle says what became of an order, and wakes its object. If that has gone meanwhile, or has ordered something else, nobody
// wants to know.
func (d *desk) settle(o order, result pkgrepo.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inHand[o.from] == o.key {
		delete(d.inHand, o.from)
		if o.change.Make != nil {
			d.costs[o.from] = result.Took
		}
		d.tell(o, result)
	}
}

// drop leaves an order that does not stand any more, and has its object looked at: it may order something else.
func (d *desk) drop(o order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inHand[o.from] == o.key {
		delete(d.inHand, o.from)
		d.givers[o.from.kind].wake(objectOf(o.from.NamespacedName))
	}
}

// refuse tells all whose orders wait for a repository that it cannot be worked with. Their orders wait on: the repository is
// tried again at its own pace, and not because somebody orders the same again.
func (d *desk) refuse(repository types.NamespacedName, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.waiting[repository]; t != nil {
		for _, o := range t.orders {
			if o.made != nil {
				o.made = &made{isPreview: o.made.isPreview} // The order's own is written to when it is carried out, whoever reads this.
			}
			d.tell(o, pkgrepo.Result{Err: err})
		}
	}
}

// tell is called with the lock held.
func (d *desk) tell(o order, result pkgrepo.Result) {
	now := &outcome{key: o.key, result: result, made: o.made}
	d.outcomes[o.from] = now
	if before := d.written[o.from]; o.change.Kind == pkgrepo.Write && result.Err == nil &&
		(before == nil || before.result.Commit != result.Commit || o.made.isComputed && !before.made.isComputed) {
		d.written[o.from] = now
	}
	d.givers[o.from.kind].wake(objectOf(o.from.NamespacedName))
}

// forget takes back what an object ordered, and what became of it or will.
func (d *desk) forget(from orderer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.waiting {
		delete(t.orders, from)
	}
	delete(d.inHand, from)
	delete(d.outcomes, from)
	delete(d.written, from)
	delete(d.costs, from)
	if from.kind == ofVariant {
		delete(d.woken, from.NamespacedName)
	}
}

// forgetSet takes back what a set ordered for its variants.
func (d *desk) forgetSet(set types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isOf := func(from orderer) bool { return from.kind == ofSet && objectOf(from.NamespacedName) == set }
	for _, t := range d.waiting {
		maps.DeleteFunc(t.orders, func(from orderer, _ order) bool { return isOf(from) })
	}
	maps.DeleteFunc(d.inHand, func(from orderer, _ string) bool { return isOf(from) })
	maps.DeleteFunc(d.outcomes, func(from orderer, _ *outcome) bool { return isOf(from) })
	maps.DeleteFunc(d.costs, func(from orderer, _ time.Duration) bool { return isOf(from) })
}

// withdraw takes back an order that still waits: there is nothing left to do. The object has seen the outcome of the last one: the
// same order may be due again later, for example after a person renamed the draft.
func (d *desk) withdraw(from orderer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.outcomes[from]; known != nil {
		known.isTold = true
	}
	for _, t := range d.waiting {
		delete(t.orders, from)
	}
}

// close drops all orders for a repository that is gone.
func (d *desk) close(repository types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, repository)
}
