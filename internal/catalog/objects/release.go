// Package objects reads API objects as the catalogue's values: what a template offers, what a module says, what an
// installation asks for and what it has.
// It does not know where the objects come from: whoever has them resolves as the controllers do.
package objects

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/revision"
)

// lastDay is how support.until is written.
const lastDay = time.DateOnly

// ReleaseOf is a template as the catalogue reads it: from the object alone.
func ReleaseOf(t *modulesv1.ModuleTemplate) catalog.Release {
	release := catalog.Release{
		Template: t.Name,
		Module:   t.GetModuleName(),
		Version:  VersionOf(t),
		Stated:   statedOf(t),
		Channel:  t.Spec.GetChannel(),
		Digest:   ContentOf(t),
		Support:  supportOf(t.Spec),
		Since:    sinceOf(t),
		Deleting: !t.DeletionTimestamp.IsZero(),
	}
	release.Readiness, release.Message = ReadinessOf(t)
	return release
}

// VersionOf is the release's version: that of the spec, or else the first Semantic version in the places where old
// templates have it. Empty, it is unknown.
func VersionOf(t *modulesv1.ModuleTemplate) string {
	if t.Spec.Version != "" {
		// Old templates may have one that is none.
		return Semantic(t.Spec.Version)
	}
	candidates := []string{t.Annotations[modulesv1.ModuleVersionAnnotation]}
	if t.Spec.Artifact.OCI != nil {
		candidates = append(candidates, t.Spec.Artifact.OCI.Tag)
	}
	if t.Status.Content == ContentOf(t) {
		// The artifact's own word is in the status.
		candidates = append(candidates, t.Status.ArtifactVersion)
	}
	for _, candidate := range candidates {
		if version := Semantic(candidate); version != "" {
			return version
		}
	}
	return ""
}

// statedOf is what a template without a version says instead of one, for people to see.
func statedOf(t *modulesv1.ModuleTemplate) string {
	if VersionOf(t) != "" {
		return ""
	}
	return cmp.Or(t.Spec.Version, t.Annotations[modulesv1.ModuleVersionAnnotation])
}

// Semantic is the version, if it is one.
func Semantic(version string) string {
	if _, err := revision.ParseStrict(version); err != nil {
		return ""
	}
	return version
}

// ContentOf names what the release installs: the pin of its artifact, and what of it is used. What a source object pins
// is known once that was looked at.
func ContentOf(t *modulesv1.ModuleTemplate) string {
	if pin := inlinePin(t.Spec.Artifact); pin != "" {
		return content(pin, layerOf(t.Spec.Artifact), t.Spec.Artifact.Path)
	}
	if t.Spec.Artifact.SourceRef == nil || !StatusIsCurrent(t) {
		return ""
	}
	return t.Status.Content
}

// inlinePin is what the template itself pins its artifact to: a manifest's digest, or a commit as revisions write it.
func inlinePin(artifact modulesv1.TemplateArtifact) string {
	switch {
	case artifact.OCI != nil:
		return artifact.OCI.Digest
	case artifact.Git != nil:
		return commitPin(artifact.Git.Commit)
	default:
		return artifact.Digest
	}
}

// commitPin is a commit as it ends a revision.
func commitPin(commit string) string {
	if len(commit) == 64 {
		return "sha256:" + commit
	}
	return "sha1:" + commit
}

func layerOf(artifact modulesv1.TemplateArtifact) string {
	if artifact.OCI == nil || artifact.OCI.LayerSelector == nil {
		return ""
	}
	return artifact.OCI.LayerSelector.MediaType
}

// content joins a pin with what of the artifact is used: the layer's media type, and the folder.
func content(pin, part, folder string) string {
	name := pin
	if part != "" {
		name += "#" + part
	}
	if folder = FolderOf(folder); folder != "" {
		name += "//" + folder
	}
	return name
}

// FolderOf is the folder in one spelling; empty for the root.
func FolderOf(folder string) string {
	if folder = path.Clean("/" + folder); folder != "/" {
		return folder[1:]
	}
	return ""
}

