package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/ui"
)

// answering is a base whose API server gives the same answer to each review of a kind, by its resource. One that has no answer is 500.
func answering(t *testing.T, answers map[string]any) *base {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[path.Base(r.URL.Path)]
		if !known {
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}
		}
		if status, fails := answer.(metav1.Status); fails {
			w.WriteHeader(int(status.Code))
		} else {
			w.WriteHeader(http.StatusCreated)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := errors.Join(authorizationv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL}
	session, err := connect(config, scheme, mapper(nil))
	if err != nil {
		t.Fatal(err)
	}
	return &base{session: session, scheme: scheme}
}

// TestRulesOfSomeAuthorizersAreNotTheLastWord: where rules are incomplete, an authorizer that is asked before RBAC may refuse what RBAC allows.
func TestRulesOfSomeAuthorizersAreNotTheLastWord(t *testing.T) {
	t.Parallel()
	allows := authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	for name, incomplete := range map[string]bool{"Incomplete": true, "Complete": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := answering(t, map[string]any{
				"selfsubjectrulesreviews": authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
					Incomplete: incomplete, ResourceRules: []authorizationv1.ResourceRule{allows},
				}},
				"selfsubjectaccessreviews": authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Denied: true}},
			})
			may, err := (&sight{base: b}).In(t.Context(), "team-a", uiKinds()[:1])
			if err != nil {
				t.Fatal(err)
			}
			if may[0] == incomplete {
				t.Errorf("it may be seen: %v", may[0])
			}
		})
	}
}

// TestRulesTakeNoMemory: whoever may bind roles in a namespace may bind many large ones, to everybody.
func TestRulesTakeNoMemory(t *testing.T) {
	t.Parallel()
	much := authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{strings.Repeat("a", maxRules)}}
	for name, denied := range map[string]bool{"Allowed": false, "Denied": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, err := answering(t, map[string]any{
				"selfsubjectreviews":       authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann"}}},
				"selfsubjectrulesreviews":  authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{much}}},
				"selfsubjectaccessreviews": authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !denied}},
			}).login(t.Context(), "a-token")
			if err != nil {
				t.Fatal(err)
			}
			may, err := person.Rights.In(t.Context(), "evil", uiKinds()[:2])
			if err != nil || slices.Contains(may, denied) {
				t.Errorf("it may be seen: %v, %v", may, err)
			}
		})
	}
}

// TestAFaultIsNoRefusal: whoever is told that the login is wrong gives up, and whoever is told of a fault tries again.
func TestAFaultIsNoRefusal(t *testing.T) {
	t.Parallel()
	failed := func(code int32, reason metav1.StatusReason) map[string]any {
		return map[string]any{"selfsubjectreviews": metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason}}
	}
	for name, c := range map[string]struct {
		answers map[string]any
		refused bool
	}{
		"Unknown":   {failed(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), true},
		"Nobody":    {map[string]any{"selfsubjectreviews": authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}}, true},
		"Broken":    {failed(http.StatusInternalServerError, metav1.StatusReasonInternalError), false},
		"GoingDown": {failed(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := answering(t, c.answers).login(t.Context(), "a-token")
			if _, refused := errors.AsType[*ui.LoginError](err); err == nil || refused != c.refused {
				t.Errorf("it is told %v", err)
			}
		})
	}
}

