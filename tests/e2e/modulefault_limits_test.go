package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// kustomized are files with a kustomization before them.
func kustomized(kustomization string, files map[string]string) map[string]string {
	made := map[string]string{"kustomization.yaml": kustomization}
	maps.Copy(made, files)
	return made
}

// TestModuleLimitsEndOnlyTheirInstallation: a release that is too large, or hostile, says what is wrong with it on the
// installations that want it. What they have stays and is healed, and the others do not notice.
func TestModuleLimitsEndOnlyTheirInstallation(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t, "--build-max-bytes=100663296", "--build-workers=1")
	s.release("1.0.0", fooFiles("1.0.0"))
	var many strings.Builder
	for i := range modulesv1.MaxMembers - 3 {
		fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m%d}}\n", i)
	}
	cases := []struct {
		version, reason, text string
		stalled               bool
		files                 map[string]string
	}{
		{"2.0.0", modulesv1.InventoryTooLargeReason, "7501 objects together, and data.members of the Inventory holds 7500: split", true, map[string]string{"all.yaml": many.String()}},
		{"2.1.0", modulesv1.BuildFailedReason, "memory", false, kustomized("resources: [a.yaml]\n", map[string]string{
			"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [" + strings.Repeat("a,", 1<<20) + "a]\n",
		})},
		{"2.2.0", modulesv1.BuildFailedReason, "kustomization.yaml", false, kustomized("resources: ['https://127.0.0.1:1/base?ref=v1']\n", nil)},
		{"2.3.0", modulesv1.BuildFailedReason, "kustomization.yaml", false, kustomized("resources: [../../../../etc/passwd]\n", nil)},
		{"2.4.0", modulesv1.BuildFailedReason, "plugins disabled", false, kustomized(
			"resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: v1\n  kind: Run\n  metadata:\n    name: run\n    annotations:\n"+
				"      config.kubernetes.io/function: |\n        exec: {path: /bin/sh}\n", map[string]string{"a.yaml": settings("a", "1")})},
		{"2.5.0", modulesv1.BuildFailedReason, "more than 1000 aliases", false, map[string]string{"bomb.yaml": bomb()}},
	}
	for i, c := range cases {
		s.release(c.version, c.files)
		s.install(fmt.Sprintf("app-%d", i), byVersion("1.0.0"))
	}
	for i := range cases {
		s.ready(fmt.Sprintf("app-%d", i), "1.0.0")
	}
	for i, c := range cases {
		s.change(fmt.Sprintf("app-%d", i), byVersion(c.version))
	}
	s.install("neighbour", byVersion("1.0.0"))
	s.ready("neighbour", "1.0.0")
	for i, c := range cases {
		name := fmt.Sprintf("app-%d", i)
		obj := s.failing(name, modulesv1.UpToDateCondition, c.reason, c.text)
		t.Logf("%s: %s", c.version, conditions.GetMessage(obj, meta.ReadyCondition))
		if stalled := conditions.IsTrue(obj, meta.StalledCondition); stalled != c.stalled {
			t.Errorf("%s: stalled is %t", c.version, stalled)
		}
		if obj.Status.Current == nil || obj.Status.Current.Version != "1.0.0" {
			t.Errorf("%s counts as installed: %s", c.version, asJSON(obj.Status))
		}
		s.breaks(name, "1.0.0")
		s.exact(name, fooMembers(name, "1.0.0")...)
	}
	s.change("app-0", byVersion("1.0.0"))
	s.ready("app-0", "1.0.0")
}

// bomb is a small document that unfolds into a very large one.
func bomb() string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx0: &x0 [" + strings.Repeat("a, ", 9) + "a]\n"
	for i := range 9 {
		text += fmt.Sprintf("x%d: &x%d [%s*x%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*x%d, ", i), 9), i)
	}
	return text
}

// TestModuleArtifactThatIsTooLargeIsNotInstalled: the source refuses it, the template says so, and the installation
// keeps what it has until there is a release that fits.
func TestModuleArtifactThatIsTooLargeIsNotInstalled(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t, "--archive-max-bytes=65536")
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app")
	s.ready("app", "1.0.0")
	large := fooFiles("1.1.0")
	large["large.yaml"] = "# " + strings.Repeat("large ", 20_000) + "\n"
	s.release("1.1.0", large)
	s.shows("foo-1.1.0", modulesv1.ArtifactVerifiedCondition, metav1.ConditionFalse, modulesv1.ArtifactFailedReason, "65536")
	s.until("app", "does not get the release", func(obj *modulesv1.ModuleInstallation) bool {
		return slices.ContainsFunc(obj.Status.AvailableUpgrades, func(u modulesv1.AvailableUpgrade) bool {
			return u.Version == "1.1.0" && !u.Allowed && u.Reason == modulesv1.ReleaseNotReadyReason
		})
	})
	s.breaks("app", "1.0.0")
	s.exact("app", fooMembers("app", "1.0.0")...)
	s.release("1.2.0", fooFiles("1.2.0"))
	s.ready("app", "1.2.0")
}
