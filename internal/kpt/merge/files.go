package merge

import (
	"bytes"
	"maps"
	"path"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// files merges what holds no objects, and the modes of what does.
func (w *work) files() {
	objects := map[string]bool{}
	for of := range sides {
		for _, item := range w.opened[of].Items {
			objects[item.File] = objects[item.File] || !w.isLink(item.File)
		}
	}
	names := map[string]bool{}
	for of := range sides {
		for name := range w.packages[of] {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if w.kept.has(name) {
			continue
		}
		if objects[name] {
			w.mode(name)
			continue
		}
		w.plainFile(name)
	}
}

// mode settles whether a file that holds objects can be run.
func (w *work) mode(name string) {
	file, found := w.result[name]
	if !found {
		return
	}
	base, _ := w.packages[inBase][name]
	theirs, isTheirs := w.packages[inTheirs][name]
	local, isLocal := w.packages[inLocal][name]
	if isTheirs && (!isLocal || local.Mode == base.Mode) {
		file.Mode = theirs.Mode
		w.result[name] = file
	}
}

// plainFile merges a file as a whole, or what is in it if that can be told apart.
func (w *work) plainFile(name string) {
	var files [sides]*kpt.File
	for of := range sides {
		if file, found := w.packages[of][name]; found {
			files[of] = &file
		}
	}
	file := w.mergeFile(name, files[inBase], files[inTheirs], files[inLocal])
	if file == nil {
		delete(w.result, name)
		return
	}
	w.result[name] = *file
}

func sameFile(a, b *kpt.File) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && bytes.Equal(a.Content, b.Content)
}

// mergeFile is the file in the end, nil for none.
func (w *work) mergeFile(name string, base, theirs, local *kpt.File) *kpt.File {
	switch {
	case sameFile(base, theirs) || sameFile(theirs, local):
		return local
	case base == nil && local == nil && w.dropped.has(name):
		return nil
	case sameFile(base, local):
		return theirs
	case local == nil:
		return nil // People removed it, and so it stays.
	case theirs == nil || theirs.Mode.Type() != 0 || local.Mode.Type() != 0:
		return w.choose(name, base, theirs, local)
	}
	if base == nil || base.Mode.Type() != 0 {
		base = &kpt.File{Mode: local.Mode}
	}
	merged := kpt.File{Mode: local.Mode}
	if local.Mode == base.Mode {
		merged.Mode = theirs.Mode
	}
	merged.Content = w.mergeContent(name, base.Content, theirs.Content, local.Content)
	return &merged
}

// choose takes one of two files that cannot be merged.
func (w *work) choose(name string, base, theirs, local *kpt.File) *kpt.File {
	w.reportFile(name, base, theirs, local)
	if w.takesUpstream {
		return theirs
	}
	return local
}

func (w *work) reportFile(name string, files ...*kpt.File) {
	shown := make([]string, len(files))
	for i, file := range files {
		if file != nil {
			shown[i] = showFile(*file)
		}
	}
	w.report(Conflict{File: name, Base: shown[0], Upstream: shown[1], Local: shown[2]})
}

// mergeContent merges text line by line, and takes one side of anything else.
func (w *work) mergeContent(name string, base, theirs, local []byte) []byte {
	switch {
	case bytes.Equal(base, theirs):
		return local
	case bytes.Equal(base, local) || bytes.Equal(theirs, local):
		return theirs
	}
	merged, clashes := mergeText(base, theirs, local, w.takesUpstream)
	if len(clashes) > 0 {
		w.reportFile(name, contentFile(base), contentFile(theirs), contentFile(local))
	}
	return merged
}

func contentFile(content []byte) *kpt.File { return &kpt.File{Mode: 0o644, Content: content} }

// collisions takes out files that stand where another has a folder. Neither side alone can have made both.
func (w *work) collisions() {
	for _, name := range w.result.Paths() {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			file, found := w.result[above]
			below, stays := w.result[name]
			if !found || !stays {
				continue
			}
			_, mine := w.packages[inLocal][above]
			conflict := Conflict{File: above, Upstream: showFile(file), Local: showFolder(name, below)}
			if mine {
				conflict.Upstream, conflict.Local = conflict.Local, conflict.Upstream
			}
			w.report(conflict)
			if mine == w.takesUpstream {
				delete(w.result, above)
			} else {
				delete(w.result, name)
			}
		}
	}
}

func showFolder(name string, file kpt.File) string {
	return "folder with " + name + ", " + showFile(file)
}
