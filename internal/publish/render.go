package publish

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/oci"
)

// Render pulls what is in a repository under a tag or a digest, as the controller of OCIRepositories does, and builds what is asked
// for in it, as the engine does. No objects are an error.
func Render(ctx context.Context, client *registry.Client, from registry.Repository, reference string, asked build.Request) (_ build.Built, err error) {
	dir, err := os.MkdirTemp("", "sluice-render-")
	if err != nil {
		return build.Built{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tree, err := pull(ctx, oci.Options{Client: client, Credentials: single{from.Credential}, TempDir: dir}, from, reference)
	if err != nil {
		return build.Built{}, err
	}
	defer func() { _ = tree.Close() }() // It was only read.
	asked.Tree = tree
	return build.New(build.Options{}).Build(ctx, asked)
}

// RenderFolder builds what is asked for in the artifact that a folder is pushed as. No objects are an error.
func RenderFolder(ctx context.Context, folder string, asked build.Request) (build.Built, error) {
	packed, err := pack(ctx, folder)
	if err != nil {
		return build.Built{}, err
	}
	defer packed.close()
	asked.Tree = packed.tree
	return build.New(build.Options{}).Build(ctx, asked)
}

// pull gives the tree of the artifact that a source would make.
func pull(ctx context.Context, options oci.Options, from registry.Repository, reference string) (*archive.Tree, error) {
	at := &sourcev1.OCIRepositoryRef{Tag: reference}
	if digest.Digest(reference).Validate() == nil {
		at = &sourcev1.OCIRepositoryRef{Digest: reference}
	}
	session, err := oci.NewOpener(options).Open(ctx, &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{
		URL: "oci://" + from.Host + "/" + from.Name, Insecure: from.Insecure, Reference: at,
	}})
	if err != nil {
		return nil, err
	}
	selected, err := session.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	content, err := session.Fetch(ctx, selected, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // It was only read.
	return filtered(ctx, content, options.TempDir)
}

// filtered leaves out what the ignore rules do.
func filtered(ctx context.Context, content source.Content, dir string) (*archive.Tree, error) {
	rules, err := archive.ReadRules(ctx, content.Tree, content.Ignore, archive.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read ignore rules: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	file, err := root.Create("artifact.tar.gz")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // What is written is read again at once.
	if err := archive.Write(ctx, file, content.Tree, rules, archive.Limits{}); err != nil {
		return nil, fmt.Errorf("archive what was pulled: %w", err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, err
	}
	return archive.Open(ctx, file, dir, archive.Limits{})
}

// single is the one login there is.
type single struct{ login credential.Registry }

// Registry implements oci.Credentials.
func (s single) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return s.login, nil
}

// Data implements oci.Credentials.
func (single) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return nil, errors.New("there are no Secrets here")
}
