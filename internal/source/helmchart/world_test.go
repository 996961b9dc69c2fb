package helmchart_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/helm/index"
	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmchart"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream/files"
	"sluice.dev/sluice/tests/upstream/registry"
)

const tenant = "tenant"

// secrets is a namespace's Secrets. Repositories that are servers of files have one login for all.
type secrets struct {
	login credential.Login
	data  map[string]map[string][]byte
}

func (*secrets) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

func (s *secrets) Data(_ context.Context, _, name, _ string) (map[string][]byte, error) {
	return s.data[name], nil
}

func (s *secrets) Helm(_ context.Context, r auth.HelmRequest) (credential.Login, string, error) {
	clean, user, err := auth.SplitURL(r.URL)
	if user != nil {
		password, _ := user.Password()
		return credential.Login{Username: user.Username(), Password: credential.NewSecret(password)}, clean, err
	}
	return s.login, clean, err
}

// world is everything that a HelmChart takes charts from.
type world struct {
	t       *testing.T
	server  *files.Server
	secrets *secrets
	// sources has the artifacts of other objects; opened counts how many were opened whole.
	sources      *localtest.Store
	opened       atomic.Int64
	isGone       bool // says that no source has an artifact
	byContent    bool // says that versions name the revision of the last change
	repositories map[string]*sourcev1.HelmRepository
	opener       *helmchart.Opener
	obj          *sourcev1.HelmChart
	version      int
}

func newWorld(t *testing.T, spec sourcev1.HelmChartSpec) *world {
	t.Helper()
	w := &world{
		t: t, server: files.New(t), secrets: &secrets{data: map[string]map[string][]byte{}}, sources: localtest.Open(t, local.Options{}),
		repositories: map[string]*sourcev1.HelmRepository{},
		obj:          &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "app", Generation: 1}, Spec: spec},
	}
	w.begin()
	return w
}

// begin is what a new process begins with.
func (w *world) begin() {
	w.t.Helper()
	connections := transport.New(transport.Options{AllowLoopback: true})
	registries, err := registryclient.New(registryclient.Options{Transport: connections})
	if err != nil {
		w.t.Fatal(err)
	}
	w.opener = helmchart.NewOpener(helmchart.Options{
		Artifacts: w, Credentials: w.secrets, Store: w.sources, Registry: registries,
		Files:         helm.NewClient(connections, clock.RealClock{}, func(int64) {}),
		Trust:         trust.Trust{Revocation: connections.Anonymous()},
		MaxIndexBytes: 1 << 20, Limits: chart.Limits{TempDir: w.t.TempDir()}, RevisionByContent: w.byContent,
	})
}

// Open implements sourcetest.Upstream.
func (w *world) Open(ctx context.Context) (source.Session, error) { return w.opener.Open(ctx, w.obj) }

// object is the name of a source's artifacts.
func object(kind, name string) storage.Object {
	return storage.Object{Kind: strings.ToLower(kind), Namespace: tenant, Name: name}
}

// Stored implements helmchart.Artifacts.
func (w *world) Stored(ctx context.Context, kind, _, name string) (storage.Artifact, error) {
	record, err := w.sources.Record(ctx, object(kind, name))
	if w.isGone || errors.Is(err, storage.ErrNotFound) {
		return storage.Artifact{}, source.ErrNoArtifact
	}
	return record.Current, err
}

// Body implements helmchart.Artifacts.
func (w *world) Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	w.opened.Add(1)
	return w.sources.Open(ctx, artifact.Path)
}

// HelmRepository implements helmchart.Artifacts.
func (w *world) HelmRepository(_ context.Context, _, name string) (*sourcev1.HelmRepository, error) {
	if found, ok := w.repositories[name]; ok {
		return found, nil
	}
	return nil, source.ErrNoObject
}

// HelmRepositories implements helmchart.Artifacts.
func (w *world) HelmRepositories(context.Context, string) (all []sourcev1.HelmRepository, err error) {
	for _, repository := range w.repositories {
		all = append(all, *repository)
	}
	return all, nil
}

// repository makes a HelmRepository.
func (w *world) repository(name, url, kind string) *sourcev1.HelmRepository {
	w.repositories[name] = &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec:       sourcev1.HelmRepositorySpec{URL: url, Type: kind, Insecure: kind == sourcev1.HelmRepositoryTypeOCI},
	}
	return w.repositories[name]
}

