package source_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/kernel"
	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmchart"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/tests/upstream/files"
	"sluice.dev/sluice/tests/upstream/registry"
)

// requeueDependency is after how long a chart is looked at again that waits for its source.
const requeueDependency = 30 * time.Second

// chartPlane is the controllers of HelmRepositories and HelmCharts, with a server of files and a registry.
type chartPlane struct {
	*helmPlane

	registry *registry.Fixture
	opener   *helmchart.Opener
	charts   reconcile.Reconciler
	versions []string // of the index, as YAML
}

func newChartPlane(t *testing.T) *chartPlane {
	t.Helper()
	p := &chartPlane{helmPlane: newHelmPlane(t), registry: registry.ForTest(t, registry.Options{})}
	connections := transport.New(transport.Options{AllowLoopback: true})
	registries, err := registryclient.New(registryclient.Options{Transport: connections})
	if err != nil {
		t.Fatal(err)
	}
	p.opener = helmchart.NewOpener(helmchart.Options{
		Artifacts: controllers.Artifacts{Reader: env.Client, Store: p.store}, Credentials: auth.New(env.Client, auth.Options{}), Store: p.store,
		Files: helm.NewClient(connections, p.clock, func(int64) {}), Registry: registries,
		Trust: trust.Trust{Revocation: connections.Anonymous()}, MaxIndexBytes: 1 << 20, Limits: chart.Limits{TempDir: t.TempDir()},
	})
	p.charts = controllers.NewHelmChartReconciler(controllers.Shared{
		Shell: kernel.Shell{
			Client: env.Client, Reader: env.Client, Events: p.events, FieldOwner: "source-controller", Jitter: func(d time.Duration) time.Duration { return d },
			RequeueDependency: requeueDependency, Clock: p.clock, Durations: noDurations{}, Workers: 4,
		},
		Pipeline: &source.Pipeline{Store: p.store, Clock: p.clock, Observer: sourcetest.Silent{}},
		Address:  "artifacts.example.com",
		Backoff:  kernel.NewBackoff(time.Millisecond, time.Minute),
	}, p.opener)
	return p
}

// packaged is a package of a chart, with other files beside its Chart.yaml.
func packaged(t *testing.T, name, version string, others map[string]string) []byte {
	t.Helper()
	texts := map[string]string{"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"}
	maps.Copy(texts, others)
	tree := fstest.MapFS{}
	for place, text := range texts {
		tree[place] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	built, err := chart.Build(t.Context(), chart.Folder{Files: tree})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := built.Write(t.Context(), &packed); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// publish puts a package on the server of files, and into its index with the digest.
func (p *chartPlane) publish(version string, content []byte, digest string) {
	p.t.Helper()
	place := fmt.Sprintf("packages/app-%s.tgz", version)
	p.files.Put("/"+place, content)
	p.list(version, place, digest)
}

// list adds a version to the index, and has the repository fetch that.
func (p *chartPlane) list(version, url, digest string) {
	p.t.Helper()
	p.versions = append(p.versions, fmt.Sprintf("  - {apiVersion: v2, name: app, version: %q, urls: [%q], digest: %q}\n", version, url, digest))
	p.files.Put("/index.yaml", []byte("apiVersion: v1\nentries:\n  app:\n"+strings.Join(p.versions, "")))
	if _, _, err := p.run(); err != nil {
		p.t.Fatal(err)
	}
	p.events.take()
}

// charted makes an object of the name.
func (p *chartPlane) charted(change func(*sourcev1.HelmChartSpec)) {
	p.t.Helper()
	obj := &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"},
		Spec: sourcev1.HelmChartSpec{
			Chart: "app", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: "charts"},
			Interval: metav1.Duration{Duration: requeueDependency},
		},
	}
	if change != nil {
		change(&obj.Spec)
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// chart reconciles, and gives the object as it is then.
func (p *chartPlane) chart() (*sourcev1.HelmChart, ctrl.Result, error) {
	p.t.Helper()
	result, err := p.charts.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key("app")})
	obj := &sourcev1.HelmChart{}
	if lost := env.Client.Get(p.t.Context(), p.key("app"), obj); lost != nil {
		p.t.Fatal(lost)
	}
	return obj, result, err
}

