package verify

import (
	"bufio"
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

const (
	// sshKeysSuffix ends the names of entries with SSH keys, as in Flux; all others hold OpenPGP keys.
	sshKeysSuffix = ".sshpub"
	// sshNamespace is what Git signs for; see gpg.format in git-config(1).
	sshNamespace = "git"
	// userPresent is the flag of a security key's signature that says that somebody touched it; see PROTOCOL.u2f in OpenSSH.
	userPresent = 1
)

// How Git tells the formats of signatures apart; see gitformat-signature(5).
const (
	pgpHead  = "-----BEGIN PGP SIGNATURE-----"
	sshHead  = "-----BEGIN SSH SIGNATURE-----"
	x509Head = "-----BEGIN SIGNED MESSAGE-----"
)

// GitKeys are those whose signatures of commits and tags count. They are safe for concurrent use.
type GitKeys struct {
	rings openpgp.EntityList
	keys  []ssh.PublicKey
}

// GitFingerprint is equal for the entries of two Secrets only if they trust the same keys: "sha256:" and 64 hex digits. It
// reads none of the keys, which may take long.
func GitFingerprint(entries map[string][]byte) string {
	trusted := make([][]byte, 0, len(entries))
	for name, value := range entries {
		trusted = append(trusted, encode([]byte(formatOf(name)), value))
	}
	return fingerprint("git", set(nil, trusted)...)
}

// formatOf tells what format the keys of an entry have.
func formatOf(name string) string {
	if strings.HasSuffix(name, sshKeysSuffix) {
		return "ssh"
	}
	return "pgp"
}

// NewGitKeys reads the entries of a Secret: armored OpenPGP public keys, and, where the name ends in .sshpub, SSH public
// keys in the format of authorized_keys, whose options have no meaning here. ErrPolicy where an entry cannot be read.
func NewGitKeys(entries map[string][]byte) (*GitKeys, error) {
	k := &GitKeys{}
	read := map[string]func([]byte) error{"pgp": k.readRing, "ssh": k.readSSH}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := read[formatOf(name)](entries[name]); err != nil {
			return nil, unusable("%q holds no %s public keys: %v", name, strings.ToUpper(formatOf(name)), err)
		}
	}
	if len(k.rings) == 0 && len(k.keys) == 0 {
		return nil, unusable("there is no public key in it")
	}
	return k, nil
}

// readRing reads one armored block after the other.
func (k *GitKeys) readRing(value []byte) error {
	in := bufio.NewReader(bytes.NewReader(value))
	for first := true; ; first = false {
		block, err := armor.Decode(in)
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read its armor: %w", err)
		}
		body, err := io.ReadAll(block.Body)
		if err != nil {
			return err
		}
		count, err := countKeys(body)
		if err != nil {
			return err
		}
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if len(ring) != count || count == 0 {
			return fmt.Errorf("of %d keys in a block, %d can be read", count, len(ring))
		}
		k.rings = append(k.rings, ring...)
	}
}

// countKeys counts the keys of a ring, without what belongs to them. It refuses DSA, whose numbers nothing bounds: reading
// a ring checks the signatures in it, and one of DSA can take minutes.
func countKeys(ring []byte) (count int, err error) {
	packets := packet.NewReader(bytes.NewReader(ring))
	for {
		next, err := packets.Next()
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if private, ok := next.(*packet.PrivateKey); ok {
			next = &private.PublicKey
		}
		key, ok := next.(*packet.PublicKey)
		switch {
		case ok && key.PubKeyAlgo == packet.PubKeyAlgoDSA:
			return count, errors.New("keys of DSA are refused: use Ed25519 or RSA")
		case ok && !key.IsSubkey:
			count++
		}
	}
}

func (k *GitKeys) readSSH(value []byte) error {
	for line := range bytes.Lines(value) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil {
			return err
		}
		if _, ok := key.(*ssh.Certificate); ok {
			return errors.New("a certificate is no key: list the key that it is for")
		}
		k.keys = append(k.keys, key)
	}
	return nil
}

// Verify returns the name of the key that signed: its id for OpenPGP, its SHA-256 fingerprint for SSH. ErrUnsigned where the
// object carries no signature of these kinds, ErrSignature where none of the keys made it.
func (k *GitKeys) Verify(object SignedObject) (key string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			key, err = "", refuse("checking it broke off: %v", cause)
		}
	}()
	signature := bytes.TrimSpace(object.Signature)
	line, _, _ := bytes.Cut(signature, []byte{'\n'})
	head := string(bytes.TrimSpace(line))
	end := strings.Replace(head, "BEGIN", "END", 1)
	switch {
	case head == "":
		return "", unsigned("it carries no signature")
	case !bytes.HasSuffix(signature, []byte(end)) || strings.Count(string(signature), end) > 1:
		return "", refuse("something follows it, or it has no end")
	}
	switch head {
	case pgpHead:
		return k.verifyPGP(object)
	case sshHead:
		return k.verifySSH(object)
	case x509Head:
		return "", unsigned("it is signed with a certificate (X.509), which is not supported: sign it with OpenPGP or SSH")
	default:
		return "", unsigned("its signature is neither OpenPGP's nor SSH's")
	}
}

func (k *GitKeys) verifyPGP(object SignedObject) (string, error) {
	block, err := armor.Decode(bytes.NewReader(object.Signature))
	if err != nil {
		return "", refuse("read its armor: %v", err)
	}
	made, by, err := openpgp.VerifyDetachedSignature(k.rings, bytes.NewReader(object.Payload), block.Body, nil)
	switch {
	case err != nil:
		return "", refuse("%v", err)
	case made.Hash == crypto.SHA1:
		return "", refuse("it is one by SHA-1, of which others can be made that fit")
	case made.SigType != packet.SigTypeBinary:
		return "", refuse("it is one of text, whose line ends may change")
	}
	return by.PrimaryKey.KeyIdString(), nil
}

func (k *GitKeys) verifySSH(object SignedObject) (string, error) {
	made, err := sshsig.Unarmor(object.Signature)
	if err != nil {
		return "", refuse("%v", err)
	}
	by := ssh.FingerprintSHA256(made.PublicKey)
	for _, key := range k.keys {
		if !bytes.Equal(key.Marshal(), made.PublicKey.Marshal()) {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(object.Payload), made, key, made.HashAlgorithm, sshNamespace); err != nil {
			return "", refuse("%v", err)
		}
		if strings.HasPrefix(key.Type(), "sk-") && (len(made.Signature.Rest) == 0 || made.Signature.Rest[0]&userPresent == 0) {
			return "", refuse("nobody touched the security key")
		}
		return by, nil
	}
	return "", refuse("its key %s is none of those that are trusted", by)
}
