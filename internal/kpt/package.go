// Package kpt is what a kpt package says: its files, its resources and its Kptfile, read strictly and edited so that nothing
// changes but what is to change.
// It does not know where packages are kept, who made them, or what their functions do.
package kpt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// KptfileName is how the file is called that makes a folder a package.
const KptfileName = "Kptfile"

// Package is a package with all that is beneath it: slash-separated paths below its root, and their files. A package is never
// changed once it was handed on: who wants another one clones the map. Contents are shared, and not written to either.
type Package map[string]File

// File is a file, or a link.
type File struct {
	// Content is what is in the file, or what a link points to.
	Content []byte
	// Mode is 0o644, 0o755 or fs.ModeSymlink.
	Mode fs.FileMode
}

// Paths are those of all files, in the order of their bytes.
func (p Package) Paths() []string { return slices.Sorted(maps.Keys(p)) }

// Digest names what is in the package: two have the same one where they have the same files, modes and contents alone.
func (p Package) Digest() string {
	hash := sha256.New()
	part := func(content []byte) {
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(content)))) // A hash takes everything.
		_, _ = hash.Write(content)
	}
	for _, name := range p.Paths() {
		file := p[name]
		part([]byte(name))
		part(binary.BigEndian.AppendUint32(nil, uint32(file.Mode)))
		part(file.Content)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Equal tells whether both have the same files, modes and contents.
func (p Package) Equal(other Package) bool {
	return maps.EqualFunc(p, other, func(a, b File) bool { return a.Mode == b.Mode && string(a.Content) == string(b.Content) })
}

// Folders are those that have a Kptfile, the package's own and its subpackages', in the order of their bytes. The root is "".
func (p Package) Folders() []string {
	folders := []string{}
	for name := range p {
		if path.Base(name) == KptfileName {
			folders = append(folders, folder(name))
		}
	}
	slices.Sort(folders)
	return folders
}

// Subpackage is the folder of the package that the file belongs to: the innermost one of the folders at or above it.
// A file above all of them belongs to the root, "".
func Subpackage(folders []string, file string) string {
	for at := folder(file); at != ""; at = folder(at) {
		if _, found := slices.BinarySearch(folders, at); found {
			return at
		}
	}
	return ""
}

// folder is the one that the path is in, and "" for the root.
func folder(name string) string {
	if above := path.Dir(name); above != "." {
		return above
	}
	return ""
}
