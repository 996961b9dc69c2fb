package merge

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

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
	merged, clash := mergeText(base, theirs, local, w.takesUpstream)
	if clash {
		w.reportFile(name, contentFile(base), contentFile(theirs), contentFile(local))
	}
	return merged
}

func contentFile(content []byte) *kpt.File { return &kpt.File{Mode: 0o644, Content: content} }

// maxText bounds the text that is merged line by line.
const maxText = 1 << 20

// mergeText merges line by line. Where both sides changed the same lines, or lines beside each other, one side counts.
func mergeText(base, theirs, local []byte, takesUpstream bool) (merged []byte, clash bool) {
	for _, text := range [][]byte{base, theirs, local} {
		if len(text) > maxText || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			if takesUpstream {
				return theirs, true
			}
			return local, true
		}
	}
	return mergeLines(linesOf(base), linesOf(theirs), linesOf(local), takesUpstream)
}

func linesOf(text []byte) []string { return slices.Collect(strings.Lines(string(text))) }

// mergeLines goes from one line that all sides have to the next.
func mergeLines(base, theirs, local []string, takesUpstream bool) (merged []byte, clash bool) {
	numbers := map[string]int{}
	says := func(lines []string) []int {
		found := make([]int, len(lines))
		for i, line := range lines {
			if numbers[line] == 0 {
				numbers[line] = len(numbers) + 1
			}
			found[i] = numbers[line]
		}
		return found
	}
	inBase, inTheirs, inLocal := says(base), says(theirs), says(local)
	toLocal := map[int]int{}
	for _, found := range common(inBase, inLocal) {
		toLocal[found.a] = found.b
	}
	out := strings.Builder{}
	b, t, l := 0, 0, 0
	between := func(toB, toT, toL int) {
		was, up, mine := strings.Join(base[b:toB], ""), strings.Join(theirs[t:toT], ""), strings.Join(local[l:toL], "")
		text := mine
		switch {
		case was == up || up == mine:
		case was == mine:
			text = up
		default:
			clash = true
			if takesUpstream {
				text = up
			}
		}
		_, _ = out.WriteString(text) // A builder takes everything.
	}
	for _, found := range append(common(inBase, inTheirs), pair{len(base), len(theirs)}) {
		at, both := toLocal[found.a]
		if found.a == len(base) {
			at, both = len(local), true
		}
		if !both {
			continue
		}
		between(found.a, found.b, at)
		if found.a < len(base) {
			_, _ = out.WriteString(base[found.a])
		}
		b, t, l = found.a+1, found.b+1, at+1
	}
	return []byte(out.String()), clash
}

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
