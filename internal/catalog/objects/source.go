package objects

import (
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// Source is what counts of a source, whatever its kind.
type Source struct {
	metav1.Object

	Kind string
	// Pin is what the source is pinned to, as it ends a revision; empty when it may move.
	Pin string
	// Part says what of the pinned content is taken, as a content's name has it.
	Part     string
	Artifact *meta.Artifact
	Ready    *metav1.Condition
	Failed   bool
}

// String names the source in messages.
func (s Source) String() string { return s.Kind + " " + s.GetName() }

// ArtifactOf is the artifact, if it is that of the pin.
func (s Source) ArtifactOf(pin string) (*meta.Artifact, error) {
	switch {
	case s.Artifact == nil && s.Failed:
		return nil, fmt.Errorf("%s has no artifact: %s", s, s.complaint())
	case s.Artifact == nil:
		return nil, fmt.Errorf("%s has no artifact yet", s)
	case pin == "" || s.pinOf(s.Artifact) != pin:
		return nil, fmt.Errorf("%s has the artifact of another revision", s)
	default:
		return s.Artifact, nil
	}
}

// pinOf is what an artifact of the source may be pinned to: what its revision ends in or, where its maker may call it anything, its
// digest.
func (s Source) pinOf(artifact *meta.Artifact) string {
	if s.IsExternal() {
		return artifact.Digest
	}
	return revisionPin(artifact.Revision)
}

// IsExternal tells whether somebody else makes the artifact, so that the source itself is pinned to nothing.
func (s Source) IsExternal() bool { return s.Kind == sourcev1.ExternalArtifactKind }

// complaint is why the source fails. One that was made for a template is mended there, by fields of other names.
func (s Source) complaint() string {
	fields := map[string]*strings.Replacer{
		sourcev1.OCIRepositoryKind: strings.NewReplacer("spec.url", "spec.artifact.oci.repository", "spec.ref", "spec.artifact.oci.digest", "spec.", "spec.artifact.oci."),
		sourcev1.GitRepositoryKind: strings.NewReplacer("spec.ref", "spec.artifact.git.commit", "spec.", "spec.artifact.git."),
	}
	if s.MadeFor() == "" {
		return s.Ready.Message
	}
	return fields[s.Kind].Replace(s.Ready.Message)
}

// ContentOf names what a template takes of the source, given the folder.
func (s Source) ContentOf(folder string) string { return content(s.Pin, s.Part, folder) }

// revisionPin is the digest or commit that a revision ends in, after the branch or tag that it may begin with.
func revisionPin(revision string) string { return revision[strings.LastIndexByte(revision, '@')+1:] }

// SourceChange says which source it is that has changed, and whether in something that counts: what it is pinned to,
// what it has, or whether it fails.
func SourceChange(before, after metav1.Object) (ref modulesv1.SourceReference, namespace string, changed bool) {
	was, is := ReadSource(before), ReadSource(after)
	present := is
	if present.Object == nil {
		present = was
	}
	if present.Object == nil {
		return ref, "", false
	}
	ref = modulesv1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: present.Kind, Name: present.GetName()}
	changed = was.Object == nil || is.Object == nil || was.GetGeneration() != is.GetGeneration() || was.Failed != is.Failed ||
		!equality.Semantic.DeepEqual(was.Artifact, is.Artifact) || is.Failed && was.Ready.Message != is.Ready.Message
	return ref, present.GetNamespace(), changed
}

// ReadSource takes from a source what counts; nothing from none.
func ReadSource(obj metav1.Object) Source {
	switch obj := obj.(type) {
	case *sourcev1.OCIRepository:
		if obj != nil {
			return readOCI(obj)
		}
	case *sourcev1.GitRepository:
		if obj != nil {
			return readGit(obj)
		}
	case *sourcev1.ExternalArtifact:
		if obj != nil {
			return readAny(sourcev1.ExternalArtifactKind, obj)
		}
	}
	return Source{}
}

// readAny takes what all kinds have.
func readAny(kind string, obj interface {
	conditions.Getter
	GetArtifact() *meta.Artifact
},
) Source {
	ready := conditions.Get(obj, meta.ReadyCondition)
	// It has tried what its spec asks for now, in vain.
	failed := ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == obj.GetGeneration()
	return Source{Object: obj, Kind: kind, Artifact: obj.GetArtifact(), Ready: ready, Failed: failed}
}

func readOCI(obj *sourcev1.OCIRepository) Source {
	read := readAny(sourcev1.OCIRepositoryKind, obj)
	if obj.Spec.Reference != nil {
		read.Pin = obj.Spec.Reference.Digest
	}
	layer := obj.Spec.LayerSelector
	if layer != nil {
		read.Part = layer.MediaType
	}
	if obj.Spec.Ignore != nil || layer != nil && layer.Operation == sourcev1.OCILayerCopy {
		read.Part += "!" + shortHash(obj.Spec.Ignore, layer)
	}
	return read
}

func readGit(obj *sourcev1.GitRepository) Source {
	read := readAny(sourcev1.GitRepositoryKind, obj)
	spec := obj.Spec
	// What is included can move, whatever the repository itself is pinned to.
	if spec.Reference != nil && spec.Reference.Commit != "" && len(spec.Include) == 0 {
		read.Pin = commitPin(spec.Reference.Commit)
	}
	if spec.Ignore != nil || spec.RecurseSubmodules || len(spec.SparseCheckout) > 0 {
		read.Part = "!" + shortHash(spec.Ignore, spec.RecurseSubmodules, spec.SparseCheckout)
	}
	return read
}
