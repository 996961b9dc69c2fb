package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

// TestNothingOfAUserIsLost plays random sequences of what operators and users do to two installations that share a
// namespace, and holds what is there against a simple model: no object that a user made or asked to keep, no volume, and no
// Namespace around one of these is ever deleted, unless a user does it; and every uninstall comes to its end.
//
// SLUICE_TORTURE is how many sequences are played, SLUICE_TORTURE_SEED the first one's seed: a failure prints its own.
// The sequence of a seed is always the same; how requests and watches meet is not, so that a rare one may need repeating.
func TestNothingOfAUserIsLost(t *testing.T) {
	t.Parallel()
	count, first := setting(t, "SLUICE_TORTURE", 3), setting(t, "SLUICE_TORTURE_SEED", 1)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			steps := sequence(uint64(seed))
			wrong := play(t, steps)
			if wrong == "" {
				return
			}
			steps, wrong = shrink(t, steps, wrong)
			t.Errorf("SLUICE_TORTURE=1 SLUICE_TORTURE_SEED=%d: %s, after\n%s", seed, wrong, strings.Join(told(steps), "\n"))
		})
	}
}

func setting(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	check(t, err)
	return number
}

// shrink leaves out steps without which it goes wrong as well.
func shrink(t *testing.T, steps []step, wrong string) ([]step, string) {
	t.Helper()
	for i := range slices.Backward(steps) {
		fewer := slices.Delete(slices.Clone(steps), i, i+1)
		if still := play(t, fewer); still != "" {
			steps, wrong = fewer, still
		}
	}
	return steps, wrong
}

func told(steps []step) []string {
	var lines []string
	for i, s := range steps {
		lines = append(lines, fmt.Sprintf("%2d. %+v", i+1, s))
	}
	return lines
}

// deed is what somebody does.
type deed string

const (
	// Deeds of operators, and of the machine.
	install   deed = "install"
	pause     deed = "pause"
	uninstall deed = "uninstall"
	restart   deed = "restart"
	kill      deed = "kill"
	wait      deed = "wait"
	// Deeds of users.
	makes   deed = "make"
	remakes deed = "remake"
	removes deed = "remove"
	edits   deed = "edit"
	keeps   deed = "keep"
)

// step is a deed, and how many rounds each installation does after it.
type step struct {
	Deed   deed
	Who    int   // the installation
	Things []int // what the release holds, or what a user lays hands on
	Value  int
	Yes    bool
	Rounds [2]int
}

// thing is an object that releases hold and users make. All have a place of their own in a sequence.
type thing struct {
	kind, name string
	inside     bool // in the inner Namespace, which is a thing itself
	immutable  bool
}

var things = []thing{
	{kind: "Namespace"},
	{kind: "ConfigMap", name: "a"},
	{kind: "ConfigMap", name: "b"},
	{kind: "ConfigMap", name: "fixed", immutable: true},
	{kind: "ConfigMap", name: "in", inside: true},
	{kind: "PersistentVolumeClaim", name: "data"},
	{kind: "PersistentVolumeClaim", name: "in-data", inside: true},
}

// sequence is what happens, which the seed alone decides.
func sequence(seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 0))
	deeds := []deed{
		install, install, install, install, pause, uninstall, restart, kill, wait, makes, makes, makes, remakes, removes, edits, keeps,
	}
	steps := make([]step, 8+random.IntN(10))
	for i := range steps {
		s := step{
			Deed: deeds[random.IntN(len(deeds))], Who: random.IntN(2), Value: 1 + random.IntN(3), Yes: random.IntN(2) == 0,
			Rounds: [2]int{random.IntN(3), random.IntN(3)},
		}
		if i == 0 {
			s.Deed = install
		}
		s.Things = []int{random.IntN(len(things))}
		if s.Deed == install {
			s.Things = random.Perm(len(things))[:1+random.IntN(len(things))]
			slices.Sort(s.Things)
			s.Rounds[s.Who] += 2
		}
		steps[i] = s
	}
	return steps
}

// model is what must not be lost, beside the installations that might lose it.
type model struct {
	*rig
	rigs  [2]*rig
	inner string
	// dear are objects that nobody but a user may delete, with the reason.
	dear map[types.UID]string
	lost string
	uids int
}

