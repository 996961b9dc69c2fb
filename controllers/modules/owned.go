package modules

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/failure"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories;gitrepositories,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=externalartifacts,verbs=get;list;watch

const (
	// ownedInterval is long: what is pinned does not change, and what is stored is not asked for again.
	ownedInterval = 24 * time.Hour
	ownedTimeout  = time.Minute
	// shardLabel tells which of several controllers looks after a source; a source follows its template.
	shardLabel = "sharding.fluxcd.io/key"
)

// ownedObject is the source that the template's artifact needs, as it has to be.
func ownedObject(t *modulesv1.ModuleTemplate) client.Object {
	ref := objects.SourceOf(t)
	// It has no owner: what is installed of it outlives the template.
	header := metav1.ObjectMeta{
		Namespace: t.Namespace, Name: ref.Name, Annotations: map[string]string{modulesv1.TemplateAnnotation: t.Name},
	}
	if shard := t.Labels[shardLabel]; shard != "" {
		header.Labels = map[string]string{shardLabel: shard}
	}
	if git := t.Spec.Artifact.Git; git != nil {
		return &sourcev1.GitRepository{ObjectMeta: header, Spec: sourcev1.GitRepositorySpec{
			URL:       git.URL,
			Reference: &sourcev1.GitRepositoryRef{Commit: git.Commit},
			SecretRef: localReference(git.SecretRef),
			Interval:  metav1.Duration{Duration: ownedInterval},
			Timeout:   &metav1.Duration{Duration: ownedTimeout},
		}}
	}
	oci := t.Spec.Artifact.OCI
	obj := &sourcev1.OCIRepository{ObjectMeta: header, Spec: sourcev1.OCIRepositorySpec{
		URL:                oci.Repository,
		Reference:          &sourcev1.OCIRepositoryRef{Digest: oci.Digest},
		Provider:           cmp.Or(oci.Provider, sourcev1.GenericOCIProvider),
		SecretRef:          localReference(oci.SecretRef),
		CertSecretRef:      localReference(oci.CertSecretRef),
		ProxySecretRef:     localReference(oci.ProxySecretRef),
		ServiceAccountName: oci.ServiceAccountName,
		Insecure:           oci.Insecure,
		Interval:           metav1.Duration{Duration: ownedInterval},
		Timeout:            &metav1.Duration{Duration: ownedTimeout},
	}}
	if oci.LayerSelector != nil {
		obj.Spec.LayerSelector = &sourcev1.OCILayerSelector{MediaType: oci.LayerSelector.MediaType, Operation: sourcev1.OCILayerExtract}
	}
	return obj
}

func localReference(ref *modulesv1.LocalReference) *meta.LocalObjectReference {
	if ref == nil {
		return nil
	}
	return &meta.LocalObjectReference{Name: ref.Name}
}

// ensureOwned makes the template's source, or mends it. Only spec.suspend of it is the operators' to set.
func (k *templates) ensureOwned(ctx context.Context, t *modulesv1.ModuleTemplate) error {
	want, ref := ownedObject(t), objects.SourceOf(t)
	have := published.EmptySource(ref)
	err := k.shared.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		err = k.shared.Client.Create(ctx, want, client.FieldOwner(k.shared.FieldOwner))
		if apierrors.IsAlreadyExists(err) {
			return nil // The cache is behind; the source wakes this template when it is there.
		}
		return wrap(err, "create", ref)
	}
	if err != nil {
		return wrap(err, "read", ref)
	}
	// It may have been made for an earlier template of the same name.
	if have.GetAnnotations()[modulesv1.TemplateAnnotation] != t.Name {
		return failure.Wait(modulesv1.FailedReason, 0, fmt.Errorf(
			"%s %s exists, and was not made for this template; delete or rename it", ref.Kind, ref.Name))
	}
	before, _ := have.DeepCopyObject().(client.Object)
	mend(have, want)
	if equality.Semantic.DeepEqual(before, have) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return wrap(k.shared.Client.Patch(ctx, have, patch, client.FieldOwner(k.shared.FieldOwner)), "mend", ref)
}

// mend makes the source what it has to be.
func mend(have, want client.Object) {
	switch have := have.(type) {
	case *sourcev1.OCIRepository:
		if want, ok := want.(*sourcev1.OCIRepository); ok {
			want.Spec.Suspend = have.Spec.Suspend
			have.Spec = want.Spec
		}
	case *sourcev1.GitRepository:
		if want, ok := want.(*sourcev1.GitRepository); ok {
			want.Spec.Suspend = have.Spec.Suspend
			have.Spec = want.Spec
		}
	}
}

func wrap(err error, verb string, ref modulesv1.SourceReference) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", verb, ref.Kind, ref.Name, err)
}
