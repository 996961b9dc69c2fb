package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// withEndpoints are the flags for a health and a metrics endpoint on ports of the system's choice.
var withEndpoints = []string{"--health-addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0"}

// endpoint asks all ports that the process listens on, and returns the answer of the one that knows the path. It asks them
// at once: a standby holds the port of its artifact server and does not answer there yet.
func endpoint(ctx context.Context, manager *testenv.Manager, path string) (answer, error) {
	addresses, err := manager.Listening()
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	found := make(chan answer, len(addresses))
	for _, address := range addresses {
		go func() {
			got, err := get(ctx, "http://"+address+path)
			if err != nil {
				got.status = http.StatusNotFound
			}
			found <- got
		}()
	}
	for range addresses {
		if got := <-found; got.status != http.StatusNotFound {
			return got, nil
		}
	}
	return answer{status: http.StatusNotFound}, nil
}

// answers waits until the endpoint answers with the status.
func (s *scene) answers(manager *testenv.Manager, path string, status int) answer {
	s.t.Helper()
	var got answer
	s.eventually(fmt.Sprintf("%s answers %d", path, status), func(ctx context.Context) (bool, string) {
		var err error
		got, err = endpoint(ctx, manager, path)
		return err == nil && got.status == status, fmt.Sprint(got.status, err)
	})
	return got
}

func TestProbesAndMetricsTellWhatHappens(t *testing.T) {
	t.Parallel()
	s := newRunning(t, withEndpoints...)
	s.answers(s.manager, "/healthz", http.StatusOK)
	s.answers(s.manager, "/readyz", http.StatusOK)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	artifact := s.ready("app", mainAt(commit)).Status.Artifact
	s.reconcile("app")
	sent := 2 * len(s.download(artifact)) // ready has downloaded it as well, at least once

	object := fmt.Sprintf(`kind="GitRepository",name="app",namespace="%s"`, s.namespace)
	want := map[string]string{
		"Flux's duration, for each object":    `gotk_reconcile_duration_seconds_count{` + object + `} [2-9]`,
		"stages, for each kind":               `sluice_source_stage_duration_seconds_count{kind="gitrepository",stage="fetch"} 1`,
		"runs that changed something":         `sluice_source_runs_total{kind="gitrepository",result="changed"} 1`,
		"runs that did not":                   `sluice_source_runs_total{kind="gitrepository",result="unchanged"} [1-9]`,
		"the size of the artifact":            fmt.Sprintf(`sluice_artifact_size_bytes{kind="gitrepository",name="app",namespace="%s"} %d`, s.namespace, *artifact.Size),
		"bytes from upstream":                 `sluice_upstream_received_bytes_total{protocol="git"} [1-9]`,
		"damage":                              `sluice_storage_damaged_total 0`,
		"bytes stored":                        `sluice_storage_bytes \d`,
		"artifacts stored":                    `sluice_storage_artifacts \d`,
		"requests for artifacts":              `sluice_artifact_requests_total{code="200",method="GET"} [2-9]`,
		"bytes sent":                          `sluice_artifact_sent_bytes_total [1-9]`,
		"time to serve":                       `sluice_artifact_request_duration_seconds_count [2-9]`,
		"what controller-runtime tells":       `controller_runtime_reconcile_total{controller="gitrepository",`,
		"what is queued for event's receiver": `sluice_event`,
	}
	t.Logf("at least %d bytes were sent", sent)
	var text string
	s.eventually("all metrics", func(ctx context.Context) (bool, string) {
		got, err := endpoint(ctx, s.manager, "/metrics")
		text = string(got.body)
		var missing []string
		for what, pattern := range want {
			if !regexp.MustCompile(`(?m)^` + strings.NewReplacer("{", `\{`, "}", `\}`).Replace(pattern)).MatchString(text) {
				missing = append(missing, what+": "+pattern)
			}
		}
		return err == nil && len(missing) == 0, strings.Join(missing, "\n")
	})

	if err := env.Client.Delete(t.Context(), s.get("app")); err != nil {
		t.Fatal(err)
	}
	s.gone("app")
	if got := s.answers(s.manager, "/metrics", http.StatusOK); strings.Contains(string(got.body), `name="app"`) {
		t.Error("metrics still name an object that is gone")
	}
	if got, err := endpoint(t.Context(), s.manager, "/debug/pprof/"); err != nil || got.status != http.StatusNotFound {
		t.Errorf("profiling answers %d, %v, though nobody asked for it", got.status, err)
	}
}

func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		end    func(*scene)
	}{
		"stopped": {"A leader that is stopped hands over.", func(s *scene) { s.stop() }},
		"killed":  {"A leader that crashes loses its lease.", func(s *scene) { s.manager.Kill() }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(c.reason)
			s := newRunning(t, append([]string{
				"--enable-leader-election", "--leader-election-lease-duration=20s", "--leader-election-renew-deadline=15s", "--leader-election-retry-period=300ms",
			}, withEndpoints...)...)
			s.answers(s.manager, "/readyz", http.StatusOK)
			repository := s.upstream.Repository("app")
			first := repository.Commit("main", "First", oneFile("replicas: 1\n"))
			server := s.upstream.HTTP(upstream.HTTPOptions{})
			s.create("app", server.URL("app"))
			before := s.ready("app", mainAt(first))

			standby := s.another()
			s.answers(standby, "/healthz", http.StatusOK)
			if got := s.answers(standby, "/readyz", http.StatusInternalServerError); !strings.Contains(string(got.body), "leader failed") {
				t.Errorf("a standby's readiness says %q", got.body)
			}
			second := repository.Commit("main", "Second", oneFile("replicas: 2\n"))
			s.request("app")
			s.ready("app", mainAt(second))
			if after := s.get("app"); strings.Split(after.Status.Artifact.URL, "/gitrepository/")[0] != strings.Split(before.Status.Artifact.URL, "/gitrepository/")[0] {
				t.Errorf("the standby published: %s became %s", before.Status.Artifact.URL, after.Status.Artifact.URL)
			}
			s.answers(standby, "/readyz", http.StatusInternalServerError)

			c.end(s)
			s.manager = standby
			s.answers(standby, "/readyz", http.StatusOK)
			s.ready("app", mainAt(second))
			third := repository.Commit("main", "Third", oneFile("replicas: 3\n"))
			s.request("app")
			s.holds(s.ready("app", mainAt(third)).Status.Artifact, repository.Tree(third))
		})
	}
}
