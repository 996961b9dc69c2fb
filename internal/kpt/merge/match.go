package merge

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// matchObjects says which objects are the same one: by what they are and where they come from, first those that stand in the same
// file, and at last those that went to another subpackage or namespace. What has no name is looked for in its own file alone.
func matchObjects(all *resources) []*row {
	own, origin := identity((*kpt.Resource).ID), identity((*kpt.Resource).Origin)
	rows := match(all, []round[*kpt.Resource]{
		{inOrder: true, key: resourceKey(false, func(r *kpt.Resource) []string {
			return append(append(origin(r), own(r)...), r.Subpackage(), r.File)
		})},
		{key: resourceKey(false, func(r *kpt.Resource) []string { return append(origin(r), r.Subpackage(), r.File) })},
		{key: resourceKey(true, func(r *kpt.Resource) []string { return append(origin(r), r.Subpackage()) })},
		{key: resourceKey(true, func(r *kpt.Resource) []string { return append(own(r), r.Subpackage()) })},
		{changed: true, key: resourceKey(true, func(r *kpt.Resource) []string { return append(origin(r), r.ID().Name) })},
		{changed: true, key: resourceKey(true, func(r *kpt.Resource) []string {
			id := r.ID()
			return []string{id.Group, id.Kind, id.Name, r.Subpackage()}
		})},
	})
	rows = slices.DeleteFunc(rows, func(r *row) bool {
		for of := range sides {
			if item := all.of(r, of); item != nil && isOther(item) {
				return true
			}
		}
		return false
	})
	return matchRenamed(all, rows)
}

// resourceKey is a key made of words; named is that only what has a name has one. What is no object has none.
func resourceKey(named bool, words func(*kpt.Resource) []string) func(*kpt.Resource) (key, label string, ok bool) {
	return func(r *kpt.Resource) (key, label string, ok bool) {
		if isOther(r) || named && r.ID().Name == "" {
			return "", "", false
		}
		return fmt.Sprintf("%q", words(r)), "", true
	}
}

// identity are the words of an ID. A package has one Kptfile, whatever it is called.
func identity(of func(*kpt.Resource) kpt.ID) func(*kpt.Resource) []string {
	return func(r *kpt.Resource) []string {
		id := of(r)
		if r.IsKptfile() {
			id.Namespace, id.Name = "", ""
		}
		return []string{id.Group, id.Kind, id.Namespace, id.Name}
	}
}

// isOther tells whether the document is no object.
func isOther(r *kpt.Resource) bool {
	return r.Kind() == "" || kpt.Text(r.Node.YNode(), "apiVersion") == ""
}

// otherDocuments are those of one file that are no objects: what they say, and their places among all.
type otherDocuments struct {
	nodes  elements
	places lists[int]
}

// matchOthers says which documents that are no objects are the same one, file by file, as for the elements of a list.
func matchOthers(all *resources) ([]*row, error) {
	files, names := map[string]*otherDocuments{}, []string{}
	m := newMerger(false, nil)
	for of := range sides {
		for i, item := range all[of] {
			if !isOther(item) {
				continue
			}
			if files[item.File] == nil {
				files[item.File] = &otherDocuments{}
				names = append(names, item.File)
			}
			root, err := m.read(item.Node.YNode())
			if err != nil {
				return nil, inFile(item.File, err)
			}
			in := files[item.File]
			in.nodes[of], in.places[of] = append(in.nodes[of], root.root), append(in.places[of], i)
		}
	}
	rows := []*row{}
	for _, name := range names {
		rows = append(rows, files[name].match(m)...)
	}
	return rows, nil
}

// match says which of the documents are the same one, by their places among all.
func (o *otherDocuments) match(m *merger) []*row {
	rows := m.documents(&o.nodes)
	for _, r := range rows {
		for of := range sides {
			if r.has(of) {
				r.at[of] = o.places.of(r, of)
			}
		}
	}
	return rows
}

// documents says which documents of a file are the same one. Where no side has more than one they are, whatever became of it.
func (m *merger) documents(all *elements) []*row {
	for _, list := range all {
		if len(list) > 1 {
			return m.sequence(all)
		}
	}
	only := newRow(inBase, -1)
	for of, list := range all {
		only.at[of] = len(list) - 1
	}
	return []*row{only}
}

// inFile says which file an error is about.
func inFile(name string, err error) error { return fmt.Errorf("merge %s: %w", name, err) }
