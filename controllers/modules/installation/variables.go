package installation

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
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
	reader, err := k.options.Connector.As(identity)
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", obj.Spec.ServiceAccountName, err)
	}
	read, err := engine.ReadVariables(ctx, reader, obj.Namespace, config)
	if err != nil {
		if known == nil {
			return nil, err
		}
		return known.values, err
	}
	memory.variables = &variables{generation: obj.Generation, request: request, identity: identity, readAt: now, values: read.Values}
	return read.Values, nil
}
