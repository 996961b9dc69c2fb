package local

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// maxVerdicts bounds the memory of the verdicts to some ten megabytes. A forgotten file is merely hashed again.
const maxVerdicts = 1 << 16

// identity tells a file's bytes from what they were: whoever writes to a file changes its mtime or ctime.
// A bad disk does not; Scrub looks for that.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64
}

// sameBytes tells whether only names came or went between the two: these change nothing but ctime.
func (i identity) sameBytes(other identity) bool {
	i.ctime, other.ctime = 0, 0
	return i == other
}

func identify(file *os.File) (identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return identity{}, &os.PathError{Op: "fstat", Path: file.Name(), Err: err}
	}
	id, _ := identityOf(&stat)
	return id, nil
}

// identify identifies a regular file that need not be readable, and counts its names. Anything else counts as missing.
func (d *disk) identify(name string) (id identity, links uint64, err error) {
	dir, err := d.root.Open(path.Dir(name))
	if err != nil {
		return identity{}, 0, missing(err)
	}
	defer dir.Close()
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), path.Base(name), &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return identity{}, 0, missing(&os.PathError{Op: "fstatat", Path: name, Err: err})
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, 0, fmt.Errorf("%q is not a regular file: %w", name, fs.ErrNotExist)
	}
	id, links = identityOf(&stat)
	return id, links, nil
}

func identityOf(stat *unix.Stat_t) (id identity, links uint64) {
	return identity{
		dev:   uint64(stat.Dev), //nolint:unconvert // Its type differs between systems.
		ino:   stat.Ino,
		size:  stat.Size,
		mtime: stat.Mtim.Nano(),
		ctime: stat.Ctim.Nano(),
	}, uint64(stat.Nlink) //nolint:unconvert // Its type differs between systems.
}

type verdict int

const (
	unknown verdict = iota
	intact
	damaged
)

// verdicts remembers which files have been hashed, and how that ended.
type verdicts struct{ files *lru.Cache[inode, entry] }

func newVerdicts() verdicts {
	files, _ := lru.New[inode, entry](maxVerdicts) // It fails for a size below one alone.
	return verdicts{files}
}

type inode struct{ dev, ino uint64 }

type entry struct {
	identity identity
	digest   digest.Digest
	verdict  verdict
}

func (v verdicts) of(id identity, d digest.Digest) verdict {
	if known, ok := v.files.Get(inode{id.dev, id.ino}); ok && known.identity == id && known.digest == d {
		return known.verdict
	}
	return unknown
}

func (v verdicts) remember(id identity, d digest.Digest, is verdict) {
	v.files.Add(inode{id.dev, id.ino}, entry{identity: id, digest: d, verdict: is})
}