// TestNobodysObjectsTakeAllMemory: whoever may make objects may make them as many and as large as they like, and look at them. A long
// list that is looked through chunk by chunk is read to its end.
func TestNobodysObjectsTakeAllMemory(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	var fill atomic.Pointer[string]
	fill.Store(new(strings.Repeat(" ", 1<<20)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path.Base(r.URL.Path) {
		case "selfsubjectreviews":
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "eve"}}})
		case "selfsubjectaccessreviews":
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
		case "a", "b":
			_, _ = io.WriteString(w, `{"apiVersion": "modules.sluice.dev/v1alpha1", "kind": "ModuleInstallation", "metadata": {"namespace": "n", "name": "a"},
				"status": {"inventory": {"name": "a", "contents": [{"version": "v1", "kind": "Pod", "namespaces": ["n"], "count": 1}]}}}`)
		default:
			for sent.Load() < 512<<20 {
				if _, err := io.WriteString(w, *fill.Load()); err != nil {
					return
				}
				sent.Add(1 << 20)
			}
		}
	}))
	t.Cleanup(server.Close)
	b := answering(t, nil)
	b.rest = &rest.Config{Host: server.URL}
	if err := errors.Join(modulesv1.AddToScheme(b.scheme), appsv1.AddToScheme(b.scheme)); err != nil {
		t.Fatal(err)
	}
	login := func(ctx context.Context, token string) (*ui.Person, error) {
		person, err := b.login(ctx, token)
		if err == nil {
			person.Reader = &chunked{person.Reader}
		}
		return person, err
	}
	pages, err := ui.New(ui.Options{
		Lister: &sight{base: b}, Kinds: uiKinds(), Login: login, ByHeader: true, Hosts: []string{"sluice.test"}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	page := func(path string) *httptest.ResponseRecorder {
		method := http.MethodGet
		if strings.HasSuffix(path, "/plan") {
			method = http.MethodPost
		}
		request := httptest.NewRequestWithContext(t.Context(), method, "http://sluice.test/"+path, nil)
		request.Header.Set("Authorization", "Bearer token")
		told := httptest.NewRecorder()
		pages.Handler().ServeHTTP(told, request)
		return told
	}
	const much = "more memory than pages may have"
	const object = "o/modules.sluice.dev/ModuleInstallation/n/"
	for _, reads := range []string{object + "a", object + "a", object + "b/why", ""} {
		sent.Store(0)
		told := page(reads)
		// The overview waits for seconds alone, in which a slow machine reads less.
		isLate := reads == "" && strings.Contains(told.Body.String(), "deadline exceeded")
		// What is under way is in the sockets' buffers.
		if got := sent.Load(); !isLate && (!strings.Contains(told.Body.String(), much) || got < 64<<20) || got > 160<<20 {
			t.Errorf("%s: %d MiB were read, and %d is told: %s", reads, got>>20, told.Code, told.Body)
		}
	}
	for objects, want := range map[string]string{"a": "all was kept", "b": much} {
		if told := page(object + objects + "/plan"); !strings.Contains(told.Body.String(), want) {
			t.Errorf("%d is told of a plan of the release %s: %s", told.Code, objects, told.Body)
		}
	}
	// What is dense takes more memory than what is not.
	sent.Store(0)
	fill.Store(new(strings.Repeat("{},{}, [", 1<<17)))
	if told := page(object + "a"); !strings.Contains(told.Body.String(), much) || sent.Load() > 32<<20 {
		t.Errorf("%d MiB were read of lists of empty objects: %s", sent.Load()>>20, told.Body)
	}
	if told := page(object + "a/why"); !strings.Contains(told.Body.String(), "all was read") {
		t.Errorf("%d is told of a list that is looked through: %s", told.Code, told.Body)
	}
}

// chunked looks through a list of many chunks to say why, and plans for releases of some objects.
type chunked struct{ ui.Reader }

func (c *chunked) Why(ctx context.Context, namespace, name string) (string, error) {
	if name != "a" {
		return c.Reader.Why(ctx, namespace, name) //nolint:wrapcheck // It is tested as it is.
	}
	answers := accountant{roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(io.LimitReader(spaces{}, 10<<20))}, nil
	})}
	for range 12 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/list?limit=500", nil)
		if err != nil {
			return "", err
		}
		answer, err := answers.RoundTrip(request)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			err = errors.Join(err, answer.Body.Close())
		}
		if err != nil {
			return "", err
		}
	}
	return "all was read", nil
}

// Plan keeps the objects of a release: few, or many.
func (c *chunked) Plan(ctx context.Context, _, name string) (string, error) {
	room := newPlanner(&base{session: &session{}}).works(nil).Room
	for range map[string]int{"a": 3, "b": 5}[name] {
		if err := room(ctx, make([]byte, 10<<20)); err != nil {
			return "", err
		}
	}
	return "all was kept", nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// spaces are without end.
type spaces struct{}

func (spaces) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = ' '
	}
	return len(to), nil
}

// TestWhatGoesThroughIsNotCounted: it is in a file, or seen and gone.
func TestWhatGoesThroughIsNotCounted(t *testing.T) {
	t.Parallel()
	answers := accountant{roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, nil })}
	for address, counts := range map[string]bool{
		"/api/v1/namespaces/proxy/services":                                 true,
		"/apis/modules.sluice.dev/v1alpha1/namespaces/n/moduletemplates":    true,
		"/apis/modules.sluice.dev/v1alpha1/namespaces/n/modules?watch=true": false,
		"/api/v1/namespaces/n/services/source-controller:80/proxy/a.tar.gz": false,
	} {
		answer, err := answers.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, counted := answer.Body.(*accounted); counted != counts {
			t.Errorf("%s is counted: %v", address, counted)
		}
		_ = answer.Body.Close()
	}
}