func (p *chartPlane) editChart(edit func(*sourcev1.HelmChartSpec)) {
	p.t.Helper()
	obj := &sourcev1.HelmChart{}
	if err := env.Client.Get(p.t.Context(), p.key("app"), obj); err != nil {
		p.t.Fatal(err)
	}
	edit(&obj.Spec)
	if err := env.Client.Update(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// body is what is stored under the artifact's path.
func (p *chartPlane) body(artifact *meta.Artifact) []byte {
	p.t.Helper()
	body, err := p.store.Open(p.t.Context(), artifact.Path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		p.t.Fatal(err)
	}
	return content
}

func chartConditions(obj *sourcev1.HelmChart) map[string]string {
	return summary(&sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Conditions: obj.Status.Conditions}})
}

// succeeded runs a chart that has to be stored with the message and reason.
func (p *chartPlane) succeeded(reason, message string) *sourcev1.HelmChart {
	p.t.Helper()
	obj, _, err := p.chart()
	if err != nil {
		p.t.Fatalf("%v; %v", err, chartConditions(obj))
	}
	want := "True " + reason + ": " + message
	if diff := cmp.Diff(map[string]string{"Ready": want, "ArtifactInStorage": want}, chartConditions(obj)); diff != "" {
		p.t.Errorf("conditions: -want +got:\n%s", diff)
	}
	return obj
}

func TestAChartIsPulled(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	old, newer := packaged(t, "app", "1.0.0", nil), packaged(t, "app", "1.1.0+b2", nil)
	p.publish("1.0.0", old, sumOf(old))
	p.charted(nil)
	obj := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	if told := p.events.take(); len(told) != 1 || told[0] != "Normal ChartPullSucceeded: pulled 'app' chart with version '1.0.0'" {
		t.Errorf("told %q", told)
	}
	artifact := obj.Status.Artifact
	place := fmt.Sprintf("helmchart/%s/app/app-1.0.0.tgz", p.namespace)
	if artifact.Path != place || artifact.Revision != "1.0.0" || !bytes.Equal(p.body(artifact), old) {
		t.Errorf("artifact %+v", artifact)
	}
	repository, _, _ := p.run()
	if s := obj.Status; s.URL != "http://artifacts.example.com/"+path.Dir(place)+"/latest.tar.gz" || s.ObservedChartName != "app" ||
		s.ObservedSourceArtifactRevision != repository.Status.Artifact.Revision || s.ObservedValuesFiles != nil || s.ObservedGeneration != 1 {
		t.Errorf("status %+v", s)
	}

	before := len(p.files.Requests())
	if same, _, err := p.chart(); err != nil || same.ResourceVersion != obj.ResourceVersion || len(p.files.Requests()) != before {
		t.Errorf("a look without news writes or asks: %v", err)
	}
	p.publish("1.1.0+b2", newer, sumOf(newer))
	obj = p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.1.0+b2'")
	if obj.Status.Artifact.Path != fmt.Sprintf("helmchart/%s/app/app-1.1.0+b2.tgz", p.namespace) || !bytes.Equal(p.body(obj.Status.Artifact), newer) {
		t.Errorf("artifact %+v", obj.Status.Artifact)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Version = "1.0.x" })
	p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
}

// TestAPackageThatIsPublishedAgainIsNoticed: the index tells its digest.
func TestAPackageThatIsPublishedAgainIsNoticed(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	first := packaged(t, "app", "1.0.0", nil)
	p.publish("1.0.0", first, sumOf(first))
	p.charted(nil)
	was := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'").Status.Artifact
	again := packaged(t, "app", "1.0.0", map[string]string{"README.md": "again"})
	p.versions = nil
	p.publish("1.0.0", again, "sha256:"+sumOf(again))
	is := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'").Status.Artifact
	if is.Revision != "1.0.0" || is.Path == was.Path || !bytes.Equal(p.body(is), again) {
		t.Errorf("artifact %+v, before %+v", is, was)
	}
}

