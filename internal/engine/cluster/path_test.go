package cluster_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine/cluster"
)

// What somebody writes as a group or a version is asked for as the controller, which may read more than they may.
func TestNoNameLeadsToAnotherPath(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	connector, err := cluster.NewConnector(wrapped(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, request.URL.Path)
			return next.RoundTrip(request)
		})
	}), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	subject := as(t, connector, cluster.Identity{Namespace: "tenant", ServiceAccount: "deployer"})
	mu.Lock()
	asked = nil
	mu.Unlock()
	for _, group := range []string{"../api/v1/namespaces/kube-system/secrets/victim", "..", ".", "a/b", "a%2fb"} {
		if found, err := subject.Instances(t.Context(), schema.GroupKind{Group: group, Kind: "X"}, "", nil); !errors.Is(err, cluster.ErrInvalid) {
			t.Errorf("group %q: %v, %v", group, found, err)
		}
		ref := cluster.Ref{GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "X"}, Name: "a"}
		if err := subject.Misplaced(t.Context(), ref); !errors.Is(err, cluster.ErrInvalid) {
			t.Errorf("misplaced in group %q: %v", group, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) > 0 {
		t.Errorf("asked for %q", asked)
	}
}
