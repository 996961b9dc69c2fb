package cli

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/catalog"
)

// find gets what is asked for of one kind. What was found counts beside an error too.
func (g *getter) find(ctx context.Context, asked wanted) ([]unstructured.Unstructured, error) {
	if len(asked.names) == 0 {
		options := []client.ListOption{client.MatchingLabelsSelector{Selector: g.selector}}
		where := "in all namespaces"
		if !g.all {
			options = append(options, client.InNamespace(g.namespace))
			where = "in namespace " + g.namespace
		}
		found, err := g.listAll(ctx, asked.kind, options...)
		if err != nil {
			return found, explain(fmt.Sprintf("list %s %s", asked.kind.resource, where), err, "sluice-view")
		}
		return found, nil
	}
	if g.all {
		return nil, usage("objects are named, and -A asks for those of all namespaces", "name the namespace with -n")
	}
	var found []unstructured.Unstructured
	var problems []error
	for _, name := range asked.names {
		switch obj, err := g.named(ctx, asked.kind, name); {
		case isGeneral(err):
			return found, err
		case err != nil:
			problems = append(problems, err)
		case g.selector.Matches(labels.Set(obj.GetLabels())):
			found = append(found, *obj)
		}
	}
	return found, errors.Join(problems...)
}

// unfounded is why nothing was found, if that is because the session's namespace is not there. Who may not read it is told nothing.
func (s *session) unfounded(ctx context.Context) error {
	err := s.Get(ctx, client.ObjectKey{Name: s.namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	return &CommandError{Code: ExitUnanswered, What: fmt.Sprintf("look into namespace %q", s.namespace), Why: "there is no such namespace", Help: []string{"name another one with -n"}}
}

// named gets the object of that name in the session's namespace.
func (s *session) named(ctx context.Context, k kind, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj); err != nil {
		return nil, s.notHad(ctx, k, name, err)
	}
	return obj, nil
}

// notHad says why an object could not be read, and where there is one of its name.
func (s *session) notHad(ctx context.Context, k kind, name string, err error) *CommandError {
	told := explain(fmt.Sprintf("get %s %q in namespace %q", k.Kind, name, s.namespace), err, "sluice-view")
	if !apierrors.IsNotFound(err) || len(told.Help) > 0 {
		return told
	}
	told.Why, told.missing = "not found", true
	if near := nearKinds(name); len(near) > 0 && k.resource == kinds()[0].resource {
		told.Help = append(told.Help, "if a kind was meant, similar: "+list(near))
	}
	elsewhere, err := s.listAll(ctx, k, client.MatchingFields{"metadata.name": name})
	if err == nil && len(elsewhere) > 0 {
		var spaces []string
		for _, obj := range elsewhere[:min(len(elsewhere), 3)] {
			spaces = append(spaces, obj.GetNamespace())
		}
		told.Help = append(told.Help, fmt.Sprintf("there is one of that name in %s: add -n %s", list(spaces), spaces[0]))
		return told
	}
	beside, err := s.listAll(ctx, k, client.InNamespace(s.namespace))
	if err == nil {
		var names []string
		for i := range beside {
			names = append(names, beside[i].GetName())
		}
		if near := catalog.Near(name, names); len(near) > 0 {
			told.Help = append(told.Help, "similar: "+list(near))
		}
	}
	return told
}
