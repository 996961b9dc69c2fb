package packages

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"testing"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/git/sign"
)

func TestAKeyIsOpenedOnce(t *testing.T) {
	t.Parallel()
	repository := types.NamespacedName{Namespace: "default", Name: "cluster"}
	s := newSigners()
	open := func(key, passphrase string) *sign.Signer {
		t.Helper()
		signer, err := s.open(repository, key, passphrase)
		if err != nil {
			t.Fatal(err)
		}
		return signer
	}
	locked, other := lockedKey(t, "open"), lockedKey(t, "open")
	first := open(locked, "open")
	if again := open(locked, "open"); again != first {
		t.Error("the same key was opened again")
	}
	if _, err := s.open(repository, locked, "wrong"); !errors.Is(err, sign.ErrKey) {
		t.Errorf("with another passphrase the key gave %v", err)
	}
	if second := open(other, "open"); second.KeyID() == first.KeyID() {
		t.Error("another key was not opened")
	}
	s.forget(repository)
	if len(s.opened) != 0 {
		t.Error("the key is still in memory")
	}
}

func lockedKey(t *testing.T, passphrase string) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}
