package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source/generator"
	"sluice.dev/sluice/storage"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "sluice"
)

// outputs writes the ExternalArtifacts of one generator, in one round.
type outputs struct {
	shared    Shared
	reader    client.Reader
	store     storage.Store
	generator *extensionsv1.ArtifactGenerator
	// claimed are the ExternalArtifacts that are this generator's, as they were last read or written.
	claimed map[string]*sourcev1.ExternalArtifact
}

// isOurs tells whether the generator has made the object: it has its label, or names it and has nobody else's. The label of a
// generator that is gone is that of a namesake: both may have come out of a backup.
func (o *outputs) isOurs(ctx context.Context, obj *sourcev1.ExternalArtifact) (bool, error) {
	uid := obj.Labels[extensionsv1.GeneratorLabel]
	switch {
	case uid == string(o.generator.UID):
		return true, nil
	case makerOf(obj) != client.ObjectKeyFromObject(o.generator):
		return false, nil
	case uid == "":
		return true, nil
	}
	var list extensionsv1.ArtifactGeneratorList
	if err := o.reader.List(ctx, &list, client.InNamespace(obj.Namespace)); err != nil {
		return false, fmt.Errorf("list ArtifactGenerators: %w", err)
	}
	return !slices.ContainsFunc(list.Items, func(other extensionsv1.ArtifactGenerator) bool { return string(other.UID) == uid }), nil
}

// makerOf is the generator that an ExternalArtifact names; the zero key where it names none.
func makerOf(obj *sourcev1.ExternalArtifact) types.NamespacedName {
	ref := obj.Spec.SourceRef
	group := extensionsv1.GroupVersion.Group + "/"
	if ref == nil || ref.Kind != extensionsv1.ArtifactGeneratorKind || !strings.HasPrefix(ref.APIVersion, group) ||
		ref.Namespace != "" && ref.Namespace != obj.Namespace {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: obj.Namespace, Name: ref.Name}
}

// Claim implements generator.Outputs.
func (o *outputs) Claim(ctx context.Context, name string, labels map[string]string) (generator.Claimed, error) {
	there, ok := o.claimed[name]
	if !ok {
		var err error
		if there, err = o.take(ctx, name, o.wanted(name, labels)); err != nil {
			return generator.Claimed{}, err
		}
		o.claimed[name] = there
	}
	claimed := generator.Claimed{Name: name, UID: string(there.UID)}
	if artifact := there.Status.Artifact; artifact != nil {
		claimed.Reported = &storage.Artifact{Path: artifact.Path, Revision: artifact.Revision, Digest: digest.Digest(artifact.Digest)}
	}
	return claimed, nil
}

// wanted is what an ExternalArtifact of ours says of itself.
func (o *outputs) wanted(name string, captured map[string]string) *sourcev1.ExternalArtifact {
	labels, annotations := map[string]string{}, map[string]string{}
	if common := o.generator.Spec.CommonMetadata; common != nil {
		maps.Copy(labels, common.Labels)
		maps.Copy(annotations, common.Annotations)
	}
	maps.Copy(labels, captured)
	labels[managedByLabel], labels[extensionsv1.GeneratorLabel] = managedBy, string(o.generator.UID)
	return &sourcev1.ExternalArtifact{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.ExternalArtifactKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.generator.Namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec: sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{
			APIVersion: extensionsv1.GroupVersion.String(), Kind: extensionsv1.ArtifactGeneratorKind, Name: o.generator.Name, Namespace: o.generator.Namespace,
		}},
	}
}

// take makes the object what is wanted, if it is the generator's or nobody's.
func (o *outputs) take(ctx context.Context, name string, wanted *sourcev1.ExternalArtifact) (*sourcev1.ExternalArtifact, error) {
	there := &sourcev1.ExternalArtifact{}
	err := o.reader.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if apierrors.IsNotFound(err) {
		// The cache may not show yet what somebody has just made.
		err = o.shared.Reader.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	}
	ours := false
	if err == nil {
		ours, err = o.isOurs(ctx, there)
	}
	switch {
	case apierrors.IsNotFound(err):
		return o.make(ctx, wanted)
	case err != nil:
		return nil, failure.Retry(extensionsv1.ReconciliationFailedReason, fmt.Errorf("read ExternalArtifact: %w", err))
	case !ours:
		return nil, taken(name)
	case !there.DeletionTimestamp.IsZero():
		return nil, failure.Wait(extensionsv1.ReconciliationFailedReason, 0, errors.New("the ExternalArtifact is being deleted, and is made again when it is gone"))
	case o.isAsWanted(there, wanted):
		return there.DeepCopy(), nil
	}
	wanted.UID = there.UID // Another one of that name is not ours.
	made, err := o.apply(ctx, wanted, client.ForceOwnership)
	return made, explainWrite(err)
}

// make makes the object, if there is none by now. What it is made with is its for good; the rest may be taken away again, and so is
// applied.
func (o *outputs) make(ctx context.Context, wanted *sourcev1.ExternalArtifact) (*sourcev1.ExternalArtifact, error) {
	made := wanted.DeepCopy()
	made.Annotations = nil
	made.Labels = map[string]string{managedByLabel: managedBy, extensionsv1.GeneratorLabel: string(o.generator.UID)}
	if err := o.shared.Client.Create(ctx, made, client.FieldOwner(o.shared.FieldOwner)); err != nil {
		return nil, explainWrite(err)
	}
	wanted.UID = made.UID
	applied, err := o.apply(ctx, wanted, client.ForceOwnership)
	return applied, explainWrite(err)
}