func TestValuesShapeAVersion(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	content := packaged(t, "app", "1.0.0+b", map[string]string{"values.yaml": "a: 1\n", "prod.yaml": "b: 2\n"})
	p.publish("1.0.0+b", content, sumOf(content))
	p.charted(func(spec *sourcev1.HelmChartSpec) { spec.ValuesFiles = []string{"values.yaml", "prod.yaml"} })
	obj := p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '1.0.0+1' and merged values files [values.yaml prod.yaml]")
	if obj.Status.Artifact.Revision != "1.0.0+1" || obj.Status.ObservedValuesFiles != nil {
		t.Errorf("status %+v", obj.Status)
	}
	first := obj.Status.Artifact
	if identity, err := chart.Inspect(t.Context(), bytes.NewReader(p.body(first)), chart.Limits{}); err != nil || identity.Version != "1.0.0+1" {
		t.Errorf("the package is %v, %v", identity, err)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Interval.Duration *= 2 })
	obj = p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '1.0.0+1' and merged values files [values.yaml prod.yaml]")
	if diff := cmp.Diff(first, obj.Status.Artifact); diff != "" || obj.Generation != 2 {
		t.Errorf("an edit of the interval is a new version: %s", diff)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) {
		spec.ValuesFiles, spec.IgnoreMissingValuesFiles = []string{"prod.yaml", "none"}, true
	})
	obj = p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '1.0.0+3' and merged values files [prod.yaml]")
	if diff := cmp.Diff([]string{"prod.yaml"}, obj.Status.ObservedValuesFiles); diff != "" {
		t.Error(diff)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.ValuesFiles, spec.IgnoreMissingValuesFiles = nil, false })
	obj = p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0+b'")
	if obj.Status.ObservedValuesFiles != nil || !bytes.Equal(p.body(obj.Status.Artifact), content) {
		t.Errorf("status %+v", obj.Status)
	}
}

// TestChartFailuresAreReportedAsFluxDoes: each reason, and that the last package stays served.
func TestChartFailuresAreReportedAsFluxDoes(t *testing.T) {
	t.Parallel()
	good := packaged(t, "app", "1.0.0", nil)
	edited := func(edit func(*sourcev1.HelmChartSpec)) func(*chartPlane) {
		return func(p *chartPlane) { p.editChart(edit) }
	}
	for name, tc := range map[string]struct {
		disturb   func(p *chartPlane)
		condition string
		reason    string
		says      string
		stalled   bool
		waits     bool
	}{
		"NoSource": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.SourceRef.Name = "none" }), "FetchFailed", "SourceUnavailable", "failed to get source: ", false, true,
		},
		"NoArtifact": {
			func(p *chartPlane) {
				p.source("empty")
				p.editChart(func(spec *sourcev1.HelmChartSpec) {
					spec.SourceRef.Kind, spec.SourceRef.Name = "GitRepository", "empty"
				})
			}, "FetchFailed", "NoSourceArtifact", "no artifact available for GitRepository source 'empty'", false, true,
		},
		"NoChart": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.Chart = "other" }), "FetchFailed", "InvalidChartReference", "invalid chart reference: ", true, false,
		},
		"NoVersion": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.Version = ">9" }), "FetchFailed", "InvalidChartReference", "invalid chart reference: ", true, false,
		},
		"NoRange": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.Version = "!!" }), "FetchFailed", "InvalidChartReference", "invalid chart reference: ", true, false,
		},
		"NoPackage": {
			func(p *chartPlane) { p.list("2.0.0", "none.tgz", "") }, "FetchFailed", "ChartPullError", "chart pull error: failed to fetch URL/none.tgz : 404 Not Found", false, false,
		},
		"Refused": {
			func(p *chartPlane) { p.list("2.0.0", "x.tgz", ""); p.files.Fail(files.Status(http.StatusUnauthorized)) },
			"FetchFailed", "AuthenticationFailed", "chart pull error: failed to fetch URL/x.tgz : 401 Unauthorized", false, false,
		},
		"NoSecret": {
			func(p *chartPlane) {
				p.change(func(o *sourcev1.HelmRepository) { o.Spec.SecretRef = &meta.LocalObjectReference{Name: "none"} })
			}, "FetchFailed", "AuthenticationFailed", "failed to get authentication secret 'NS/none'", false, false,
		},
		"OtherDigest": {
			func(p *chartPlane) { p.publish("2.0.0", packaged(t, "app", "2.0.0", nil), sumOf(good)) }, "FetchFailed", "ChartPullError",
			"chart pull error: chart 'app' version '2.0.0': the index says sha256:" + sumOf(good) + ", and the package is sha256:", false, false,
		},
		"OtherName": {
			func(p *chartPlane) { p.publish("2.0.0", packaged(t, "ape", "2.0.0", nil), "") }, "FetchFailed", "ChartPullError",
			"chart pull error: the package is chart 'ape' version '2.0.0', where its source says 'app' version '2.0.0'", false, false,
		},
		"OtherVersion": {
			func(p *chartPlane) { p.publish("2.0.0", packaged(t, "app", "2.0.1", nil), "") }, "FetchFailed", "ChartPullError",
			"chart pull error: the package is chart 'app' version '2.0.1', where its source says 'app' version '2.0.0'", false, false,
		},
		"NoArchive": {
			func(p *chartPlane) { p.publish("2.0.0", []byte("<html>"), "") }, "FetchFailed", "ChartPullError", "chart pull error: chart package error: ", false, false,
		},
		"TooLarge": {
			func(p *chartPlane) { p.publish("2.0.0", make([]byte, chart.DefaultMaxPackage+1), "") }, "FetchFailed", "ChartPullError", "chart pull error: ", false, false,
		},
		"OtherScheme": {
			func(p *chartPlane) { p.list("2.0.0", "file:///etc/passwd", "") }, "FetchFailed", "ChartPullError", "chart pull error: the index's URL for chart 'app' version '2.0.0'", false, false,
		},
		"NoValues": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.ValuesFiles = []string{"no.yaml"} }), "BuildFailed", "ValuesFilesError",
			"values files merge error: no values file found at path 'no.yaml'", true, false,
		},
		"NoSignatures": {
			edited(func(spec *sourcev1.HelmChartSpec) { spec.Verify = &sourcev1.HelmChartVerification{Provider: "cosign"} }),
			"BuildFailed", "ChartVerificationError", "chart verification error: signatures are looked for in repositories of type 'oci' alone", false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newChartPlane(t)
			p.add(nil)
			p.publish("1.0.0", good, sumOf(good))
			p.charted(nil)
			before := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
			p.events.take()
			tc.disturb(p)
			p.events.take()
			obj, result, err := p.chart()
			says := strings.NewReplacer("URL/", p.files.URL+"/", "NS/", p.namespace+"/").Replace(tc.says)
			got := chartConditions(obj)
			if !strings.HasPrefix(got[tc.condition], "True "+tc.reason+": "+says) {
				t.Errorf("%s: want %q, got %v", tc.condition, tc.reason+": "+says, got)
			}
			if !strings.HasPrefix(got["Ready"], "False "+tc.reason) || (got["Stalled"] != "") != tc.stalled || (got["Reconciling"] == "") != tc.stalled {
				t.Errorf("conditions: %v", got)
			}
			if diff := cmp.Diff(before.Status.Artifact, obj.Status.Artifact); diff != "" {
				t.Errorf("the last artifact: %s", diff)
			}
			if err := p.served(obj.Status.Artifact); err != nil {
				t.Error(err)
			}
			if tc.stalled && (err != nil || result.RequeueAfter != 0) || tc.waits && (err != nil || result.RequeueAfter != requeueDependency) {
				t.Errorf("got %+v, %v", result, err)
			}
			kind := "Warning "
			if tc.waits {
				kind = "Normal "
			}
			if told := p.events.take(); len(told) != 1 || !strings.HasPrefix(told[0], kind+tc.reason+": ") {
				t.Errorf("told %q", told)
			}
		})
	}
}

