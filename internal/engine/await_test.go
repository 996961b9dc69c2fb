package engine_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// A CRD that is deleted by hand before the objects of its kind are there is applied again: nothing else brings it back,
// as nothing is healed before a release is applied in full.
func TestACRDThatGoesWhileItsObjectsWaitComesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	name := "things." + m.group
	var once sync.Once
	r.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/configmaps/a") {
				once.Do(func() {
					crd := r.get(crds, name)
					check(t, env.Client.Delete(t.Context(), crd))
					testenv.Eventually(t, "the CRD is gone", func(context.Context) (bool, string) { return r.get(crds, name) == nil, "" })
				})
			}
			return next.RoundTrip(request)
		})
	}
	r.start(nil)
	r.in.Target = r.target("1.0.0", m.files)
	r.settle("it is installed", settled)
	if r.get(m.kind, "own") == nil {
		t.Error("the CRD's object is missing")
	}
	r.in.Deleting = true
	r.settle("it is gone", done)
	if r.get(crds, name) != nil {
		t.Error("the CRD is left")
	}
}

// A CRD that was there before, and is only to be created, does not serve what the release's own would: waiting for it does
// not ask the API server for its kinds again and again.
func TestAVersionThatTheCRDInTheClusterLacksIsNotLookedForAgainAndAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	crd := r.issuerCRD()
	check(t, env.Client.Create(t.Context(), crd.DeepCopy()))
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), crd) })
	crd.SetAnnotations(map[string]string{engine.SSAAnnotation: "IfNotPresent"})
	raw, err := yaml.Marshal(crd)
	check(t, err)
	files := r.issuerFiles()
	files["crd.yaml"] = strings.Replace(string(raw), "name: v1\n", "name: v2\n", 1)
	files["issuer.yaml"] = strings.Replace(files["issuer.yaml"], "/v1\n", "/v2\n", 1)
	r.looks = flowcontrol.NewFakeNeverRateLimiter()
	r.start(nil)
	r.in.Target = r.target("1.0.0", files)
	for range 5 {
		r.round()
	}
	discovered := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.verbs["discover"]
	}
	before := discovered()
	for range 5 {
		if out := r.round(); len(out.Waiting) != 1 || out.Waiting[0].Message != "it does not serve version v2" {
			t.Errorf("waiting for %+v", out.Waiting)
		}
	}
	if after := discovered(); after != before {
		t.Errorf("asked for the kinds %d times", after-before)
	}
}
