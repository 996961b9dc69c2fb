package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// fetchFailed is a failure on the way to upstream.
func fetchFailed(text string) trouble {
	return trouble{sourcev1.FetchFailedCondition, sourcev1.GitOperationFailedReason, text}
}

func loginFailed(text string) trouble {
	return trouble{sourcev1.FetchFailedCondition, sourcev1.AuthenticationFailedReason, text}
}

// TestTheOperatorBoundsEveryTimeout: without a ceiling, a tenant decides for how long his server holds a worker.
func TestTheOperatorBoundsEveryTimeout(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--max-timeout=1s")
	s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	server.Always(upstream.Hang())
	s.create("app", server.URL("app"), within(59*time.Minute))
	s.failing("app", fetchFailed("spec.timeout of 59m0s, cut to 1s by --max-timeout, was not enough"))
	if log := s.manager.Log(); !strings.Contains(log, "spec.timeout is cut to --max-timeout") {
		t.Errorf("the log does not say it: %s", tail(log, 10))
	}
}

func TestFailuresOfUpstreamAreToldAndHeal(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--git-max-refs=5000")
	const late = 100 // bytes into a pack

	cases := map[string]struct {
		reason string
		fault  upstream.Fault
		want   trouble
	}{
		"hang":         {"The spec's timeout bounds a server that never answers.", upstream.Hang(), fetchFailed("spec.timeout of 3s was not enough")},
		"hang-in-pack": {"The spec's timeout bounds a pack that stops.", upstream.HangAfter(late), fetchFailed("spec.timeout of 3s was not enough")},
		"cut-in-pack":  {"A pack that ends early is no pack.", upstream.CutAfter(late), fetchFailed("unexpected EOF")},
		"flipped":      {"A pack is checked against its sum.", upstream.Flip(late), fetchFailed("git protocol error")},
		"dropped":      {"A connection closed without an answer.", upstream.Drop(), fetchFailed("EOF")},
		"401":          {"The server wants a credential.", upstream.Status(http.StatusUnauthorized), fetchFailed("401 Unauthorized")},
		"403":          {"The server refuses the credential.", upstream.Status(http.StatusForbidden), fetchFailed("403 Forbidden")},
		"404":          {"The repository is gone.", upstream.Status(http.StatusNotFound), fetchFailed("repository not found")},
		"429":          {"The server is asked too often.", upstream.TooManyRequests(time.Hour), fetchFailed("429 Too Many Requests")},
		"500":          {"The server is broken.", upstream.Status(http.StatusInternalServerError), fetchFailed("500 Internal Server Error")},
		"html":         {"A log-in page is no repository.", upstream.HTML(), fetchFailed("content type")},
		"garbage":      {"Noise is no protocol.", upstream.Garbage(), fetchFailed("git protocol error")},
		"endless":      {"A list without end meets a limit.", upstream.Endless().On(upstream.LsRefs), fetchFailed("limit exceeded")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			repository := s.upstream.Repository(name)
			first := repository.Commit("main", "First", oneFile(noise(1000, 1)))
			server := s.upstream.HTTP(upstream.HTTPOptions{})
			s.create(name, server.URL(name), within(boundFor(name)))
			good := s.ready(name, mainAt(first))

			server.Always(c.fault)
			second := repository.Commit("main", "Second", oneFile(noise(1000, 2)))
			s.request(name)
			bad := s.failing(name, c.want)
			sameArtifact(t, good, bad)
			if !conditions.IsTrue(bad, sourcev1.ArtifactInStorageCondition) || !conditions.IsReconciling(bad) || conditions.IsStalled(bad) {
				t.Errorf("conditions while it is being retried with an artifact in place: %s", asJSON(bad.Status.Conditions))
			}
			s.holds(bad.Status.Artifact, repository.Tree(first))

			server.Heal()
			s.holds(s.ready(name, mainAt(second)).Status.Artifact, repository.Tree(second))
		})
	}
}

// boundFor is the timeout for a case: only where a silence is to end, it is short. A loaded machine takes long for all else.
func boundFor(name string) time.Duration {
	if strings.HasPrefix(name, "hang") {
		return 3 * time.Second
	}
	return patience
}

func TestAStuckUpstreamDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	s := newRunning(t, "--concurrent=2")
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	stuck, sound := s.upstream.HTTP(upstream.HTTPOptions{}), s.upstream.HTTP(upstream.HTTPOptions{})
	stuck.Always(upstream.Hang())
	s.create("stuck", stuck.URL("app"), within(10*time.Minute))
	s.eventually("upstream hangs", func(context.Context) (bool, string) { return stuck.Count() > 0, "no request" })

	for _, name := range []string{"one", "two", "three"} {
		s.create(name, sound.URL("app"))
	}
	for _, name := range []string{"one", "two", "three"} {
		s.ready(name, mainAt(commit))
	}
	if requests := stuck.Requests(); len(requests) != 1 || requests[0].Status != 0 {
		t.Errorf("the request that hangs has ended: %+v", requests)
	}
	if obj := s.get("stuck"); conditions.Has(obj, sourcev1.FetchFailedCondition) {
		t.Errorf("the object that hangs has been answered: %s", asJSON(obj.Status))
	}
}

func TestATokenMendedAfterARefusalHealsWithoutAnEdit(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{Access: upstream.Access{BearerToken: token}})
	s.secret("login", map[string]string{"bearerToken": "canary-expired-90ee"})
	s.create("app", server.URL("app"), secretRef("login"))
	s.failing("app", fetchFailed("401 Unauthorized"))
	s.secret("login", map[string]string{"bearerToken": token})
	if obj := s.ready("app", mainAt(commit)); obj.Generation != 1 {
		t.Errorf("the object was edited: generation %d", obj.Generation)
	}
}

func TestRedirectsTakeNoCredentialsAlong(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	sink := s.upstream.Sink(upstream.SinkOptions{})
	s.secret("basic", map[string]string{"username": "ada", "password": password})
	s.secret("bearer", map[string]string{"bearerToken": token})
	s.hide("the password in the url", "canary-in-url-3b7d")

	cases := map[string]struct {
		reason string
		access upstream.Access
		secret string
		user   string
		kind   upstream.Kind
		code   int
	}{
		"basic":    {"A password stays with its host.", upstream.Access{Username: "ada", Password: password}, "basic", "", upstream.InfoRefs, http.StatusFound},
		"bearer":   {"A token stays with its host.", upstream.Access{BearerToken: token}, "bearer", "", upstream.InfoRefs, http.StatusMovedPermanently},
		"kept":     {"A redirect that keeps the method is no exception.", upstream.Access{BearerToken: token}, "bearer", "", upstream.InfoRefs, http.StatusPermanentRedirect},
		"question": {"The question for references is not sent elsewhere.", upstream.Access{BearerToken: token}, "bearer", "", upstream.LsRefs, http.StatusTemporaryRedirect},
		"pack":     {"The question for a pack is not sent elsewhere.", upstream.Access{BearerToken: token}, "bearer", "", upstream.Fetch, http.StatusTemporaryRedirect},
		"in-url":   {"A password in the URL stays with its host.", upstream.Access{Username: "bob", Password: "canary-in-url-3b7d"}, "", "bob:canary-in-url-3b7d@", upstream.InfoRefs, http.StatusFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			server := s.upstream.HTTP(upstream.HTTPOptions{Access: c.access})
			server.Always(upstream.Redirect(c.code, sink.URL()).On(c.kind))
			var changes []change
			if c.secret != "" {
				changes = append(changes, secretRef(c.secret))
			}
			s.create(name, "http://"+c.user+server.Address()+"/app.git", changes...)
			s.until(name, "fails", func(obj *sourcev1.GitRepository) bool { return conditions.IsFalse(obj, meta.ReadyCondition) })
			if secrets := sink.Secrets(); len(secrets) > 0 {
				t.Errorf("another host was sent %q", secrets)
			}
			server.Heal()
			s.ready(name, mainAt(commit))
		})
	}
	requests := sink.Requests()
	if len(requests) == 0 {
		t.Error("no redirect was followed, so that nothing could leak")
	}
	for _, request := range requests {
		if request.Method != http.MethodGet {
			t.Errorf("a question was sent to another host: %s %s", request.Method, request.URI)
		}
	}
}
