package build

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"sluice.dev/sluice/internal/transport"
)

// Where things are in the file system that kustomize sees. Paths that lead out of the artifact end above it, where there is
// nothing, so that they are not taken for others inside.
const (
	artifactRoot  = "/artifact"
	generatedRoot = "/generated"
)

// confined is a file system of the artifact and of generated files, and of nothing else.
type confined struct {
	// Whatever no build needs is asked of an empty file system in memory: what is written there is never read.
	filesys.FileSystem

	from    source
	overlay map[string][]byte // by path
	quotes  *quotes
	refusal error // the first thing that was asked for and is not allowed
}

// inside is the name in the artifact that a path stands for.
func inside(file string) (string, bool) {
	cleaned := path.Clean(file)
	if cleaned == artifactRoot {
		return ".", true
	}
	return strings.CutPrefix(cleaned, artifactRoot+"/")
}

func (c *confined) refuse(err error) error {
	if c.refusal == nil {
		c.refusal = err
	}
	return err
}

func (c *confined) kind(file string) kind {
	cleaned := path.Clean(file)
	if _, ok := c.overlay[cleaned]; ok {
		return isFile
	}
	if cleaned == generatedRoot {
		return isFolder
	}
	name, ok := inside(cleaned)
	if !ok {
		return isNothing
	}
	found, err := c.from.ask(frameKind, name)
	if err != nil {
		_ = c.refuse(err) // Reported in the place of what kustomize makes of it.
		return isNothing
	}
	return kind(found)
}

// CleanedAbs splits a path into folder and file.
func (c *confined) CleanedAbs(file string) (filesys.ConfirmedDir, string, error) {
	cleaned := path.Clean(file)
	switch c.kind(cleaned) {
	case isFolder:
		return filesys.ConfirmedDir(cleaned), "", nil
	case isFile:
		return filesys.ConfirmedDir(path.Dir(cleaned)), path.Base(cleaned), nil
	default:
		return "", "", c.missing(cleaned)
	}
}

func (c *confined) missing(file string) error {
	name, ok := inside(file)
	if !ok && path.Dir(path.Clean(file)) == generatedRoot {
		// kustomize looks for its file under each of the names that it may have.
		return &fs.PathError{Op: "open", Path: path.Base(file), Err: fs.ErrNotExist}
	}
	if !ok {
		return c.refuse(fmt.Errorf("%w: a path that leads out of the artifact, to %s", ErrForbidden, transport.PrintableQuoted(file)))
	}
	return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadFile reads a file. A kustomization is read only if it asks for nothing that is not allowed.
func (c *confined) ReadFile(file string) ([]byte, error) {
	cleaned := path.Clean(file)
	if content, ok := c.overlay[cleaned]; ok {
		return content, nil
	}
	if c.kind(cleaned) != isFile {
		return nil, c.missing(cleaned)
	}
	name, _ := inside(cleaned)
	content, err := c.from.ask(frameRead, name)
	if err != nil {
		return nil, c.refuse(err)
	}
	if isKustomization(name) {
		if err := c.checkKustomization(name, content); err != nil {
			return nil, c.refuse(err)
		}
	}
	return c.quotes.file(cleaned, content), nil
}

// IsDir tells folders.
func (c *confined) IsDir(file string) bool { return c.kind(file) == isFolder }

// Exists tells files and folders that are there.
func (c *confined) Exists(file string) bool { return c.kind(file) != isNothing }
