package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/tests/upstream"
	fileserver "sluice.dev/sluice/tests/upstream/files"
	"sluice.dev/sluice/tests/upstream/registry"
)

// chartScene is a scene with a server of packages and their index.
type chartScene struct {
	*scene

	server  *fileserver.Server
	entries []string
}

func newChartScene(t *testing.T, flags ...string) *chartScene {
	t.Helper()
	return &chartScene{scene: newRunning(t, flags...), server: fileserver.New(t)}
}

// packageOf is a package of a chart called app.
func (s *chartScene) packageOf(version string) []byte {
	s.t.Helper()
	tree := fstest.MapFS{
		"Chart.yaml":              {Data: []byte("apiVersion: v2\nname: app\nversion: " + version + "\n"), Mode: 0o644},
		"templates/settings.yaml": {Data: []byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: settings}\n"), Mode: 0o644},
	}
	built, err := chart.Build(s.t.Context(), chart.Folder{Files: tree})
	if err != nil {
		s.t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := built.Write(s.t.Context(), &packed); err != nil {
		s.t.Fatal(err)
	}
	return packed.Bytes()
}

// publish puts a package on the server, and into its index.
func (s *chartScene) publish(version string) []byte {
	s.t.Helper()
	content := s.packageOf(version)
	sum := sha256.Sum256(content)
	s.server.Put("/app-"+version+".tgz", content)
	s.entries = append(s.entries, fmt.Sprintf("  - {apiVersion: v2, name: app, version: %s, urls: [app-%s.tgz], digest: %s}\n", version, version, hex.EncodeToString(sum[:])))
	s.server.Put("/index.yaml", []byte("apiVersion: v1\nentries:\n  app:\n"+strings.Join(s.entries, "")))
	return content
}

// repository makes a HelmRepository.
func (s *chartScene) repository(name, url string, change func(*sourcev1.HelmRepositorySpec)) {
	s.t.Helper()
	obj := &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       sourcev1.HelmRepositorySpec{URL: url, Interval: metav1.Duration{Duration: time.Second}},
	}
	if change != nil {
		change(&obj.Spec)
	}
	s.make(obj)
}

// chart makes a HelmChart that does not look again by itself for long.
func (s *chartScene) chart(name, kind, of, place string) {
	s.t.Helper()
	s.chartWith(name, kind, of, place, func(*sourcev1.HelmChartSpec) {})
}

func (s *chartScene) chartWith(name, kind, of, place string, change func(*sourcev1.HelmChartSpec)) {
	s.t.Helper()
	obj := &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: sourcev1.HelmChartSpec{
			Chart: place, SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: kind, Name: of}, Interval: metav1.Duration{Duration: time.Hour},
		},
	}
	change(&obj.Spec)
	s.make(obj)
}

// packaged waits until a chart is ready at a version, and downloads it as consumers do.
func (s *chartScene) packaged(name, version string) ([]byte, *sourcev1.HelmChart) {
	s.t.Helper()
	obj := s.eventuallyChart(name, func(obj *sourcev1.HelmChart) bool {
		return conditions.IsReady(obj) && obj.Status.Artifact != nil && obj.Status.Artifact.Revision == version
	})
	return s.download(obj.Status.Artifact), obj
}

func (s *chartScene) eventuallyChart(name string, holds func(*sourcev1.HelmChart) bool) *sourcev1.HelmChart {
	s.t.Helper()
	obj := &sourcev1.HelmChart{}
	s.eventually("chart "+name, func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj)
		return err == nil && holds(obj), fmt.Sprint(err, asJSON(obj.Status))
	})
	return obj
}

