// Package sign signs Git's commits with OpenPGP and SSH keys, as gpg and ssh-keygen do it for git-commit(1).
// It does not know where keys are kept, or who trusts them.
package sign

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/credential"
)

// ErrKey says that a key cannot be used. The text says why, and holds nothing of the key.
var ErrKey = errors.New("signing key is not usable")

// maxKeyBytes bounds a key as it is stored. One of RSA with many subkeys and signatures has a few tens of kilobytes.
const maxKeyBytes = 1 << 20

// pgpHead begins an armored OpenPGP private key.
const pgpHead = "-----BEGIN PGP PRIVATE KEY BLOCK-----" //nolint:gosec // No key follows.

// Signer signs with one key. It is safe for concurrent use.
type Signer struct {
	id   string
	sign func(payload []byte, when time.Time) ([]byte, error)
}

// New opens an armored OpenPGP private key, or an SSH one in PEM or OpenSSH's format, with the passphrase if it is encrypted.
// ErrKey where that is not possible.
func New(key, passphrase credential.Secret) (*Signer, error) {
	text := key.Reveal()
	if len(text) > maxKeyBytes {
		return nil, unusable("it has more than %d bytes", maxKeyBytes)
	}
	if strings.Contains(text, pgpHead) {
		return newPGP(text, passphrase)
	}
	return newSSH(key, passphrase)
}

// KeyID names the key: its id for OpenPGP, its SHA-256 fingerprint for SSH.
func (s *Signer) KeyID() string { return s.id }

// Sign returns an armored signature of the payload. An OpenPGP key has to be valid at that time, and says so in the
// signature; one of SSH knows no time. The same payload at the same time has the same signature, but for keys of ECDSA.
func (s *Signer) Sign(payload []byte, when time.Time) ([]byte, error) { return s.sign(payload, when) }

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrKey}, args...)...)
}