// source makes a GitRepository of which nothing is stored.
func (p *chartPlane) source(name string) *sourcev1.GitRepository {
	p.t.Helper()
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/app", Interval: metav1.Duration{Duration: requeueDependency}},
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
	return obj
}

// commit stores files for a GitRepository, as of a commit.
func (p *chartPlane) commit(obj *sourcev1.GitRepository, hash string, texts map[string]string) {
	p.t.Helper()
	tree := fstest.MapFS{}
	for place, text := range texts {
		tree[place] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	staged, err := p.store.Stage(p.t.Context(), 0, func(w io.Writer) error {
		return archive.Write(p.t.Context(), w, tree, archive.Everything(), archive.Limits{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	object := storage.Object{Kind: controllers.GitRepositoryDir, Namespace: obj.Namespace, Name: obj.Name}
	record := storage.Record{UID: string(obj.UID), Current: storage.Artifact{Path: object.File(hash + ".tar.gz"), Revision: "main@sha1:" + hash}}
	if _, err := p.store.Publish(p.t.Context(), object, staged, record); err != nil {
		p.t.Fatal(err)
	}
}

func TestAChartIsBuiltFromASource(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	library := packaged(t, "lib", "2.0.0", nil)
	p.files.Put("/lib-2.0.0.tgz", library)
	p.files.Put("/index.yaml", fmt.Appendf(nil, "apiVersion: v1\nentries:\n  lib:\n  - {apiVersion: v2, name: lib, version: 2.0.0, urls: [lib-2.0.0.tgz], digest: %s}\n", sumOf(library)))
	if _, _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	git := p.source("git")
	texts := map[string]string{
		"charts/app/Chart.yaml":  "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- {name: lib, version: 2.x, repository: '" + p.files.URL + "/'}\n",
		"charts/app/values.yaml": "a: 1\n", "prod.yaml": "b: 2\n",
	}
	first, second := strings.Repeat("a1", 20), strings.Repeat("b2", 20)
	p.commit(git, first, texts)
	p.charted(func(spec *sourcev1.HelmChartSpec) {
		spec.Chart, spec.SourceRef.Kind, spec.SourceRef.Name = "./charts/app", "GitRepository", "git"
	})
	obj := p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0'")
	if s := obj.Status; s.ObservedChartName != "app" || s.ObservedSourceArtifactRevision != "main@sha1:"+first || s.Artifact.Path != fmt.Sprintf("helmchart/%s/app/app-0.1.0.tgz", p.namespace) {
		t.Errorf("status %+v", s)
	}
	texts["elsewhere"] = "changed"
	p.commit(git, second, texts)
	same := p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0'")
	if diff := cmp.Diff(obj.Status.Artifact, same.Status.Artifact); diff != "" || same.Status.ObservedSourceArtifactRevision != "main@sha1:"+second {
		t.Errorf("a commit elsewhere is a new package: %s", diff)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.ReconcileStrategy = "Revision" })
	p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0+"+second[:12]+"'")
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.ValuesFiles = []string{"charts/app/values.yaml", "prod.yaml"} })
	p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0+"+second[:12]+".3' and merged values files [charts/app/values.yaml prod.yaml]")
	for name, tc := range map[string]struct {
		spec              func(*sourcev1.HelmChartSpec)
		texts             map[string]string
		condition, reason string
		says              string
	}{
		"NoPath": {
			func(spec *sourcev1.HelmChartSpec) { spec.Chart = "charts/none" }, nil, "FetchFailed", "InvalidChartReference", "invalid chart reference: no chart found at path 'charts/none'",
		},
		"NoDependency": {nil, map[string]string{
			"charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 0.2.0\ndependencies:\n- {name: lib, version: 3.x, repository: '" + p.files.URL + "'}\n",
		}, "BuildFailed", "DependencyBuildError", "dependency build error: failed to add remote dependency 'lib': failed to get chart 'lib' version '3.x' from '" + p.files.URL},
		"NoFile": {
			nil,
			map[string]string{"charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 0.2.0\n", "charts/app/.helmignore": "a/**\n"},
			"BuildFailed", "ChartPackageError", "chart package error: ",
		},
	} {
		p.editChart(func(spec *sourcev1.HelmChartSpec) {
			spec.Chart, spec.ValuesFiles = "charts/app", nil
			if tc.spec != nil {
				tc.spec(spec)
			}
		})
		changed := maps.Clone(texts)
		maps.Copy(changed, tc.texts)
		p.commit(git, sumOf([]byte(name))[:40], changed)
		obj, _, _ := p.chart()
		if got := chartConditions(obj); !strings.HasPrefix(got[tc.condition], "True "+tc.reason+": "+tc.says) {
			t.Errorf("%s: want %q, got %v", name, tc.reason+": "+tc.says, got)
		}
	}
}

func TestAChartIsPulledFromARegistry(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(func(spec *sourcev1.HelmRepositorySpec) {
		spec.Type, spec.URL, spec.Insecure = "oci", p.registry.URL("charts"), true
	})
	repository := p.registry.Repository("charts/app")
	packages := map[string][]byte{}
	for _, version := range []string{"1.0.0", "1.1.0+b1", "2.0.0-rc.1"} {
		packages[version] = packaged(t, "app", version, nil)
		repository.PushHelm(strings.ReplaceAll(version, "+", "_"), packages[version])
	}
	p.charted(nil)
	obj := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.1.0+b1'")
	if s := obj.Status; s.Artifact.Revision != "1.1.0+b1" || s.ObservedSourceArtifactRevision != "" || !bytes.Equal(p.body(s.Artifact), packages["1.1.0+b1"]) {
		t.Errorf("status %+v", s)
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Version = "1.0.0" })
	p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	again := packaged(t, "app", "1.0.0", map[string]string{"README.md": "pushed again"})
	repository.PushHelm("1.0.0", again)
	obj = p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	if !bytes.Equal(p.body(obj.Status.Artifact), again) {
		t.Error("a tag that was pushed again is not noticed")
	}
	for version, says := range map[string]string{
		"9.0.0": "chart pull error: look up tag '9.0.0': ", ">9": "chart pull error: failed to get chart version for remote reference: 'app' version '>9': ",
	} {
		p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Version = version })
		failed, _, err := p.chart()
		if got := chartConditions(failed); err == nil || !strings.HasPrefix(got["FetchFailed"], "True ChartPullError: "+says) || got["Stalled"] != "" {
			t.Errorf("version %s: %v; %v", version, got, err)
		}
	}
	repository.PushHelm("3.0.0", packaged(t, "app", "3.0.1", nil))
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Version = "3.0.0" })
	failed, _, _ := p.chart()
	if got := chartConditions(failed)["FetchFailed"]; !strings.HasPrefix(got, "True ChartPullError: chart pull error: the package is chart 'app' version '3.0.1'") {
		t.Errorf("a package of another version: %s", got)
	}
	p.registry.Always(registry.Status(http.StatusUnauthorized))
	failed, _, _ = p.chart()
	if got := chartConditions(failed)["FetchFailed"]; !strings.HasPrefix(got, "True AuthenticationFailed: ") {
		t.Errorf("refused: %s", got)
	}
}

