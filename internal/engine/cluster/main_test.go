package cluster_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }

const manager, other = "sluice-0123456789abcdef", "sluice-fedcba9876543210"

// counter counts the requests that leave, by what Options.Observe is told.
type counter struct {
	mu    sync.Mutex
	verbs map[string]int
}

func (c *counter) observe(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verbs[verb]++
}

// during runs the work and returns the requests that it made.
func (c *counter) during(work func()) map[string]int {
	c.mu.Lock()
	before := maps.Clone(c.verbs)
	c.mu.Unlock()
	work()
	c.mu.Lock()
	defer c.mu.Unlock()
	made := map[string]int{}
	for verb, count := range c.verbs {
		if count > before[verb] {
			made[verb] = count - before[verb]
		}
	}
	return made
}

// wantCalls fails the test unless the work makes exactly these requests.
func (c *counter) wantCalls(t *testing.T, want map[string]int, work func()) {
	t.Helper()
	if diff := cmp.Diff(want, c.during(work)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// connect makes a connector whose requests are counted.
func connect(t *testing.T, options cluster.Options) (*cluster.Connector, *counter) {
	t.Helper()
	count := &counter{verbs: map[string]int{}}
	options.Observe = count.observe
	connector, err := cluster.NewConnector(env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	return connector, count
}

// admin is a client with all rights that has looked at the API server's kinds already.
func admin(t *testing.T) (*cluster.Client, *counter) {
	t.Helper()
	connector, count := connect(t, cluster.Options{})
	return as(t, connector, cluster.Identity{}), count
}

func as(t *testing.T, connector *cluster.Connector, id cluster.Identity) *cluster.Client {
	t.Helper()
	client, err := connector.As(id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Namespaced(configMaps); err != nil {
		t.Fatal(err)
	}
	return client
}

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// object reads a manifest.
func object(t *testing.T, format string, args ...any) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, format, args...), &read.Object); err != nil {
		t.Fatal(err)
	}
	return read
}

// configMap is one with the owner's label.
func configMap(t *testing.T, namespace, owner, value string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: subject, namespace: %s, labels: {%s: %s}}, data: {key: %q}}`,
		namespace, cluster.PartOf, owner, value)
}

func refTo(object *unstructured.Unstructured, applied cluster.Applied) cluster.Ref {
	return cluster.Ref{GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: applied.UID}
}

func apply(t *testing.T, client *cluster.Client, object *unstructured.Unstructured, options cluster.ApplyOptions) cluster.Applied {
	t.Helper()
	applied, err := client.Apply(t.Context(), object, options)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	return applied
}

// roundTripper lets a test answer a request itself.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func wrapped(wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	config := rest.CopyConfig(env.Config)
	config.Wrap(wrap)
	return config
}
