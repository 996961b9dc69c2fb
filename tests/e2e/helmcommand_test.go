package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/programs"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestHelmMakesAndReadsWhatIsServed: with Helm's own command at both ends.
func TestHelmMakesAndReadsWhatIsServed(t *testing.T) {
	t.Parallel()
	s := newChartScene(t)
	home := t.TempDir()
	helm := programs.HelmFor(t, testenv.Root(), home)
	read := func(name string) []byte {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	// accepts has Helm look at a package and render it.
	accepts := func(name string, content []byte) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		helm.Run("lint", "--strict", name)
		return helm.Run("template", "release", name)
	}

	helm.Run("create", "app")
	helm.Run("package", "app", "--version", "1.0.0", "-d", "served")
	helm.Run("package", "app", "--version", "1.1.0-rc.1", "-d", "served")
	helm.Run("repo", "index", "served")
	s.server.Put("/index.yaml", read("served/index.yaml"))
	for _, version := range []string{"1.0.0", "1.1.0-rc.1"} {
		s.server.Put("/app-"+version+".tgz", read("served/app-"+version+".tgz"))
	}
	s.repository("charts", s.server.URL, nil)
	s.chart("index", "HelmRepository", "charts", "app")
	got, _ := s.packaged("index", "1.0.0")
	if !bytes.Equal(got, read("served/app-1.0.0.tgz")) {
		t.Error("another package is served")
	}
	if text := accepts("index.tgz", got); !strings.Contains(text, "kind: Deployment") {
		t.Error(text)
	}

	images := registry.ForTest(t, registry.Options{})
	push := func(version string) {
		t.Helper()
		helm.Run("package", "app", "--version", version, "-d", "pushed")
		helm.Run("push", "pushed/app-"+version+".tgz", images.URL("charts"), "--plain-http")
	}
	push("2.0.0+build.7")
	s.repository("registry", images.URL("charts"), func(spec *sourcev1.HelmRepositorySpec) { spec.Type, spec.Insecure = "oci", true })
	s.chart("oci", "HelmRepository", "registry", "app")
	if got, _ = s.packaged("oci", "2.0.0+build.7"); !bytes.Equal(got, read("pushed/app-2.0.0+build.7.tgz")) {
		t.Error("another package is served")
	}
	accepts("oci.tgz", got)

	repository := s.upstream.Repository("team/charts")
	files := map[string]string{"values-prod.yaml": "replicaCount: 7\nlib:\n  fullnameOverride: prod\n"}
	for _, chart := range []string{"app", "lib"} {
		if chart == "lib" {
			helm.Run("create", chart)
		}
		err := filepath.WalkDir(filepath.Join(home, chart), func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(name)
			inside, _ := filepath.Rel(home, name)
			files["charts/"+inside] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files["charts/app/Chart.yaml"] += "dependencies:\n- name: lib\n  version: '>=0.1.0'\n  repository: file://../lib\n"
	repository.Commit("main", "charts", upstream.Text(files))
	s.create("git", s.upstream.HTTP(upstream.HTTPOptions{}).URL("team/charts"))
	s.chartWith("git", "GitRepository", "git", "charts/app", func(spec *sourcev1.HelmChartSpec) {
		spec.ValuesFiles = []string{"charts/app/values.yaml", "values-prod.yaml"}
	})
	got, _ = s.packaged("git", "0.1.0+1")
	text := accepts("git.tgz", got)
	if !strings.Contains(text, "replicas: 7") || !strings.Contains(text, "name: prod\n") {
		t.Errorf("values or dependency are lost:\n%s", text)
	}
	// Helm packs up the same chart again.
	helm.Run("pull", "--untar", "--untardir", "again", "--plain-http", images.URL("charts/app"), "--version", "2.0.0+build.7")
	helm.Run("package", "again/app", "-d", "again")
}