func taken(name string) error {
	return failure.Stall(extensionsv1.ConflictReason, fmt.Errorf("ExternalArtifact %s is there, and %w: delete it, or give the artifact another name", name, generator.ErrTaken))
}

func explainWrite(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		// Whoever reads it sees a conflict with what somebody else has done, whichever it was.
		conflict := apierrors.NewConflict(schema.GroupResource{Group: sourcev1.GroupVersion.Group, Resource: "externalartifacts"}, "", err)
		return fmt.Errorf("%w: %w", generator.ErrStale, conflict)
	}
	return failure.Retry(extensionsv1.ReconciliationFailedReason, fmt.Errorf("write ExternalArtifact: %w", err))
}

// isAsWanted tells whether an object has what is wanted, and nothing that was wanted earlier.
func (o *outputs) isAsWanted(there, wanted *sourcev1.ExternalArtifact) bool {
	labels, annotations := o.written(there)
	return holds(there.Labels, wanted.Labels, labels) && holds(there.Annotations, wanted.Annotations, annotations) &&
		equality.Semantic.DeepEqual(there.Spec, wanted.Spec)
}

// holds tells whether a map has all that is wanted, and of what was written earlier no more than that.
func holds(there, wanted map[string]string, written []string) bool {
	for key, value := range wanted {
		if have, ok := there[key]; !ok || have != value {
			return false
		}
	}
	return !slices.ContainsFunc(written, func(key string) bool { _, ok := wanted[key]; return !ok })
}

// written are the labels and annotations that an object has from us.
func (o *outputs) written(there *sourcev1.ExternalArtifact) (labels, annotations []string) {
	for _, entry := range there.ManagedFields {
		if entry.Manager != o.shared.FieldOwner || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels      map[string]any `json:"f:labels"`
				Annotations map[string]any `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue // Whoever wrote that wrote no labels.
		}
		for key := range fields.Metadata.Labels {
			labels = append(labels, strings.TrimPrefix(key, "f:"))
		}
		for key := range fields.Metadata.Annotations {
			annotations = append(annotations, strings.TrimPrefix(key, "f:"))
		}
	}
	return labels, annotations
}

// apply writes all of an object but its status.
func (o *outputs) apply(ctx context.Context, wanted *sourcev1.ExternalArtifact, options ...client.ApplyOption) (*sourcev1.ExternalArtifact, error) {
	text, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	fields := &unstructured.Unstructured{}
	if err := fields.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(fields.Object, "status")
	unstructured.RemoveNestedField(fields.Object, "metadata", "creationTimestamp")
	err = o.shared.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(fields), append(options, client.FieldOwner(o.shared.FieldOwner))...)
	if err != nil {
		return nil, err
	}
	made := &sourcev1.ExternalArtifact{}
	if text, err = fields.MarshalJSON(); err != nil {
		return nil, err
	}
	return made, json.Unmarshal(text, made)
}

// Publish implements generator.Outputs.
func (o *outputs) Publish(ctx context.Context, claimed generator.Claimed, artifact storage.Artifact) error {
	there := o.claimed[claimed.Name]
	before := there.DeepCopy()
	show(there, o.shared.published(artifact))
	if equality.Semantic.DeepEqual(before.Status, there.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return explainWrite(o.shared.Client.Status().Patch(ctx, there, patch, client.FieldOwner(o.shared.FieldOwner)))
}

// show makes status say what an artifact is, and that it is there.
func show(obj *sourcev1.ExternalArtifact, artifact *meta.Artifact) {
	if !equality.Semantic.DeepEqual(obj.Status.Artifact, artifact) {
		obj.Status.Artifact = artifact
	}
	conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "Artifact is ready")
}

// Prune implements generator.Outputs.
func (o *outputs) Prune(ctx context.Context, names map[string]bool) (removed []string, err error) {
	var list sourcev1.ExternalArtifactList
	if err := o.reader.List(ctx, &list, client.InNamespace(o.generator.Namespace)); err != nil {
		return nil, fmt.Errorf("list ExternalArtifacts: %w", err)
	}
	for i := range list.Items {
		there := &list.Items[i]
		if names[there.Name] {
			continue
		}
		if ours, err := o.isOurs(ctx, there); err != nil || !ours {
			if err != nil {
				return removed, err
			}
			continue
		}
		err := o.shared.Client.Delete(ctx, there, client.Preconditions{UID: &there.UID})
		if apierrors.IsConflict(err) {
			return removed, explainWrite(err)
		}
		if client.IgnoreNotFound(err) != nil {
			return removed, fmt.Errorf("delete ExternalArtifact %s: %w", there.Name, err)
		}
		if err := o.discard(ctx, there); err != nil {
			return removed, err
		}
		removed = append(removed, there.Name)
	}
	return removed, nil
}

// discard removes what is stored for an object that is gone.
func (o *outputs) discard(ctx context.Context, gone *sourcev1.ExternalArtifact) error {
	object := outputObject(gone.Namespace, gone.Name)
	record, err := o.store.Record(ctx, object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	if err == nil && record.UID != string(gone.UID) {
		return nil // It is a namesake's.
	}
	return o.store.Delete(ctx, object)
}
