package packages

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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

// lockedKey is a key that takes one turn to open, where others take sixteen.
func lockedKey(t *testing.T, passphrase string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", passphrase, "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}
