package git_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream"
)

// echo answers each request as a server answered it the first time. It allocates little itself.
type echo struct {
	inner string

	mu    sync.Mutex
	known map[string]echoed
}

type echoed struct {
	mediaType []string
	body      []byte
}

// ServeHTTP implements http.Handler.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := r.Method + r.RequestURI
	if r.Method == http.MethodPost {
		key += r.Header.Get("Content-Length")
	}
	answer, ok := e.known[key]
	if !ok {
		request, err := http.NewRequestWithContext(r.Context(), r.Method, e.inner+r.RequestURI, r.Body)
		if err == nil {
			request.Header = r.Header
			answer, err = ask(request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		e.known[key] = answer
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header()["Content-Type"] = answer.mediaType
	_, _ = w.Write(answer.body)
}

func ask(request *http.Request) (echoed, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return echoed{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return echoed{response.Header["Content-Type"], body}, err
}

// TestANoOpAllocatesLittle: with a commit that is pinned and stored, which asks nobody, and with a branch, for which one request
// is made. The bounds are twice what is measured; of a request, both its sides count. Nothing else runs meanwhile.
func TestANoOpAllocatesLittle(t *testing.T) {
	fixture := upstream.ForTest(t)
	tip := fixture.Repository("app").Commit("main", "one", upstream.Text(map[string]string{"app.yaml": "replicas: 1\n"}))
	server := httptest.NewServer(&echo{inner: fixture.HTTP(upstream.HTTPOptions{}).BaseURL(), known: map[string]echoed{}})
	t.Cleanup(server.Close)
	opener := newOpener(t)
	for name, tc := range map[string]struct {
		ref  sourcev1.GitRepositoryRef
		most float64
	}{
		"pinned": {sourcev1.GitRepositoryRef{Commit: tip}, 85},
		"branch": {sourcev1.GitRepositoryRef{Branch: "main"}, 510},
	} {
		pipeline := &source.Pipeline{
			Store: localtest.Open(t, local.Options{}), Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0)), Observer: sourcetest.Silent{},
		}
		obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: server.URL + "/app.git", Reference: &tc.ref}}
		subject := source.Subject{Object: storage.Object{Kind: "gitrepository", Namespace: "apps", Name: "app"}, UID: "uid", Timeout: time.Minute}
		run := func() bool {
			outcome, err := pipeline.Run(t.Context(), subject, func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, obj) },
				func(context.Context, source.Change) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			return outcome.Changed
		}
		if !run() || run() {
			t.Fatalf("%s: the first run has to store an artifact, and the second one nothing", name)
		}
		if allocations := testing.AllocsPerRun(50, func() { run() }); allocations > tc.most {
			t.Errorf("%s: a run without news makes %.0f allocations, want %.0f at most", name, allocations, tc.most)
		}
	}
}