// made is content of a source that is there at once.
type made struct {
	source.Content
	selected source.Selection
}

func (m made) Resolve(context.Context) (source.Selection, error) { return m.selected, nil }

func (m made) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	return m.Content, nil
}

// store stores an artifact of another object.
func (w *world) store(kind, name string, m made) {
	w.t.Helper()
	p := pipeline(w.sources)
	subject := source.Subject{Object: object(kind, name), UID: "uid-" + name, Timeout: time.Minute}
	open := func(context.Context) (source.Session, error) { return m, nil }
	if _, err := p.Run(w.t.Context(), subject, open, func(context.Context, source.Change) error { return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// entry is a version in an index; the digest may be empty.
func entry(version, url, digest string) string {
	return fmt.Sprintf("  - {apiVersion: v2, name: app, version: %q, urls: [%q], digest: %q}\n", version, url, digest)
}

// index stores the index of a HelmRepository.
func (w *world) index(name string, entries ...string) {
	w.t.Helper()
	w.library(name, "apiVersion: v1\nentries:\n  app:\n"+strings.Join(entries, ""))
}

// library stores a whole index.
func (w *world) library(name, text string) {
	w.t.Helper()
	w.store(sourcev1.HelmRepositoryKind, name, made{
		selected: source.Selection{Revision: digest.FromString(text).String(), Name: "index-" + digest.FromString(text).Encoded(), Extension: ".yaml"},
		Content: source.Content{Make: func(ctx context.Context, to io.Writer) ([]byte, error) {
			scratch, err := helm.TempFile(w.t.TempDir())
			if err != nil {
				return nil, err
			}
			defer func() { _ = scratch.Close() }()
			return index.Convert(ctx, io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), nil, scratch.File, to)
		}},
	})
}

// tree stores the files of the GitRepository git, as of a commit.
func (w *world) tree(commit string, contents map[string]string) {
	w.t.Helper()
	files := fstest.MapFS{}
	for place, text := range contents {
		files[place] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	w.store(sourcev1.GitRepositoryKind, "git", made{
		selected: source.Selection{Revision: "main@sha1:" + commit, Name: commit, Extension: ".tar.gz"},
		Content:  source.Content{Tree: files, Whole: true},
	})
}

// commit is a commit's hash.
func commit(number int) string { return fmt.Sprintf("%012x%028x", 0xc0ffee000000+number, number) }

// filesOf are those of a chart, as a package has them.
func filesOf(name, version string, others map[string]string) map[string]string {
	all := map[string]string{name + "/Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)}
	for place, text := range others {
		all[path.Join(name, place)] = text
	}
	return all
}

// packed is a package of these files.
func packed(t *testing.T, contents map[string]string) []byte {
	t.Helper()
	content, err := registry.TarGzip(registry.Files(contents)...)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unpacked are the files of a package.
func unpacked(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	content, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := archive.Open(t.Context(), bytes.NewReader(content), t.TempDir(), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	return filesIn(t, tree)
}

// sum is a digest as indexes have it.
func sum(content []byte) string { return digest.FromBytes(content).Encoded() }

// bomb is a package of so many bytes of nothing.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var to bytes.Buffer
	contents := maps.Clone(filesOf("app", "1.0.0", nil))
	contents["app/zeros"] = strings.Repeat("\x00", size)
	file, err := registry.Tar(registry.Files(contents)...)
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&to)
	_, _ = w.Write(file) // A buffer takes all.
	_ = w.Close()
	return to.Bytes()
}

// run takes the chart through a pipeline that has the store.
func (w *world) run(store storage.Store) (source.Outcome, error) {
	return w.runAs(pipeline(store), "app")
}

func pipeline(store storage.Store) *source.Pipeline {
	return &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
}

// runAs takes an object of the name through a pipeline.
func (w *world) runAs(p *source.Pipeline, name string) (source.Outcome, error) {
	subject := source.Subject{Object: object(sourcev1.HelmChartKind, name), UID: "uid-" + name, Timeout: time.Minute}
	return p.Run(w.t.Context(), subject, w.Open, func(context.Context, source.Change) error { return nil })
}

// down answers as servers do that cannot.
func (w *world) down() func() {
	w.server.Fail(files.Status(http.StatusServiceUnavailable))
	return w.server.Heal
}
