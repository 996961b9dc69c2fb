package git_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/git/sign"
	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/tests/upstream"
)

// pgpKey makes a key, as Git's Secret has it and as those have it who trust it.
func pgpKey(t *testing.T) (private, public string) {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return ada().When.Add(-time.Hour) }}
	made, err := openpgp.NewEntity("Ada", "", "ada@upstream.example", config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind string, serialize func(out *bytes.Buffer) error) string {
		var body, text bytes.Buffer
		out, err := armor.Encode(&text, kind, nil)
		if err := errors.Join(err, serialize(&body)); err != nil {
			t.Fatal(err)
		}
		_, err = out.Write(body.Bytes())
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
		return text.String() + "\n"
	}
	private = write(openpgp.PrivateKeyType, func(out *bytes.Buffer) error { return made.SerializePrivate(out, config) })
	return private, write(openpgp.PublicKeyType, func(out *bytes.Buffer) error { return made.Serialize(out) })
}

// trusting is how Git is told whom to trust.
func trusting(t *testing.T, format, public string) []string {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "gpg-") //nolint:usetesting // The path of a socket in it must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(home, "trusted")
	if err := os.WriteFile(file, []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	if format == "ssh" {
		return []string{"-c", "gpg.ssh.allowedSignersFile=" + file}
	}
	script := filepath.Join(home, "gpg")
	trust := "#!/bin/sh\nexec gpg --homedir " + home + " --no-autostart --trust-model always \"$@\"\n"
	if err := os.WriteFile(script, []byte(trust), 0o700); err != nil {
		t.Fatal(err)
	}
	imports := "!" + script + " --batch --quiet --import " + file
	if _, err := upstream.Git(t.Context(), home, nil, "-c", "alias.trust="+imports, "trust"); err != nil {
		t.Fatal(err)
	}
	return []string{"-c", "gpg.program=" + script}
}

// TestGitVerifiesTheSignaturesOfCommits of both kinds, and so do we.
func TestGitVerifiesTheSignaturesOfCommits(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"ssh", "openpgp"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, "http")
			var private, public, name string
			if format == "ssh" {
				key := upstream.ForTest(t).Key(upstream.Ed25519)
				private = keyPEM(t, key).Reveal()
				public, name = string(key.Authorized()), "ada.sshpub"
			} else {
				private, public = pgpKey(t)
				name = "ada.asc"
			}
			signer, err := sign.New(credential.NewSecret(private), credential.Secret{})
			if err != nil {
				t.Fatal(err)
			}
			objects := w.compose()
			n := commitOn("", folder("a", map[string]string{"b": "c"}))
			n.Signer, n.Message = signer, "Signed\n\n\nwith -----BEGIN PGP SIGNATURE----- in it\n"
			id := w.commit(objects, n)
			w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: id}}})
			w.sound()
			trusted := public
			if format == "ssh" {
				trusted = "ada@upstream.example " + public
			}
			args := trusting(t, format, trusted)
			out, err := upstream.Git(t.Context(), w.Dir(), nil, append(args, "log", "-1", "--format=%G? %GK%n%B", id)...)
			if err != nil || !strings.HasPrefix(string(out), "G ") || !strings.Contains(string(out), signer.KeyID()) {
				t.Errorf("git says %q, %v", out, err)
			}
			if _, err := upstream.Git(t.Context(), w.Dir(), nil, append(args, "verify-commit", id)...); err != nil {
				t.Error(err)
			}
			keys, err := verify.NewGitKeys(map[string][]byte{name: []byte(public)})
			if err != nil {
				t.Fatal(err)
			}
			signed, err := w.client.Signed(t.Context(), w.remote, git.Want{Hash: id})
			if err != nil {
				t.Fatal(err)
			}
			object, err := verify.SignedCommit(signed.Commit)
			if err != nil {
				t.Fatal(err)
			}
			if by, err := keys.Verify(object); err != nil || by != signer.KeyID() {
				t.Errorf("we say %s, %v", by, err)
			}
		})
	}
}

// signerOf returns what it says.
type signerOf struct {
	text string
	err  error
}

func (s signerOf) Sign([]byte, time.Time) ([]byte, error) { return []byte(s.text), s.err }

func TestNoCommitWithoutItsSignature(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	objects := client.Compose(t.Context())
	broken := errors.New("no hand to sign")
	for name, signer := range map[string]signerOf{
		"error": {"", broken}, "nothing": {" \n", nil}, "bytes": {"-----BEGIN\x00", nil}, "endless": {strings.Repeat("A", 100_000), nil},
	} {
		n := commitOn("")
		n.Signer = signer
		if id, err := objects.Commit(t.Context(), n); err == nil || signer.err != nil && !errors.Is(err, broken) {
			t.Errorf("%s: %s, %v", name, id, err)
		}
	}
	if err := objects.Close(); err != nil {
		t.Error(err)
	}
}
