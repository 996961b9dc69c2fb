package packages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// RevisionDir is the folder of the artifacts of open changes, as paths and URLs spell it.
const RevisionDir = "packagerevision"

// stored names the object to the storage.
func stored(obj *packagesv1.PackageRevision) storage.Object {
	return storage.Object{Kind: RevisionDir, Namespace: obj.Namespace, Name: obj.Name}
}

// publish has the package's files as an artifact while the change is open. What is published is an artifact of its branch.
func (k *revisions) publish(ctx context.Context, obj *packagesv1.PackageRevision, m *mirror, s *sight) error {
	if isPublished(s.seen) {
		return k.shared.Pipeline.Store.Delete(ctx, stored(obj))
	}
	made, err := k.shared.store(ctx, source.Subject{Object: stored(obj), UID: string(obj.UID)}, obj.Status.Artifact, change{m, s.seen})
	s.artifact = made
	return err
}

// store makes the artifact of an object from the session, unless it is there. What there is of it is returned also with an error.
func (s Shared) store(ctx context.Context, subject source.Subject, reported *meta.Artifact, session source.Session) (made *meta.Artifact, err error) {
	subject.Timeout = s.Allowed(packagesv1.DefaultRepositoryTimeout)
	if reported != nil {
		subject.Reported = &storage.Artifact{Path: reported.Path, Revision: reported.Revision, Digest: digest.Digest(reported.Digest)}
	}
	open := func(context.Context) (source.Session, error) { return session, nil }
	outcome, err := s.Pipeline.Run(ctx, subject, open, func(context.Context, source.Change) error { return nil })
	if outcome.Known && outcome.Record.Current.Path != "" {
		current := outcome.Record.Current
		made = &meta.Artifact{
			Path: current.Path, URL: s.Artifact(current.Path), Revision: current.Revision, Digest: current.Digest.String(),
			LastUpdateTime: metav1.NewTime(current.StoredAt), Size: new(current.Size), Metadata: current.Metadata,
		}
	}
	if err != nil {
		return made, fmt.Errorf("make the artifact: %w", err)
	}
	return made, nil
}

// change is an open change as a source: a commit's folder of one package.
type change struct {
	mirror *mirror
	seen   *pkgrepo.Revision
}

// Resolve implements source.Session.
func (c change) Resolve(context.Context) (source.Selection, error) {
	checksum, err := source.ConfigChecksum(packagesv1.PackageRevisionKind, struct{ Package, Tree string }{c.seen.Package, c.seen.Tree})
	return source.Selection{
		Revision: fmt.Sprintf("%s@sha1:%s", shortRef(c.seen.Ref), c.seen.Commit), Name: c.seen.Commit, Extension: ".tar.gz", ConfigChecksum: checksum,
	}, err
}

// Fetch implements source.Session.
func (c change) Fetch(ctx context.Context, _ source.Selection, _ string) (source.Content, error) {
	read, err := c.mirror.Read(ctx, c.seen.Commit, c.seen.Package)
	if err != nil {
		return source.Content{}, err
	}
	return source.Content{Tree: filesOf(read), Title: fmt.Sprintf("%s of package %s", c.seen.Workspace, c.seen.Package)}, nil
}

// contents are the files that a tree shows, by their place.
type contents [][]byte

// Open implements tree.Source.
func (c contents) Open(n *tree.Node) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(c[n.At])), nil
}

// filesOf shows a package as a file system.
func filesOf(p kpt.Package) *tree.Tree {
	paths := p.Paths()
	held := make(contents, len(paths))
	root := &tree.Node{Name: tree.Root, Mode: fs.ModeDir | 0o755}
	for i, path := range paths {
		held[i] = p[path].Content
		folder, name := root, path
		for {
			below, rest, ok := strings.Cut(name, "/")
			if !ok {
				break
			}
			folder, name = childOf(folder, below), rest
		}
		file := p[path]
		folder.Children = append(folder.Children, &tree.Node{Name: name, Mode: file.Mode, Size: int64(len(file.Content)), Source: held, At: int64(i)})
		slices.SortFunc(folder.Children, tree.Compare)
	}
	return &tree.Tree{Root: root}
}

// childOf is the folder of the name, which is made where there is none. Paths come in order, so that a folder's files follow
// one another.
func childOf(folder *tree.Node, name string) *tree.Node {
	if i := slices.IndexFunc(folder.Children, func(n *tree.Node) bool { return n.Name == name }); i >= 0 {
		return folder.Children[i]
	}
	made := &tree.Node{Name: name, Mode: fs.ModeDir | 0o755}
	folder.Children = append(folder.Children, made)
	slices.SortFunc(folder.Children, tree.Compare)
	return made
}