// TestChartsFollowTheirSources: each is made before its source, and nobody looks at it again by the clock.
func TestChartsFollowTheirSources(t *testing.T) {
	t.Parallel()
	s := newChartScene(t)
	s.chart("index", "HelmRepository", "charts", "app")
	s.chart("git", "GitRepository", "git", "charts/app")
	waits := s.eventuallyChart("index", func(obj *sourcev1.HelmChart) bool {
		return conditions.GetReason(obj, sourcev1.FetchFailedCondition) == sourcev1.SourceUnavailableReason
	})
	if waits.Status.Artifact != nil || !conditions.IsFalse(waits, meta.ReadyCondition) {
		t.Errorf("without a source: %s", asJSON(waits.Status))
	}

	first := s.publish("1.0.0")
	s.repository("charts", s.server.URL, nil)
	if got, obj := s.packaged("index", "1.0.0"); !bytes.Equal(got, first) || obj.Status.Artifact.URL == obj.Status.URL {
		t.Errorf("another package is served: %s", asJSON(obj.Status))
	}
	second := s.publish("1.1.0")
	got, obj := s.packaged("index", "1.1.0")
	if !bytes.Equal(got, second) {
		t.Error("another package is served")
	}
	response, err := http.Get(obj.Status.URL)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %v", obj.Status.URL, err)
	} else {
		_ = response.Body.Close()
	}

	repository := s.upstream.Repository("team/app")
	write := func(version string) {
		repository.Commit("main", version, upstream.Text(map[string]string{
			"charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: " + version + "\n", "charts/app/templates/a.yaml": "{}\n",
		}))
	}
	write("0.1.0")
	s.create("git", s.upstream.HTTP(upstream.HTTPOptions{}).URL("team/app"), func(spec *sourcev1.GitRepositorySpec) { spec.Interval.Duration = time.Second })
	s.packaged("git", "0.1.0")
	write("0.2.0")
	packed, _ := s.packaged("git", "0.2.0")
	if identity, err := chart.Inspect(t.Context(), bytes.NewReader(packed), chart.Limits{}); err != nil || identity.Version != "0.2.0" {
		t.Errorf("the package is %v: %v", identity, err)
	}

	images := registry.ForTest(t, registry.Options{})
	pushed := s.packageOf("2.0.0")
	images.Repository("charts/app").PushHelm("2.0.0", pushed)
	s.chart("oci", "HelmRepository", "registry", "app")
	s.repository("registry", images.URL("charts"), func(spec *sourcev1.HelmRepositorySpec) { spec.Type, spec.Insecure = "oci", true })
	if got, _ := s.packaged("oci", "2.0.0"); !bytes.Equal(got, pushed) {
		t.Error("another package is served")
	}
}

// TestAChartOutlivesItsRepository: what is stored stays served, and is right again after a restart.
func TestAChartOutlivesItsRepository(t *testing.T) {
	t.Parallel()
	s := newChartScene(t)
	content := s.publish("1.0.0")
	s.repository("charts", s.server.URL, nil)
	s.chart("app", "HelmRepository", "charts", "app")
	_, before := s.packaged("app", "1.0.0")
	if err := env.Client.Delete(t.Context(), &sourcev1.HelmRepository{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "charts"}}); err != nil {
		t.Fatal(err)
	}
	s.eventuallyChart("app", func(obj *sourcev1.HelmChart) bool {
		return conditions.GetReason(obj, sourcev1.FetchFailedCondition) == sourcev1.SourceUnavailableReason
	})
	if got := s.download(before.Status.Artifact); !bytes.Equal(got, content) {
		t.Error("another package is served")
	}
	s.stop()
	s.start()
	s.repository("charts", s.server.URL, nil)
	asked := len(s.server.Requests())
	if _, after := s.packaged("app", "1.0.0"); after.Status.Artifact.Digest != before.Status.Artifact.Digest || after.Status.Artifact.Path != before.Status.Artifact.Path {
		t.Errorf("the package is another one: %s", asJSON(after.Status))
	}
	for _, request := range s.server.Requests()[asked:] {
		if strings.HasSuffix(request.Path, ".tgz") {
			t.Errorf("a package that is stored was downloaded: %s", request.Path)
		}
	}
}
