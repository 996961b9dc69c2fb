package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/tests/testenv"
)

// before is the API server behind something that may answer in its place.
func before(t *testing.T, instead func(http.ResponseWriter, *http.Request) bool) (server string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	through, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = through, -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !instead(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.CloseClientConnections)
	return front.URL
}

// TestWatchIsBegunAnew: however a watch ends, what comes afterwards is seen.
func TestWatchIsBegunAnew(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(http.ResponseWriter){
		"Closed": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
		"Gone": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}}`)
		},
		"Refused": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"Torn": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"type":"MOD`)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.NewNamespace(t)
			o := played(t, namespace, installation("app", "", "{}"))
			var watches atomic.Int32
			again := make(chan struct{}, 1)
			server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("watch") == "" {
					return false
				}
				if watches.Add(1) == 1 {
					w.Header().Set("Content-Type", "application/json") // What is of no known type is not read.
					end(w)
					return true
				}
				select {
				case again <- struct{}{}:
				default:
				}
				return false
			})
			ended := begin(t.Context(), env.Kubeconfig, "wait", "app", "-n", namespace, "--server", server, "--timeout", "1m")
			<-again
			o.answers("", "True", "Installed", "Installed 2.0.0")
			if got := ended(); got.code != 0 || !strings.Contains(got.out, "Installed 2.0.0") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAWatchThatEndsWithAnEvent: by which it is known what became of one object, and those that are left are watched.
func TestAWatchThatEndsWithAnEvent(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	one, other := played(t, namespace, installation("one", "", "{}")), played(t, namespace, installation("other", "", "{}"))
	var watches atomic.Int32
	server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || watches.Add(1) > 1 {
			return false
		}
		one.answers("", "True", "Installed", "Installed 2.0.0")
		raw, err := json.Marshal(one.get().Object)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", raw)
		return true
	})
	ended := begin(t.Context(), env.Kubeconfig, "wait", "one", "other", "-n", namespace, "--server", server, "--timeout", "1m")
	testenv.Eventually(t, "it is watched anew", func(context.Context) (bool, string) { return watches.Load() > 1, "" })
	other.answers("", "True", "Installed", "Installed 2.0.0")
	if got := ended(); got.code != 0 || strings.Count(got.out, "Installed 2.0.0") != 2 {
		t.Errorf("%+v", got)
	}
}

// grant gives a user the rights in the namespace, and a kubeconfig.
func grant(t *testing.T, namespace string, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	kubeconfig, err := env.KubeconfigAs("user-of-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	bind(t, namespace, namespace, rules...)
	return kubeconfig
}

// bind gives the user of a namespace the rights in one.
func bind(t *testing.T, of, namespace string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "granted"}
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "granted"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "user-of-" + of}}},
	} {
		if err := env.Client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLackingRights: the ClusterRole is named that grants what is lacking, and rights for one object are enough for it.
func TestLackingRights(t *testing.T) {
	t.Parallel()
	on := func(names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"modules.sluice.dev"}, Resources: []string{"moduleinstallations"}, ResourceNames: names, Verbs: verbs}
	}
	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		args  []string
		code  int
		told  []string
	}{
		"Get":     {nil, []string{"wait", "app"}, 2, []string{"get ModuleInstallation", "forbidden: ", "ask for the ClusterRole sluice-view"}},
		"List":    {nil, []string{"wait", "--all"}, 2, []string{"list moduleinstallations", "forbidden: ", "ask for the ClusterRole sluice-view"}},
		"Watch":   {[]rbacv1.PolicyRule{on(nil, "get", "list")}, []string{"wait", "idle"}, 2, []string{"watch moduleinstallations", "forbidden: ", "ask for the ClusterRole sluice-view"}},
		"Ask":     {[]rbacv1.PolicyRule{on(nil, "get", "list", "watch")}, []string{"reconcile", "app"}, 2, []string{"patch ModuleInstallation", "forbidden: ", "ask for the ClusterRole sluice-edit"}},
		"Suspend": {[]rbacv1.PolicyRule{on(nil, "get")}, []string{"suspend", "app"}, 2, []string{"patch ModuleInstallation", "forbidden: ", "ask for the ClusterRole sluice-edit"}},
		"Resume":  {[]rbacv1.PolicyRule{on(nil, "get")}, []string{"resume", "idle"}, 2, []string{"ask for the ClusterRole sluice-edit"}},
		"One":     {[]rbacv1.PolicyRule{on([]string{"app"}, "get", "list", "watch", "patch")}, []string{"wait", "app"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.NewNamespace(t)
			store(t, namespace, installation("app", "", "{conditions: "+condition("True", "Installed", "Installed 2.0.0")+"}"))
			store(t, namespace, installation("idle", ", suspend: true", "{}"))
			kubeconfig := grant(t, namespace, tc.rules...)
			got := run(t, kubeconfig, append([]string{tc.args[0], "-n", namespace}, tc.args[1:]...)...)
			for _, want := range tc.told {
				if !strings.Contains(got.told, want) {
					t.Errorf("%q is not told in %q", want, got.told)
				}
			}
			if got.code != tc.code || (got.out == "") != (tc.code != 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}
