package fanout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// template is what the variants of some targets are, with compiled expressions.
type template struct {
	fixed                packagesv1.VariantTemplate
	repo, pkg, namespace text
	labels, annotations  []pair
	data                 []pair
	removeKeys           []text
	injectors            []text
	bindings             []bindingText
	mutators, validators [][]pair
}

// pair is an entry of a map.
type pair struct{ key, value text }

func (c *compiler) template(field string, t *packagesv1.VariantTemplate) *template {
	if t == nil {
		t = &packagesv1.VariantTemplate{}
	}
	made := &template{fixed: *t}
	where := packagesv1.DownstreamTemplate{}
	if t.Downstream != nil {
		where = *t.Downstream
	}
	made.repo = c.text(field+".downstream.repo", where.Repo, where.RepoExpr, repoDefault, packageDefault, upstream, target)
	made.pkg = c.text(field+".downstream.package", where.Package, where.PackageExpr)
	made.namespace = c.text(field+".namespace", t.Namespace, t.NamespaceExpr)
	made.labels = c.pairs(field+".labelExprs", t.LabelExprs)
	made.annotations = c.pairs(field+".annotationExprs", t.AnnotationExprs)
	if context := t.PackageContext; context != nil {
		made.data = c.pairs(field+".packageContext.dataExprs", context.DataExprs)
		for i, expr := range context.RemoveKeyExprs {
			made.removeKeys = append(made.removeKeys, c.text(fmt.Sprintf("%s.packageContext.removeKey[%d]", field, i), "", expr))
		}
	}
	for i, injector := range t.Injectors {
		made.injectors = append(made.injectors, c.text(fmt.Sprintf("%s.injectors[%d].name", field, i), injector.Name, injector.NameExpr))
	}
	made.bindings = c.bindings(field+".bindings", t.Bindings)
	if t.Pipeline != nil {
		made.mutators = c.functions(field+".pipeline.mutators", t.Pipeline.Mutators)
		made.validators = c.functions(field+".pipeline.validators", t.Pipeline.Validators)
	}
	return made
}

func (c *compiler) functions(field string, functions []packagesv1.FunctionTemplate) (all [][]pair) {
	for i, f := range functions {
		all = append(all, c.pairs(fmt.Sprintf("%s[%d].configMapExprs", field, i), f.ConfigMapExprs))
	}
	return all
}

func (c *compiler) pairs(field string, exprs []packagesv1.MapExpr) (all []pair) {
	for i, e := range exprs {
		at := fmt.Sprintf("%s[%d]", field, i)
		fixed := ""
		if e.Value != nil {
			fixed = *e.Value
		}
		all = append(all, pair{c.text(at+".key", e.Key, e.KeyExpr), c.text(at+".value", fixed, e.ValueExpr)})
	}
	return all
}

// writer fills in the expressions of a template for one target, until one fails.
type writer struct {
	values map[string]any
	err    error
}

func (w *writer) text(t text) string {
	if w.err != nil {
		return ""
	}
	var made string
	made, w.err = t.of(w.values)
	return made
}

// entries adds those that depend on the target to the others. An expression comes before what is set as it is.
func (w *writer) entries(fixed map[string]string, exprs []pair) map[string]string {
	if len(exprs) == 0 {
		return fixed
	}
	made := maps.Clone(fixed)
	if made == nil {
		made = map[string]string{}
	}
	for _, e := range exprs {
		made[w.text(e.key)] = w.text(e.value)
	}
	return made
}

func (w *writer) functions(all []packagesv1.FunctionTemplate, exprs [][]pair) (made []packagesv1.Function) {
	for i := range all {
		f := all[i].Function
		f.ConfigMap = w.entries(f.ConfigMap, exprs[i])
		made = append(made, f)
	}
	return made
}

// spec is what the variant of a target is to be. The variables hold all but the repository, which is asked for its name.
func (t *template) spec(values map[string]any, repositories Repositories) (packagesv1.PackageVariantSpec, error) {
	w, f := &writer{values: values}, t.fixed
	repo := cmp.Or(w.text(t.repo), fmt.Sprint(values[repoDefault]))
	if w.err == nil {
		found, ok := repositories(repo)
		if !ok {
			return packagesv1.PackageVariantSpec{}, fmt.Errorf("there is no Repository %q", repo)
		}
		values[repository] = found
	}
	made := packagesv1.PackageVariantSpec{
		Downstream:     packagesv1.Downstream{Repo: repo, Package: cmp.Or(w.text(t.pkg), fmt.Sprint(values[packageDefault]))},
		Labels:         w.entries(f.Labels, t.labels),
		Annotations:    w.entries(f.Annotations, t.annotations),
		Namespace:      w.text(t.namespace),
		AdoptionPolicy: cmp.Or(f.AdoptionPolicy, packagesv1.AdoptNone), DeletionPolicy: cmp.Or(f.DeletionPolicy, packagesv1.DeletionDelete),
		Approval: f.Approval, ConflictPolicy: cmp.Or(f.ConflictPolicy, packagesv1.ConflictLocal), ServiceAccountName: f.ServiceAccountName,
	}
	if context := f.PackageContext; context != nil {
		made.PackageContext = &packagesv1.PackageContext{Data: w.entries(context.Data, t.data), RemoveKeys: slices.Clip(context.RemoveKeys)}
		for _, key := range t.removeKeys {
			made.PackageContext.RemoveKeys = append(made.PackageContext.RemoveKeys, w.text(key))
		}
	}
	for i := range f.Injectors {
		injector := f.Injectors[i].Injector
		injector.Name = w.text(t.injectors[i])
		made.Injectors = append(made.Injectors, injector)
	}
	made.Bindings = w.bindings(f.Bindings, t.bindings)
	if f.Pipeline != nil {
		made.Pipeline = &packagesv1.Pipeline{Mutators: w.functions(f.Pipeline.Mutators, t.mutators), Validators: w.functions(f.Pipeline.Validators, t.validators)}
	}
	return made, w.err
}
