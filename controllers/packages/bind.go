package packages

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages/lookups"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/variant"
)

// binding is one of a variant, and what is to be read for it.
type binding struct {
	variant.Bound

	object *packagesv1.BindingObject
	want   lookups.Want
}

// isRead tells whether an object of the cluster has to be read.
func (b binding) isRead() bool { return b.object != nil && b.Reason == "" }

// bindings are those of the spec, in their order.
func bindings(obj *packagesv1.PackageVariant, slots []variant.Slots) ([]binding, error) {
	var all []binding
	for i := range obj.Spec.Bindings {
		made, err := bindingOf(obj, &obj.Spec.Bindings[i])
		if err != nil {
			return nil, failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("spec.bindings[%d] (%s): %w", i, obj.Spec.Bindings[i].Name, err))
		}
		at := slices.IndexFunc(slots, func(s variant.Slots) bool { return s.Name == made.Name })
		switch {
		case at < 0:
			made.Reason, made.Message = packagesv1.NoPointReason, "no field or object of the package is marked with the name; mend the name, or take the binding out"
		case made.object != nil && !made.AllowSecrets && kpt.IsSecret(made.want.GVK.Group, made.want.GVK.Kind):
			made.Reason, made.Message = variant.ReasonForbidden, "the object is a Secret; set allowSecrets on the binding where that is meant"
		}
		all = append(all, made)
	}
	// In which order they are written changes nothing.
	slices.SortFunc(all, func(a, b binding) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// bindingOf is one of the spec.
func bindingOf(obj *packagesv1.PackageVariant, spec *packagesv1.Binding) (binding, error) {
	made := binding{Bound: variant.Bound{
		Name: spec.Name, Type: kpt.Type(spec.Type), AllowSecrets: spec.AllowSecrets, Path: spec.Path,
	}}
	if spec.Path != "" {
		if err := function.CheckPath(spec.Path); err != nil {
			return made, err
		}
	}
	switch from := spec.From; {
	case from.Object != nil:
		made.object = from.Object
		made.want.GVK = schema.FromAPIVersionAndKind(from.Object.APIVersion, from.Object.Kind)
		made.Of = objectSaid(obj, from.Object)
	case from.PackageContext != "":
		made.Within, made.Path, made.Of = variant.Context(), "data.["+from.PackageContext+"]", "the package's context"
	case from.PackageObject != nil:
		o := from.PackageObject
		made.Within = &variant.Within{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, File: o.File}
		made.Of = o.Kind + " " + o.Name + " of the package"
	default:
		made.Of = "the spec"
		if err := from.Literal.Check(); err != nil {
			return made, err
		}
		value, err := from.Literal.Value()
		made.Value = value
		return made, err
	}
	return made, nil
}

// objectSaid says which object is meant.
func objectSaid(obj *packagesv1.PackageVariant, o *packagesv1.BindingObject) string {
	if o.LabelSelector != nil && o.Name == "" {
		return fmt.Sprintf("%s with labels %s", o.Kind, metav1.FormatLabelSelector(o.LabelSelector))
	}
	name := cmp.Or(o.Name, obj.Spec.Downstream.Repo)
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Kind + " " + name
}

// bindingWants adds what is to be read for the bindings.
func (k *variants) bindingWants(
	identity cluster.Identity, obj *packagesv1.PackageVariant, all []binding, wants []lookups.Want,
) ([]lookups.Want, error) {
	for i := range all {
		b := &all[i]
		if !b.isRead() {
			continue
		}
		var err error
		if b.want.Namespace, err = k.shared.Lookups.Place(identity, b.want.GVK, cmp.Or(b.object.Namespace, obj.Namespace)); err != nil {
			return nil, err
		}
		if b.object.LabelSelector == nil || b.object.Name != "" {
			b.want.Name = cmp.Or(b.object.Name, obj.Spec.Downstream.Repo)
		} else if b.want.Selector, err = metav1.LabelSelectorAsSelector(b.object.LabelSelector); err != nil {
			return nil, failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf("the binding %s: from.object.labelSelector: %w", b.Name, err))
		}
		wants = append(wants, b.want)
	}
	return wants, nil
}

// bind reads what is bound.
func (k *variants) bind(ctx context.Context, identity cluster.Identity, all []binding, config *variant.Config) ([]variant.Bound, error) {
	// Many bindings are about different fields of one object.
	known := map[string]variant.Found{}
	bound := make([]variant.Bound, len(all))
	for i, b := range all {
		if b.isRead() {
			key := fmt.Sprint(b.want.GVK, b.want.Namespace, "\n", b.want.Name, "\n", b.want.Selector)
			found, isKnown := known[key]
			if !isKnown {
				var err error
				if found, err = k.read(ctx, identity, b.want); err != nil {
					return nil, err
				}
				known[key] = found
			}
			b.Found(b.want.GVK.Group, b.want.GVK.Kind, found)
		}
		if bound[i] = b.Bound; b.Reason != packagesv1.NoPointReason {
			config.Bindings = append(config.Bindings, b.Bound)
		}
	}
	return bound, nil
}

// boundStatus shows what fills the slots, and which bindings have none.
func boundStatus(slots []variant.Slots, bound []variant.Bound) (shown []packagesv1.BindingStatus) {
	for _, named := range slots {
		s := packagesv1.BindingStatus{
			Name: fit(named.Name, maxLabel+1), Required: named.Required, Points: capped(named.Count),
			Reason: packagesv1.BindingMissingReason, Message: variant.NoBinding,
		}
		if i := slices.IndexFunc(bound, func(b variant.Bound) bool { return b.Name == named.Name }); i >= 0 {
			s.From, s.Reason, s.Message = fit(bound[i].From(), maxRef), bound[i].Reason, bound[i].Message
		}
		if s.Reason == variant.ReasonNoResource {
			s.Reason = packagesv1.InjectionMissingReason // As the status of an injection point has it.
		}
		shown = append(shown, s)
	}
	for _, b := range bound {
		if b.Reason == packagesv1.NoPointReason {
			shown = append(shown, packagesv1.BindingStatus{Name: b.Name, From: fit(b.From(), maxRef), Reason: b.Reason, Message: b.Message})
		}
	}
	return shown
}

// conditions are those of the package as it should be, whether it is written or foreseen; none while it is not made.
func (l *look) conditions(b *brief) []kpt.Condition {
	switch made := cmp.Or(l.open, branchOf(l.state)); {
	case made != nil && b.makes(made):
		return made.Facts.Conditions
	case l.last != nil && l.last.made.isPreview:
		return l.last.made.conditions
	}
	return nil
}

// refuse takes over why points of the package are left as they are: what goes where is known only once it is made.
func (l *look) refuse(conditions []kpt.Condition) {
	for _, c := range conditions {
		name, ok := kpt.SlotNameOf(c.Type)
		i := slices.IndexFunc(l.bound, func(s packagesv1.BindingStatus) bool { return s.Name == name && s.Reason == "" })
		if ok && i >= 0 && c.Status != "True" {
			l.bound[i].Reason, l.bound[i].Message = fit(c.Reason, maxLabel+1), fit(c.Message, maxRef)
		}
	}
}

// missing says which required points have nothing to fill them; empty for none.
func (l *look) missing() string {
	lacking := slices.Clone(l.lacking)
	for i := range l.bound {
		if s := &l.bound[i]; s.Required && s.Reason != "" {
			lacking = append(lacking, fmt.Sprintf("%s (%s)", s.Name, s.Message))
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return "These required points are not filled: " + printable.List(lacking, fewPoints)
}
