package git

import (
	"crypto/rsa"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
)

// minRSABits is the shortest RSA key that is used.
const minRSABits = 2048

// keyTypeDSA names keys that have not been secure for long.
const keyTypeDSA = "ssh-dss"

// parseSigner reads the client's key. Errors name the field, and nothing of its content.
func parseSigner(as *credential.SSH) (ssh.Signer, error) {
	refuse := func(why string) error { return fmt.Errorf("%w: %s", ErrCredential, why) }
	if as.PrivateKey.IsZero() {
		return nil, refuse("ssh needs a private key (identity)")
	}
	key, err := parsePrivateKey(as)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, refuse("private key (identity) is encrypted and there is no passphrase (password)")
	case err != nil && !as.Passphrase.IsZero():
		return nil, refuse("private key (identity) cannot be read with the passphrase (password)")
	case err != nil:
		return nil, refuse("private key (identity) is neither PEM nor OpenSSH's format")
	}
	if private, ok := key.(*rsa.PrivateKey); ok && private.N.BitLen() < minRSABits {
		return nil, refuse(fmt.Sprintf("private key (identity) has %d bits, RSA needs %d", private.N.BitLen(), minRSABits))
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, refuse("private key (identity) is of a kind that ssh does not use")
	}
	if signer.PublicKey().Type() == keyTypeDSA {
		return nil, refuse("private key (identity) is a DSA key, which is not secure any more")
	}
	return signer, nil
}

// parsePrivateKey uses the passphrase only if the key wants one: a passphrase beside an open key does no harm.
func parsePrivateKey(as *credential.SSH) (any, error) {
	key := []byte(as.PrivateKey.Reveal())
	parsed, err := ssh.ParseRawPrivateKey(key)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && !as.Passphrase.IsZero() {
		return ssh.ParseRawPrivateKeyWithPassphrase(key, []byte(as.Passphrase.Reveal()))
	}
	return parsed, err
}
