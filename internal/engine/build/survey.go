package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"

	"sluice.dev/sluice/internal/transport"
)

// found is a file of manifests, or a folder to be built by its own kustomization.
type found struct {
	Name   string
	Folder bool
}

// largeInput is from how many bytes on manifests are parsed in a worker: a hostile byte becomes a hundred in memory.
const largeInput = 2 << 20

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// survey finds what is to be built at the path.
func (j *job) survey(ctx context.Context) error {
	info, err := fs.Stat(j.Tree, j.Path)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("%w: there is no folder %s", ErrPath, transport.PrintableQuoted(j.Path))
	}
	if j.Own, err = hasKustomization(j.Tree, j.Path); err != nil || j.Own {
		return err
	}
	total := int64(0)
	return fs.WalkDir(j.Tree, j.Path, func(name string, entry fs.DirEntry, err error) error {
		one := found{Name: name}
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			if name != j.Path {
				one.Folder, err = hasKustomization(j.Tree, name)
			}
			if err != nil || !one.Folder {
				return err
			}
		case !isManifest(name):
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%w: %s is no plain file", ErrDocument, transport.PrintableQuoted(name))
		}
		if j.Found = append(j.Found, one); len(j.Found) > maxDocuments {
			return fmt.Errorf("%w: more than %d files", ErrLimit, maxDocuments)
		}
		if one.Folder {
			j.Folders = true
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		j.Large = total > largeInput
		return nil
	})
}

func hasKustomization(tree fs.FS, folder string) (bool, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		info, err := fs.Stat(tree, path.Join(folder, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, err
		case !info.IsDir():
			return true, nil
		}
	}
	return false, nil
}

// source is the artifact, as far as a build looks into it.
type source interface {
	// ask gives the content of a file for frameRead, and what a name stands for, which is a kind, for frameKind.
	ask(question byte, name string) ([]byte, error)
}

// kind is what a name stands for.
type kind string

const (
	isNothing kind = "-"
	isFile    kind = "f"
	isFolder  kind = "d"
)

// treeSource reads a tree within the limits of one build.
type treeSource struct {
	tree fs.FS
	used int64
}

func (s *treeSource) ask(question byte, name string) ([]byte, error) {
	if question == frameRead {
		return s.read(name)
	}
	info, err := fs.Stat(s.tree, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
	case err != nil:
		return nil, err
	case info.IsDir():
		return []byte(isFolder), nil
	case info.Mode().IsRegular():
		return []byte(isFile), nil
	}
	return []byte(isNothing), nil
}

func (s *treeSource) read(name string) (content []byte, err error) {
	file, err := s.tree.Open(name)
	if err == nil {
		defer func() { err = errors.Join(err, file.Close()) }()
		content, err = io.ReadAll(io.LimitReader(file, maxInput-s.used+1))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", transport.PrintableQuoted(name), err)
	}
	if s.used += int64(len(content)); s.used > maxInput {
		return nil, fmt.Errorf("%w: with %s more than %d bytes are read", ErrLimit, transport.PrintableQuoted(name), maxInput)
	}
	return content, nil
}