func TestOnlyAVerifiedChartIsStored(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(func(spec *sourcev1.HelmRepositorySpec) {
		spec.Type, spec.URL, spec.Insecure = "oci", p.registry.URL("charts"), true
	})
	key, stranger := verifytest.NewKey(t), verifytest.NewKey(t)
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "keys"}, Data: map[string][]byte{"team.pub": key.PublicPEM(t)}}
	if err := env.Client.Create(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	repository := p.registry.Repository("charts/app")
	host := strings.TrimPrefix(p.registry.URL("charts/app"), "oci://")
	sign := func(version string, by *verifytest.Key) {
		head := repository.PushHelm(version, packaged(t, "app", version, nil))
		signature := by.SimpleSigning(t, host, head.Digest)
		repository.AttachCosignTag(head, registry.Layer{MediaType: signature.MediaType, Content: signature.Content, Annotations: signature.Annotations})
	}
	sign("1.0.0", key)
	p.charted(func(spec *sourcev1.HelmChartSpec) {
		spec.Version = "1.0.0"
		spec.Verify = &sourcev1.HelmChartVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	})
	obj, _, err := p.chart()
	got := chartConditions(obj)
	if err != nil || got["SourceVerified"] != "True Succeeded: verified signature of version 1.0.0" || !strings.HasPrefix(got["Ready"], "True ChartPullSucceeded") {
		t.Fatalf("%v; %v", got, err)
	}
	sign("2.0.0", stranger)
	repository.PushHelm("3.0.0", packaged(t, "app", "3.0.0", nil))
	for _, version := range []string{"2.0.0", "3.0.0"} {
		p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Version = version })
		failed, _, _ := p.chart()
		got := chartConditions(failed)
		if !strings.HasPrefix(got["SourceVerified"], "False VerificationError: chart verification error: failed to verify oci://"+host+":"+version) || !strings.HasPrefix(got["Ready"], "False VerificationError") {
			t.Errorf("version %s: %v", version, got)
		}
		if diff := cmp.Diff(obj.Status.Artifact, failed.Status.Artifact); diff != "" {
			t.Errorf("version %s is stored: %s", version, diff)
		}
	}
	p.editChart(func(spec *sourcev1.HelmChartSpec) { spec.Verify = nil })
	p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '3.0.0'")
}