// PinOf is the pin that a content's name begins with.
func PinOf(content string) string {
	pin, _, _ := strings.Cut(content, "//")
	pin, _, _ = strings.Cut(pin, "#")
	return pin
}

// StatusIsCurrent says whether status speaks about the version and the content that the spec states.
func StatusIsCurrent(t *modulesv1.ModuleTemplate) bool {
	if t.Spec.Version != "" && Semantic(t.Spec.Version) != t.Status.Version {
		return false
	}
	return t.Spec.Artifact.SourceRef != nil || t.Status.Content == ContentOf(t)
}

// sinceOf is when the template first stated its version. A raise that was not recorded yet is younger than all that were.
func sinceOf(t *modulesv1.ModuleTemplate) time.Time {
	switch {
	case t.Status.Since != nil && StatusIsCurrent(t):
		return t.Status.Since.Time
	case t.Status.Since != nil:
		return time.Unix(1<<40, 0)
	default:
		return t.CreationTimestamp.Time
	}
}

func supportOf(spec modulesv1.ModuleTemplateSpec) catalog.Support {
	support := catalog.Support{State: spec.GetSupportState()}
	if spec.Support == nil {
		return support
	}
	support.Message, support.ReplacedBy = spec.Support.Message, spec.Support.ReplacedBy
	if day, err := time.Parse(lastDay, spec.Support.Until); err == nil {
		support.Until = day.AddDate(0, 0, 1)
	}
	return support
}

// ReadinessOf says whether the release can be chosen. What the template pins itself and nobody wanted so far is idle; what
// could not be had stays out, until its source brings it.
func ReadinessOf(t *modulesv1.ModuleTemplate) (catalog.Readiness, string) {
	if t.Undecodable != "" {
		return catalog.NotReady, t.Undecodable
	}
	verified := conditions.Get(t, modulesv1.ArtifactVerifiedCondition)
	switch {
	case inlinePin(t.Spec.Artifact) != "" && HasOtherContent(t, ContentOf(t)):
		return catalog.NotReady, OtherContent(t, "The template", ContentOf(t)).Error()
	case verified != nil && StatusIsCurrent(t) && verified.Status == metav1.ConditionTrue:
		return catalog.Ready, ""
	case verified != nil && StatusIsCurrent(t) && verified.Status == metav1.ConditionFalse:
		return catalog.NotReady, verified.Message
	case t.Spec.Artifact.SourceRef != nil:
		return catalog.NotReady, "The source has no artifact yet"
	default:
		return catalog.Idle, ""
	}
}

// HasOtherContent says whether the content is another one than the version of the template was installed with. The API
// server refuses that where spec states both.
func HasOtherContent(t *modulesv1.ModuleTemplate, content string) bool {
	installed := t.Status.Installed
	return installed != nil && installed.Version != "" && installed.Version == VersionOf(t) && installed.Content != content
}

// OtherContent is what keeps content from being used that has come under a version which was installed with other.
func OtherContent(t *modulesv1.ModuleTemplate, where, now string) error {
	return fmt.Errorf("%s has %s, and version %s was installed with %s; publish it under a higher version",
		where, now, t.Status.Installed.Version, t.Status.Installed.Content)
}

// SameVersion says whether two releases have a version, and the same one by precedence.
func SameVersion(a, b catalog.Release) bool {
	first, err := revision.ParseStrict(a.Version)
	if err != nil {
		return false
	}
	second, err := revision.ParseStrict(b.Version)
	return err == nil && first.Compare(second) == 0
}

// RecordOf is the release that the template stands for now, as it is recorded.
func RecordOf(t *modulesv1.ModuleTemplate) modulesv1.Release {
	source := SourceOf(t)
	return modulesv1.Release{
		Module: t.GetModuleName(), Version: VersionOf(t), Namespace: t.Namespace, Template: t.Name,
		Source: &source, Content: ContentOf(t), Path: FolderOf(t.Spec.Artifact.Path),
	}
}
