package merge

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/printable"
)

// subpackages settles what becomes of whole subpackages. One that people removed stays removed, with what upstream adds to it. One
// that upstream removed goes, unless people changed anything in it. One that people took to another upstream is theirs alone. All
// others are merged like the rest, those that both sides added as well.
func (w *work) subpackages() {
	folders := map[string]bool{}
	for _, opened := range w.opened {
		for _, folder := range opened.Folders() {
			folders[folder] = folder != ""
		}
	}
	// Those above others come first.
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if !folders[folder] || w.kept.has(folder+"/") || w.dropped.has(folder+"/") {
			continue
		}
		switch was, is := w.hasKptfile(inBase, folder), w.hasKptfile(inLocal, folder); {
		case !was:
		case len(w.below(inLocal, folder)) == 0:
			w.dropped[folder] = true
		case is && len(w.below(inTheirs, folder)) == 0:
			w.kept[folder] = !w.goes(folder)
		case is && w.isIndependent(folder):
			w.kept[folder] = true
		}
	}
}

func (w *work) hasKptfile(of side, folder string) bool {
	_, found := w.packages[of][path.Join(folder, kpt.KptfileName)]
	return found
}

// below are the files in the folder.
func (w *work) below(of side, folder string) kpt.Package {
	found := kpt.Package{}
	first, _ := slices.BinarySearch(w.paths[of], folder+"/")
	for _, name := range w.paths[of][first:] {
		if !strings.HasPrefix(name, folder+"/") {
			break
		}
		found[name] = w.packages[of][name]
	}
	return found
}

// goes tells whether a subpackage that upstream removed is taken out.
func (w *work) goes(folder string) bool {
	base, local := w.below(inBase, folder), w.below(inLocal, folder)
	if base.Equal(local) {
		return true
	}
	show := func(files kpt.Package) string {
		return printable.Line(fmt.Sprintf("%d files, %s", len(files), files.Digest()), maxValue)
	}
	w.report(Conflict{File: path.Join(folder, kpt.KptfileName), Base: show(base), Local: show(local)})
	return w.takesUpstream
}

// isIndependent tells whether people took the subpackage from another place, or at another revision.
func (w *work) isIndependent(folder string) bool {
	var from [sides]*yaml.Node
	m := newMerger(false, nil)
	for of := range sides {
		if from[of] = w.upstream(of, folder); from[of] == nil {
			continue
		}
		written, err := m.read(from[of])
		if err != nil {
			return false // It is merged, and that says what is wrong.
		}
		from[of] = written.root
	}
	if m.same(from[inBase], from[inLocal]) || m.same(from[inTheirs], from[inLocal]) {
		return false
	}
	if m.same(from[inBase], from[inTheirs]) {
		return true
	}
	w.report(Conflict{
		File: path.Join(folder, kpt.KptfileName), Path: "upstream",
		Base: show(from[inBase], false), Upstream: show(from[inTheirs], false), Local: show(from[inLocal], false),
	})
	return !w.takesUpstream
}

// upstream is where the subpackage says that it comes from.
func (w *work) upstream(of side, folder string) *yaml.Node {
	if item := w.kptfiles[of][path.Join(folder, kpt.KptfileName)]; item != nil {
		return kpt.Lookup(item.Node.YNode(), "upstream")
	}
	return nil
}
