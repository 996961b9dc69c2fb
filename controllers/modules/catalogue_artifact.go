package modules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/failure"
)

// ErrReleaseMoved says that a template stands for another release by now than the one that was chosen: choose again.
var ErrReleaseMoved = errors.New("the template stands for another release by now")

// Release is the template of a release that was chosen from the namespace's catalogue, and the release as it is recorded.
// The record names the source even before that exists; Revision and Digest are those of Artifact, once there is one. The
// template comes from the cache and must not be changed. The error may be ErrReleaseMoved.
func (c *Catalogue) Release(ctx context.Context, namespace string, chosen catalog.Release) (*modulesv1.ModuleTemplate, modulesv1.Release, error) {
	template := &modulesv1.ModuleTemplate{}
	if err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: chosen.Template}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, modulesv1.Release{}, fmt.Errorf("template %q: %w", chosen.Template, ErrReleaseMoved)
		}
		return nil, modulesv1.Release{}, fmt.Errorf("read template %q: %w", chosen.Template, err)
	}
	if now := releaseOf(template); now.Version != chosen.Version || now.Digest != chosen.Digest || now.Module != chosen.Module {
		return nil, modulesv1.Release{}, fmt.Errorf("template %q: %w", chosen.Template, ErrReleaseMoved)
	}
	return template, recordOf(template), nil
}

// recordOf is the release that the template stands for now, as it is recorded.
func recordOf(t *modulesv1.ModuleTemplate) modulesv1.Release {
	source := sourceOf(t)
	record := modulesv1.Release{
		Module: t.GetModuleName(), Version: versionOf(t), Namespace: t.Namespace, Template: t.Name,
		Source: &source, Content: templateContent(t), Path: folderOf(t.Spec.Artifact.Path),
	}
	return record
}

// Artifact is where the content of a recorded release can be fetched now. It asks the release's source alone, so that
// what is installed can be had for as long as that exists, whatever became of the template. A source that has no
// artifact yet, or that of another release, is waited for with reason ArtifactNotReady; one that is gone with
// SourceNotFound.
func (c *Catalogue) Artifact(ctx context.Context, release *modulesv1.Release) (*meta.Artifact, error) {
	if release.Source == nil {
		return nil, failure.Wait(modulesv1.SourceNotFoundReason, 0, errors.New("the release does not say where it comes from"))
	}
	found, err := c.source(ctx, release.Namespace, *release.Source)
	if err != nil {
		return nil, err
	}
	artifact, err := found.artifactOf(pinOf(release.Content))
	if err != nil {
		return nil, failure.Wait(modulesv1.ArtifactNotReadyReason, 0, err)
	}
	return artifact, nil
}

// sourceObject is what counts of a source, whatever its kind.
type sourceObject struct {
	client.Object

	kind string
	// pin is what the source is pinned to, as it ends a revision; empty when it may move.
	pin string
	// part says what of the pinned content is taken, as content has it.
	part     string
	artifact *meta.Artifact
	ready    *metav1.Condition
	failed   bool
}

// source reads a source from the cache. The error says that there is none, or that its kind has no pins.
func (c *Catalogue) source(ctx context.Context, namespace string, ref modulesv1.SourceReference) (sourceObject, error) {
	obj := emptySource(ref)
	if obj == nil {
		return sourceObject{}, failure.Stall(modulesv1.SourceNotPinnedReason, fmt.Errorf(
			"%s of %s cannot be pinned: use an OCIRepository or a GitRepository of %s", ref.Kind, ref.APIVersion, sourcev1.GroupVersion.Group))
	}
	err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		return sourceObject{}, failure.Wait(modulesv1.SourceNotFoundReason, 0, fmt.Errorf("%s %s does not exist", ref.Kind, ref.Name))
	case err != nil:
		return sourceObject{}, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return readSource(obj), nil
}

// emptySource is an object of the kind that is referred to; nil for kinds that cannot be pinned.
func emptySource(ref modulesv1.SourceReference) client.Object {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	switch {
	case group != sourcev1.GroupVersion.Group:
		return nil
	case ref.Kind == sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	case ref.Kind == sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{}
	default:
		return nil
	}
}

// String names the source in messages.
func (s sourceObject) String() string { return s.kind + " " + s.GetName() }

// artifactOf is the artifact, if it is that of the pin.
func (s sourceObject) artifactOf(pin string) (*meta.Artifact, error) {
	switch {
	case s.artifact == nil && s.failed:
		return nil, fmt.Errorf("%s has no artifact: %s", s, s.ready.Message)
	case s.artifact == nil:
		return nil, fmt.Errorf("%s has no artifact yet", s)
	case pin == "" || revisionPin(s.artifact.Revision) != pin:
		return nil, fmt.Errorf("%s has the artifact of another revision", s)
	default:
		return s.artifact, nil
	}
}

// revisionPin is the digest or commit that a revision ends in, after the branch or tag that it may begin with.
func revisionPin(revision string) string { return revision[strings.LastIndexByte(revision, '@')+1:] }
