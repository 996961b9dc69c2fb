package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// catalogueFolder is a catalogue as it is kept in Git: one template, which claims the channel regular.
type catalogueFolder struct {
	s   moduleScene
	dir string
}

// apply commits the template to the folder, and applies that.
func (f catalogueFolder) apply(version, digest string, insecure bool) {
	f.s.t.Helper()
	text := fmt.Sprintf(`apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleTemplate
metadata:
  name: foo-regular
spec:
  moduleName: foo
  version: %s
  channel: regular
  artifact:
    oci:
      repository: %s
      digest: %s
      insecure: %t
`, version, f.s.registry.URL("modules/foo"), digest, insecure)
	if err := os.WriteFile(filepath.Join(f.dir, "foo.yaml"), []byte(text), 0o600); err != nil {
		f.s.t.Fatal(err)
	}
	f.s.inside(f.s.system).kubectl("apply", "-f", f.dir)
}

// TestModuleMistakesAreCorrectedWithKubectlApply: a catalogue that is kept in Git leaves every state that it came into.
func TestModuleMistakesAreCorrectedWithKubectlApply(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	folder := catalogueFolder{s, t.TempDir()}
	one, two := s.publish("1.0.0", fooFiles("1.0.0")).Digest.String(), s.publish("2.0.0", fooFiles("2.0.0")).Digest.String()
	wrong := "sha256:" + strings.Repeat("0", 64)
	refused := func(remedy string) {
		t.Helper()
		s.shows("foo-regular", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactFailedReason, remedy)
	}

	folder.apply("1.0.0", wrong, false)
	s.install("app", byChannel("regular"))
	refused("set spec.artifact.oci.insecure")
	folder.apply("1.0.0", wrong, true)
	refused("check spec.artifact.oci.")
	s.failing("app", modulesv1.UpToDateCondition, modulesv1.ReleaseNotReadyReason, "check spec.artifact.oci.")
	folder.apply("1.0.0", one, true)
	s.ready("app", "1.0.0")

	// The channel moves to what cannot be had, and back.
	folder.apply("2.0.0", wrong, true)
	s.until("app", "waits for what cannot be had", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Reason == modulesv1.ReleaseNotReadyReason
	})
	s.breaks("app", "1.0.0")
	folder.apply("1.0.0", one, true)
	s.ready("app", "1.0.0")
	folder.apply("2.0.0", two, true)
	s.ready("app", "2.0.0")

	// The whole folder goes, and is applied again. What is installed is healed meanwhile.
	s.inside(s.system).kubectl("delete", "--timeout=4m", "-f", folder.dir)
	s.until("app", "is told", func(obj *modulesv1.ModuleInstallation) bool {
		return conditions.IsFalse(obj, modulesv1.ResolvedCondition)
	})
	s.breaks("app", "2.0.0")
	folder.apply("2.0.0", two, true)
	s.ready("app", "2.0.0")
	s.breaks("app", "2.0.0")
}
