package cli_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// TestResumeWithAPlan: what was shown is resumed, and what is another object by then is not.
func TestResumeWithAPlan(t *testing.T) {
	t.Parallel()
	namespace, content := golden(t)
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	isSuspended := func() bool {
		is, _, _ := unstructured.NestedBool(foo.get().Object, "spec", "suspend")
		return is
	}
	foo.patch("spec: {suspend: true}")
	line := []string{"resume", "foo", "--plan", "--yes", "-n", namespace, "--artifact", content, "--system-namespace", namespace}
	var once sync.Once
	edited := through(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/moduleinstallations/foo") {
			once.Do(func() { foo.patch("spec: {config: {variables: {size: large}}}") })
		}
		return false
	})
	if got := run(t, edited, line...); got.code != 1 || !strings.Contains(got.out, "~ ConfigMap "+namespace+"/a") || !strings.Contains(got.told, "it has changed meanwhile") || !isSuspended() {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	if got := run(t, edited, line...); got.code != 0 || !strings.Contains(got.out, "~ ConfigMap "+namespace+"/a") || !strings.Contains(got.out, "resumed") || isSuspended() {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	// Of what is not suspended there is nothing to show.
	if got := run(t, edited, line...); got.code != 0 || !strings.HasSuffix(got.out, namespace+"/foo  not suspended\n") || strings.Contains(got.out, "ConfigMap") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
