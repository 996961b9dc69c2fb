package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	dirMode = 0o750
	// bodyMode lets the group read, so that a later process of another user but the same volume group can.
	// Nobody may write: a published body never changes.
	bodyMode = 0o440
)

// disk changes files below one root, durably: what a method did survives a power cut once it has returned.
type disk struct {
	root *os.Root
	// dir is the root's folder, for the calls that take a path at once.
	dir    syscall.RawConn
	folder *os.File
	// before is asked ahead of every change. Tests set it to stop the process or to make the change fail.
	before func(op, name string) error
	// opening is asked ahead of every opening for reading. Tests set it to make that fail.
	opening func(name string) error

	mu      sync.Mutex
	counter int
	writing map[string]bool // temporary files in use
}

func newDisk(root *os.Root) (*disk, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	dir, err := folder.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &disk{
		root:    root,
		dir:     dir,
		folder:  folder,
		before:  func(string, string) error { return nil },
		opening: func(string) error { return nil },
		writing: make(map[string]bool),
	}, nil
}

func (d *disk) close() error { return errors.Join(d.folder.Close(), d.root.Close()) }

// open opens a regular file for reading, and identifies it. Anything else under that name counts as missing: a link or a
// device was not put there by us.
func (d *disk) open(name string) (*os.File, identity, error) {
	if err := d.opening(name); err != nil {
		return nil, identity{}, err
	}
	file, err := openBeneath(d.dir, name)
	if err != nil {
		// The kernel may be too old for that; if it is not, this way tells what is wrong.
		file, err = d.openStepwise(name)
	}
	if err != nil {
		return nil, identity{}, missing(err)
	}
	id, err := identify(file)
	if err != nil {
		return nil, identity{}, errors.Join(err, file.Close())
	}
	return file, id, nil
}

func (d *disk) openStepwise(name string) (*os.File, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name)
	}
	return d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func notRegular(name string) error {
	return fmt.Errorf("%q is not a regular file: %w", name, fs.ErrNotExist)
}

// unreadable tells whether a file of ours cannot be read although it is there, and will not be by waiting: the disk or
// the file system has lost it, or somebody has taken our rights to it. Running out of descriptors or memory is another matter.
func unreadable(err error) bool {
	return slices.ContainsFunc([]error{syscall.EACCES, syscall.EPERM, syscall.EIO, errCorrupted},
		func(reason error) bool { return errors.Is(err, reason) })
}

// missing makes a path that leads through a file look like a path that does not exist.
func missing(err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// writeAside writes a new temporary file, makes it durable and returns its name. Nothing is left when it fails.
// The caller renames the file to its place and calls done.
func (d *disk) writeAside(mode fs.FileMode, write func(*os.File) error) (name string, done func(), err error) {
	name, release := d.reserve()
	finished := false
	defer func() {
		if !finished { // Also when write panics.
			release()
		}
	}()
	if err := d.before("create", name); err != nil {
		return "", nil, err
	}
	file, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	if err := write(file); err != nil {
		return "", nil, err
	}
	if err := d.before("sync", name); err != nil {
		return "", nil, err
	}
	if err := errors.Join(file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return "", nil, err
	}
	finished = true
	return name, release, nil
}

// reserve names a temporary file. Done removes whatever is still under the name and frees it.
func (d *disk) reserve() (name string, done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counter++
	name = path.Join(tmpDir, strconv.Itoa(d.counter))
	d.writing[name] = true
	return name, func() {
		// What cannot be removed now is swept later.
		_ = d.root.Remove(name)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.writing, name)
	}
}

// place renames a temporary file to where it belongs, over what may be there.
func (d *disk) place(tmp, name string) error {
	if err := d.before("rename", name); err != nil {
		return err
	}
	if info, err := d.root.Lstat(name); err == nil && info.IsDir() {
		// Renaming does not replace a folder, which is none of ours.
		if err := d.removeTree(name); err != nil {
			return err
		}
	}
	if err := d.root.Rename(tmp, name); err != nil {
		return err
	}
	return d.syncDir(path.Dir(name))
}

// remove removes a file or an empty folder; it is no error when there is none.
func (d *disk) remove(name string) error {
	if err := d.before("remove", name); err != nil {
		return err
	}
	if err := d.root.Remove(name); err != nil && !errors.Is(missing(err), fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeTree removes whatever is under the name.
func (d *disk) removeTree(name string) error {
	if err := d.before("remove", name); err != nil {
		return err
	}
	return d.root.RemoveAll(name)
}

// mkdirAll makes the folder and those above it, and makes each new one durable in its parent.
func (d *disk) mkdirAll(name string) error {
	parent := "."
	for segment := range strings.SplitSeq(name, "/") {
		dir := path.Join(parent, segment)
		if err := d.before("mkdir", dir); err != nil {
			return err
		}
		err := d.root.Mkdir(dir, dirMode)
		switch {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := d.syncDir(parent); err != nil {
				return err
			}
		}
		parent = dir
	}
	return nil
}

// prune removes the folder and those above it, up to but not including stop, as far as they are empty.
func (d *disk) prune(name, stop string) error {
	for ; name != stop && name != "."; name = path.Dir(name) {
		err := d.remove(name)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the entries of a folder durable.
func (d *disk) syncDir(name string) error {
	if err := d.before("syncdir", name); err != nil {
		return err
	}
	dir, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// list returns what is in a folder, by name; nothing when there is no folder.
func (d *disk) list(name string) ([]fs.DirEntry, error) {
	dir, err := d.root.Open(name)
	if err != nil {
		if errors.Is(missing(err), fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil && errors.Is(missing(err), fs.ErrNotExist) {
		return nil, nil // It was removed while we looked at it.
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// sweepTmp removes the temporary files that nobody writes any more.
func (d *disk) sweepTmp() error {
	entries, err := d.list(tmpDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(tmpDir, entry.Name())
		if d.inUse(name) {
			continue
		}
		if err := d.removeTree(name); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) inUse(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writing[name]
}
