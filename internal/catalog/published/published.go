// Package published reads what a catalogue says of a release, and where its content is now.
// It does not know how a release is chosen, nor what becomes of it.
package published

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/failure"
)

// ErrReleaseMoved says that a template stands for another release by now than the one that was chosen: choose again.
var ErrReleaseMoved = errors.New("the template stands for another release by now")

// Release is the template of a release that was chosen from the namespace's catalogue, and the release as it is recorded.
// The record names the source even before that exists; Revision and Digest are those of Artifact, once there is one. The
// template must not be changed, as it may come from a cache. The error may be ErrReleaseMoved.
func Release(ctx context.Context, reader client.Reader, namespace string, chosen catalog.Release) (*modulesv1.ModuleTemplate, modulesv1.Release, error) {
	template := &modulesv1.ModuleTemplate{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: chosen.Template}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, modulesv1.Release{}, fmt.Errorf("template %q: %w", chosen.Template, ErrReleaseMoved)
		}
		return nil, modulesv1.Release{}, fmt.Errorf("read template %q: %w", chosen.Template, err)
	}
	if now := objects.ReleaseOf(template); now.Version != chosen.Version || now.Digest != chosen.Digest || now.Module != chosen.Module {
		return nil, modulesv1.Release{}, fmt.Errorf("template %q: %w", chosen.Template, ErrReleaseMoved)
	}
	return template, objects.RecordOf(template), nil
}

// Artifact is where the content of a recorded release can be fetched now. It asks the release's source alone, so that
// what is installed can be had for as long as that exists, whatever became of the template. A source that has no
// artifact yet, or that of another release, is waited for with reason ArtifactNotReady; one that is gone with
// SourceNotFound.
func Artifact(ctx context.Context, reader client.Reader, release *modulesv1.Release) (*meta.Artifact, error) {
	if release.Source == nil {
		return nil, failure.Wait(modulesv1.SourceNotFoundReason, 0, errors.New("the release does not say where it comes from"))
	}
	found, err := Source(ctx, reader, release.Namespace, *release.Source)
	if err != nil {
		return nil, err
	}
	artifact, err := found.ArtifactOf(objects.PinOf(release.Content))
	if err != nil {
		return nil, failure.Wait(modulesv1.ArtifactNotReadyReason, 0, err)
	}
	return artifact, nil
}

// Source reads a source. The error says that there is none, or that its kind has no pins.
func Source(ctx context.Context, reader client.Reader, namespace string, ref modulesv1.SourceReference) (objects.Source, error) {
	obj := EmptySource(ref)
	if obj == nil {
		return objects.Source{}, failure.Stall(modulesv1.SourceNotPinnedReason, fmt.Errorf(
			"%s of %s cannot be pinned: use an OCIRepository, a GitRepository or an ExternalArtifact of %s", ref.Kind, ref.APIVersion, sourcev1.GroupVersion.Group))
	}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return objects.Source{}, failure.Wait(modulesv1.SourceNotFoundReason, 0, fmt.Errorf("%s %s does not exist", ref.Kind, ref.Name))
	case err != nil:
		return objects.Source{}, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return objects.ReadSource(obj), nil
}

// EmptySource is an object of the kind that is referred to; nil for kinds that cannot be pinned.
func EmptySource(ref modulesv1.SourceReference) client.Object {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	switch {
	case group != sourcev1.GroupVersion.Group:
		return nil
	case ref.Kind == sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	case ref.Kind == sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{}
	case ref.Kind == sourcev1.ExternalArtifactKind:
		return &sourcev1.ExternalArtifact{}
	default:
		return nil
	}
}
