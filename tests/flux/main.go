// Command flux stands in for the Flux command line where that is not installed: it pushes a folder as flux push artifact
// does. It knows nothing else, and no flags but those of docs/publish-a-module.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"sluice.dev/sluice/tests/upstream/registry"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 3 || args[0] != "push" || args[1] != "artifact" {
		return errors.New("this stand-in knows flux push artifact oci://HOST/NAME:TAG, and nothing else")
	}
	flags := flag.NewFlagSet("push artifact", flag.ContinueOnError)
	path := flags.String("path", "", "the folder to push")
	source := flags.String("source", "", "where the folder comes from")
	revision := flags.String("revision", "", "the revision that the folder was made from")
	plain := flags.Bool("insecure-registry", false, "speak plain HTTP")
	if err := flags.Parse(args[3:]); err != nil {
		return err
	}
	if *path == "" || *source == "" || *revision == "" {
		return errors.New("--path, --source and --revision are required")
	}
	manifest, err := pack(*path, map[string]string{ocispec.AnnotationSource: *source, ocispec.AnnotationRevision: *revision})
	if err != nil {
		return err
	}
	repository, err := remote.NewRepository(strings.TrimPrefix(args[2], "oci://"))
	if err != nil {
		return err
	}
	repository.PlainHTTP = *plain
	pushed, err := push(ctx, repository, manifest)
	if err != nil {
		return err
	}
	fmt.Printf("✔ artifact successfully pushed to %s/%s@%s\n", repository.Reference.Registry, repository.Reference.Repository, pushed.Digest)
	return nil
}

func pack(folder string, annotations map[string]string) (registry.Manifest, error) {
	files, disk := map[string]string{}, os.DirFS(folder)
	err := fs.WalkDir(disk, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(disk, name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		return registry.Manifest{}, fmt.Errorf("read %q: %w", folder, err)
	}
	return registry.Flux(files, annotations)
}

func push(ctx context.Context, to *remote.Repository, manifest registry.Manifest) (ocispec.Descriptor, error) {
	for _, layer := range append([]registry.Layer{*manifest.Config}, manifest.Layers...) {
		if err := to.Push(ctx, layer.Descriptor(), bytes.NewReader(layer.Content)); err != nil {
			return ocispec.Descriptor{}, fmt.Errorf("push a layer: %w", err)
		}
	}
	raw, described, err := manifest.Encode()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return described, to.PushReference(ctx, described, bytes.NewReader(raw), to.Reference.Reference)
}
