package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/offers"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
)

// finding is what came of one look at a template.
type finding struct {
	// looked says that all there is to know could be read; otherwise status says what it said before.
	looked bool

	module, version, channel, content string
	// artifactVersion is the artifact's own word on its version.
	artifactVersion string
	since           time.Time
	findings        []catalog.Finding
	uses            int

	// source is where the artifact comes from; nil while nothing needs it.
	source *modulesv1.SourceReference
	// artifact is what the source has; nil while it has nothing.
	artifact *meta.Artifact
	// artifactErr says why the artifact cannot be had; waiting, that it is on its way.
	artifactErr error
	waiting     string
}

// Work implements kernel.Kind: it says what the template stands for, and gets its artifact if something needs it.
func (k *templates) Work(ctx context.Context, obj *modulesv1.ModuleTemplate, _ kernel.Announce) (finding, error) {
	var f finding
	if obj.Undecodable != "" {
		return f, failure.Stall(modulesv1.FailedReason, errors.New(obj.Undecodable))
	}
	catalogue, err := k.shared.Offers.Namespace(ctx, obj.Namespace)
	if err != nil {
		return f, err
	}
	needed, err := k.shared.Offers.UsesOf(ctx, obj)
	if err != nil {
		return f, err
	}
	f.module, f.version, f.content = obj.GetModuleName(), objects.VersionOf(obj), objects.ContentOf(obj)
	f.findings, f.uses = catalogue.Findings(obj.Name), needed.Installations
	channels := catalogue.Channels(f.module, k.shared.Clock.Now())
	f.channel = claimed(obj, channels)

	switch {
	case obj.Spec.Artifact.SourceRef == nil && objects.HasOtherContent(obj, f.content):
		f.refuseContent(obj, "the template", f.content)
	case k.isWanted(obj, needed, channels):
		ref := objects.SourceOf(obj)
		f.source = &ref
		if err := k.getArtifact(ctx, obj, &f); err != nil {
			return f, err
		}
	}
	k.describe(obj, &f)
	f.findings = append(f.findings, k.unserved(obj)...)
	f.looked = true
	return f, f.problem()
}

// isWanted says whether the artifact has to be there: because an installation needs the release, a channel points to
// it, or it could not be had and is chosen as soon as it can. The artifacts of other sources are always looked at.
func (k *templates) isWanted(obj *modulesv1.ModuleTemplate, needed offers.Uses, channels []catalog.ChannelStatus) bool {
	if obj.Spec.Artifact.SourceRef != nil || needed.Sources[objects.SourceOf(obj).Name] {
		return true
	}
	if state, _ := objects.ReadinessOf(obj); state == catalog.NotReady {
		return true
	}
	return slices.ContainsFunc(channels, func(c catalog.ChannelStatus) bool { return c.Release != nil && c.Release.Template == obj.Name })
}

// claimed is the channel that points here because the template claims it, and for no other reason.
func claimed(obj *modulesv1.ModuleTemplate, channels []catalog.ChannelStatus) string {
	claim := obj.Spec.GetChannel()
	for _, c := range channels {
		if c.Name == claim && !c.Listed && c.Reason != modulesv1.ChannelConflictReason && obj.DeletionTimestamp.IsZero() {
			return claim
		}
	}
	return ""
}

// getArtifact looks at the source, which it makes where it is the template's own. What keeps the artifact from being
// used goes into the finding.
func (k *templates) getArtifact(ctx context.Context, obj *modulesv1.ModuleTemplate, f *finding) error {
	own := obj.Spec.Artifact.SourceRef == nil
	if own {
		if err := k.ensureOwned(ctx, obj); err != nil {
			return f.refuse(err)
		}
	}
	source, err := k.shared.Offers.Source(ctx, obj.Namespace, *f.source)
	if err != nil {
		if own && failure.Of(err).Reason == modulesv1.SourceNotFoundReason {
			// It was just made, and the cache is behind.
			f.wait(obj, err)
			return nil
		}
		return f.refuse(err)
	}
	if !own {
		if source.IsExternal() {
			source.Pin = obj.Spec.Artifact.Digest
		}
		if source.Pin == "" {
			return f.refuse(failure.Stall(modulesv1.SourceNotPinnedReason, fmt.Errorf("%s may move: %s", source, howToPin(source))))
		}
		f.content = source.ContentOf(obj.Spec.Artifact.Path)
		if objects.HasOtherContent(obj, f.content) {
			f.refuseContent(obj, source.String(), f.content)
			return nil
		}
	}
	artifact, err := source.ArtifactOf(objects.PinOf(f.content))
	switch {
	case err == nil:
		f.artifact = artifact
	case source.Failed:
		return f.refuse(failure.Wait(modulesv1.ArtifactFailedReason, lookInterval, err))
	default:
		f.wait(obj, err)
	}
	return nil
}

