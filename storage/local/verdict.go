package local

import (
	"os"

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

// identify identifies a regular file that is open. Anything else counts as missing.
func identify(file *os.File) (identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return identity{}, &os.PathError{Op: "fstat", Path: file.Name(), Err: err}
	}
	return identityOf(file.Name(), &stat)
}

// identify identifies a regular file that need not be readable.
func (d *disk) identify(name string) (identity, error) {
	var stat unix.Stat_t
	var statErr error
	err := d.dir.Control(func(at uintptr) { statErr = unix.Fstatat(int(at), name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	if statErr != nil {
		err = missing(&os.PathError{Op: "fstatat", Path: name, Err: statErr})
	}
	if err != nil {
		return identity{}, err
	}
	return identityOf(name, &stat)
}

func identityOf(name string, stat *unix.Stat_t) (identity, error) {
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return identity{}, notRegular(name)
	}
	return identity{
		dev:   uint64(stat.Dev), //nolint:unconvert // Its type differs between systems.
		ino:   stat.Ino,
		size:  stat.Size,
		mtime: stat.Mtim.Nano(),
		ctime: stat.Ctim.Nano(),
	}, nil
}

type verdict int

const (
	unknown verdict = iota
	intact
	damaged
)

// verdicts remembers which files have been hashed, and how that ended.
type verdicts struct{ files *lru.Cache[hashed, verdict] }

// hashed is a file in the state that it was hashed in, for the digest that it should have.
type hashed struct {
	file   identity
	digest digest.Digest
}

func newVerdicts() verdicts {
	files, _ := lru.New[hashed, verdict](maxVerdicts) // It fails for a size below one alone.
	return verdicts{files}
}

func (v verdicts) of(id identity, d digest.Digest) verdict {
	is, _ := v.files.Get(hashed{id, d}) // Without one it is unknown.
	return is
}

func (v verdicts) remember(id identity, d digest.Digest, is verdict) { v.files.Add(hashed{id, d}, is) }