// play plays a sequence, and returns what went wrong; "" is nothing.
func play(t *testing.T, steps []step) string {
	t.Helper()
	r := newRig(t)
	m := &model{rig: r, rigs: [2]*rig{r, r.sibling("other")}, inner: r.namespace + "-inner", dear: map[types.UID]string{}}
	defer func() {
		for _, r := range m.rigs {
			r.halt()
		}
	}()
	for i, s := range steps {
		m.do(s)
		m.look()
		for who, rounds := range s.Rounds {
			m.rounds(who, rounds)
		}
		if m.lost != "" {
			return fmt.Sprintf("step %d: %s", i+1, m.lost)
		}
	}
	for who := range m.rigs {
		m.rigs[who].in.Deleting = true
		m.rigs[who].in.Spec.Management = ""
	}
	for range 60 {
		for who := range m.rigs {
			m.rounds(who, 1)
		}
		if m.lost != "" {
			return "uninstalled in the end: " + m.lost
		}
		if m.rigs[0].inventory() == nil && m.rigs[1].inventory() == nil {
			return ""
		}
	}
	return fmt.Sprintf("uninstalling does not end: %v and %v are left", m.rigs[0].members(), m.rigs[1].members())
}

// rounds are some of an installation. That one fails is nothing unusual.
func (m *model) rounds(who, count int) {
	r := m.rigs[who]
	for range count {
		out, _ := r.engine.Reconcile(m.t.Context(), r.in)
		m.look()
		if out.Done {
			// Whoever installs it again makes another one of that name.
			m.uids++
			r.in = engine.Installation{Name: r.in.Name, Namespace: r.in.Namespace, UID: fmt.Sprintf("%s-%d", r.in.UID, m.uids)}
		}
		r.clock.SetTime(r.clock.Now().Add(5 * time.Second))
	}
}

func (m *model) do(s step) {
	r := m.rigs[s.Who]
	switch s.Deed {
	case install:
		r.in.Target = r.target(fmt.Sprintf("1.0.%d", s.Value), m.files(s))
		policies := []modulesv1.AdoptPolicy{"", modulesv1.AdoptIfUnowned, modulesv1.AdoptNever}
		r.in.Spec = modulesv1.ModuleInstallationSpec{Force: s.Yes, Adopt: policies[s.Value-1]}
		if s.Value == 1 {
			r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
		}
	case pause:
		r.in.Spec.Management = modulesv1.ManagementManaged
		if s.Yes {
			r.in.Spec.Management = modulesv1.ManagementPaused
		}
	case uninstall:
		r.in.Deleting = true
	case restart:
		r.start(nil)
	case kill:
		r.start(&mortal{at: 2 * s.Value, after: s.Yes})
		m.rounds(s.Who, 3)
		r.start(nil)
	case wait:
		r.clock.SetTime(r.clock.Now().Add(time.Duration(s.Value) * 20 * time.Minute))
	default:
		m.handle(s)
	}
}

// handle does what a user does.
func (m *model) handle(s step) {
	wanted := m.object(things[s.Things[0]], "user")
	live := m.find(wanted)
	switch {
	case s.Deed == makes && live == nil:
		if s.Yes {
			wanted.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		}
		m.create(wanted)
	case live == nil:
	case s.Deed == removes:
		m.remove(live)
	case s.Deed == remakes:
		m.remove(live)
		m.create(wanted)
	case s.Deed == edits:
		live.SetLabels(map[string]string{"edited": "by-hand"})
		m.tolerate(env.Client.Patch(m.t.Context(), live, client.MergeFrom(m.find(wanted))))
	case s.Deed == keeps:
		kept := live.DeepCopy()
		kept.SetAnnotations(map[string]string{"modules.sluice.dev/prune": "disabled"})
		if env.Client.Patch(m.t.Context(), kept, client.MergeFrom(live)) == nil && live.GetDeletionTimestamp() == nil {
			m.dear[live.GetUID()] = "to be kept"
		}
	}
}

