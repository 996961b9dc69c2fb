package e2e

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// inotifyHeader is the size of an event before its name, see inotify(7).
const inotifyHeader = 16

// watcher counts what happens to the files of folders and of the folders in them.
type watcher struct {
	file  *os.File
	count atomic.Int64
	ended chan struct{}
}

// watch calls strike at the nth event. Zero only counts. Folders that are made later are not watched.
func watch(t *testing.T, n int64, strike func(), roots ...string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify"), ended: make(chan struct{})}
	const events = unix.IN_CREATE | unix.IN_OPEN | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_DELETE | unix.IN_ATTRIB
	for _, root := range roots {
		err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			_, err = unix.InotifyAddWatch(fd, name, events)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	go w.follow(n, strike)
	return w
}

func (w *watcher) follow(n int64, strike func()) {
	defer close(w.ended)
	buffer := make([]byte, 64<<10)
	for {
		size, err := w.file.Read(buffer)
		if err != nil {
			return // It was closed.
		}
		for at := 0; at+inotifyHeader <= size; {
			if w.count.Add(1) == n {
				strike()
			}
			at += inotifyHeader + int(binary.NativeEndian.Uint32(buffer[at+12:]))
		}
	}
}

// close ends the watch, and returns how much was seen.
func (w *watcher) close() int64 {
	_ = w.file.Close()
	<-w.ended
	return w.count.Load()
}