// TestCredentialsOfARepositoryStayAtItsOrigin: an index names packages elsewhere.
func TestCredentialsOfARepositoryStayAtItsOrigin(t *testing.T) {
	t.Parallel()
	for name, generous := range map[string]bool{"Kept": false, "Passed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newChartPlane(t)
			other := files.New(t)
			p.files.Demand("user", "canary")
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "login"}, StringData: map[string]string{"username": "user", "password": "canary"}}
			if err := env.Client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			p.add(func(spec *sourcev1.HelmRepositorySpec) {
				spec.SecretRef, spec.PassCredentials = &meta.LocalObjectReference{Name: "login"}, generous
			})
			content := packaged(t, "app", "1.0.0", nil)
			other.Put("/app.tgz", content)
			p.list("1.0.0", other.URL+"/app.tgz", sumOf(content))
			p.charted(nil)
			p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
			for _, request := range other.Requests() {
				if got := request.Header.Get("Authorization") != ""; got != generous {
					t.Errorf("the other origin was shown credentials: %t", got)
				}
			}
		})
	}
}

// TestAChartMovesWithItsOwnVersionsAlone: an index of many charts changes often.
func TestAChartMovesWithItsOwnVersionsAlone(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	content := packaged(t, "app", "1.0.0", nil)
	p.publish("1.0.0", content, sumOf(content))
	p.charted(nil)
	chart := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	other := *chart.DeepCopy()
	other.Name, other.Spec.Chart = "other", "other"
	moved := func(obj *sourcev1.HelmChart) bool {
		return p.opener.Moved(t.Context(), []sourcev1.HelmChart{*obj, other})(obj)
	}
	if moved(chart) || !moved(&other) {
		t.Errorf("at rest: the chart has moved: %t, and one that nobody has looked at: %t", moved(chart), moved(&other))
	}
	index := "apiVersion: v1\nentries:\n  app:\n" + strings.Join(p.versions, "")
	p.files.Put("/index.yaml", []byte(index+"  other:\n  - {apiVersion: v2, name: other, version: 1.0.0, urls: [other.tgz]}\n"))
	if _, _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	if moved(chart) {
		t.Error("it moves with another chart")
	}
	p.publish("1.1.0", content, sumOf(content))
	if !moved(chart) {
		t.Error("it does not move with a new version")
	}
	renamed := *chart.DeepCopy()
	renamed.Spec.Chart = "none"
	if !moved(&renamed) {
		t.Error("an edit is not noticed")
	}
}

