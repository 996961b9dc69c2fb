package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// complete gives objects their namespace and our labels, and knows them by their keys.
func (r *rendering) complete(objects []*unstructured.Unstructured) (*render, error) {
	rules, err := newIgnoring(r.in.Spec.GetIgnored())
	if err != nil {
		return nil, failure.At(StageBuild, failure.Stall(modulesv1.BuildFailedReason, err))
	}
	made := &render{objects: make([]object, 0, len(objects)), keys: make(map[key]bool, len(objects)), ignored: map[key]bool{}}
	scopes := scopesOf(objects)
	for _, o := range objects {
		if err := r.place(o, scopes, made); err != nil {
			return nil, failure.At(StageBuild, failure.Retry(modulesv1.ApplyFailedReason, err))
		}
		o.SetLabels(labels.Merge(o.GetLabels(), labelsOf(r.in.Name, r.in.Namespace)))
		k := keyOfObject(o)
		if made.keys[k] || made.ignored[k] {
			return nil, failure.At(StageBuild, failure.Retry(modulesv1.BuildFailedReason, fmt.Errorf(
				"%w: %s is there twice once it has its namespace", build.ErrDocument, describe(refOfObject(o)))))
		}
		if err := r.add(made, k, o, rules); err != nil {
			return nil, failure.At(StageBuild, failure.Retry(modulesv1.BuildFailedReason, err))
		}
	}
	applied := make([]*unstructured.Unstructured, 0, len(made.objects))
	for _, o := range made.objects {
		applied = append(applied, o.Unstructured)
	}
	made.digest = fmt.Sprintf("sha256:%x", r.salted(build.RenderDigest(applied)))
	return made, nil
}

// add takes an object in, as its annotations and the fields that others own have it.
func (r *rendering) add(made *render, k key, o *unstructured.Unstructured, rules ignoring) error {
	ssa, err := annotated(o)
	if err != nil {
		return err
	}
	if ssa == cluster.SSAIgnore {
		made.ignored[k] = true
		return nil
	}
	lean, yielded, err := rules.split(o)
	if err != nil {
		return err
	}
	made.keys[k] = true
	// 128 bits are enough to tell an object from what it was.
	sum := r.salted(build.Hash(lean))
	made.objects = append(made.objects, object{
		key: k, hash: base64.RawURLEncoding.EncodeToString(sum[:16]), stage: cluster.Stage(o.GroupVersionKind()),
		Unstructured: lean, whole: o, yielded: yielded, once: ssa == ssaIfNotPresent,
	})
	return nil
}

// place puts an object into its namespace, or takes it out where its kind has none.
func (r *rendering) place(o *unstructured.Unstructured, scopes map[schema.GroupKind]bool, made *render) error {
	gvk := o.GroupVersionKind()
	namespaced, known := scopes[gvk.GroupKind()]
	if !known {
		var err error
		namespaced, err = r.client.Namespaced(gvk)
		switch {
		case errors.Is(err, cluster.ErrNoKind):
			var applied bool
			if namespaced, applied = r.placed(gvk.GroupKind()); !applied {
				// Most kinds have namespaces; should this one not, it gets another key once it is known.
				namespaced, made.unsure = true, true
			}
		case err != nil:
			return fmt.Errorf("find out whether %s has namespaces: %w", gvk.Kind, err)
		}
	}
	inNamespace(o, r.in.Namespace, namespaced)
	return nil
}

// inNamespace puts an object into the namespace if it names none, or takes it out where its kind has none.
func inNamespace(o *unstructured.Unstructured, namespace string, namespaced bool) {
	switch {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(namespace)
	}
}

// placed says whether members of the kind that were applied have namespaces: an aggregated API may be down, or a CRD away.
func (r *rendering) placed(kind schema.GroupKind) (namespaced, applied bool) {
	for m := range every(r.members) {
		if m.UID != "" && kindOf(m).GroupKind() == kind {
			return m.Namespace != "", true
		}
	}
	return false, false
}

// scopesOf are the kinds that CRDs among the objects define, and whether these have namespaces.
func scopesOf(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	scopes := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if kind, ok := defined(o); ok {
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
			scopes[kind] = scope == "Namespaced"
		}
	}
	return scopes
}

// salted is a digest that depends on the salt as well.
func (r *rendering) salted(digest string) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.salt + digest))
}
