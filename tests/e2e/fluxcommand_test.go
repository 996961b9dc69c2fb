package e2e

import (
	"os/exec"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/buckets"
	"sluice.dev/sluice/tests/upstream/registry"
)

// flux runs Flux's command in the scene's namespace, and returns what it prints. What fails ends the test.
func (s *scene) flux(arguments ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "flux", append([]string{"--kubeconfig", env.Kubeconfig, "-n", s.namespace, "--timeout", "4m"}, arguments...)...)
	printed, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("flux %s: %v\n%s\n%s", strings.Join(arguments, " "), err, printed, s.manager.Log())
	}
	return string(printed)
}

// TestFluxsCommandWorks: where it is at hand, with every kind of source.
func TestFluxsCommandWorks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flux"); err != nil {
		t.Skip("Flux's command is not here")
	}
	s := newBucketScene(t)
	s.put(map[string]string{"a.yaml": "a"})
	s.secret(buckets.SecretKey)
	repository := s.upstream.Repository("team/app")
	commit := repository.Commit("main", "one", upstream.Text(map[string]string{"apps/web/a.yaml": "a", "charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n"}))
	git := s.upstream.HTTP(upstream.HTTPOptions{}).URL("team/app")
	charts := &chartScene{scene: s.scene}
	images := registry.ForTest(t, registry.Options{})
	images.Repository("charts/app").PushHelm("2.0.0", charts.packageOf("2.0.0"))
	pushed := images.Repository("configuration").PushFlux("latest", map[string]string{"a.yaml": "a"}, nil)

	// Each waits until what it has made is ready.
	s.flux("create", "source", "git", "git", "--url="+git, "--branch=main", "--interval=1h")
	s.flux("create", "source", "oci", "oci", "--url="+images.URL("configuration"), "--tag=latest", "--interval=1h", "--insecure")
	s.create("bucket", nil)
	charts.repository("registry", images.URL("charts"), func(spec *sourcev1.HelmRepositorySpec) { spec.Type, spec.Insecure = "oci", true })
	s.flux("create", "source", "chart", "of-git", "--source=GitRepository/git", "--chart=charts/app", "--interval=1h")
	s.flux("create", "source", "chart", "of-registry", "--source=HelmRepository/registry", "--chart=app", "--interval=1h")
	s.generate("apps", "git")
	s.generated("apps-web", anyArtifact)
	s.until("bucket", "it is ready", bucketBeyond(""))

	shown := s.flux("get", "sources", "all")
	for _, want := range []string{
		"gitrepository/git", "main@sha1:" + commit[:8], "ocirepository/oci", pushed.Digest.String()[:len("sha256:")+8], "bucket/bucket",
		"helmrepository/registry", "Helm repository is Ready", "helmchart/of-git", "1.0.0", "helmchart/of-registry", "2.0.0", "externalartifact/apps-web",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("flux get sources all lacks %q:\n%s", want, shown)
		}
	}
	for name, kind := range map[string]string{"git": "git", "oci": "oci", "bucket": "bucket", "of-git": "chart", "of-registry": "chart"} {
		s.flux("reconcile", "source", kind, name)
		s.flux("suspend", "source", kind, name)
		if text := s.flux("get", "sources", kind, name); !strings.Contains(text, "True") {
			t.Errorf("it is not shown as suspended:\n%s", text)
		}
		s.flux("resume", "source", kind, name)
	}
	if text := s.flux("tree", "artifact", "generator", "apps"); !strings.Contains(text, "apps-web") {
		t.Error(text)
	}
	s.flux("reconcile", "source", "chart", "of-git", "--with-source")
	if text := s.flux("export", "source", "git", "git"); !strings.Contains(text, "url: "+git) {
		t.Error(text)
	}
	s.flux("delete", "source", "git", "git", "--silent")
	s.gone("git")
}
