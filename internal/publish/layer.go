package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/archive"
)

// The media types of Flux's artifacts.
const (
	configType = "application/vnd.cncf.flux.config.v1+json"
	layerType  = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// layer is a packed folder, in a temporary file.
type layer struct {
	folder     *os.Root
	dir, path  string
	tree       *archive.Tree
	descriptor ocispec.Descriptor
	files      int
	bytes      int64
}

// pack archives what the ignore rules leave of a folder, and reads it again as the controllers do, within their limits.
func pack(ctx context.Context, folder string) (_ *layer, err error) {
	l := &layer{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.folder, err = os.OpenRoot(folder); err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	if l.dir, err = os.MkdirTemp("", "sluice-push-"); err != nil {
		return nil, err
	}
	l.path = filepath.Join(l.dir, "layer.tar.gz")
	if err := l.write(ctx); err != nil {
		return nil, fmt.Errorf("pack %q: %w", folder, err)
	}
	if err := l.read(ctx); err != nil {
		return nil, fmt.Errorf("read what was packed of %q: %w", folder, err)
	}
	if l.files == 0 {
		return nil, fmt.Errorf("%w: %q holds no file, or .sourceignore leaves out all of them", ErrEmpty, folder)
	}
	return l, nil
}

func (l *layer) close() {
	if l.tree != nil {
		_ = l.tree.Close() // It was only read.
	}
	if l.folder != nil {
		_ = l.folder.Close()
	}
	if l.dir != "" {
		_ = os.RemoveAll(l.dir) // The system clears its temporary files too.
	}
}

func (l *layer) write(ctx context.Context) error {
	rules, err := archive.ReadRules(ctx, l.folder.FS(), nil, archive.Limits{})
	if err != nil {
		return err
	}
	file, err := os.Create(l.path)
	if err != nil {
		return err
	}
	sum := digest.Canonical.Digester()
	err = archive.Write(ctx, io.MultiWriter(file, sum.Hash()), l.folder.FS(), rules, archive.Limits{})
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	l.descriptor = ocispec.Descriptor{MediaType: layerType, Digest: sum.Digest(), Size: info.Size()}
	return nil
}

// read counts what is in the layer.
func (l *layer) read(ctx context.Context) error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	if l.tree, err = archive.OpenLayer(ctx, file, l.dir, archive.Limits{}); err != nil {
		return err
	}
	return fs.WalkDir(l.tree, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			l.files, l.bytes = l.files+1, l.bytes+info.Size()
		}
		return err
	})
}

// describe makes the manifest of a layer, and its config. Nothing in them depends on anything else.
func describe(packed *layer, annotations map[string]string) (artifact, error) {
	config := []byte("{}")
	made := artifact{layer: packed, config: config, configured: ocispec.Descriptor{
		MediaType: configType, Digest: digest.FromBytes(config), Size: int64(len(config)),
	}}
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: made.configured, Layers: []ocispec.Descriptor{packed.descriptor}, Annotations: annotations,
	})
	if err != nil {
		return artifact{}, fmt.Errorf("encode the manifest: %w", err)
	}
	made.manifest = raw
	made.described = ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(raw), Size: int64(len(raw)), Annotations: annotations,
	}
	return made, nil
}

// IsVersion says whether a text is a semantic version in full.
func IsVersion(text string) bool {
	_, err := semver.StrictNewVersion(text)
	return err == nil
}
