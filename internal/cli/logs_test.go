package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/cli"
	"sluice.dev/sluice/tests/testenv"
)

// logged are a node's logs: the API server asks the node for them.
func logged(t *testing.T, namespace, lines string) {
	t.Helper()
	node := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/containerLogs/"+namespace+"/sluice-0/manager" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, lines)
	}))
	t.Cleanup(node.Close)
	host, port, err := net.SplitHostPort(node.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + namespace}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sluice-0", Labels: map[string]string{"app.kubernetes.io/name": "sluice"}},
		Spec:       corev1.PodSpec{NodeName: machine.Name, Containers: []corev1.Container{{Name: "manager", Image: "sluice"}}},
	}
	if err := env.Client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	machine.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	if err := env.Client.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// TestLogs: the lines of one object, and nothing of another's.
func TestLogs(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	line := func(level, kind, name, message string) string {
		return `{"level":"` + level + `","ts":"T","msg":"` + message + `","controllerKind":"` + kind + `","namespace":"` + namespace + `","name":"` + name + `","` + kind + `":{"name":"` + name + `"},"reconcileID":"x","cause":"c"}` + "\n"
	}
	logged(t, namespace, "starts\n"+line("info", "GitRepository", "app", "stored")+line("info", "GitRepository", "other", "of another")+
		line("info", "Bucket", "app", "of another kind")+line("error", "GitRepository", "app", `\u001b[31mfailed`)+`{"level":"info"`+"\n")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
		told   string
	}{
		"All":    {"each line of the object", nil, "T info stored cause=\"c\"\nT error \\x1b[31mfailed cause=\"c\"\n", ""},
		"Level":  {"the graver ones", []string{"--level", "error"}, "T error \\x1b[31mfailed cause=\"c\"\n", ""},
		"Other":  {"nothing is said to be nothing", []string{"-n", "default"}, "", "The log has nothing of it.\n"},
		"Absurd": {"a level that is none", []string{"--level", "loud"}, "", "usage: --level loud is none\n  the levels are debug, info, error\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"logs", "gitrepository/app", "-n", namespace, "--system-namespace", namespace}, tc.args...)...)
			if diff := cmp.Diff([]string{tc.want, tc.told}, []string{got.out, got.told}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLogsOfAllPods: one that goes on is no reason to leave out another, and a part of a second is not nothing.
func TestLogsOfAllPods(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked sync.Map
	kubeconfig := through(t, func(w http.ResponseWriter, r *http.Request) bool {
		name, isLog := strings.CutSuffix(r.URL.Path, "/log")
		if !isLog {
			return false
		}
		name = path.Base(name)
		asked.Store(name, r.URL.Query().Get("sinceSeconds"))
		fmt.Fprintf(w, `{"level":"info","msg":"of %s","controllerKind":"GitRepository","namespace":"%s","name":"app"}`+"\n", name, namespace)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	for _, name := range []string{"one", "two"} {
		store(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", labels: {app.kubernetes.io/name: sluice}}\nspec: {containers: [{name: manager, image: sluice}]}\n")
	}
	shown, wait := beginShown(ctx, kubeconfig, "logs", "gitrepository/app", "-n", namespace, "--system-namespace", namespace, "-f", "--since", "500ms")
	testenv.Eventually(t, "both pods' lines are shown", func(context.Context) (bool, string) {
		return strings.Contains(shown(), "of one") && strings.Contains(shown(), "of two"), shown()
	})
	stop()
	if got := wait(); got.code != 130 || strings.TrimSpace(got.told) != "" {
		t.Errorf("interrupted, it ended with %d: %s", got.code, got.told)
	}
	for _, name := range []string{"one", "two"} {
		if since, _ := asked.Load(name); since != "1" {
			t.Errorf("of pod %s the last %v seconds are asked for", name, since)
		}
	}
}

// TestLogsEndWhereNobodyReads: also while other pods have nothing to say.
func TestLogsEndWhereNobodyReads(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	kubeconfig := through(t, func(w http.ResponseWriter, r *http.Request) bool {
		name, isLog := strings.CutSuffix(r.URL.Path, "/log")
		for isLog && r.Context().Err() == nil {
			if path.Base(name) == "loud" {
				fmt.Fprintf(w, `{"level":"info","msg":"loud","controllerKind":"GitRepository","namespace":"%s","name":"app"}`+"\n", namespace)
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		return isLog
	})
	for _, name := range []string{"loud", "quiet"} {
		store(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", labels: {app.kubernetes.io/name: sluice}}\nspec: {containers: [{name: manager, image: sluice}]}\n")
	}
	out, ended := &shared{}, make(chan answer, 1)
	go func() {
		ended <- executeTo(t.Context(), out, []string{"logs", "--kubeconfig", kubeconfig, "gitrepository/app", "-n", namespace, "--system-namespace", namespace, "-f"})
	}()
	testenv.Eventually(t, "a line is shown", func(context.Context) (bool, string) { return strings.Contains(out.String(), "loud"), out.String() })
	out.close()
	if got := <-ended; got.code != cli.ExitUnanswered || strings.TrimSpace(got.told) != "" {
		t.Errorf("it ends with %d: %s", got.code, got.told)
	}
}

// TestLogsOfNobody: without controllers there is no log, which is said.
func TestLogsOfNobody(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	got := run(t, env.Kubeconfig, "logs", "app", "--system-namespace", namespace)
	if got.code != 2 || !strings.Contains(got.told, "there are none in namespace "+namespace) {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}
