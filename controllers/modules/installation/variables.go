package installation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// variables are the values that an installation's objects gave when they were read last, and what they were read for.
type variables struct {
	generation int64
	request    string
	identity   cluster.Identity
	readAt     time.Time
	values     map[string]string
}

// readVariables gives all values for substitution. What substituteFrom names is read as the installation's identity, at
// most once in half an interval unless the spec changed or somebody asks: rounds that a change in the cluster asks for
// read nothing. With an error come the values of before, which what is installed was made with; nil when there are none.
func (k *installations) readVariables(
	ctx context.Context, obj *modulesv1.ModuleInstallation, identity cluster.Identity, memory *memory,
) (map[string]string, error) {
	config := obj.Spec.Config
	if config == nil {
		return nil, nil
	}
	if len(config.SubstituteFrom) == 0 {
		return config.Substitute, nil
	}
	request, _ := meta.ReconcileAnnotationValue(obj.Annotations)
	known, now := memory.variables, k.options.Clock.Now()
	if known != nil && known.generation == obj.Generation && known.request == request && known.identity == identity &&
		now.Sub(known.readAt) < obj.GetRequeueAfter()/2 {
		return known.values, nil
	}
	values, err := k.fromObjects(ctx, obj, identity)
	if err != nil {
		if known == nil {
			return nil, err
		}
		return known.values, err
	}
	maps.Copy(values, config.Substitute)
	memory.variables = &variables{generation: obj.Generation, request: request, identity: identity, readAt: now, values: values}
	return values, nil
}

// fromObjects reads the objects that substituteFrom names, the later over the earlier.
func (k *installations) fromObjects(
	ctx context.Context, obj *modulesv1.ModuleInstallation, identity cluster.Identity,
) (map[string]string, error) {
	reader, err := k.options.Connector.As(identity)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", obj.Spec.ServiceAccountName, err)
	}
	values := map[string]string{}
	for _, from := range obj.Spec.Config.SubstituteFrom {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: from.Kind}
		found, err := reader.Get(ctx, cluster.Ref{GVK: gvk, Namespace: obj.Namespace, Name: from.Name})
		switch {
		case errors.Is(err, cluster.ErrNotFound) && from.Optional:
			continue
		case errors.Is(err, cluster.ErrForbidden):
			return nil, failure.Retry(modulesv1.ForbiddenReason, fmt.Errorf("read variables: %w", err))
		case err != nil:
			return nil, failure.Retry(modulesv1.BuildFailedReason, fmt.Errorf("read variables from %s %s: %w", from.Kind, from.Name, err))
		}
		if err := addVariables(values, from, found); err != nil {
			return nil, failure.Retry(modulesv1.BuildFailedReason, err)
		}
	}
	return values, nil
}

// addVariables adds an object's data. No value is ever part of an error.
func addVariables(values map[string]string, from modulesv1.SubstituteReference, found *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedStringMap(found.Object, "data")
	if err != nil {
		return fmt.Errorf("%s %s has data that is not text", from.Kind, from.Name)
	}
	for name, value := range data {
		if from.Kind == modulesv1.SubstituteFromSecret {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%s %s: %s is not base64", from.Kind, from.Name, name)
			}
			value = string(decoded)
		}
		values[name] = value
	}
	return nil
}