func (m *model) create(wanted *unstructured.Unstructured) {
	err := env.Client.Create(m.t.Context(), wanted)
	m.tolerate(err)
	if err == nil {
		m.dear[wanted.GetUID()] = "a user's"
	}
}

// remove deletes an object as a user, with what it holds, and waits for nothing that protects it.
func (m *model) remove(live *unstructured.Unstructured) {
	delete(m.dear, live.GetUID())
	if live.GetKind() == "Namespace" {
		m.clear()
	}
	m.tolerate(env.Client.Delete(m.t.Context(), live))
	m.release(live)
}

// clear is the namespace controller, which deletes what is in the inner Namespace.
func (m *model) clear() {
	for _, each := range things {
		if live := m.find(m.object(each, "")); each.inside && live != nil {
			m.remove(live)
		}
	}
}

// release does what Kubernetes' controllers do with an object that is going: its finalizers are taken off.
func (m *model) release(object *unstructured.Unstructured) {
	live := m.find(object)
	if live == nil || live.GetDeletionTimestamp() == nil {
		return
	}
	if live.GetKind() == "Namespace" {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: live.GetName()}}
		m.tolerate(env.Client.SubResource("finalize").Update(m.t.Context(), namespace))
		return
	}
	live.SetFinalizers(nil)
	m.tolerate(env.Client.Update(m.t.Context(), live))
}

// look holds what is there against what must not be lost, and does the work of Kubernetes' controllers.
func (m *model) look() {
	m.t.Helper()
	there := map[types.UID]bool{}
	var outer *unstructured.Unstructured
	for _, each := range things {
		live := m.find(m.object(each, ""))
		if live == nil {
			continue
		}
		going := live.GetDeletionTimestamp() != nil
		if each.kind == "Namespace" {
			outer = live
		}
		there[live.GetUID()] = !going && (!each.inside || outer == nil || outer.GetDeletionTimestamp() == nil)
		if each.kind == "PersistentVolumeClaim" && !going {
			m.dear[live.GetUID()] = "a volume"
			m.bind(live)
		}
	}
	for uid, why := range m.dear {
		if !there[uid] && m.lost == "" {
			m.lost = fmt.Sprintf("an object that is %s is deleted (uid %s)", why, uid)
		}
	}
	if outer != nil && outer.GetDeletionTimestamp() != nil {
		m.clear()
		m.release(outer)
	}
}

// bind is the volume controller.
func (m *model) bind(claim *unstructured.Unstructured) {
	if phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase"); phase != string(corev1.ClaimBound) {
		check(m.t, unstructured.SetNestedField(claim.Object, string(corev1.ClaimBound), "status", "phase"))
		m.tolerate(env.Client.Status().Update(m.t.Context(), claim))
	}
}

// find is an object as it is now; nil is none.
func (m *model) find(wanted *unstructured.Unstructured) *unstructured.Unstructured {
	m.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := env.Client.Get(context.WithoutCancel(m.t.Context()), client.ObjectKeyFromObject(wanted), live)
	if client.IgnoreNotFound(err) != nil {
		m.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return live
}

// tolerate lets pass what somebody is refused who comes too late, or too early.
func (m *model) tolerate(err error) {
	if err != nil {
		m.t.Logf("not done: %v", err)
	}
}

// files are the release that a step installs.
func (m *model) files(s step) map[string]string {
	m.t.Helper()
	files := map[string]string{}
	for _, i := range s.Things {
		manifest, err := m.object(things[i], strconv.Itoa(s.Value)).MarshalJSON()
		check(m.t, err)
		files[fmt.Sprintf("%d.yaml", i)] = string(manifest)
	}
	return files
}

// object is a thing as somebody makes it.
func (m *model) object(of thing, value string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": of.kind}}
	object.SetName(of.name)
	object.SetNamespace(m.namespace)
	if of.inside {
		object.SetNamespace(m.inner)
	}
	switch of.kind {
	case "Namespace":
		object.SetName(m.inner)
		object.SetNamespace("")
	case "ConfigMap":
		object.Object["data"] = map[string]any{"key": value}
		object.Object["immutable"] = of.immutable
	case "PersistentVolumeClaim":
		object.Object["spec"] = map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}
	}
	return object
}
