package packages_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages"
	"sluice.dev/sluice/internal/fanout"
)

// world is a set whose targets come, go, move, collide and break, while the API server fails now and then.
type world struct {
	*testing.T

	client client.Client
	set    *packagesv1.PackageVariantSet
	random *rand.Rand
	// leads says where each target leads; nothing for one with a problem.
	leads map[string]string
	label string
	// now is a minute later with each change. since is when variants lost their targets, gone how many are deleted since a person last
	// accepted the targets, and kept which variants a digest names.
	now   *clocktesting.FakePassiveClock
	since map[types.UID]time.Time
	gone  int
	kept  map[string]map[types.UID]bool
}

// failing lets a part of all writes fail before they are sent, and another after they are done: nobody knows which.
type failing struct {
	http.RoundTripper

	random *rand.Rand
	isOff  bool
	// fails is the method of requests that fail, whatever the dice say.
	fails string
}

var errUnknown = errors.New("the connection is lost")

func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.fails == r.Method {
		return nil, errUnknown
	}
	if f.isOff || r.Method == http.MethodGet {
		return f.RoundTripper.RoundTrip(r)
	}
	dice := f.random.IntN(12)
	if dice == 0 {
		return nil, errUnknown
	}
	response, err := f.RoundTripper.RoundTrip(r)
	if dice == 1 && err == nil {
		_ = response.Body.Close()
		return nil, errUnknown
	}
	return response, err
}

// variants are those that are there, by name; there are no two for one place.
func (w *world) variants() map[string]*packagesv1.PackageVariant {
	w.Helper()
	var list packagesv1.PackageVariantList
	if err := env.Client.List(w.Context(), &list, client.InNamespace(w.set.Namespace)); err != nil {
		w.Fatal(err)
	}
	all, places := map[string]*packagesv1.PackageVariant{}, map[packagesv1.Downstream]string{}
	for i := range list.Items {
		v := &list.Items[i]
		if other, twice := places[v.Spec.Downstream]; twice {
			w.Fatalf("%s and %s are both at %v", other, v.Name, v.Spec.Downstream)
		}
		all[v.Name], places[v.Spec.Downstream] = v, v.Name
	}
	return all
}

// change lets targets come, go and lead elsewhere, and edits the template. Many go at once now and then.
func (w *world) change() {
	w.set.Annotations = nil
	w.now.SetTime(w.now.Now().Add(time.Minute))
	for range 1 + w.random.IntN(3) {
		name := fmt.Sprintf("target-%d", w.random.IntN(12))
		switch w.random.IntN(9) {
		case 0:
			delete(w.leads, name)
		case 1:
			if last := w.set.Status.DeletionGuard; last != nil {
				w.set.Annotations = map[string]string{packagesv1.AllowDeletionAnnotation: last.Digest}
			}
		case 2:
			w.leads[name] = ""
		case 3:
			w.label = fmt.Sprintf("edit-%d", w.random.IntN(3))
			w.set.Generation += int64(w.random.IntN(2))
		case 4:
			if w.random.IntN(3) == 0 {
				clear(w.leads)
			}
		default:
			w.leads[name] = fmt.Sprintf("place-%d", w.random.IntN(16))
		}
	}
}

// wanted is what the targets want, whatever their order.
func (w *world) wanted() fanout.Wanted {
	w.Helper()
	var targets []fanout.Target
	for _, name := range slices.Sorted(maps.Keys(w.leads)) {
		targets = append(targets, fanout.Target{Name: name, Repo: name, Package: "app"})
	}
	gather := func() fanout.Wanted {
		return fanout.Gather(targets, func(t fanout.Target) (packagesv1.PackageVariantSpec, error) {
			if w.leads[t.Name] == "" {
				return packagesv1.PackageVariantSpec{}, errors.New("it is broken")
			}
			return packagesv1.PackageVariantSpec{
				Upstream: packagesv1.Upstream{Repo: "blueprints", Package: "app"}, Labels: map[string]string{"edit": w.label},
				Downstream:     packagesv1.Downstream{Repo: w.leads[t.Name], Package: "app"},
				AdoptionPolicy: packagesv1.AdoptNone, DeletionPolicy: packagesv1.DeletionOrphan, ConflictPolicy: packagesv1.ConflictLocal,
			}, nil
		})
	}
	before := gather()
	w.random.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	after := gather()
	if diff := cmp.Diff(fmt.Sprint(before), fmt.Sprint(after)); diff != "" {
		w.Fatalf("the order of targets decides (-before +after):\n%s", diff)
	}
	return after
}

// round spreads once, and checks what became of those that were there.
func (w *world) round() packages.Spread {
	w.Helper()
	wanted, before := w.wanted(), w.variants()
	broken := map[string]bool{}
	for _, p := range wanted.Problems {
		broken[p.Target.Key()] = true
	}
	w.lose(wanted, before, broken)
	done, err := packages.SpreadOnce(w.Context(), w.client, w.now, w.set, maps.Clone(before), wanted)
	if err != nil && !errors.Is(err, errUnknown) {
		w.Fatal(err)
	}
	after, deleted := w.variants(), map[types.UID]bool{}
	leading := map[string]int{}
	for _, to := range w.leads {
		leading[to]++
	}
	for name, v := range after {
		if before[name] == nil && leading[v.Spec.Downstream.Repo] != 1 {
			w.Fatalf("%s is made, and %d targets lead there", name, leading[v.Spec.Downstream.Repo])
		}
	}
	for name, v := range before {
		if after[name] != nil {
			continue
		}
		deleted[v.UID] = true
		if _, isWanted := wanted.Variants[v.Spec.Downstream]; isWanted {
			w.Fatalf("%s is deleted, and has a target", name)
		}
		if broken[v.Annotations[packagesv1.TargetAnnotation]] {
			w.Fatalf("%s is deleted, and its target has a problem", name)
		}
	}
	w.mayLose(deleted, len(before))
	return done
}

