package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

const (
	partsPrefix = "parts-"
	// maxIndexes is how many indexes of archives a repository has. Those that were written first go first.
	maxIndexes = 64
	// maxIndexBytes bounds an index that is read: a part of 256 KiB takes about a hundred bytes in it.
	maxIndexBytes = 16 << 20
)

// Parts keeps what archives of a repository's commits are made of, beside its objects, and is lost with them.
type Parts struct {
	cache *objectCache
	name  string // of the repository's folder
}

// Parts belong to whoever may see the commit. They are nil where nothing is kept.
func (c *Commit) Parts() *Parts { return c.parts }

func (p *Parts) path(archive digest.Digest) string {
	return filepath.Join(p.cache.dir, p.name, partsPrefix+archive.Encoded())
}

// Load returns what was saved for the archive; nil without anything. Whether it is whole and as it was is for the reader to
// see.
func (p *Parts) Load(archive digest.Digest) []byte {
	file, err := os.Open(p.path(archive))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // It was only read.
	index, err := io.ReadAll(io.LimitReader(file, maxIndexBytes+1))
	if err != nil || len(index) > maxIndexBytes {
		return nil
	}
	return index
}

// Save keeps the index of an archive. What cannot be kept is made anew.
func (p *Parts) Save(archive digest.Digest, index []byte) {
	if err := p.save(p.path(archive), index); err != nil {
		p.cache.report(err)
	}
}

// save has nobody else wait for the disk.
func (p *Parts) save(path string, content []byte) error {
	p.cache.mu.Lock()
	f := p.cache.folder(p.name)
	f.users++
	p.cache.mu.Unlock()
	before := int64(0)
	if same, err := os.Stat(path); err == nil {
		before = same.Size()
	}
	err := os.WriteFile(path, content, 0o600)
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	defer p.cache.unuse(p.name, f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It has made room for others meanwhile.
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	grown := int64(len(content)) - before - p.prune(filepath.Dir(path))
	f.size, p.cache.size = f.size+grown, p.cache.size+grown
	return nil
}

// prune removes the oldest indexes of too many, and returns how many bytes these had.
func (p *Parts) prune(dir string) (freed int64) {
	found, _ := os.ReadDir(dir) // What is not found takes room until the repository goes.
	var all []os.FileInfo
	for _, entry := range found {
		if info, err := entry.Info(); err == nil && strings.HasPrefix(entry.Name(), partsPrefix) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, oldest := range all[:max(0, len(all)-maxIndexes)] {
		if os.Remove(filepath.Join(dir, oldest.Name())) == nil {
			freed += oldest.Size()
		}
	}
	return freed
}
