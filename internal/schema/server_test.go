package schema

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/tests/openapi"
)

var deployment = GroupVersionKind{"apps", "v1", "Deployment"}

func newServer(t *testing.T) (*Server, *openapi.Server, *clocktesting.FakePassiveClock) {
	t.Helper()
	upstream, clock := openapi.Serve(t), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	return NewServer(http.DefaultClient, upstream.URL, clock), upstream, clock
}

// TestADocumentIsReadOnce as long as it stays the same.
func TestADocumentIsReadOnce(t *testing.T) {
	t.Parallel()
	server, upstream, clock := newServer(t)
	read := func() *Document {
		d, err := server.Version(t.Context(), "apps", "v1")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := read()
	clock.SetTime(clock.Now().Add(time.Minute))
	if read() != first || !first.Has(deployment) {
		t.Error("it was read again")
	}
	want := []string{"/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3"}
	if diff := cmp.Diff(want, upstream.Asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	upstream.Set("apis/apps/v1", []byte(`{"components":{"schemas":{}}}`))
	clock.SetTime(clock.Now().Add(time.Minute))
	changed := read()
	digest, err := server.Digest(t.Context(), "apps", "v1")
	if err != nil || changed.Digest == first.Digest || changed.Digest != digest || changed.Has(deployment) {
		t.Error("what changed was not read", err)
	}
	upstream.Set("apis/apps/v1", nil)
	clock.SetTime(clock.Now().Add(time.Minute))
	if read() != nil {
		t.Error("there is a document of what is gone")
	}
}

// TestServersThatFailAreAnErrorOfTheirOwn because the package is not to blame.
func TestServersThatFailAreAnErrorOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		fail   func(*openapi.Server)
	}{
		"forbidden": {"The account lacks a right.", func(s *openapi.Server) { s.Answer(http.StatusForbidden) }},
		"broken":    {"It will answer again.", func(s *openapi.Server) { s.Answer(http.StatusInternalServerError) }},
		"no JSON":   {"Something else answers.", func(s *openapi.Server) { s.Set("apis/apps/v1", []byte("<html>")) }},
		"a null":    {"It is no schema.", func(s *openapi.Server) { s.Set("apis/apps/v1", []byte(`{"components":{"schemas":{"a":null}}}`)) }},
		"too long":  {"It is not read to the end.", func(s *openapi.Server) { s.Set("apis/apps/v1", bytes.Repeat([]byte(" "), maxDocument+1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, upstream, _ := newServer(t)
			c.fail(upstream)
			if _, err := server.Version(t.Context(), "apps", "v1"); !errors.Is(err, ErrServer) {
				t.Errorf("%s\n%v", c.reason, err)
			}
		})
	}
}

// TestOnlySomeDocumentsAreKept so that memory is bounded.
func TestOnlySomeDocumentsAreKept(t *testing.T) {
	t.Parallel()
	server, upstream, _ := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		upstream.Set("apis/"+name+"/v1", append([]byte("{}"), bytes.Repeat([]byte(" "), maxKept/2)...))
	}
	for _, group := range []string{"a", "b", "c"} {
		if _, err := server.Version(t.Context(), group, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	if server.kept.Len() != 1 || server.bytes > maxKept {
		t.Errorf("%d documents of %d bytes are kept", server.kept.Len(), server.bytes)
	}
}

// TestSchemasOfKubernetes is about what the API server's own schemas find, and do not find.
func TestSchemasOfKubernetes(t *testing.T) {
	t.Parallel()
	server, _, _ := newServer(t)
	for name, c := range map[string]struct {
		kind   GroupVersionKind
		object string
		want   []string
	}{
		"good": {deployment, `
metadata: {name: a, creationTimestamp: null}
spec:
  selector: {matchLabels: {a: b}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template:
    spec:
      containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}, ports: [{containerPort: 80}]}]
`, []string{}},
		"bad": {deployment, `
metadata: {name: a, labels: {a: 1}}
spec:
  replicas: "3"
  template:
    spec:
      containers: [{image: a, ports: [{containerPort: 80, hostPorts: 1}]}]
`, []string{
			"metadata/labels/a is an integer, and has to be a string: put it in quotes",
			"spec/replicas is a string, and has to be an integer",
			"spec/template/spec/containers/0/name is missing",
			"spec/selector is missing",
			"spec/template/spec/containers/0/ports/0/hostPorts is not known",
		}},
		"a secret": {GroupVersionKind{"", "v1", "Secret"}, "data: {a: 'no base64!'}\nstringData: {b: c}", []string{"data/a is no base64"}},
		"schemas in schemas": {GroupVersionKind{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, `
spec:
  group: a
  scope: Cluster
  names: {kind: A, plural: as}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {properties: {a: {properties: {b: {typ: x}}}}, additionalProperties: true}}
`, []string{"spec/versions/0/schema/openAPIV3Schema/properties/a/properties/b/typ is not known"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := server.Version(t.Context(), c.kind.Group, c.kind.Version)
			if err != nil {
				t.Fatal(err)
			}
			check := &Check{Strict: true, Steps: 100_000, Findings: 20}
			found, err := check.Object(t.Context(), d, c.kind, yaml.MustParse(c.object).YNode())
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, one := range found {
				got = append(got, strings.Join(one.Path, "/")+" "+one.Problem)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
