package upstream

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// KeyType is a kind of SSH key.
type KeyType string

// The kinds of keys that GenerateKey makes.
const (
	Ed25519 KeyType = "ed25519"
	ECDSA   KeyType = "ecdsa" // on the curve P-256
	RSA     KeyType = "rsa"   // of 2048 bits
)

// SSHKey is a key pair of a host or a user.
type SSHKey struct {
	// Signer signs with the key.
	Signer  ssh.Signer
	private crypto.PrivateKey
}

// GenerateKey makes a new key pair.
func GenerateKey(kind KeyType) (*SSHKey, error) {
	private, err := generate(kind)
	if err != nil {
		return nil, fmt.Errorf("generate %s key: %w", kind, err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, fmt.Errorf("generate %s key: %w", kind, err)
	}
	return &SSHKey{Signer: signer, private: private}, nil
}

func generate(kind KeyType) (crypto.PrivateKey, error) {
	switch kind {
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, fmt.Errorf("unknown kind of key %q", kind)
	}
}

// PEM is the private key in OpenSSH's format, without a passphrase.
func (k *SSHKey) PEM() ([]byte, error) {
	block, err := ssh.MarshalPrivateKey(k.private, "upstream")
	if err != nil {
		return nil, fmt.Errorf("write private key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// EncryptedPEM is the private key in OpenSSH's format under a passphrase.
func (k *SSHKey) EncryptedPEM(passphrase string) ([]byte, error) {
	block, err := ssh.MarshalPrivateKeyWithPassphrase(k.private, "upstream", []byte(passphrase))
	if err != nil {
		return nil, fmt.Errorf("write private key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// Authorized is the public key as a line of authorized_keys, with its newline.
func (k *SSHKey) Authorized() []byte { return ssh.MarshalAuthorizedKey(k.Signer.PublicKey()) }

// Environ makes git log in over SSH with the key, trust the known hosts, and use nothing of this machine's. Both are written
// to files in dir.
func (k *SSHKey) Environ(dir string, knownHosts []byte) ([]string, error) {
	private, err := k.PEM()
	if err != nil {
		return nil, err
	}
	identity, hosts := filepath.Join(dir, "id"), filepath.Join(dir, "known_hosts")
	if err := errors.Join(os.WriteFile(identity, private, 0o600), os.WriteFile(hosts, knownHosts, 0o600)); err != nil {
		return nil, fmt.Errorf("write the key for ssh: %w", err)
	}
	return []string{"GIT_SSH_COMMAND=ssh -F /dev/null -i " + identity + " -o UserKnownHostsFile=" + hosts +
		" -o GlobalKnownHostsFile=/dev/null -o IdentityAgent=none -o IdentitiesOnly=yes -o BatchMode=yes" +
		" -o StrictHostKeyChecking=yes -o SendEnv=GIT_PROTOCOL"}, nil
}