// howToPin says what keeps a source from moving.
func howToPin(source objects.Source) string {
	if source.IsExternal() {
		return "state the digest of its artifact in spec.artifact.digest"
	}
	return "select by digest or commit there"
}

// wait says that the artifact is on its way. After a failure, that goes on being told until the artifact is there: what
// comes and goes with each attempt would be chosen and given up in turn.
func (f *finding) wait(obj *modulesv1.ModuleTemplate, err error) {
	last := conditions.Get(obj, modulesv1.ArtifactVerifiedCondition)
	if objects.StatusIsCurrent(obj) && last != nil && last.Reason == modulesv1.ArtifactFailedReason {
		f.artifactErr = failure.Wait(last.Reason, lookInterval, errors.New(last.Message))
		return
	}
	f.waiting = fmt.Sprintf("Waiting: %s", err)
}

// unserved says that nobody can create the default configuration. Before the release was installed that says nothing: it
// may bring the kind along.
func (k *templates) unserved(obj *modulesv1.ModuleTemplate) []catalog.Finding {
	var config metav1.TypeMeta
	installed := obj.Status.Installed
	if obj.Spec.DefaultConfig == nil || installed == nil || installed.Content != objects.ContentOf(obj) ||
		json.Unmarshal(obj.Spec.DefaultConfig.Raw, &config) != nil {
		return nil
	}
	gvk := config.GroupVersionKind()
	if _, err := k.shared.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); !apimeta.IsNoMatchError(err) {
		return nil
	}
	return []catalog.Finding{{Reason: modulesv1.DefaultConfigNotServedReason, Message: fmt.Sprintf(
		"defaultConfig is a %s of %s, which the cluster does not serve: correct it, or bring the kind along", config.Kind, config.APIVersion)}}
}

// refuseContent keeps the version at the content that it was installed with.
func (f *finding) refuseContent(obj *modulesv1.ModuleTemplate, where, now string) {
	f.artifactErr = failure.Stall(modulesv1.ArtifactChangedReason, objects.OtherContent(obj, where, now))
	f.content = obj.Status.Installed.Content
}

// refuse keeps an error that somebody has judged as part of the finding; others end the look.
func (f *finding) refuse(err error) error {
	if _, judged := errors.AsType[*failure.Error](err); judged {
		f.artifactErr = err
		return nil
	}
	return err
}

// describe adds what the artifact says of itself, and since when the version is stated.
func (k *templates) describe(obj *modulesv1.ModuleTemplate, f *finding) {
	if obj.Spec.Version == "" && f.content == obj.Status.Content {
		f.artifactVersion = obj.Status.ArtifactVersion
	}
	if f.version == "" && obj.Spec.Version == "" && f.artifact != nil {
		f.artifactVersion = objects.Semantic(f.artifact.Metadata[ocispec.AnnotationVersion])
		f.version = f.artifactVersion
	}
	switch {
	case obj.Status.Since == nil:
		f.since = obj.CreationTimestamp.Time
	case obj.Status.Version != "" && obj.Status.Version != f.version:
		f.since = k.shared.Clock.Now()
	default:
		f.since = obj.Status.Since.Time
	}
}

// problem is what keeps the release from being chosen or installed, the most telling first.
func (f *finding) problem() error {
	if f.artifactErr != nil {
		return f.artifactErr
	}
	for _, reason := range []string{modulesv1.ModuleUnknownReason, modulesv1.ReleaseConflictReason, modulesv1.ChannelConflictReason} {
		if found, ok := f.find(reason); ok {
			return failure.Stall(reason, errors.New(found.Message))
		}
	}
	return nil
}

func (f *finding) find(reason string) (catalog.Finding, bool) {
	i := slices.IndexFunc(f.findings, func(c catalog.Finding) bool { return c.Reason == reason })
	if i < 0 {
		return catalog.Finding{}, false
	}
	return f.findings[i], true
}
