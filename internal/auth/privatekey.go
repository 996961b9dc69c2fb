package auth

import (
	"crypto/dsa" //nolint:staticcheck // Known here only in order to be refused.
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// minRSABits is the shortest RSA key that is still thought safe (NIST SP 800-131A).
	minRSABits = 2048
	// maxRounds bounds the work of opening an encrypted key, which the key itself asks for. A round takes milliseconds
	// and cannot be broken off; ssh-keygen writes 16 or 24 of them unless told otherwise.
	maxRounds = 256

	blockOpenSSH = "OPENSSH PRIVATE KEY"
	magicOpenSSH = "openssh-key-v1\x00"
)

// checkPrivateKey opens the key, with the passphrase if it has one, and says whether it is encrypted.
// No parser's error is passed on: they quote what they found in the place of a key.
func checkPrivateKey(s secret, key, passphrase []byte) (encrypted bool, err error) {
	parsed, err := ssh.ParseRawPrivateKey(key)
	if _, encrypted = errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		parsed, err = openPrivateKey(s, key, passphrase)
		if err != nil {
			return true, err
		}
	}
	if err != nil {
		return false, notAKey(s)
	}
	return encrypted, checkStrength(s, parsed)
}

func openPrivateKey(s secret, key, passphrase []byte) (any, error) {
	if len(passphrase) == 0 {
		return nil, s.errorf("has an encrypted '%s' but no '%s'; store its passphrase there", keyIdentity, keyPassword)
	}
	if rounds(key) > maxRounds {
		return nil, s.bad(keyIdentity, "takes too much work to decrypt",
			"write it again with fewer rounds: ssh-keygen -p -a 24 -f <file>")
	}
	parsed, err := ssh.ParseRawPrivateKeyWithPassphrase(key, passphrase)
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, s.errorf("has a '%s' that does not open '%s'; store its passphrase there, without a line break",
			keyPassword, keyIdentity)
	}
	if err != nil {
		return nil, notAKey(s)
	}
	return parsed, nil
}

// checkStrength refuses keys that SSH servers of today refuse too, and what no client can sign with.
func checkStrength(s secret, key any) error {
	if _, old := key.(*dsa.PrivateKey); old {
		return s.bad(keyIdentity, "is a DSA key", "use an Ed25519 key: ssh-keygen -t ed25519")
	}
	if short, ok := key.(*rsa.PrivateKey); ok && short.N.BitLen() < minRSABits {
		return s.bad(keyIdentity, "is an RSA key of less than 2048 bits", "use an Ed25519 key: ssh-keygen -t ed25519")
	}
	if _, err := ssh.NewSignerFromKey(key); err != nil {
		return s.bad(keyIdentity, "is a key that ssh cannot sign with", "use an Ed25519 key: ssh-keygen -t ed25519")
	}
	return nil
}

func notAKey(s secret) error {
	return s.bad(keyIdentity, "is not a private key in PEM or OpenSSH format",
		"store the private file that ssh-keygen wrote, whole")
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
