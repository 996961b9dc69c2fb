package sign_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/s2k"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git/sign"
	"sluice.dev/sluice/tests/upstream"
)

const (
	canary  = "s3cr3t-canary"
	payload = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nA line\n\ttrailing \n"
)

// gpg runs GnuPG with a home of its own, whose path is short enough for the agent's socket.
type gpg struct {
	t    *testing.T
	home string
}

func newGPG(t *testing.T) gpg {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "gpg-") //nolint:usetesting // The test's own folder has a long path.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := exec.CommandContext(context.Background(), "gpgconf", "--homedir", home, "--kill", "all")
		if err := errors.Join(kill.Run(), os.RemoveAll(home)); err != nil {
			t.Error(err)
		}
	})
	return gpg{t, home}
}

func (g gpg) run(input string, args ...string) (string, error) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "gpg", append([]string{"--homedir", g.home, "--batch", "--pinentry-mode", "loopback", "--passphrase", canary}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return said.String(), err
	}
	return out.String() + said.String(), nil
}

func (g gpg) must(input string, args ...string) string {
	g.t.Helper()
	out, err := g.run(input, args...)
	if err != nil {
		g.t.Fatalf("gpg %q: %v: %s", args, err, out)
	}
	return out
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGPGTakesTheSignatures of keys that it has made itself.
func TestGPGTakesTheSignatures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason    string
		algorithm string
		repeats   bool
	}{
		"ed25519":   {"What gpg makes today.", "ed25519", true},
		"rsa":       {"What it made for twenty years.", "rsa3072", true},
		"nist p256": {"Its signatures hold a random number.", "nistp256", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGPG(t)
			g.must("", "--quick-generate-key", "Ada <ada@upstream.example>", c.algorithm, "sign", "1d")
			signer, err := sign.New(credential.NewSecret(g.must("", "--armor", "--export-secret-keys")), credential.NewSecret(canary))
			if err != nil {
				t.Fatal(c.reason, err)
			}
			when := time.Now().Add(time.Minute).Truncate(time.Second)
			made, err := signer.Sign([]byte(payload), when)
			if err != nil {
				t.Fatal(c.reason, err)
			}
			said := g.must(payload, "--status-fd", "2", "--faked-system-time", when.Add(time.Hour).UTC().Format("20060102T150405"), "--verify", write(t, "signature", string(made)), "-")
			if !strings.Contains(said, "GOODSIG "+signer.KeyID()) {
				t.Errorf("gpg says %s", said)
			}
			again, err := signer.Sign([]byte(payload), when)
			if err != nil || bytes.Equal(made, again) != c.repeats {
				t.Errorf("%s the second signature: equal is %t, %v", c.reason, bytes.Equal(made, again), err)
			}
			for _, bad := range []time.Time{when.Add(-time.Hour), when.Add(48 * time.Hour)} {
				if _, err := signer.Sign([]byte(payload), bad); !errors.Is(err, sign.ErrKey) {
					t.Errorf("at %v: want %v, got %v", bad, sign.ErrKey, err)
				}
			}
		})
	}
}

// TestASubkeySignsWithoutItsPrimaryKey, which people keep elsewhere.
func TestASubkeySignsWithoutItsPrimaryKey(t *testing.T) {
	t.Parallel()
	g := newGPG(t)
	g.must("", "--quick-generate-key", "Ada <ada@upstream.example>", "ed25519", "cert", "1d")
	listed := g.must("", "--with-colons", "--fingerprint")
	_, fingerprint, _ := strings.Cut(listed, "fpr:::::::::")
	fingerprint, _, _ = strings.Cut(fingerprint, ":")
	g.must("", "--quick-add-key", fingerprint, "ed25519", "sign", "1d")
	g.must("", "--quick-add-key", fingerprint, "cv25519", "encr", "1d")
	signer, err := sign.New(credential.NewSecret(g.must("", "--armor", "--export-secret-subkeys")), credential.NewSecret(canary))
	if err != nil {
		t.Fatal(err)
	}
	made, err := signer.Sign([]byte(payload), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if said := g.must(payload, "--status-fd", "2", "--verify", write(t, "signature", string(made)), "-"); !strings.Contains(said, "GOODSIG ") {
		t.Errorf("gpg says %s", said)
	}
	if only := g.must("", "--armor", "--export-secret-subkeys", fingerprint+"!"); only != "" {
		_, err := sign.New(credential.NewSecret(only), credential.NewSecret(canary))
		if err == nil {
			t.Error("a key without any private part is taken")
		}
	}
}

// TestSSHKeygenTakesTheSignatures of each kind of key.
func TestSSHKeygenTakesTheSignatures(t *testing.T) {
	t.Parallel()
	for _, kind := range []upstream.KeyType{upstream.Ed25519, upstream.ECDSA, upstream.RSA} {
		key := upstream.ForTest(t).Key(kind)
		for _, passphrase := range []string{"", canary} {
			text, err := key.PEM()
			if passphrase != "" {
				text, err = key.EncryptedPEM(passphrase)
			}
			if err != nil {
				t.Fatal(err)
			}
			signer, err := sign.New(credential.NewSecret(text), credential.NewSecret(passphrase))
			if err != nil {
				t.Fatal(kind, err)
			}
			made, err := signer.Sign([]byte(payload), time.Time{})
			if err != nil {
				t.Fatal(kind, err)
			}
			allowed := write(t, "allowed", "ada namespaces=\"git\" "+string(key.Authorized()))
			verify := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "ada", "-n", "git", "-s", write(t, "signature", string(made)))
			verify.Stdin = strings.NewReader(payload)
			if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), signer.KeyID()) {
				t.Errorf("%s: %v: %s", kind, err, out)
			}
		}
	}
}

