package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

const (
	plainCommit = "tree aaff74984cccd156a469afa7d9ab10e4777beb24\nparent 6fc057f1ce5dbf3868bb53c6e3c46d635689ee24\n" +
		"author Ada <ada@upstream.example> 1795402161 +0000\ncommitter Ada <ada@upstream.example> 1795402161 +0000\n\nsubject\n\nbody\n"
	plainTag = "object 6fc057f1ce5dbf3868bb53c6e3c46d635689ee24\ntype commit\ntag v1.0.0\n" +
		"tagger Ada <ada@upstream.example> 1795402161 +0000\n\na tag\n"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "git", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func keys(t *testing.T, entries map[string][]byte) *verify.GitKeys {
	t.Helper()
	made, err := verify.NewGitKeys(entries)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// verifyCommit and verifyTag are what a caller does with an object.
func verifyCommit(k *verify.GitKeys, raw []byte) (string, error) {
	object, err := verify.SignedCommit(raw)
	if err != nil {
		return "", err
	}
	return k.Verify(object)
}

func verifyTag(k *verify.GitKeys, raw []byte) (string, error) { return k.Verify(verify.SignedTag(raw)) }

// TestSignaturesThatGitMade: the objects were made by git commit -S and git tag -s, with gpg 2.2 and ssh-keygen 9.2.
func TestSignaturesThatGitMade(t *testing.T) {
	t.Parallel()
	for kind, entry := range map[string]string{"pgp": "pgp.asc", "ed25519": "ed25519.sshpub", "rsa": "rsa.sshpub"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			trusted := keys(t, map[string][]byte{entry: read(t, entry)})
			everybody := keys(t, map[string][]byte{"a.asc": read(t, "pgp.asc"), "b.sshpub": append(read(t, "rsa.sshpub"), read(t, "ed25519.sshpub")...)})
			for _, k := range []*verify.GitKeys{trusted, everybody} {
				byCommit, err := verifyCommit(k, read(t, kind+".commit"))
				if err != nil {
					t.Error(err)
				}
				byTag, err := verifyTag(k, read(t, kind+".tag"))
				if err != nil || byTag != byCommit || byTag == "" {
					t.Errorf("by %q and %q: %v", byCommit, byTag, err)
				}
			}
		})
	}
}

// TestForgedGitSignatures: whatever bit of an object is another one, and whoever else signs, nothing is proven.
func TestForgedGitSignatures(t *testing.T) {
	t.Parallel()
	for name, signerOf := range map[string]func(testing.TB) *verifytest.GitSigner{"PGP": verifytest.NewPGPSigner, "SSH": verifytest.NewSSHSigner} {
		t.Run(name+" commit", func(t *testing.T) {
			t.Parallel()
			forge(t, signerOf(t), signerOf(t), []byte(plainCommit), verifyCommit, (*verifytest.GitSigner).Commit)
		})
		t.Run(name+" tag", func(t *testing.T) {
			t.Parallel()
			forge(t, signerOf(t), signerOf(t), []byte(plainTag), verifyTag, (*verifytest.GitSigner).Tag)
		})
	}
}

func forge(
	t *testing.T, ours, theirs *verifytest.GitSigner, plain []byte,
	verified func(*verify.GitKeys, []byte) (string, error), sign func(*verifytest.GitSigner, testing.TB, []byte) []byte,
) {
	t.Helper()
	trusted, good := keys(t, map[string][]byte{ours.Entry: ours.Public}), sign(ours, t, plain)
	if by, err := verified(trusted, good); err != nil || by != ours.Name {
		t.Fatalf("signed by %q: %v", by, err)
	}
	refuse := func(what string, raw []byte) {
		t.Helper()
		by, err := verified(trusted, raw)
		if err == nil || by != "" || !errors.Is(err, verify.ErrSignature) && !errors.Is(err, verify.ErrUnsigned) {
			t.Errorf("%s: by %q, %v", what, by, err)
		}
	}
	// The signature is what good has and plain has not.
	at := len(plain)
	if header := bytes.Index(good, []byte("\ngpgsig")); header >= 0 {
		at = header
	}
	signature := good[at : at+len(good)-len(plain)]
	under := func(payload []byte) []byte { return slices.Concat(payload[:at], signature, payload[at:]) }
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for range 100 {
		altered, place := bytes.Clone(plain), random.IntN(len(plain))
		altered[place] ^= 1 << random.IntN(8)
		refuse(fmt.Sprintf("byte %d is another one", place), under(altered))
	}
	refuse("another's", sign(theirs, t, plain))
	refuse("unsigned", plain)
	refuse("empty", nil)
	refuse("with more at its end", under(append(bytes.Clone(plain), "more\n"...)))
	refuse("cut", good[:at+len(signature)/2])
	refuse("signed again by another", sign(theirs, t, good))
	refuse("without a head", bytes.Replace(good, []byte("-----BEGIN"), []byte("-----BEGUN"), 1))
	refuse("with a certificate's head", bytes.ReplaceAll(good, []byte(" SIGNATURE-----"), []byte("ED MESSAGE-----")))
	refuse("of nobody", bytes.ReplaceAll(good, signature[len(signature)/3:len(signature)/2], nil))
}

