package cli

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ongoing is a table that goes on below its end.
type ongoing struct {
	*getter
	table

	asked wanted
	to    *columns
	// last are the lines that were shown last, of the objects that were.
	last map[types.UID][]string
}

// goOn shows the table, and from then on the line of each object that comes to have another one.
func (g *getter) goOn(ctx context.Context, asked wanted, found []unstructured.Unstructured) error {
	o := &ongoing{getter: g, table: g.table(), asked: asked, to: &columns{out: g.Out}, last: map[types.UID][]string{}}
	o.spaced = g.all
	for i := range found {
		o.last[found[i].GetUID()] = o.cells(asked.kind, &found[i])
	}
	if err := o.printTo(o.to, asked.kind, found); err != nil {
		return unprinted(err)
	}
	return g.follow(ctx, follower{kind: asked.kind, options: o.options, list: o.list, change: o.change})
}

func (o *ongoing) options() *client.ListOptions {
	chosen := (&client.ListOptions{}).ApplyOptions([]client.ListOption{client.MatchingLabelsSelector{Selector: o.selector}})
	if !o.all {
		chosen.Namespace = o.namespace
	}
	if len(o.asked.names) == 1 {
		client.MatchingFields{metav1.ObjectNameField: o.asked.names[0]}.ApplyToList(chosen)
	}
	return chosen
}

// list shows what has changed, come and gone since anybody looked.
func (o *ongoing) list(found []unstructured.Unstructured) error {
	there := map[types.UID]bool{}
	for i := range found {
		there[found[i].GetUID()] = true
		if err := o.change(&found[i], false); err != nil {
			return err
		}
	}
	for uid, cells := range o.last {
		if there[uid] {
			continue
		}
		if err := o.gone(uid, cells); err != nil {
			return err
		}
	}
	return nil
}

// change shows the object's line if it is another one than before, of objects that were shown or are chosen now.
func (o *ongoing) change(obj *unstructured.Unstructured, gone bool) error {
	was, known := o.last[obj.GetUID()]
	isNamed := len(o.asked.names) == 0 || slices.Contains(o.asked.names, obj.GetName())
	if !known && (gone || !isNamed || len(o.choose([]unstructured.Unstructured{*obj})) == 0) {
		return nil
	}
	now := o.cells(o.asked.kind, obj)
	if gone {
		return o.gone(obj.GetUID(), now)
	}
	if known && timeless(was) == timeless(now) {
		return nil
	}
	o.last[obj.GetUID()] = now
	return o.line(now)
}

func (o *ongoing) gone(uid types.UID, cells []string) error {
	delete(o.last, uid)
	cells[len(cells)-3], cells[len(cells)-1] = "Gone", ""
	return o.line(cells)
}

func (o *ongoing) line(cells []string) error {
	o.row(o.to, slices.Clone(cells))
	return unprinted(o.to.Flush())
}

// timeless is a line without since when it is so.
func timeless(cells []string) string {
	return strings.Join(slices.Delete(slices.Clone(cells), len(cells)-2, len(cells)-1), "\t")
}
