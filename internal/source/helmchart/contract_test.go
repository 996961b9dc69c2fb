package helmchart_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// chartVersion is the version after so many others.
func (w *world) chartVersion() string { return fmt.Sprintf("1.%d.0", w.version) }

// Files implements sourcetest.Upstream.
func (w *world) Files() map[string]string {
	return filesOf("app", w.chartVersion(), map[string]string{"values.yaml": "replicas: 1\n", "templates/app.yaml": fmt.Sprint("number: ", w.version, "\n")})
}

// Unpack implements sourcetest.Unpacker.
func (w *world) Unpack(artifact io.Reader) map[string]string { return unpacked(w.t, artifact) }

func filesIn(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(tree, ".", func(place string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, place)
		found[place] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// indexed is a chart of a repository that is a server of files.
type indexed struct{ *world }

func newIndexed(t *testing.T) *indexed {
	t.Helper()
	x := &indexed{newWorld(t, sourcev1.HelmChartSpec{Chart: "app", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: "charts"}})}
	x.repository("charts", x.server.URL+"/charts", "")
	x.Advance()
	return x
}

func (x *indexed) Advance() {
	x.version++
	content := packed(x.t, x.Files())
	place := "app-" + x.chartVersion() + ".tgz"
	x.server.Put("/charts/"+place, content)
	x.index("charts", entry("0.1.0", "old.tgz", ""), entry(x.chartVersion(), place, sum(content)))
}

func (x *indexed) Break() func() { return x.down() }

func (x *indexed) Fetches() int { return x.server.Downloads() }

// registered is a chart of a registry.
type registered struct {
	*world

	registry *registry.Fixture
	edited   *registry.Edited
	key      *verifytest.Key
	head     ocispec.Descriptor
	// signatures are the digests of the blobs that hold one.
	signatures map[string]bool
}

func newRegistered(t *testing.T) *registered {
	t.Helper()
	r := &registered{
		world:    newWorld(t, sourcev1.HelmChartSpec{Chart: "app", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: "charts"}}),
		registry: registry.ForTest(t, registry.Options{}), key: verifytest.NewKey(t), signatures: map[string]bool{},
	}
	r.edited = r.registry.Repository("charts/app")
	r.repository("charts", r.registry.URL("charts"), sourcev1.HelmRepositoryTypeOCI)
	r.Advance()
	return r
}

func (r *registered) Advance() {
	r.version++
	r.head = r.edited.PushHelm(r.chartVersion(), packed(r.t, r.Files()))
}

func (r *registered) Break() func() {
	r.registry.Always(registry.Status(http.StatusServiceUnavailable))
	return r.registry.Heal
}

// Fetches counts the packages that were asked for.
func (r *registered) Fetches() int {
	count := 0
	for _, request := range r.registry.Requests() {
		if request.Kind == registry.Blob && !r.signatures[request.Reference] {
			count++
		}
	}
	return count
}

// believe makes the keys those that are trusted.
func (r *registered) believe(keys ...*verifytest.Key) {
	entries := map[string][]byte{}
	for i, key := range keys {
		entries[fmt.Sprint(i, ".pub")] = key.PublicPEM(r.t)
	}
	r.secrets.data["keys"] = entries
}

// Demand implements sourcetest.Prover.
func (r *registered) Demand() {
	r.obj.Spec.Verify = &sourcev1.HelmChartVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	r.believe(r.key)
	bundle := r.key.Bundle(r.t, r.head)
	r.edited.Attach(r.head, registry.Attachment{ArtifactType: bundle.MediaType, MediaType: bundle.MediaType, Content: bundle.Content})
	r.signatures[digest.FromBytes(bundle.Content).String()] = true
}

// Rotate implements sourcetest.Prover.
func (r *registered) Rotate() { r.believe(verifytest.NewKey(r.t), r.key) }

// Distrust implements sourcetest.Prover.
func (r *registered) Distrust() { r.believe(verifytest.NewKey(r.t)) }

// folder is a chart that lies in a GitRepository.
type folder struct{ *world }

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{newWorld(t, sourcev1.HelmChartSpec{Chart: "./charts/app/", SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "git"}})}
	f.Advance()
	return f
}

func (f *folder) Advance() {
	f.version++
	all := map[string]string{"README.md": "not part of it"}
	for place, text := range f.Files() {
		all["charts/"+place] = text
	}
	f.tree(commit(f.version), all)
}

func (f *folder) Break() func() {
	f.isGone = true
	return func() { f.isGone = false }
}

func (f *folder) Fetches() int { return int(f.opened.Load()) }

// Nameless implements sourcetest.Nameless: what a chart in a tree calls itself is read there.
func (*folder) Nameless() {}

var (
	_ sourcetest.Unpacker = (*indexed)(nil)
	_ sourcetest.Unpacker = (*registered)(nil)
	_ sourcetest.Prover   = (*registered)(nil)
	_ sourcetest.Unpacker = (*folder)(nil)
	_ sourcetest.Nameless = (*folder)(nil)
)

func TestContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) sourcetest.Upstream{
		"Index":    func(t *testing.T) sourcetest.Upstream { t.Helper(); return newIndexed(t) },
		"Registry": func(t *testing.T) sourcetest.Upstream { t.Helper(); return newRegistered(t) },
		"Folder":   func(t *testing.T) sourcetest.Upstream { t.Helper(); return newFolder(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, open)
		})
	}
}

// requests are the paths that were asked for.
func (w *world) requests() (paths []string) {
	for _, request := range w.server.Requests() {
		paths = append(paths, request.Path)
	}
	slices.Sort(paths)
	return paths
}