// lose notes since when variants have no target.
func (w *world) lose(wanted fanout.Wanted, there map[string]*packagesv1.PackageVariant, broken map[string]bool) {
	since := map[types.UID]time.Time{}
	for _, v := range there {
		if _, isWanted := wanted.Variants[v.Spec.Downstream]; isWanted || broken[v.Annotations[packagesv1.TargetAnnotation]] {
			continue
		}
		if since[v.UID] = w.now.Now(); !w.since[v.UID].IsZero() {
			since[v.UID] = w.since[v.UID]
		}
	}
	w.since = since
}

// mayLose checks that no more variants were deleted than a person has acknowledged, or than the guard and its grace period allow.
func (w *world) mayLose(deleted map[types.UID]bool, there int) {
	w.Helper()
	record, percent := w.set.Status.DeletionGuard, w.set.Spec.GetGuardPercent()
	acknowledged := w.kept[w.set.Annotations[packagesv1.AllowDeletionAnnotation]]
	if isUsed := len(deleted) > 0 && acknowledged != nil && record.Acknowledged == w.set.Annotations[packagesv1.AllowDeletionAnnotation]; isUsed {
		for uid := range deleted {
			if !acknowledged[uid] {
				w.Fatalf("%s is deleted, and was not acknowledged", uid)
			}
		}
		w.gone = 0
		delete(w.kept, record.Acknowledged)
		return
	}
	for uid := range deleted {
		if waited := w.now.Since(w.since[uid]); waited < w.set.Spec.GetGracePeriod() {
			w.Fatalf("%s is deleted %s after its target has gone", uid, waited)
		}
	}
	if len(deleted) > 0 && (there-len(deleted))*100 < (there+w.gone)*percent {
		w.Fatalf("%d of %d variants are deleted, and %d before: %d%% stay at least", len(deleted), there, w.gone, percent)
	}
	if w.gone += len(deleted); record == nil {
		return
	}
	if len(deleted) == 0 && record.Digest == "" && record.Generation == w.set.Generation && record.Gone == 0 {
		w.gone = 0 // An edit of the spec accepts what there is.
	}
	if int(record.Gone) < w.gone {
		w.Fatalf("%d are gone, and the record says %d", w.gone, record.Gone)
	}
	if record.Digest != "" {
		w.kept[record.Digest] = map[types.UID]bool{}
		for uid := range w.since {
			w.kept[record.Digest][uid] = true
		}
	}
}

// newWorld is a world without targets, whose API server fails as it is told to.
func newWorld(t *testing.T, seed uint64, guard *packagesv1.DeletionGuard) (*world, *failing) {
	t.Helper()
	w := &world{
		T: t, random: rand.New(rand.NewPCG(seed, 7)), leads: map[string]string{}, kept: map[string]map[types.UID]bool{},
		now: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
		set: &packagesv1.PackageVariantSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.NewNamespace(t), Name: "fleet", UID: "uid", Generation: 1}},
	}
	w.set.Spec.DeletionGuard = guard
	faults := &failing{random: w.random}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { faults.RoundTripper = next; return faults })
	var err error
	if w.client, err = client.New(config, client.Options{Scheme: env.Scheme}); err != nil {
		t.Fatal(err)
	}
	return w, faults
}

// TestVariantsKeepTheirRules: whatever becomes of targets and of requests, there are never two variants of one place, nothing is
// deleted beyond the guard or because of a problem, the order of targets is irrelevant, and all comes to rest once nothing fails.
func TestVariantsKeepTheirRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, faults := newWorld(t, seed, &packagesv1.DeletionGuard{
				MinPercent: new([]int32{50, 80, 20}[seed]), GracePeriod: &metav1.Duration{Duration: []time.Duration{3 * time.Minute, 0, 0}[seed]},
			})
			total, guarded := packages.Spread{}, 0
			for range 40 {
				w.change()
				for range 1 + w.random.IntN(2) {
					done := w.round()
					total.Made, total.Changed, total.Gone = total.Made+done.Made, total.Changed+done.Changed, total.Gone+done.Gone
					guarded += done.Unwanted
				}
			}
			if total.Made == 0 || total.Changed == 0 || total.Gone == 0 || guarded == 0 {
				t.Errorf("too little has happened: %+v, %d guarded", total, guarded)
			}
			w.rests(faults)
		})
	}
}

// rests checks that the next round but one has nothing to do, and that each target without a problem has its variant.
func (w *world) rests(faults *failing) {
	w.Helper()
	faults.isOff = true
	w.round()
	if again := w.round(); again.Made+again.Changed+again.Gone > 0 {
		w.Errorf("a round more is not at rest: %+v", again)
	}
	places := map[packagesv1.Downstream]string{}
	for _, v := range w.variants() {
		places[v.Spec.Downstream] = v.Spec.Labels["edit"]
	}
	for at := range w.wanted().Variants {
		if label, isThere := places[at]; !isThere || label != w.label {
			w.Errorf("%v is there: %t, with the label %q, want %q", at, isThere, label, w.label)
		}
	}
}