// serialized is a private key as it is stored.
func serialized(t *testing.T, of *openpgp.Entity) string {
	t.Helper()
	var text bytes.Buffer
	out, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err == nil {
		err = of.SerializePrivateWithoutSigning(out, nil)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func entity(t *testing.T, config *packet.Config) *openpgp.Entity {
	t.Helper()
	made, err := openpgp.NewEntity("Ada", "", "ada@upstream.example", config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestKeysThatAreOfNoUseAreRefused(t *testing.T) {
	t.Parallel()
	plain := serialized(t, entity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}))
	locked := entity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err := locked.EncryptPrivateKeys([]byte(canary), nil); err != nil {
		t.Fatal(err)
	}
	hungry := entity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	heavy := &packet.Config{AEADConfig: &packet.AEADConfig{}, S2KConfig: &s2k.Config{S2KMode: s2k.Argon2S2K}}
	if err := hungry.EncryptPrivateKeys([]byte(canary), heavy); err != nil {
		t.Fatal(err)
	}
	modern := entity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEd25519, V6Keys: true})
	ssh, err := upstream.ForTest(t).Key(upstream.Ed25519).EncryptedPEM(canary)
	if err != nil {
		t.Fatal(err)
	}
	begin := strings.Index(plain, "\n\n") + 2
	for name, c := range map[string]struct {
		reason, key, passphrase, word string
	}{
		"nothing":          {"There is no key.", "", "", "no armored OpenPGP private key"},
		"words":            {"It is something else.", canary, "", "no armored OpenPGP private key"},
		"public":           {"It is the wrong half.", strings.ReplaceAll(plain, "PRIVATE", "PUBLIC"), "", "no armored OpenPGP private key"},
		"locked":           {"Nobody can open it.", serialized(t, locked), "", "no passphrase"},
		"wrong passphrase": {"It does not fit.", serialized(t, locked), "other", "does not open it"},
		"ssh locked":       {"Nobody can open it.", string(ssh), "", "no passphrase"},
		"ssh wrong":        {"It does not fit.", string(ssh), "other", "does not open it"},
		"argon2":           {"The key says how much memory it takes to open.", serialized(t, hungry), canary, "memory"},
		"version 6":        {"gpg knows none.", serialized(t, modern), "", "version 6"},
		"two":              {"Which one is to sign?", plain[:begin] + strings.Repeat("x", 20) + plain[begin:], "", "cannot be read"},
		"cut":              {"Half of it is missing.", plain[:len(plain)/2], "", "cannot be read"},
		"long":             {"Nobody has such a key.", plain + strings.Repeat("\n", 1<<20), "", "bytes"},
	} {
		_, err := sign.New(credential.NewSecret(c.key), credential.NewSecret(c.passphrase))
		if !errors.Is(err, sign.ErrKey) || !strings.Contains(err.Error(), c.word) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %s %v", name, c.reason, err)
		}
	}
	signer, err := sign.New(credential.NewSecret("a comment before\n"+plain), credential.NewSecret("not needed"))
	if err != nil || len(signer.KeyID()) != 16 {
		t.Errorf("a plain key: %v", err)
	}
}

// FuzzNew has keys opened that mean nothing, or nearly nothing.
func FuzzNew(f *testing.F) {
	made, err := openpgp.NewEntity("Ada", "", "ada@upstream.example", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		f.Fatal(err)
	}
	var body bytes.Buffer
	if err := made.SerializePrivateWithoutSigning(&body, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(body.Bytes())
	f.Add([]byte{0xc5, 2, 4, 0})
	f.Fuzz(func(t *testing.T, content []byte) {
		var text bytes.Buffer
		out, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
		if err == nil {
			_, err = out.Write(slices.Clone(content))
		}
		if err == nil {
			err = out.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		signer, err := sign.New(credential.NewSecret(text.String()), credential.NewSecret(canary))
		if err != nil {
			if !errors.Is(err, sign.ErrKey) {
				t.Error(err)
			}
			return
		}
		_, _ = signer.Sign([]byte(payload), time.Unix(1_900_000_000, 0)) // It returns.
	})
}
