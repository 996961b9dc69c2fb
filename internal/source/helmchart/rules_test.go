package helmchart_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmchart"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream/files"
	"sluice.dev/sluice/tests/upstream/registry"
)

// offered makes the index name one version, at that URL.
func (x *indexed) offered(url, digest string) { x.index("charts", entry("3.0.0", url, digest)) }

// three is a package of the version that is offered.
func three(t *testing.T) []byte { t.Helper(); return packed(t, filesOf("app", "3.0.0", nil)) }

// again runs the chart with a store of its own.
func (w *world) again() (source.Outcome, error) {
	w.t.Helper()
	return w.run(localtest.Open(w.t, local.Options{}))
}

// TestRule2CredentialsStayAtTheirOrigin: packages at another host or port, or behind a redirect, are asked for without; and with
// passCredentials still not over plain HTTP where the repository has more.
func TestRule2CredentialsStayAtTheirOrigin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		repository string // empty for the server itself
		pass       bool
		want       bool
	}{
		"OtherPort":       {"", false, false},
		"OtherPortPassed": {"", true, true},
		"Downgrade":       {"https://charts.example.com", true, false},
		"OtherHost":       {"http://charts.example.com", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, other := newIndexed(t), files.New(t)
			x.secrets.login = credential.Login{Username: "u", Password: credential.NewSecret("p")}
			if tc.repository != "" {
				x.repositories["charts"].Spec.URL = tc.repository
			}
			x.repositories["charts"].Spec.PassCredentials = tc.pass
			other.Put("/app.tgz", three(t))
			x.offered(other.URL+"/app.tgz", sum(three(t)))
			if _, err := x.again(); err != nil {
				t.Fatal(err)
			}
			requests := other.Requests()
			if got := requests[0].Header.Get("Authorization") != ""; len(requests) != 1 || got != tc.want {
				t.Errorf("%d requests, with credentials: %t", len(requests), got)
			}
		})
	}
	x, other := newIndexed(t), files.New(t)
	x.secrets.login = credential.Login{Username: "u", Password: credential.NewSecret("p")}
	other.Put("/charts/app.tgz", three(t))
	x.offered("app.tgz", sum(three(t)))
	x.server.Fail(func(w http.ResponseWriter, q *http.Request) {
		if _, _, ok := q.BasicAuth(); !ok {
			t.Error("the origin gets no credential")
		}
		http.Redirect(w, q, other.URL+q.URL.Path, http.StatusFound)
	})
	if _, err := x.again(); err != nil {
		t.Fatal(err)
	}
	for _, request := range other.Requests() {
		if request.Header.Get("Authorization") != "" {
			t.Error("who is redirected to gets the credential")
		}
	}
}

