// Package archive turns an fs.FS into a deterministic tar.gz and back, under ignore rules and limits.
// It does not know where a tree came from, where an archive is kept, or that Kubernetes exists.
package archive

import (
	"cmp"
	"errors"
	"io/fs"
)

// FormatVersion names the bytes that Write makes: it changes whenever the same tree under the same rules could
// give other bytes. Keys of anything derived from an archive include it.
const FormatVersion = "2"

var (
	// ErrLimit says that a tree, an archive or its ignore rules exceed one of the limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrUnsafe says that a tree or an archive holds something that is never let through: a link or device in an
	// archive, an absolute name, "..", or a name that stands for two things.
	ErrUnsafe = errors.New("unsafe entry")
	// ErrCorrupt says that an archive is not a whole tar.gz: cut, garbled, or followed by something else.
	ErrCorrupt = errors.New("archive is damaged")
	// ErrStored says that an archive is not, or is no longer, what its index says.
	ErrStored = errors.New("stored archive is damaged")
	// ErrMount says that a mount has nothing to show, or no free place to show it at.
	ErrMount = errors.New("cannot mount")
)

// The defaults of Limits.
const (
	DefaultMaxBytes = 512 << 20
	DefaultMaxFiles = 100_000
	DefaultMaxDepth = 256
	DefaultMaxPath  = 4096
	DefaultMaxMatch = 10_000_000_000
)

// Limits bound an archive; a field that is not positive means its default.
type Limits struct {
	// MaxBytes bounds the sum of the sizes of the archived files, before compression.
	MaxBytes int64
	// MaxFiles bounds the number of entries: files and folders, without the root. A tree that is being read may
	// hold ten times as many, for what the ignore rules leave out.
	MaxFiles int
	// MaxDepth bounds the number of names in a path.
	MaxDepth int
	// MaxPath bounds the length of a path in bytes. Each name in it has at most 255, as file systems have it.
	MaxPath int
	// MaxMatch bounds the work of matching names with ignore rules, in bytes compared at worst: of a pattern with "*"
	// inside that and the name's length multiplied, of others a few.
	MaxMatch int64
}

// maxName is the longest name that Linux file systems take: a longer one could not be unpacked anywhere.
const maxName = 255

func (l Limits) orDefault() Limits {
	l.MaxBytes = cmp.Or(max(l.MaxBytes, 0), DefaultMaxBytes)
	l.MaxFiles = cmp.Or(max(l.MaxFiles, 0), DefaultMaxFiles)
	l.MaxDepth = cmp.Or(max(l.MaxDepth, 0), DefaultMaxDepth)
	l.MaxPath = cmp.Or(max(l.MaxPath, 0), DefaultMaxPath)
	l.MaxMatch = cmp.Or(max(l.MaxMatch, 0), DefaultMaxMatch)
	return l
}

// The modes an archive knows: what the upstream tree says beyond "executable" is lost on purpose.
const (
	folderMode     = 0o750
	fileMode       = 0o600
	executableMode = 0o700
)

func normalMode(mode fs.FileMode) fs.FileMode {
	if mode&0o111 != 0 {
		return executableMode
	}
	return fileMode
}

// root names the topmost folder, in an fs.FS as in an archive.
const root = "."

// bufferSize is the size of the copy buffer that each archive in flight owns.
const bufferSize = 64 << 10
