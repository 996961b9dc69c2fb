package ui

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// Row is what tables show of an object. It is all that is kept of it.
type Row struct {
	view.Fact

	Kind            Kind
	Namespace, Name string
	UID             types.UID
	Cells           []string
	// version tells whether the object is the one that was shown.
	version string
	// has is the module that an installation has a release of, and counted what modules' pages count of it, in short.
	has     string
	counted uint64
	// text is all that is searched, in small letters.
	text string
}

const (
	// maxKept is how much is kept of a message, and maxCell of a cell.
	maxKept, maxCell = 1024, 256
)

// newRow keeps what is shown of an object.
func newRow(kind Kind, obj *unstructured.Unstructured) *Row {
	row := &Row{Fact: view.Of(obj), Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), version: obj.GetResourceVersion()}
	row.Message = printable.Line(row.Message, maxKept)
	row.Reason = printable.Line(row.Reason, maxCell)
	for _, c := range kind.Columns {
		row.Cells = append(row.Cells, printable.Line(c.Value(obj), maxCell))
	}
	row.text = row.searched()
	if kind.Kind == installationKind {
		row.has, row.counted = countedOf(obj)
	}
	return row
}

// anchor is the id of the row on a page.
func (r *Row) anchor() string { return "r-" + string(r.UID) }
