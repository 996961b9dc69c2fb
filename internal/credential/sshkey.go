package credential

import (
	"crypto/dsa" //nolint:staticcheck // Known here only in order to be refused.
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// minRSABits is the shortest RSA key that is still thought safe (NIST SP 800-131A).
	minRSABits = 2048
	// MaxRSABits is the longest that anything is signed with: that takes a quarter of a second, which nothing breaks off, and
	// grows with the third power.
	MaxRSABits = 8192
	// maxRounds bounds the work of opening an encrypted key, which the key itself asks for. A round takes milliseconds
	// and cannot be broken off; ssh-keygen writes 16 or 24 of them unless told otherwise.
	maxRounds = 256

	blockOpenSSH = "OPENSSH PRIVATE KEY"
	magicOpenSSH = "openssh-key-v1\x00"
)

var (
	errNoPassphrase = errors.New("has an encrypted 'identity' but no 'password'; store its passphrase there")
	errPassphrase   = errors.New("has a 'password' that does not open 'identity'; store its passphrase there, without a line break")
	errRounds       = badKey("takes too much work to decrypt", "write it again with fewer rounds: ssh-keygen -p -a 24 -f <file>")
	errNoKey        = badKey("is not a private key in PEM or OpenSSH format", "store the private file that ssh-keygen wrote, whole")
	errDSA          = badKey("is a DSA key", "use an Ed25519 key: ssh-keygen -t ed25519")
	errShortRSA     = badKey("is an RSA key of less than 2048 bits", "use an Ed25519 key: ssh-keygen -t ed25519")
	errLongRSA      = badKey("is an RSA key of more than 8192 bits", "use an Ed25519 key: ssh-keygen -t ed25519")
	errCannotSign   = badKey("is a key that ssh cannot sign with", "use an Ed25519 key: ssh-keygen -t ed25519")
)

func badKey(problem, remedy string) error {
	return fmt.Errorf("has a bad 'identity': it %s; %s", problem, remedy)
}

// Signer opens the private key, with the passphrase if it is encrypted. Keys that SSH servers of today refuse are refused
// here too. An error finishes the sentence that begins with the Secret; it is no parser's, which quote what they found in
// the place of a key.
func (s SSH) Signer() (signer ssh.Signer, encrypted bool, err error) {
	key := []byte(s.PrivateKey.Reveal())
	parsed, err := ssh.ParseRawPrivateKey(key)
	if _, encrypted = errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		switch {
		case s.Passphrase.IsZero():
			return nil, true, errNoPassphrase
		case rounds(key) > maxRounds:
			return nil, true, errRounds
		}
		parsed, err = ssh.ParseRawPrivateKeyWithPassphrase(key, []byte(s.Passphrase.Reveal()))
	}
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, encrypted, errPassphrase
	}
	if err != nil {
		return nil, encrypted, errNoKey
	}
	if _, old := parsed.(*dsa.PrivateKey); old {
		return nil, encrypted, errDSA
	}
	if key, ok := parsed.(*rsa.PrivateKey); ok && key.N.BitLen() < minRSABits {
		return nil, encrypted, errShortRSA
	} else if ok && key.N.BitLen() > MaxRSABits {
		return nil, encrypted, errLongRSA
	}
	if signer, err = ssh.NewSignerFromKey(parsed); err != nil {
		return nil, encrypted, errCannotSign
	}
	return signer, encrypted, nil
}

// rounds reads how much work an encrypted OpenSSH key asks for. Other formats, and what is not read as one, ask for
// none. The format is OpenSSH's PROTOCOL.key.
func rounds(key []byte) uint32 {
	block, _ := pem.Decode(key)
	if block == nil || block.Type != blockOpenSSH {
		return 0
	}
	body, found := strings.CutPrefix(string(block.Bytes), magicOpenSSH)
	var header struct {
		Cipher, KDF, Options string
		Rest                 []byte `ssh:"rest"`
	}
	if !found || ssh.Unmarshal([]byte(body), &header) != nil {
		return 0
	}
	var options struct {
		Salt   string
		Rounds uint32
	}
	if ssh.Unmarshal([]byte(header.Options), &options) != nil {
		return 0
	}
	return options.Rounds
}
