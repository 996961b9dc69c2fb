package fanout

import (
	"fmt"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt/function"
)

// bindingText is what of a binding may depend on the target.
type bindingText struct{ literal, object text }

func (c *compiler) bindings(field string, all []packagesv1.BindingTemplate) (made []bindingText) {
	for i := range all {
		from, at := all[i].From, fmt.Sprintf("%s[%d].from", field, i)
		if err := check(&all[i]); err != nil {
			c.problems = append(c.problems, fmt.Errorf("%s[%d] (%s): %w", field, i, all[i].Name, err))
		}
		b := bindingText{literal: c.text(at+".literal", "", from.LiteralExpr)}
		if from.Object != nil {
			b.object = c.text(at+".object.name", from.Object.Name, from.Object.NameExpr)
		}
		made = append(made, b)
	}
	return made
}

// check says what no variant could do with the binding, whatever its target is.
func check(b *packagesv1.BindingTemplate) error {
	if b.Path != "" {
		if err := function.CheckPath(b.Path); err != nil {
			return err
		}
	}
	if b.From.Object != nil || b.From.PackageObject != nil || b.From.PackageContext != "" || b.From.LiteralExpr != "" {
		return nil
	}
	return b.From.Literal.Check()
}

func (w *writer) bindings(all []packagesv1.BindingTemplate, texts []bindingText) (made []packagesv1.Binding) {
	for i := range all {
		from := all[i].From
		b := packagesv1.Binding{BindingTarget: all[i].BindingTarget, From: packagesv1.BindingSource{
			Literal: from.Literal, PackageContext: from.PackageContext, PackageObject: from.PackageObject,
		}}
		if from.LiteralExpr != "" {
			b.From.Literal = packagesv1.TextLiteral(w.text(texts[i].literal))
		}
		if from.Object != nil {
			object := from.Object.BindingObject
			object.Name = w.text(texts[i].object)
			b.From.Object = &object
		}
		made = append(made, b)
	}
	return made
}