// TestASignatureIsForGit: what a key signed as a file, or to log in somewhere, is no commit.
func TestASignatureIsForGit(t *testing.T) {
	t.Parallel()
	signer := verifytest.NewSSHSignerFor(t, "file")
	by, err := verifyCommit(keys(t, map[string][]byte{signer.Entry: signer.Public}), signer.Commit(t, []byte(plainCommit)))
	if !errors.Is(err, verify.ErrSignature) {
		t.Errorf("by %q, %v", by, err)
	}
}

// TestASignatureInAMessageIsNone: only the header of a commit holds its signature, and only one.
func TestASignatureInAMessageIsNone(t *testing.T) {
	t.Parallel()
	signer := verifytest.NewSSHSigner(t)
	trusted, signed := keys(t, map[string][]byte{signer.Entry: signer.Public}), signer.Commit(t, []byte(plainCommit))
	_, header, _ := bytes.Cut(signed, []byte("\ngpgsig"))
	header, _, _ = bytes.Cut(header, []byte("\n\n"))
	block := "gpgsig" + string(header) + "\n"
	for what, raw := range map[string]string{
		"in the message": plainCommit + "\n" + block,
		"twice":          strings.Replace(string(signed), "\ngpgsig", "\n"+block+"gpgsig", 1),
	} {
		if by, err := verifyCommit(trusted, []byte(raw)); err == nil {
			t.Errorf("%s: by %q", what, by)
		}
	}
	other := strings.Replace(string(signed), "\ngpgsig", "\ngpgsig-sha256 other\n words\ngpgsig", 1)
	if _, err := verifyCommit(trusted, []byte(other)); err != nil {
		t.Errorf("beside one for SHA-256: %v", err)
	}
}

func TestGitKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	pgp, secure := verifytest.NewPGPSigner(t), verifytest.NewSSHSigner(t)
	for what, entries := range map[string]map[string][]byte{
		"nothing":       {},
		"empty":         {"a.asc": nil},
		"no armor":      {"a.asc": []byte("key")},
		"SSH as PGP":    {"a.asc": secure.Public},
		"PGP as SSH":    {"a.sshpub": pgp.Public},
		"comments":      {"a.sshpub": []byte("# nobody\n\n")},
		"one is no key": {"a.asc": pgp.Public, "b.sshpub": []byte("ssh-ed25519 AAAA\n")},
	} {
		if _, err := verify.NewGitKeys(entries); !errors.Is(err, verify.ErrPolicy) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCertificatesAreNoKeys: nothing would ask how long one is valid, and for what.
func TestCertificatesAreNoKeys(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.HostCert, ValidBefore: 1}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	trusted, err := verify.NewGitKeys(map[string][]byte{"a.sshpub": ssh.MarshalAuthorizedKey(certificate)})
	if errors.Is(err, verify.ErrPolicy) {
		return
	}
	certified, err := ssh.NewCertSigner(certificate, signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := sshsig.Sign(strings.NewReader(plainTag), certified, sshsig.HashSHA512, "git")
	if err != nil {
		t.Fatal(err)
	}
	by, err := verifyTag(trusted, append([]byte(plainTag), sshsig.Armor(made)...))
	t.Errorf("an expired certificate of a host signs as %q, %v", by, err)
}

// TestFingerprintsOfGitKeys: other names, or another order, are the same trust; another key is not.
func TestFingerprintsOfGitKeys(t *testing.T) {
	t.Parallel()
	one, two := verifytest.NewPGPSigner(t), verifytest.NewSSHSigner(t)
	both := verify.GitFingerprint(map[string][]byte{"a": one.Public, "b.sshpub": two.Public})
	if again := verify.GitFingerprint(map[string][]byte{"z": one.Public, "a.sshpub": two.Public}); again != both {
		t.Errorf("%s and %s", both, again)
	}
	if alone := verify.GitFingerprint(map[string][]byte{"a": one.Public}); alone == both {
		t.Error("another trust has the same fingerprint")
	}
}

// TestSeveralKeysInOneEntry: one armored block behind the other, as cat makes it.
func TestSeveralKeysInOneEntry(t *testing.T) {
	t.Parallel()
	one, two := verifytest.NewPGPSigner(t), verifytest.NewPGPSigner(t)
	trusted := keys(t, map[string][]byte{"all.asc": slices.Concat(one.Public, []byte("\n"), two.Public, []byte("\n"))})
	for _, signer := range []*verifytest.GitSigner{one, two} {
		if by, err := verifyCommit(trusted, signer.Commit(t, []byte(plainCommit))); err != nil || by != signer.Name {
			t.Errorf("by %q, not %q: %v", by, signer.Name, err)
		}
	}
}

func FuzzGitSignature(f *testing.F) {
	signers := []*verifytest.GitSigner{verifytest.NewPGPSigner(f), verifytest.NewSSHSigner(f)}
	for _, signer := range signers {
		f.Add(signer.Commit(f, []byte(plainCommit)))
		f.Add(signer.Tag(f, []byte(plainTag)))
	}
	stranger := verifytest.NewSSHSigner(f)
	trusted, err := verify.NewGitKeys(map[string][]byte{stranger.Entry: stranger.Public, "pgp": verifytest.NewPGPSigner(f).Public})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, verified := range []func(*verify.GitKeys, []byte) (string, error){verifyCommit, verifyTag} {
			if by, err := verified(trusted, raw); !errors.Is(err, verify.ErrSignature) && !errors.Is(err, verify.ErrUnsigned) || by != "" {
				t.Errorf("by %q, %v", by, err)
			}
		}
	})
}
