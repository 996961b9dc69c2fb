package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestReadsAreOneCallEach(t *testing.T) {
	t.Parallel()
	connector, count := connect(t, cluster.Options{})
	subject := as(t, connector, cluster.Identity{})
	namespace := env.NewNamespace(t)
	manifest := configMap(t, namespace, "me", "1")
	ref := refTo(manifest, apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager}))
	count.wantCalls(t, map[string]int{"get": 1}, func() {
		whole, err := subject.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(manifest.Object["data"], whole.Object["data"]); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
	})
	count.wantCalls(t, map[string]int{"get": 2}, func() {
		if meta, err := subject.Metadata(t.Context(), ref); err != nil || meta.UID != ref.UID || meta.Labels[cluster.PartOf] != "me" {
			t.Errorf("metadata: %+v, %v", meta, err)
		}
		if meta, err := subject.Metadata(t.Context(), cluster.Ref{GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), Name: namespace}); err != nil || meta.Name != namespace {
			t.Errorf("metadata outside namespaces: %+v, %v", meta, err)
		}
	})
	ref.Name = "absent"
	count.wantCalls(t, map[string]int{"get": 2}, func() {
		if _, err := subject.Get(t.Context(), ref); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("want ErrNotFound, got %v", err)
		}
		if _, err := subject.Metadata(t.Context(), ref); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("want ErrNotFound, got %v", err)
		}
	})
	watches, mapping, err := connector.Connect(cluster.Identity{}, configMaps)
	if err != nil {
		t.Fatal(err)
	}
	count.wantCalls(t, map[string]int{"watch": 1}, func() {
		watch, err := watches.Resource(mapping.Resource).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watch.Stop()
	})
}

func TestListTurnsEveryPageAndNeverHalf(t *testing.T) {
	t.Parallel()
	var expired atomic.Bool
	// Small pages, and one that the API server has forgotten.
	config := wrapped(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if query := request.URL.Query(); query.Has("limit") {
				if query.Has("continue") && expired.Load() {
					return answer(request, http.StatusGone, "the continue parameter is too old")
				}
				query.Set("limit", "2")
				request = request.Clone(request.Context())
				request.URL.RawQuery = query.Encode()
			}
			return next.RoundTrip(request)
		})
	})
	count := &counter{verbs: map[string]int{}}
	connector, err := cluster.NewConnector(config, cluster.Options{Observe: count.observe})
	if err != nil {
		t.Fatal(err)
	}
	subject := as(t, connector, cluster.Identity{})
	namespace := env.NewNamespace(t)
	for i := range 5 {
		manifest := configMap(t, namespace, "me", "1")
		manifest.SetName(fmt.Sprintf("subject-%d", i))
		apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
	}
	list := func(selector string) (names []string, err error) {
		err = subject.Objects(t.Context(), configMaps, namespace, selector, func(one *unstructured.Unstructured) { names = append(names, one.GetName()) })
		return names, err
	}
	count.wantCalls(t, map[string]int{"list": 3}, func() {
		names, err := list(cluster.PartOf + "=me")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("subject-0 subject-1 subject-2 subject-3 subject-4", strings.Join(names, " ")); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
	if names, err := list("unheard=of"); err != nil || len(names) != 0 {
		t.Errorf("nothing matches: %q, %v", names, err)
	}
	count.wantCalls(t, map[string]int{"discover": 1, "list": 3}, func() {
		if got, err := subject.Instances(t.Context(), configMaps.GroupKind(), namespace, nil); err != nil || got.Count != 5 {
			t.Errorf("want 5, got %+v, %v", got, err)
		}
	})
	expired.Store(true)
	if names, err := list(""); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("the second page is forgotten: want ErrUnavailable, got %q, %v", names, err)
	}
	if got, err := subject.Instances(t.Context(), configMaps.GroupKind(), "", nil); got.Count != 0 || !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("half a count: want ErrUnavailable, got %+v, %v", got, err)
	}
}
