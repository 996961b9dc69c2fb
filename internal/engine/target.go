package engine

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// Describe adds what a template says beside the artifact.
func (t *Target) Describe(template *modulesv1.ModuleTemplate) error {
	spec := &template.Spec
	t.Deletion, t.ManagedResources = spec.GetDeletionMode(), spec.ManagedResources
	t.Health = nil
	if spec.Health != nil {
		t.Health = spec.Health.Expressions
	}
	if spec.DefaultConfig == nil {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(spec.DefaultConfig.Raw, &object.Object); err != nil {
		return failure.Retry(modulesv1.BuildFailedReason, fmt.Errorf("read defaultConfig of template %s: %w", template.Name, err))
	}
	t.DefaultConfig = object
	return nil
}
