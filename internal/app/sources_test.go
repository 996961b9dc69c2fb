package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// TestEachKindTakesItsOwnTurns: an object that waits for a turn comes back to the controller of its own kind, and is
// looked at in the end however many there are.
func TestEachKindTakesItsOwnTurns(t *testing.T) {
	t.Parallel()
	const objects = 3 * probesPerFetch
	left := map[string]bool{}
	for i := range objects {
		left[fmt.Sprintf("git-%d", i)], left[fmt.Sprintf("oci-%d", i)] = true, true
	}
	var mu sync.Mutex
	all, stop := context.WithCancel(t.Context())
	defer stop()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for part := range strings.SplitSeq(r.URL.Path, "/") {
			delete(left, part)
		}
		if len(left) == 0 {
			stop()
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(upstream.Close)
	host := strings.TrimPrefix(upstream.URL, "http://")

	namespace := env.NewNamespace(t)
	for i := range objects {
		every := metav1.Duration{Duration: time.Hour}
		for _, obj := range []client.Object{
			&sourcev1.GitRepository{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("git-%d", i)},
				Spec:       sourcev1.GitRepositorySpec{URL: fmt.Sprintf("http://%s/git-%d", host, i), Interval: every},
			},
			&sourcev1.OCIRepository{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("oci-%d", i)},
				Spec:       sourcev1.OCIRepositorySpec{URL: fmt.Sprintf("oci://%s/oci-%d", host, i), Interval: every, Insecure: true},
			},
		} {
			if err := env.Client.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}

	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: env.Scheme, Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := event.New(event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := parts{store: localtest.Open(t, local.Options{}).Store, sink: sink, metrics: newMetrics(mgr.GetScheme())}
	p.rebuild = newRebuildQueue(mgr.GetClient(), sink, ctrl.Log, p.metrics)
	options := parse(t, nil, "--concurrent=1", "--egress-allow-loopback")
	if p, err = p.withUpstreams(mgr.GetClient(), options); err != nil {
		t.Fatal(err)
	}
	if _, err := setupSources(t.Context(), mgr, options, p); err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(all, 4*time.Minute)
	defer cancel()
	if err := mgr.Start(late); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(left) > 0 {
		t.Errorf("%d objects were never looked at", len(left))
	}
}
