package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// deployment is a manifest of a Deployment without replicas, which is healthy as soon as its controller has seen it.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: foo-${instance}
spec:
  replicas: 0
  selector: {matchLabels: {app: foo}}
  template:
    metadata: {labels: {app: foo}}
    spec: {containers: [{name: main, image: foo}]}
`

// deployment is a Deployment as it is now.
func (s moduleScene) deployment(namespace, name string) *appsv1.Deployment {
	s.t.Helper()
	obj := &appsv1.Deployment{}
	if err := env.Client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

func TestModuleDriftIsHealedAtOnce(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	files := fooFiles("1.0.0")
	files["deployment.yaml"] = deployment
	s.release("1.0.0", files)
	s.install("app")
	s.ready("app", "1.0.0")
	members := append(fooMembers("app", "1.0.0"), "Deployment/foo-app")
	s.exact("app", members...)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-app"}}

	cases := []struct {
		reason string
		most   int // of requests
		drift  func(s moduleScene)
		healed func(obj *corev1.ConfigMap) bool
	}{
		{"An object that somebody deleted is there again, by one request.", 1, func(moduleScene) {
			if err := env.Client.Delete(t.Context(), config.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}, func(obj *corev1.ConfigMap) bool { return versionIn(obj) == "1.0.0" }},
		{"A field that somebody changed is as published, by one request that tells who it was, and one that takes it.", 2, func(s moduleScene) {
			obj := config.DeepCopy()
			patch(s, obj, func() { obj.Data["version"] = "changed" })
		}, func(obj *corev1.ConfigMap) bool { return versionIn(obj) == "1.0.0" }},
		{"A field that somebody removed is there again.", 2, func(s moduleScene) {
			obj := config.DeepCopy()
			patch(s, obj, func() { delete(obj.Data, "version") })
		}, func(obj *corev1.ConfigMap) bool { return versionIn(obj) == "1.0.0" }},
		{"An object without our label is ours again, once it is known that nobody else's it has become.", 3, func(s moduleScene) {
			obj := config.DeepCopy()
			patch(s, obj, func() { delete(obj.Labels, partOf) })
		}, func(obj *corev1.ConfigMap) bool { return obj != nil && obj.Labels[partOf] == s.id("app") }},
	}
	for _, c := range cases {
		before := len(s.memberCalls())
		began := time.Now()
		c.drift(s)
		s.eventually(c.reason, func(ctx context.Context) (bool, string) {
			obj, err := s.configMap(ctx, config.Name)
			return err == nil && c.healed(obj), fmt.Sprint(asJSON(obj), err)
		})
		t.Logf("healed after %s: %s", time.Since(began).Round(time.Millisecond), c.reason)
		s.exact("app", members...)
		s.ready("app", "1.0.0")
		if done := s.healedBy(before, verbPatch, verbList, verbDelete, "get", "create", "update"); len(done) > c.most {
			t.Errorf("%s It took the requests\n%s", c.reason, lines(done))
		}
	}
	s.told("app", corev1.EventTypeNormal, modulesv1.DriftHealedReason, "settings-app")
}

// healedBy are the requests for members with these verbs, without the first ones, up to the one that healed a drift: an
// object is seen healed a little before the request is in the audit log.
func (s moduleScene) healedBy(before int, verbs ...string) []testenv.Request {
	s.t.Helper()
	var found []testenv.Request
	s.eventually("the audit log has the request that healed", func(context.Context) (bool, string) {
		found = only(s.memberCalls()[before:], verbs...)
		return slices.ContainsFunc(found, func(r testenv.Request) bool {
			return r.Verb == verbPatch && r.Response.Code < http.StatusMultipleChoices
		}), lines(found)
	})
	return found
}

func TestModuleWritesOfOthersBesideOursAreNoDrift(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	files := fooFiles("1.0.0")
	files["deployment.yaml"] = deployment
	s.release("1.0.0", files)
	s.install("app")
	s.ready("app", "1.0.0")
	before := len(s.memberCalls())

	deployed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "foo-app"}}
	status := `{"status":{"conditions":[{"type":"Seen","status":"True","reason":"Seen","message":"by somebody"}]}}`
	if err := env.Client.Status().Patch(t.Context(), deployed, client.RawPatch(types.StrategicMergePatchType, []byte(status))); err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-app"}}
	patch(s, config, func() {
		maps.Copy(config.Data, map[string]string{"another": "field"})
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, "example.com/note", "mine")
		metav1.SetMetaDataLabel(&config.ObjectMeta, "example.com/label", "mine")
	})
	// What is seen after these is healed, and nothing else.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "foo-app"}}
	if err := env.Client.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	s.exact("app", append(fooMembers("app", "1.0.0"), "Deployment/foo-app")...)
	s.ready("app", "1.0.0")
	if writes := s.healedBy(before, verbPatch, verbDelete, "create", "update"); len(writes) != 1 {
		t.Errorf("wrote\n%s\nwant the account alone", lines(writes))
	}
	config, err := s.configMap(t.Context(), "settings-app")
	if err != nil {
		t.Fatal(err)
	}
	if config.Data["another"] != "field" || config.Annotations["example.com/note"] != "mine" || config.Labels["example.com/label"] != "mine" {
		t.Errorf("what others keep in the object is gone: %s", asJSON(config))
	}
}