// TestRelativeURLsAreThoseOfTheirRepository: two servers may have the same index.
func TestRelativeURLsAreThoseOfTheirRepository(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	p.add(nil)
	first, second := packaged(t, "app", "1.0.0", nil), packaged(t, "app", "1.0.0", map[string]string{"README.md": "another"})
	p.publish("1.0.0", first, "")
	p.charted(nil)
	p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	other := files.New(t)
	other.Put("/index.yaml", []byte("apiVersion: v1\nentries:\n  app:\n"+strings.Join(p.versions, "")))
	other.Put("/packages/app-1.0.0.tgz", second)
	p.change(func(o *sourcev1.HelmRepository) { o.Spec.URL = other.URL })
	if _, _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	obj := p.succeeded("ChartPullSucceeded", "pulled 'app' chart with version '1.0.0'")
	if !bytes.Equal(p.body(obj.Status.Artifact), second) {
		t.Error("the package is that of the other server")
	}
}

// TestAStaleLockWarns: with each package that was made by it.
func TestAStaleLockWarns(t *testing.T) {
	t.Parallel()
	p := newChartPlane(t)
	git := p.source("git")
	texts := map[string]string{
		"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- {name: lib, version: 1.x, repository: 'file://../lib'}\n",
		"app/Chart.lock": "dependencies:\n- {name: lib, version: 1.0.0, repository: 'file://../lib'}\ndigest: sha256:0\n",
		"lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n",
	}
	p.commit(git, strings.Repeat("a1", 20), texts)
	p.charted(func(spec *sourcev1.HelmChartSpec) {
		spec.Chart, spec.SourceRef.Kind, spec.SourceRef.Name = "app", "GitRepository", "git"
	})
	p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0'")
	if told := p.events.take(); len(told) != 2 || !strings.HasPrefix(told[1], "Warning StaleChartLock: a Chart.lock was made for other dependencies") {
		t.Errorf("told %q", told)
	}
	p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.1.0'")
	if told := p.events.take(); len(told) != 0 {
		t.Errorf("told again: %q", told)
	}
	delete(texts, "app/Chart.lock")
	texts["app/Chart.yaml"] = strings.Replace(texts["app/Chart.yaml"], "0.1.0", "0.2.0", 1)
	p.commit(git, strings.Repeat("b2", 20), texts)
	p.succeeded("ChartPackageSucceeded", "packaged 'app' chart with version '0.2.0'")
	if told := p.events.take(); len(told) != 1 {
		t.Errorf("without a lock: told %q", told)
	}
}
