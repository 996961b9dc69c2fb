package verifytest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// GitSigner signs commits and tags as Git does.
type GitSigner struct {
	// Name is what a verifier calls the key.
	Name string
	// Entry is a name for the key in a Secret, Public its value.
	Entry  string
	Public []byte
	sign   func(t testing.TB, payload []byte) []byte
}

// NewPGPSigner makes an OpenPGP key that signs.
func NewPGPSigner(t testing.TB) *GitSigner {
	t.Helper()
	entity, err := openpgp.NewEntity("Ada Upstream", "", "ada@upstream.example", nil)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	var public bytes.Buffer
	out, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err == nil {
		err = entity.Serialize(out)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatalf("write the key: %v", err)
	}
	return &GitSigner{
		Name: entity.PrimaryKey.KeyIdString(), Entry: "ada.asc", Public: public.Bytes(),
		sign: func(t testing.TB, payload []byte) []byte {
			t.Helper()
			var signature bytes.Buffer
			if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(payload), nil); err != nil {
				t.Fatalf("sign: %v", err)
			}
			return append(signature.Bytes(), '\n')
		},
	}
}

// NewSSHSigner makes an SSH key that signs for Git.
func NewSSHSigner(t testing.TB) *GitSigner {
	t.Helper()
	return NewSSHSignerFor(t, "git")
}

// NewSSHSignerFor makes an SSH key that signs for a namespace.
func NewSSHSignerFor(t testing.TB, namespace string) *GitSigner {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatalf("make a signer: %v", err)
	}
	return &GitSigner{
		Name: ssh.FingerprintSHA256(signer.PublicKey()), Entry: "ada.sshpub", Public: ssh.MarshalAuthorizedKey(signer.PublicKey()),
		sign: func(t testing.TB, payload []byte) []byte {
			t.Helper()
			made, err := sshsig.Sign(bytes.NewReader(payload), signer, sshsig.HashSHA512, namespace)
			if err != nil {
				t.Fatalf("sign: %v", err)
			}
			return sshsig.Armor(made)
		},
	}
}

// Commit signs a commit object, whose headers come to have the signature last.
func (s *GitSigner) Commit(t testing.TB, commit []byte) []byte {
	t.Helper()
	head, message, _ := bytes.Cut(commit, []byte("\n\n"))
	header := "\ngpgsig " + strings.ReplaceAll(strings.TrimSuffix(string(s.sign(t, commit)), "\n"), "\n", "\n ") + "\n\n"
	return append(append(bytes.Clone(head), header...), message...)
}

// Tag signs a tag object, which comes to end with the signature.
func (s *GitSigner) Tag(t testing.TB, tag []byte) []byte {
	t.Helper()
	return append(bytes.Clone(tag), s.sign(t, tag)...)
}