// TestRule3NothingIsToldThatWasSecret: neither user info nor queries of URLs, of the repository, of packages or of dependencies.
func TestRule3NothingIsToldThatWasSecret(t *testing.T) {
	t.Parallel()
	secretly := func(url string) string {
		return strings.Replace(url, "://", "://someone:the-password@", 1) + "/none?sig=the-signature"
	}
	for name, prepare := range map[string]func(t *testing.T) *world{
		"Repository": func(t *testing.T) *world {
			t.Helper()
			x := newIndexed(t)
			x.repositories["charts"].Spec.URL = secretly(x.server.URL)
			x.offered("none.tgz", "")
			return x.world
		},
		"Package": func(t *testing.T) *world {
			t.Helper()
			x := newIndexed(t)
			x.offered(secretly(x.server.URL), "")
			return x.world
		},
		"Redirect": func(t *testing.T) *world {
			t.Helper()
			x := newIndexed(t)
			x.server.Fail(func(w http.ResponseWriter, q *http.Request) {
				http.Redirect(w, q, secretly("http://localhost:1"), http.StatusFound)
			})
			return x.world
		},
		"Dependency": func(t *testing.T) *world {
			t.Helper()
			f := newFolder(t)
			f.needing("1.x", secretly(f.server.URL))
			return f.world
		},
		"DependencyOfAnObject": func(t *testing.T) *world {
			t.Helper()
			f := newFolder(t)
			f.repository("libs", secretly(f.server.URL), "")
			f.needing("1.x", f.server.URL+"/none?sig=the-signature")
			return f.world
		},
		"DependencyInARegistry": func(t *testing.T) *world {
			t.Helper()
			f := newFolder(t)
			f.needing("1.x", "oci://someone:the-password@127.0.0.1:1/charts?sig=the-signature")
			return f.world
		},
		"DependencyWithoutAScheme": func(t *testing.T) *world {
			t.Helper()
			f := newFolder(t)
			f.needing("1.x", "ftp://someone:the-password@127.0.0.1:1/charts?sig=the-signature")
			return f.world
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := prepare(t).again(); err == nil || strings.Contains(err.Error(), "the-") || strings.Contains(err.Error(), "someone") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// needing makes the chart depend on the chart lib.
func (f *folder) needing(version, repository string) {
	f.version++
	all := map[string]string{}
	for place, text := range f.Files() {
		all["charts/"+place] = text
	}
	all["charts/app/Chart.yaml"] += fmt.Sprintf("dependencies:\n- name: lib\n  version: %q\n  repository: \"%s\"\n", version, repository)
	f.tree(commit(f.version), all)
}

// TestRule4BoundWhileReading: a package costs what is allowed, and is refused before it costs more.
func TestRule4BoundWhileReading(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 1<<16); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for name, fault := range map[string]http.HandlerFunc{
		"Endless": endless,
		"Lying":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "20000000000") },
		"Bomb":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bomb(t, 120<<20)) },
		"BigFile": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bomb(t, 6<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newIndexed(t)
			x.offered("app.tgz", "")
			x.server.Fail(fault)
			if _, err := x.again(); err == nil || failure.Of(err).Reason != sourcev1.ChartPullErrorReason || failure.Of(err).Disposition != failure.Retries {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(x.opener.Limits.TempDir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// TestRule5VerifiedIsStored: a tag that is another one to whoever asks twice.
func TestRule5VerifiedIsStored(t *testing.T) {
	t.Parallel()
	r := newRegistered(t)
	r.Demand()
	honest, want := r.head, r.Files()
	evil := r.edited.PushHelm("", packed(t, filesOf("app", r.chartVersion(), map[string]string{"templates/app.yaml": "evil"})))
	r.registry.Alternate("charts/app", r.chartVersion(), honest.Digest, evil.Digest)
	store := localtest.Open(t, local.Options{})
	outcome, err := r.run(store)
	if err != nil {
		t.Fatal(err)
	}
	body, err := store.Open(t.Context(), outcome.Record.Current.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if got := r.Unpack(body)["app/templates/app.yaml"]; got != want["app/templates/app.yaml"] {
		t.Errorf("stored %q", got)
	}
	// Who asks now is told the other one, which nobody has signed.
	if outcome, err := r.run(store); err == nil || failure.Of(err).Reason != sourcev1.VerificationErrorReason || outcome.Record.Current.Path == "" {
		t.Errorf("got %v, %v", outcome, err)
	}
}

// TestRule6TheDigestOfTheIndexCounts: in all the ways that indexes spell it. Where there is none, any package is taken.
func TestRule6TheDigestOfTheIndexCounts(t *testing.T) {
	t.Parallel()
	right, wrong := sum(three(t)), sum([]byte("another"))
	for name, tc := range map[string]struct {
		digest string
		ok     bool
	}{
		"Right":      {right, true},
		"Prefixed":   {"sha256:" + right, true},
		"UpperCase":  {strings.ToUpper(right), true},
		"None":       {"", true},
		"OtherKind":  {"sha1:0123", true},
		"Wrong":      {wrong, false},
		"WrongLong":  {"sha256:" + wrong, false},
		"WrongUpper": {strings.ToUpper(wrong), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newIndexed(t)
			x.server.Put("/charts/app.tgz", three(t))
			x.offered("app.tgz", tc.digest)
			_, err := x.again()
			if tc.ok != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if err != nil && (failure.Of(err).Reason != sourcev1.ChartPullErrorReason || !strings.Contains(err.Error(), right) || !strings.Contains(err.Error(), wrong)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRule9NamesFromOutsideAreNoPaths: of charts, packages, values files and dependencies.
func TestRule9NamesFromOutsideAreNoPaths(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	all := map[string]string{"secret.yaml": "name: secret\n", "charts/out/Chart.yaml": "apiVersion: v2\nname: out\nversion: 1.0.0\n"}
	for place, text := range f.Files() {
		all["a/b/"+place] = text
	}
	f.tree(commit(100), all)
	f.obj.Spec.Chart = "../../a/b/app"
	if _, err := f.again(); err != nil {
		t.Errorf("a path that climbs stays inside: %v", err)
	}
	f.obj.Spec.Chart, f.obj.Spec.ValuesFiles = "a/b/app", []string{"../../../../../../etc/passwd"}
	if _, err := f.again(); err == nil || failure.Of(err).Reason != sourcev1.ValuesFilesErrorReason {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"..", "/etc", "a/../../b", "a\x00b"} {
		x := newIndexed(t)
		x.server.Put("/charts/app.tgz", packed(t, map[string]string{"app/Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %q\nversion: 3.0.0\n", name)}))
		x.offered("app.tgz", "")
		if outcome, err := x.again(); err == nil {
			t.Errorf("a chart that is called %q is stored as %s", name, outcome.Record.Current.Path)
		}
	}
}

// TestRule10Egress: packages, and what charts need, are dialled under the same policy as URLs of specs.
func TestRule10Egress(t *testing.T) {
	t.Parallel()
	x := newIndexed(t)
	x.offered("http://169.254.169.254/latest/app.tgz", "")
	if _, err := x.again(); !errors.Is(err, transport.ErrDenied) {
		t.Errorf("a package: got %v", err)
	}
	for _, repository := range []string{"http://169.254.169.254/charts", "oci://169.254.169.254/charts"} {
		f := newFolder(t)
		f.needing("1.0.0", repository)
		if _, err := f.again(); !errors.Is(err, transport.ErrDenied) || failure.Of(err).Reason != sourcev1.DependencyBuildErrorReason {
			t.Errorf("a dependency of %s: got %v", repository, err)
		}
	}
}

// TestANewProcessOpensNoArchive: which chart an archive has is on record.
func TestANewProcessOpensNoArchive(t *testing.T) {
	t.Parallel()
	f, store := newFolder(t), localtest.Open(t, local.Options{})
	if _, err := f.run(store); err != nil {
		t.Fatal(err)
	}
	opened := f.opened.Load()
	f.begin()
	if outcome, err := f.run(store); err != nil || outcome.Changed || f.opened.Load() != opened {
		t.Errorf("changed %t, opened %d more, %v", outcome.Changed, f.opened.Load()-opened, err)
	}
	f.obj.Spec.Chart = "charts/none"
	if _, err := f.run(store); err == nil || failure.Of(err).Disposition != failure.Stalls {
		t.Errorf("another path: got %v", err)
	}
}

// TestAChartTakesItsPartOfASourceAlone: of a large repository, what is not the chart's takes no temporary file.
func TestAChartTakesItsPartOfASourceAlone(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	all := map[string]string{
		"big": strings.Repeat("a", 8<<20), "charts/app2/Chart.yaml": "name: app2\n", "base/Chart.yaml": "apiVersion: v2\nname: base\nversion: 1.0.0\n",
		"base/templates/base.yaml": "kind: ConfigMap", "prod.yaml": "replicas: 3",
	}
	for place, text := range f.Files() {
		all["charts/"+place] = text
	}
	all["charts/app/Chart.yaml"] += "dependencies:\n- {name: base, version: 1.x, repository: 'file:///base'}\n"
	f.tree(commit(9), all)
	f.obj.Spec.ValuesFiles = []string{"./prod.yaml"}
	store := localtest.Open(t, local.Options{})
	p := pipeline(store)
	p.Files = memory.NewFiles(1<<20, "--tmp-budget")
	outcome, err := f.runAs(p, "app")
	if err != nil {
		t.Fatal(err)
	}
	body, err := store.Open(t.Context(), outcome.Record.Current.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	if found := f.Unpack(body); found["app/charts/base/templates/base.yaml"] != "kind: ConfigMap" || found["app/values.yaml"] != "replicas: 3\n" {
		t.Errorf("packaged %v", found)
	}
}

// TestRevisionsMoveWithTheContentWhereThatIsAskedFor: each commit is a version, or each that changes what the chart is made of.
func TestRevisionsMoveWithTheContentWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	commits := []struct {
		file, text string
		shapes     bool
	}{
		{"prod.yaml", "replicas: 1", true},
		{"README.md", "elsewhere", false},
		{"charts/app/templates/app.yaml", "in the chart", true},
		{"charts/other/Chart.yaml", "another chart", false},
		{"prod.yaml", "replicas: 2", true},
		{"dev.yaml", "values of others", false},
		{"charts/app/.helmignore", "*.md", true}, // It is part of the package itself.
		{"charts/app/README.md", "left out", false},
		{"charts/app/Chart.yaml", "apiVersion: v2\nname: app\nversion: 2.0.0\n", true},
	}
	for _, byContent := range []bool{false, true} {
		f, store := newFolder(t), localtest.Open(t, local.Options{})
		f.byContent = byContent
		f.obj.Spec.ReconcileStrategy, f.obj.Spec.ValuesFiles = sourcev1.ReconcileStrategyRevision, []string{"prod.yaml"}
		all, changed := map[string]string{}, 0
		for place, text := range f.Files() {
			all["charts/"+place] = text
		}
		for number, c := range commits {
			all[c.file] = c.text
			f.tree(commit(number), all)
			f.begin() // A new process knows what is on record alone.
			outcome, err := f.run(store)
			if err != nil {
				t.Fatal(err)
			}
			if c.shapes || !byContent {
				changed = number
			}
			_, metadata, _ := strings.Cut(outcome.Record.Current.Revision, "+")
			if want := commit(changed)[:12] + ".1"; metadata != want || outcome.Changed != (changed == number) {
				t.Errorf("by content %t, commit %d: metadata %s, want %s; changed %t", byContent, number, metadata, want, outcome.Changed)
			}
			if looked := outcome.Selected.Included[0].Revision; looked != "main@sha1:"+commit(number) {
				t.Errorf("commit %d: looked at %s", number, looked)
			}
		}
	}
}

// TestWhatAnotherNamespaceFoundIsNotBelieved: equal folders are different charts where what they depend on is found elsewhere.
func TestWhatAnotherNamespaceFoundIsNotBelieved(t *testing.T) {
	t.Parallel()
	f, p := newFolder(t), pipeline(localtest.Open(t, local.Options{}))
	f.byContent, f.obj.Spec.ReconcileStrategy = true, sourcev1.ReconcileStrategyRevision
	f.begin()
	f.needing("1.x", f.server.URL+"/libs")
	inputs := map[string]digest.Digest{}
	for _, namespace := range []string{"one", "another"} {
		library := packed(t, filesOf("lib", "1.0.0", map[string]string{"values.yaml": "of: " + namespace}))
		f.server.Put("/libs/index.yaml", fmt.Appendf(nil, "apiVersion: v1\nentries:\n  lib:\n  - {apiVersion: v2, name: lib, version: 1.0.0, urls: [lib.tgz], digest: %s}\n", sum(library)))
		f.server.Put("/libs/lib.tgz", library)
		f.obj.Namespace = namespace
		outcome, err := f.runAs(p, namespace)
		if err != nil {
			t.Fatal(err)
		}
		inputs[namespace] = helmchart.NotedIn(outcome.Record).Inputs
	}
	if inputs["one"] == inputs["another"] {
		t.Errorf("both are made of %s", inputs["one"])
	}
}

// TestOnePackageForAll: charts that are shown the same package have it pulled once, whatever their namespaces.
func TestOnePackageForAll(t *testing.T) {
	t.Parallel()
	x, store := newIndexed(t), localtest.Open(t, local.Options{})
	release := make(chan struct{})
	content := packed(t, x.Files())
	asked := make(chan string, 10)
	x.server.Fail(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		<-release
		_, _ = w.Write(content) // The client may have gone.
	})
	p := pipeline(store)
	done := make(chan error, 5)
	for i := range 5 {
		go func() {
			_, err := x.runAs(p, fmt.Sprint("app-", i))
			done <- err
		}()
	}
	<-asked
	close(release)
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("%d more requests for the package", len(asked))
	}
}

// TestRegistriesAreReadByDigest: the tag is resolved once, and a spelt-out version needs no list of tags.
func TestRegistriesAreReadByDigest(t *testing.T) {
	t.Parallel()
	r := newRegistered(t)
	r.registry.Reset()
	r.obj.Spec.Version = r.chartVersion()
	if _, err := r.again(); err != nil {
		t.Fatal(err)
	}
	tags := 0
	for _, request := range r.registry.Requests() {
		if request.Kind == registry.Tags {
			t.Errorf("asked for %s", request.URI)
		}
		if strings.HasSuffix(request.URI, "/manifests/"+r.chartVersion()) {
			tags++
		}
	}
	if tags != 1 {
		t.Errorf("the tag was asked for %d times", tags)
	}
}

// TestDependenciesAreFound: by the objects of the namespace, with their credentials, in their stored indexes, or else by URL.
func TestDependenciesAreFound(t *testing.T) {
	t.Parallel()
	library := packed(t, filesOf("lib", "1.2.0", nil))
	listed := fmt.Sprintf("apiVersion: v1\nentries:\n  lib:\n  - {apiVersion: v2, name: lib, version: 1.2.0, urls: [lib.tgz], digest: %s}\n", sum(library))
	for name, prepare := range map[string]func(f *folder) []string{
		"Anonymous": func(f *folder) []string {
			f.needing("1.x", f.server.URL+"/libs/")
			return []string{"/libs/index.yaml", "/libs/lib.tgz"}
		},
		"TwoOfOneIndex": func(f *folder) []string {
			f.server.Put("/libs/index.yaml", []byte(listed+strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(listed, "apiVersion: v1\nentries:\n"), "lib", "more"), sum(library), "")))
			f.server.Put("/libs/more.tgz", packed(f.t, filesOf("more", "1.2.0", nil)))
			f.needing("1.x", f.server.URL+"/libs\"\n- name: more\n  repository: \""+f.server.URL+"/libs")
			return []string{"/libs/index.yaml", "/libs/lib.tgz", "/libs/more.tgz"}
		},
		"StoredIndex": func(f *folder) []string {
			f.secrets.login = credential.Login{Username: "u", Password: credential.NewSecret("p")}
			f.server.Demand("u", "p")
			f.repository("libs", f.server.URL+"/libs", "").Spec.SecretRef = &meta.LocalObjectReference{Name: "login"}
			f.library("libs", listed)
			f.needing("~1.2", f.server.URL+"/libs//")
			return []string{"/libs/lib.tgz"}
		},
		"NotStoredYet": func(f *folder) []string {
			f.secrets.login = credential.Login{Username: "u", Password: credential.NewSecret("p")}
			f.server.Demand("u", "p")
			f.repository("libs", f.server.URL+"/libs", "")
			f.needing("1.2.0", f.server.URL+"/libs")
			return []string{"/libs/index.yaml", "/libs/lib.tgz"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			f.server.Put("/libs/index.yaml", []byte(listed))
			f.server.Put("/libs/lib.tgz", library)
			want := prepare(f)
			store := localtest.Open(t, local.Options{})
			outcome, err := f.run(store)
			if err != nil {
				t.Fatal(err)
			}
			body, err := store.Open(t.Context(), outcome.Record.Current.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = body.Close() }()
			if found := f.Unpack(body); found["app/charts/lib/Chart.yaml"] == "" {
				t.Errorf("packaged %v", found)
			}
			if got := f.requests(); !slices.Equal(got, want) {
				t.Errorf("asked for %v, want %v", got, want)
			}
		})
	}
	r := newRegistered(t)
	r.registry.Repository("libs/lib").PushHelm("1.2.0", library)
	f := &folder{r.world}
	f.repository("libs", r.registry.URL("libs")+"/", sourcev1.HelmRepositoryTypeOCI)
	f.obj.Spec = sourcev1.HelmChartSpec{Chart: "charts/app", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "git"}}
	f.needing(">=1.0", r.registry.URL("libs"))
	if _, err := f.again(); err != nil {
		t.Errorf("from a registry: %v", err)
	}
}

// TestTheRepositorysPathStaysAsItIsWritten: a slash in a name is none between folders.
func TestTheRepositorysPathStaysAsItIsWritten(t *testing.T) {
	t.Parallel()
	x := newIndexed(t)
	x.repositories["charts"].Spec.URL = x.server.URL + "/projects/group%2Fproject/helm"
	x.offered("charts/app.tgz", sum(three(t)))
	var asked string
	x.server.Fail(func(w http.ResponseWriter, q *http.Request) {
		asked = q.RequestURI
		_, _ = w.Write(three(t))
	})
	if _, err := x.again(); err != nil || asked != "/projects/group%2Fproject/helm/charts/app.tgz" {
		t.Errorf("asked for %s: %v", asked, err)
	}
}

// TestAChartThatCannotBePackagedIsNamed: be it for the package, or for what counts as its content.
func TestAChartThatCannotBePackagedIsNamed(t *testing.T) {
	t.Parallel()
	for _, byContent := range []bool{false, true} {
		f := newFolder(t)
		f.byContent, f.obj.Spec.ReconcileStrategy = byContent, sourcev1.ReconcileStrategyRevision
		all := map[string]string{"charts/app/values.schema.json": "no JSON"}
		for place, text := range f.Files() {
			all["charts/"+place] = text
		}
		f.tree(commit(f.version+1), all)
		if _, err := f.run(localtest.Open(t, local.Options{})); err == nil || failure.Of(err).Reason != sourcev1.ChartPackageErrorReason {
			t.Errorf("by content: %t: %v, of %+v", byContent, err, failure.Of(err))
		}
	}
}
