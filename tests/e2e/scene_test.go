package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// scene is what one test has for itself: a namespace, a storage, upstreams, and the program working on nothing else.
type scene struct {
	t          *testing.T
	namespace  string
	storage    string
	kubeconfig string
	upstream   *upstream.Fixture
	labels     map[string]string // of the objects that are made
	flags      []string
	prepare    func(*exec.Cmd) // how the program is started otherwise; may be nil
	manager    *testenv.Manager
	processes  *[]*testenv.Manager // all that were ever started
	canaries   map[string]string   // what must be seen nowhere, and what it is
}

// newScene prepares a scene in which the program does not run yet. The flags count for each of its runs.
func newScene(t *testing.T, flags ...string) *scene {
	t.Helper()
	s := &scene{
		t: t, namespace: env.NewNamespace(t), storage: t.TempDir(), kubeconfig: env.Kubeconfig, upstream: upstream.ForTest(t),
		canaries: map[string]string{}, processes: &[]*testenv.Manager{},
		flags: append([]string{
			"--controllers=source", "--watch-all-namespaces=false", "--log-level=trace", "--interval-jitter-percentage=0",
			"--min-retry-delay=50ms", "--max-retry-delay=500ms", "--graceful-shutdown-timeout=2m",
		}, flags...),
	}
	t.Cleanup(s.finish)
	return s
}

// newRunning is newScene with the program started.
func newRunning(t *testing.T, flags ...string) *scene {
	t.Helper()
	s := newScene(t, flags...)
	s.start()
	return s
}

// in is the scene for a subtest, whose failures are its own. Upstreams live as long as the test.
func (s *scene) in(t *testing.T) *scene {
	t.Helper()
	sub := *s
	sub.t = t
	return &sub
}

// start runs the program.
func (s *scene) start() {
	s.t.Helper()
	s.manager = s.another()
}

// another starts one more process in the scene. It does not outlive the test, however that ends.
func (s *scene) another() *testenv.Manager {
	s.t.Helper()
	manager, err := testenv.StartManager(testenv.ManagerOptions{
		Binary: program(s.t), Kubeconfig: s.kubeconfig, Storage: s.storage,
		Env: []string{"RUNTIME_NAMESPACE=" + s.namespace}, Flags: s.flags, Prepare: s.prepare,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	*s.processes = append(*s.processes, manager)
	return manager
}

// cache is the folder of what was fetched from Git servers.
func (s *scene) cache() string { return s.storage + "-cache" }

// stop ends the program in good order.
func (s *scene) stop() {
	s.t.Helper()
	err := s.end()
	if err != nil {
		s.t.Fatal(err)
	}
}

// end asks the program to stop. One that has not logged anything yet could not take it for what it is.
func (s *scene) end() error {
	err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return s.manager.Log() != "", nil
	})
	err = errors.Join(err, s.manager.Stop())
	s.manager = nil
	return err
}

// finish stops what still runs, and looks for what no test may leave behind: data races, panics, secrets told.
func (s *scene) finish() {
	if s.manager != nil {
		if err := s.end(); err != nil {
			s.t.Error(err)
		}
	}
	var logs []string
	for _, process := range *s.processes {
		process.Kill() // Most have ended long ago.
		logs = append(logs, process.Log())
	}
	log := strings.Join(logs, "\n")
	for _, bad := range []string{"DATA RACE", "panic:", "reconcile panicked"} {
		if at := strings.Index(log, bad); at >= 0 {
			s.t.Errorf("the program's log has %q: %s", bad, log[at:min(len(log), at+4000)])
		}
	}
	s.keepsSecrets(log)
	if s.t.Failed() {
		s.t.Logf("the end of the program's log:\n%s", tail(log, 40))
	}
}

// keepsSecrets fails when a canary stands anywhere that people may read.
func (s *scene) keepsSecrets(log string) {
	var events corev1.EventList
	var gits sourcev1.GitRepositoryList
	var ocis sourcev1.OCIRepositoryList
	var inBuckets sourcev1.BucketList
	var repositories sourcev1.HelmRepositoryList
	var charts sourcev1.HelmChartList
	for _, list := range []client.ObjectList{&events, &gits, &ocis, &inBuckets, &repositories, &charts} {
		if err := env.Client.List(context.Background(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Errorf("look for secrets: %v", err)
		}
	}
	told := map[string]string{"the log": log}
	for _, event := range events.Items {
		told["event "+event.Name] = asJSON(event)
	}
	for _, object := range gits.Items {
		told["status of "+object.Name] = asJSON(object.Status)
	}
	for _, object := range ocis.Items {
		told["status of the OCIRepository "+object.Name] = asJSON(object.Status)
	}
	for _, object := range inBuckets.Items {
		told["status of the Bucket "+object.Name] = asJSON(object.Status)
	}
	for _, object := range repositories.Items {
		told["status of the HelmRepository "+object.Name] = asJSON(object.Status)
	}
	for _, object := range charts.Items {
		told["status of the HelmChart "+object.Name] = asJSON(object.Status)
	}
	for canary, name := range s.canaries {
		for where, text := range told {
			if strings.Contains(text, canary) {
				s.t.Errorf("the secret value %s stands in %s", name, where)
			}
		}
	}
}

// hide makes the test fail when the value is seen anywhere, as it is or in base64. Of a text of many lines, which logs
// and JSON escape, each whole line counts.
func (s *scene) hide(name, value string) {
	if lines := strings.Split(strings.TrimSpace(value), "\n"); len(lines) > 1 {
		for _, line := range lines {
			if !strings.HasPrefix(line, "-----") {
				s.hide(name, line)
			}
		}
		return
	}
	s.canaries[value] = name
	s.canaries[strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")] = name + " in base64"
}

// eventually waits for the condition, and fails with what was seen last and the end of the program's log.
func (s *scene) eventually(what string, condition func(context.Context) (bool, string)) {
	s.t.Helper()
	testenv.Eventually(s.t, what, condition)
}

// patience is how long something awaited may take on a machine that has much else to do.
const patience = 4 * time.Minute

// within fails the test when the channel is not closed in good time.
func (s *scene) within(what string, done <-chan struct{}) {
	s.t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		s.t.Fatalf("%s: not within %s", what, patience)
	}
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
