package git

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/transport"
)

// maxRefName is the longest ref name that is accepted.
const maxRefName = 1024

// sha256Digits is the length of an object id in a SHA-256 repository.
const sha256Digits = 64

// notSHA256 refuses such repositories, and says what helps.
const notSHA256 = "repositories with SHA-256 object ids are not supported: mirror it to one with SHA-1 ids (git init --object-format=sha1), and name that"

// parseHash reads an object id as the wire writes it: 40 lower-case hexadecimal digits.
func parseHash(text string) (plumbing.Hash, error) {
	var hash plumbing.Hash
	if len(text) == sha256Digits {
		return hash, protocolErrorf(notSHA256)
	}
	if len(text) != 2*len(hash) || strings.ToLower(text) != text || !plumbing.IsHash(text) {
		return hash, protocolErrorf("no object id: %s", transport.PrintableQuoted(text))
	}
	return plumbing.NewHash(text), nil
}

// validRefName keeps the rules of git-check-ref-format(1), and wants HEAD or something under refs/.
func validRefName(name string) bool {
	if name == "HEAD" {
		return true
	}
	if len(name) > maxRefName || !strings.HasPrefix(name, "refs/") || strings.HasSuffix(name, ".") {
		return false
	}
	if strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsFunc(name, forbiddenInRef) {
		return false
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == "" || component[0] == '.' || strings.HasSuffix(component, ".lock") {
			return false
		}
	}
	return true
}

func forbiddenInRef(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }
