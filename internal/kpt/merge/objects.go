package merge

import (
	"bytes"
	"maps"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// resources are the objects of the three sides.
type resources = lists[*kpt.Resource]

// objects merges the objects of all files, and begins the result with them.
func (w *work) objects() error {
	all := resources{}
	for of := range sides {
		for _, item := range w.opened[of].Items {
			if !w.isLink(item.File) {
				all[of] = append(all[of], item)
			}
		}
	}
	rows, err := matchOthers(&all)
	if err != nil {
		return err
	}
	rows = append(rows, matchObjects(&all)...)
	taken := w.untouched(&all, rows)
	gone := map[*kpt.Resource]bool{}
	for _, r := range rows {
		theirs, local := all.of(r, inTheirs), all.of(r, inLocal)
		if theirs != nil && taken[theirs.File] || local != nil && taken[local.File] {
			continue
		}
		stays, err := w.object(all.of(r, inBase), theirs, local)
		if err != nil {
			return err
		}
		gone[local] = !stays
	}
	result := w.opened[inLocal]
	result.Remove(func(r *kpt.Resource) bool { return gone[r] })
	if w.result, err = result.Package(); err != nil {
		return err
	}
	for name := range taken {
		if file, found := w.packages[inTheirs][name]; found {
			w.result[name] = file
		} else {
			delete(w.result, name)
		}
	}
	return nil
}

// untouched are the files that people left as they were, and whose objects upstream left in them: they are as upstream has them,
// with every byte.
func (w *work) untouched(all *resources, rows []*row) map[string]bool {
	taken, hasObjects := map[string]bool{}, map[string]bool{}
	for of := range sides {
		for _, item := range all[of] {
			hasObjects[item.File] = true
		}
	}
	for name := range hasObjects {
		base, was := w.packages[inBase][name]
		local, is := w.packages[inLocal][name]
		taken[name] = was == is && bytes.Equal(base.Content, local.Content) && base.Mode == local.Mode &&
			!w.kept.has(name) && !w.dropped.has(name)
	}
	// What reaches over several files is merged by itself.
	for _, r := range rows {
		names := map[string]bool{}
		for of := range sides {
			if item := all.of(r, of); item != nil {
				names[item.File] = true
			}
		}
		for name := range names {
			taken[name] = taken[name] && len(names) == 1 && r.has(inBase) == r.has(inLocal)
		}
	}
	maps.DeleteFunc(taken, func(_ string, is bool) bool { return !is })
	return taken
}

// isLink tells whether the path is a link on any side. There are no objects in those.
func (w *work) isLink(name string) bool {
	for of := range sides {
		if file, found := w.packages[of][name]; found && file.Mode.Type() != 0 {
			return true
		}
	}
	return false
}

// object merges one object into local's, and tells whether that one stays.
func (w *work) object(base, theirs, local *kpt.Resource) (stays bool, err error) {
	switch {
	case local != nil && w.kept.has(local.File):
		return true, nil
	case local == nil:
		if base == nil && theirs != nil && !w.kept.has(theirs.File) && !w.dropped.has(theirs.File) {
			return false, w.add(theirs)
		}
		return false, nil // People removed it.
	case base == nil && theirs == nil:
		return true, nil
	case base != nil && theirs != nil && w.isSameText(base, theirs):
		return true, nil
	}
	one := document{work: w, file: local.File}
	if !isOther(local) {
		one.resource, one.known = strings.TrimSpace(local.ID().String()), w.shapes.of(local)
	}
	merged, err := one.merge(base, theirs, local)
	if err != nil {
		return false, inFile(local.File, err)
	}
	if merged == nil {
		return false, nil
	}
	local.Node = yaml.NewRNode(merged)
	if base != nil && theirs != nil && local.File == base.File && path.Base(local.File) != kpt.KptfileName {
		local.File = theirs.File
	}
	return true, nil
}

// isSameText tells whether upstream left the file alone that the object is in.
func (w *work) isSameText(base, theirs *kpt.Resource) bool {
	if base.File != theirs.File || base.Index != theirs.Index {
		return false
	}
	same, known := w.sameTexts[base.File]
	if !known {
		same = bytes.Equal(w.packages[inBase][base.File].Content, w.packages[inTheirs][base.File].Content)
		w.sameTexts[base.File] = same
	}
	return same
}

// add puts an object of upstream's into its file.
func (w *work) add(theirs *kpt.Resource) error {
	written, err := newPlain(theirs.Node.YNode())
	if err != nil {
		return inFile(theirs.File, err)
	}
	w.opened[inLocal].Add(theirs.File, yaml.NewRNode(copied(written.root)))
	return nil
}

// document is one whose three sides are merged.
type document struct {
	work           *work
	file, resource string
	known          *shape
}

// merge is the merged document, nil if it goes.
func (d *document) merge(base, theirs, local *kpt.Resource) (*yaml.Node, error) {
	m := newMerger(d.work.takesUpstream, func(conflict Conflict) {
		conflict.File, conflict.Resource = d.file, d.resource
		d.work.report(conflict)
	})
	var nodes, around [sides]*yaml.Node
	var mine *plain
	for of, side := range [sides]*kpt.Resource{base, theirs, local} {
		if side == nil {
			continue
		}
		written, err := m.read(side.Node.YNode())
		if err != nil {
			return nil, err
		}
		nodes[of], around[of], mine = written.root, side.Document, written
	}
	at := &place{known: d.known}
	merged := m.merge(nodes[inBase], nodes[inTheirs], nodes[inLocal], at)
	if merged == nil {
		return nil, nil
	}
	if theirs != nil {
		m.comments(around[inBase], around[inTheirs], around[inLocal], at)
	}
	return mine.fold(merged)
}
