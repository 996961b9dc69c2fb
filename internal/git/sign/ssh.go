package sign

import (
	"bytes"
	"fmt"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
)

// sshNamespace is what Git signs for; see gpg.format in git-config(1).
const sshNamespace = "git"

func newSSH(key, passphrase credential.Secret) (*Signer, error) {
	signer, encrypted, err := credential.SSH{PrivateKey: key, Passphrase: passphrase}.Signer()
	switch {
	case err != nil && encrypted && passphrase.IsZero():
		return nil, unusable("it is encrypted, and there is no passphrase")
	case err != nil && encrypted:
		return nil, unusable("it is encrypted, and the passphrase does not open it, or only with too much work")
	case err != nil:
		return nil, unusable("it is no armored OpenPGP private key, and no SSH key of Ed25519, ECDSA or RSA with 2048 to %d bits", credential.MaxRSABits)
	}
	sign := func(payload []byte, _ time.Time) ([]byte, error) {
		made, err := sshsig.Sign(bytes.NewReader(payload), signer, sshsig.HashSHA512, sshNamespace)
		if err != nil {
			return nil, fmt.Errorf("sign with SSH key: %w", err)
		}
		return sshsig.Armor(made), nil
	}
	return &Signer{id: ssh.FingerprintSHA256(signer.PublicKey()), sign: sign}, nil
}
