package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/cli"
)

// through is a kubeconfig for the API server behind something that may answer in its place.
func through(t *testing.T, answered func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	return kubeconfigOf(t, before(t, answered), clientcmdapi.NewAuthInfo())
}

func kubeconfigOf(t *testing.T, server string, login *clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = &clientcmdapi.Cluster{Server: server}, login
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	place := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, place); err != nil {
		t.Fatal(err)
	}
	return place
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, message, code)
}

// TestGetAsksAnewForWhatWasForgotten: an API server keeps a list for some minutes only.
func TestGetAsksAnewForWhatWasForgotten(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	for i := range 501 {
		store(t, namespace, fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: m%03d}\nspec: {}\n", i))
	}
	got := run(t, through(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("continue") == "" {
			return false
		}
		refuse(w, http.StatusGone, "Expired", "The provided continue parameter is too old")
		return true
	}), "get", "modules", "-n", namespace, "-o", "name")
	if lines := strings.Count(got.out, "\n"); got.code != 0 || lines != 501 {
		t.Errorf("ended with %d, %d lines: %s", got.code, lines, got.told)
	}
}

// TestGetGoesOnWhereOneKindCannotBeHad: what keeps one kind from being listed need not keep others.
func TestGetGoesOnWhereOneKindCannotBeHad(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: shown}\nspec: {bucketName: b, endpoint: e, interval: 1m}\n")
	got := run(t, through(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/gitrepositories") {
			return false
		}
		refuse(w, http.StatusInternalServerError, "InternalError", "conversion webhook failed")
		return true
	}), "get", "all", "-n", namespace)
	if got.code != 2 || !strings.Contains(got.out, "bucket/shown") || !strings.Contains(got.told, "list gitrepositories") {
		t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
	}
}

// TestGetTellsOnceThatNobodyAnswers: however many objects are named.
func TestGetTellsOnceThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	got := run(t, env.Kubeconfig, "get", "a", "b", "c", "--server", "http://127.0.0.1:1")
	if got.code != 2 || strings.Count(got.told, "no answer") != 1 {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
}

// TestGetGivesProgramsListsTheyCanRead: none is a list without items, and what is not known is no list.
func TestGetGivesProgramsListsTheyCanRead(t *testing.T) {
	t.Parallel()
	namespace, empty := three(t), env.NewNamespace(t)
	var list struct {
		Kind  string
		Items *[]any
	}
	got := run(t, env.Kubeconfig, "get", "-n", empty, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != 0 || list.Kind != "List" || list.Items == nil {
		t.Errorf("of none: %v, ended with %d: %s", err, got.code, got.out)
	}
	for name, args := range map[string][]string{
		"Missing": {"-n", empty, "nobody", "-o", "json"}, "Forbidden": {"modules", "-n", namespace, "-o", "json"},
		"AllNamed": {"-A", "calm", "-o", "yaml"}, "Away": {"-o", "yaml", "--server", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeconfig := env.Kubeconfig
			if name == "Forbidden" {
				kubeconfig = reader(t, namespace)
			}
			if got := run(t, kubeconfig, append([]string{"get"}, args...)...); got.code == 0 || got.out != "" {
				t.Errorf("ended with %d: %s", got.code, got.out)
			}
		})
	}
}

// TestGetReadsFormatsFirst: a template is one without -o too, and what is none is told before anything is asked for.
func TestGetReadsFormatsFirst(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	if got := run(t, env.Kubeconfig, "get", "calm", "-n", namespace, "--template", "{{.metadata.name}}!"); got.code != 0 || got.out != "calm!" {
		t.Errorf("ended with %d: %q", got.code, got.out)
	}
	if got := run(t, env.Kubeconfig, "describe", "calm", "-n", namespace, "--template", "{{.state}}!"); got.code != 0 || got.out != "Ready!" {
		t.Errorf("ended with %d: %q", got.code, got.out)
	}
	if got := run(t, env.Kubeconfig, "get", "-o", "xml", "--server", "http://127.0.0.1:1"); got.code != 3 {
		t.Errorf("ended with %d: %q", got.code, got.told)
	}
}

// TestAClosedPipeEndsQuietly: whoever closed it has seen enough.
func TestAClosedPipeEndsQuietly(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	for _, args := range [][]string{{"get"}, {"get", "-o", "json"}, {"describe", "calm"}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := read.Close(); err != nil {
			t.Fatal(err)
		}
		root := &cobra.Command{Use: "sluice", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(cli.Commands(genericiooptions.IOStreams{Out: write, ErrOut: os.Stderr}, env.Scheme)...)
		root.SetArgs(append(args, "-n", namespace, "--kubeconfig", env.Kubeconfig))
		if err := root.ExecuteContext(t.Context()); err == nil || err.Error() != "" {
			t.Errorf("%q: told %v", args, err)
		}
		if err := errors.Join(write.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestCompletionWaitsForNobody: a shell is not held up by a plugin that gets the login.
func TestCompletionWaitsForNobody(t *testing.T) {
	t.Parallel()
	held := filepath.Join(t.TempDir(), "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	login := clientcmdapi.NewAuthInfo()
	login.Exec = &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", "read -r line <" + held}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
	got := run(t, kubeconfigOf(t, "https://127.0.0.1:1", login), "__complete", "get", "mi", "")
	if strings.TrimSpace(got.out) != ":4" {
		t.Errorf("offered %q", got.out)
	}
	// The plugin waits still, for the line that it gets now, or when it begins: nobody closes the pipe.
	line, err := syscall.Open(held, syscall.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Write(line, []byte("go on\n")); err != nil {
		t.Fatal(err)
	}
}

// answerWith gives the object at the path as it is after the edit, as an API server of another version would.
func answerWith(t *testing.T, path string, edit func(*unstructured.Unstructured)) func(http.ResponseWriter, *http.Request) bool {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if err := env.Client.Get(r.Context(), client.ObjectKey{Name: path[strings.LastIndexByte(path, '/')+1:]}, obj); err != nil {
			t.Error(err)
		}
		edit(obj)
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(obj); err != nil {
			t.Error(err)
		}
		return true
	}
}
