package packages

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git/sign"
)

// signers are the keys that repositories sign with. To open one with its passphrase takes up to seconds, which is spent once
// for each key, be it good or bad.
type signers struct {
	mu     sync.Mutex
	opened map[types.NamespacedName]opened
}

type opened struct {
	of     [sha256.Size]byte
	signer *sign.Signer
	err    error
}

func newSigners() *signers { return &signers{opened: map[types.NamespacedName]opened{}} }

// open opens the key that the repository signs with from now on. It returns the errors of sign.New.
func (s *signers) open(repository types.NamespacedName, key, passphrase string) (*sign.Signer, error) {
	keyed := sha256.Sum256([]byte(key))
	of := sha256.Sum256(append(keyed[:], passphrase...))
	s.mu.Lock()
	known := s.opened[repository]
	s.mu.Unlock()
	if known.of == of {
		return known.signer, known.err
	}
	known = opened{of: of}
	known.signer, known.err = sign.New(credential.NewSecret(key), credential.NewSecret(passphrase))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[repository] = known
	return known.signer, known.err
}

// forget drops a repository's key.
func (s *signers) forget(repository types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opened, repository)
}
