package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/tests/testenv"
)

const requestedAt = "reconcile.fluxcd.io/requestedAt"

// object is one of the API server's, whose controller the test plays.
type object struct {
	t               *testing.T
	kind            schema.GroupVersionKind
	namespace, name string
}

// played stores an object, and gives what plays its controller.
func played(t *testing.T, namespace, text string) object {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	store(t, namespace, text)
	return object{t, obj.GroupVersionKind(), namespace, obj.GetName()}
}

// get is the object as it is.
func (o object) get() *unstructured.Unstructured {
	o.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(o.kind)
	if err := env.Client.Get(o.t.Context(), client.ObjectKey{Namespace: o.namespace, Name: o.name}, obj); err != nil {
		o.t.Fatal(err)
	}
	return obj
}

// patch changes some fields of the object, or of its status.
func (o object) patch(text string) {
	o.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		o.t.Fatal(err)
	}
	obj := o.get()
	patch := client.RawPatch(types.MergePatchType, raw)
	if strings.HasPrefix(text, "status:") {
		err = env.Client.Status().Patch(o.t.Context(), obj, patch)
	} else {
		err = env.Client.Patch(o.t.Context(), obj, patch)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// remove deletes the object.
func (o object) remove() {
	o.t.Helper()
	if err := env.Client.Delete(o.t.Context(), o.get()); err != nil {
		o.t.Fatal(err)
	}
}

// asked waits until somebody asks for the object, and gives with what.
func (o object) asked() (token string) {
	o.t.Helper()
	testenv.Eventually(o.t, o.name+" is asked for", func(context.Context) (bool, string) {
		token = o.get().GetAnnotations()[requestedAt]
		return token != "", ""
	})
	return token
}

// answers reports how an attempt at the present generation ended.
func (o object) answers(token, status, reason, message string, further ...string) {
	o.t.Helper()
	o.patch(fmt.Sprintf("status: {lastHandledReconcileAt: %q, %s conditions: [%s]}",
		token, strings.Join(further, ""), o.ready(status, reason, message)))
}

// ready is the condition of the present generation.
func (o object) ready(status, reason, message string) string {
	o.t.Helper()
	text, err := json.Marshal(map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message,
		"observedGeneration": o.get().GetGeneration(), "lastTransitionTime": "2020-01-01T00:00:00Z",
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

// artifact is the field of a source's status that has the revision.
func artifact(revision string) string {
	return fmt.Sprintf("artifact: {path: a, url: 'http://a', revision: '%s', lastUpdateTime: '2020-01-01T00:00:00Z', digest: 'sha256:%064d'}, ", revision, 0)
}

// repository is a GitRepository with an artifact.
func repository(name, spec string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s}\nspec: {url: 'https://example.com/%s', interval: 1m%s}\nstatus: {%s conditions: %s}\n",
		name, name, spec, artifact("main@sha1:1111111111111111111111111111111111111111"), condition("True", "Succeeded", "stored"))
}
