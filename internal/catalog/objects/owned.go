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
// it. Other content has a source of another name, so that the one before can stay for those that run it; the same content
// that is reached in another way has not.
func SourceOf(t *modulesv1.ModuleTemplate) modulesv1.SourceReference {
	artifact := t.Spec.Artifact
	switch {
	case artifact.SourceRef != nil:
		return *artifact.SourceRef
	case artifact.Git != nil:
		return modulesv1.SourceReference{
			APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Name: ownedName(t.Name, inlinePin(artifact), ""),
		}
	default:
		return modulesv1.SourceReference{
			APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.OCIRepositoryKind, Name: ownedName(t.Name, inlinePin(artifact), layerOf(artifact)),
		}
	}
}

// MadeFor is the template that the source was made for; empty for one of somebody else's. The annotation alone proves
// nothing: it goes along when somebody copies the source under another name.
func (s Source) MadeFor() string {
	template := s.GetAnnotations()[modulesv1.TemplateAnnotation]
	if template == "" || s.GetName() != ownedName(template, s.Pin, s.Part) {
		return ""
	}
	return template
}

// ownedName is made from the template's name and from what the source holds.
func ownedName(template, pin, part string) string {
	prefix := strings.TrimRight(template[:min(len(template), maxOwnedPrefix)], "-.")
	return prefix + "-" + shortHash(template, pin, part)
}

// shortHash is a hash of the values as JSON, short enough for names.
func shortHash(values ...any) string {
	text, _ := json.Marshal(values) // Nothing that is hashed here can fail.
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}
