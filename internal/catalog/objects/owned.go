package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// maxOwnedPrefix leaves room for the hash in a name of 253 characters.
const maxOwnedPrefix = 200

// SourceOf names the source of what the template stands for now: the one that it refers to, or the one that is made for
// it. Another artifact has a source of another name, so that the one before can stay for those that run it.
func SourceOf(t *modulesv1.ModuleTemplate) modulesv1.SourceReference {
	artifact := t.Spec.Artifact
	switch {
	case artifact.SourceRef != nil:
		return *artifact.SourceRef
	case artifact.Git != nil:
		return modulesv1.SourceReference{
			APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Name: ownedName(t.Name, artifact),
		}
	default:
		return modulesv1.SourceReference{
			APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.OCIRepositoryKind, Name: ownedName(t.Name, artifact),
		}
	}
}

// ownedName is made from the template's name and all that decides about the source. The folder and the tag do not.
func ownedName(template string, artifact modulesv1.TemplateArtifact) string {
	artifact = *artifact.DeepCopy()
	artifact.Path = ""
	if artifact.OCI != nil {
		artifact.OCI.Tag = ""
	}
	if artifact.Git != nil {
		artifact.Git.Tag = ""
	}
	prefix := strings.TrimRight(template[:min(len(template), maxOwnedPrefix)], "-.")
	return prefix + "-" + shortHash(template, artifact)
}

// shortHash is a hash of the values as JSON, short enough for names.
func shortHash(values ...any) string {
	text, _ := json.Marshal(values) // Nothing that is hashed here can fail.
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}
