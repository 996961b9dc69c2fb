package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// Variables are the values for substitution, by their names.
type Variables struct {
	Values map[string]string
	// Secret are the names whose values come from a Secret.
	Secret map[string]bool
}

// ReadVariables gives all values for substitution in a namespace: those of the objects that substituteFrom names, the later over
// the earlier, and over them those of the config itself.
func ReadVariables(ctx context.Context, reader *cluster.Client, namespace string, config *modulesv1.InstallationConfig) (Variables, error) {
	all := Variables{Values: map[string]string{}, Secret: map[string]bool{}}
	for _, from := range config.SubstituteFrom {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: from.Kind}
		found, err := reader.Get(ctx, cluster.Ref{GVK: gvk, Namespace: namespace, Name: from.Name})
		switch {
		case errors.Is(err, cluster.ErrNotFound) && from.Optional:
			continue
		case errors.Is(err, cluster.ErrForbidden):
			return Variables{}, failure.Retry(modulesv1.ForbiddenReason, fmt.Errorf("read variables: %w", err))
		case err != nil:
			return Variables{}, failure.Retry(modulesv1.BuildFailedReason, fmt.Errorf("read variables from %s %s: %w", from.Kind, from.Name, err))
		}
		if err := all.add(from, found); err != nil {
			return Variables{}, failure.Retry(modulesv1.BuildFailedReason, err)
		}
	}
	maps.Copy(all.Values, config.Substitute)
	for name := range config.Substitute {
		delete(all.Secret, name)
	}
	return all, nil
}

// add adds an object's data. No value is ever part of an error.
func (v *Variables) add(from modulesv1.SubstituteReference, found *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedStringMap(found.Object, "data")
	if err != nil {
		return fmt.Errorf("%s %s has data that is not text", from.Kind, from.Name)
	}
	for name, value := range data {
		isSecret := from.Kind == modulesv1.SubstituteFromSecret
		if isSecret {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%s %s: %s is not base64", from.Kind, from.Name, name)
			}
			value = string(decoded)
		}
		v.Values[name] = value
		if delete(v.Secret, name); isSecret {
			v.Secret[name] = true
		}
	}
	return nil
}
