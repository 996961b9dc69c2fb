package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// rival is another program that wants a field to have another value, and gives it that whenever it has not.
type rival struct {
	writes atomic.Int64
	stop   context.CancelFunc
	ended  chan error
}

// newRival begins to write the version of a ConfigMap, by force, as a manager of its own.
func (s moduleScene) newRival(name string) *rival {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	r := &rival{stop: stop, ended: make(chan error, 1)}
	s.t.Cleanup(stop)
	manifest := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"version":"theirs"}}`, name)
	go func() {
		r.ended <- wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			obj, err := s.configMap(ctx, name)
			if err != nil || versionIn(obj) == "theirs" {
				return false, err
			}
			target := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
			r.writes.Add(1)
			return false, env.Client.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, manifest), client.FieldOwner("rival"), client.ForceOwnership)
		})
	}()
	return r
}

// rest ends it, and fails the test if it ended before.
func (r *rival) rest(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; !wait.Interrupted(err) {
		t.Errorf("the rival came to an end: %v", err)
	}
}

func isContested(obj *modulesv1.ModuleInstallation) bool {
	return conditions.IsTrue(obj, modulesv1.ContestedCondition)
}

// TestModuleFightIsToldAndEnds: whoever writes a field back after each healing is named, and costs little from then on;
// all else is healed as ever, and the fight is over when the other stops.
func TestModuleFightIsToldAndEnds(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app")
	s.ready("app", "1.0.0")
	before := len(s.memberCalls())
	other := s.newRival("settings-app")

	obj := s.until("app", "is contested", isContested)
	if message := conditions.GetMessage(obj, modulesv1.ContestedCondition); !strings.Contains(message, "settings-app") || !strings.Contains(message, `"rival"`) {
		t.Errorf("the condition does not say what is fought over, and with whom: %s", message)
	}
	if !conditions.IsReady(obj) {
		t.Errorf("a fight has influence on Ready: %s", asJSON(obj.Status.Conditions))
	}
	s.told("app", corev1.EventTypeWarning, modulesv1.OwnershipTakenReason, "rival")
	s.told("app", corev1.EventTypeWarning, modulesv1.DriftContestedReason, `"rival"`)
	s.becomes("settings-app", "theirs")

	// What nobody fights over is healed at once meanwhile, and the rest is left until its time has come.
	only := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "only-1.0.0-app"}}
	for range 3 {
		if err := env.Client.Delete(t.Context(), only.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		s.becomes(only.Name, "1.0.0")
	}
	s.until("app", "is contested still", isContested)
	fought := 0
	for _, call := range s.memberCalls()[before:] {
		if call.Verb == verbPatch && call.Object.Name == "settings-app" {
			fought++
		}
	}
	// Each healing is one request that tells who it was, and one that takes it. A fifth one may be on its way.
	if writes := other.writes.Load(); fought > 10 || writes > 6 {
		t.Errorf("%d requests were made for the contested object, and the rival wrote %d times", fought, writes)
	}

	other.rest(t)
	s.reconcile("app")
	s.becomes("settings-app", "1.0.0")
	s.until("app", "is not contested any more", func(obj *modulesv1.ModuleInstallation) bool { return !isContested(obj) })
	s.ready("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
}

// TestModuleFieldsOfOthersAreNoFight: the number of replicas is an autoscaler's where the release has none, and status
// is always somebody else's. However often these are written, nothing is applied.
func TestModuleFieldsOfOthersAreNoFight(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	files := fooFiles("1.0.0")
	files["deployment.yaml"] = strings.Replace(deployment, "  replicas: 0\n", "", 1)
	s.release("1.0.0", files)
	s.install("app")
	s.until("app", "waits for a replica", func(obj *modulesv1.ModuleInstallation) bool {
		healthy := conditions.Get(obj, modulesv1.HealthyCondition)
		return obj.Status.Current != nil && healthy != nil && strings.Contains(healthy.Message, "foo-app")
	})
	applied := len(only(s.memberCalls(), verbPatch))
	scale := func(replicas int32) {
		t.Helper()
		target := s.deployment(s.namespace, "foo-app")
		body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if err := env.Client.SubResource("scale").Update(t.Context(), target, client.WithSubResourceBody(body), client.FieldOwner("autoscaler")); err != nil {
			t.Fatal(err)
		}
		status := fmt.Sprintf(`{"status":{"conditions":[{"type":"Seen","status":"True","reason":"Seen","message":"with %d replicas"}]}}`, replicas)
		if err := env.Client.Status().Patch(t.Context(), target, client.RawPatch(types.StrategicMergePatchType, []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	for replicas := range int32(12) {
		scale(12 - replicas)
	}
	scale(0)
	obj := s.ready("app", "1.0.0")
	// What is seen after these is healed, and nothing else.
	s.breaks("app", "1.0.0")
	s.ready("app", "1.0.0")
	if writes := only(s.memberCalls(), verbPatch); len(writes) != applied+1 {
		t.Errorf("applied\n%s\nwant the settings alone, once", lines(writes[applied:]))
	}
	if isContested(obj) || isContested(s.get("app")) {
		t.Errorf("it is a fight: %s", asJSON(obj.Status.Conditions))
	}
	if replicas := *s.deployment(s.namespace, "foo-app").Spec.Replicas; replicas != 0 {
		t.Errorf("the autoscaler's 0 replicas became %d", replicas)
	}
}
