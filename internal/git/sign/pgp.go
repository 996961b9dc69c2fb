package sign

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"sluice.dev/sluice/internal/credential"
)

const (
	// keyVersion is the one that gpg writes, of RFC 4880.
	keyVersion = 4
	// maxSubkeys bounds the keys that are opened with a passphrase, each of which takes a fraction of a second.
	maxSubkeys = 16
	// encryptedAEAD marks a key that names its mode of encryption beside the cipher; see RFC 9580, section 3.7.2.1.
	encryptedAEAD = 253
	// simple, salted and iterated are ways to make a key of a passphrase. There is one more, which asks for as much memory as
	// the key says.
	simple, salted, iterated = 0, 1, 3
	// dummy is GnuPG's mark for a key that is kept elsewhere.
	dummy = 101
)

// errDSA says why keys of DSA are refused: nothing bounds their numbers, so that looking at one can take minutes.
var errDSA = unusable("it is a key of DSA: use Ed25519 or RSA")

func newPGP(text string, passphrase credential.Secret) (signer *Signer, err error) {
	defer func() {
		if recover() != nil {
			signer, err = nil, unusable("it cannot be read")
		}
	}()
	block, err := armor.Decode(strings.NewReader(text[strings.Index(text, pgpHead):]))
	if err != nil {
		return nil, unusable("its armor cannot be read")
	}
	body, err := io.ReadAll(block.Body)
	if err != nil {
		return nil, unusable("its armor cannot be read")
	}
	if err := inspect(body); err != nil {
		return nil, err
	}
	ring, err := openpgp.ReadKeyRing(bytes.NewReader(body))
	if err != nil || len(ring) != 1 {
		return nil, unusable("it is not one OpenPGP key with its subkeys")
	}
	keys, err := decrypted(ring[0], passphrase)
	if err != nil {
		return nil, err
	}
	if keys == 0 {
		return nil, unusable("its private part is not in it")
	}
	sign := func(payload []byte, when time.Time) ([]byte, error) { return signPGP(ring[0], payload, when) }
	return &Signer{id: ring[0].PrimaryKey.KeyIdString(), sign: sign}, nil
}

// inspect refuses keys that take long or much memory to open, before that is tried.
func inspect(body []byte) error {
	packets := packet.NewOpaqueReader(bytes.NewReader(body))
	for keys := 0; ; {
		next, err := packets.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unusable("it cannot be read")
		}
		parsed, err := next.Parse()
		if err != nil {
			continue // It is nothing that the ring is made of, or reading that fails.
		}
		if public, ok := parsed.(*packet.PublicKey); ok && public.PubKeyAlgo == packet.PubKeyAlgoDSA {
			return errDSA
		}
		private, ok := parsed.(*packet.PrivateKey)
		if !ok {
			continue
		}
		if keys++; keys > maxSubkeys {
			return unusable("it has more than %d subkeys", maxSubkeys)
		}
		if err := inspectKey(private, next.Contents); err != nil {
			return err
		}
	}
}

// inspectKey looks at one key and at how it is encrypted: the octets behind its public part.
func inspectKey(key *packet.PrivateKey, contents []byte) error {
	bits, err := key.BitLength()
	switch {
	case key.Version != keyVersion:
		return unusable("it is an OpenPGP key of version %d", key.Version)
	case key.PubKeyAlgo == packet.PubKeyAlgoDSA:
		return errDSA
	case err != nil || bits > credential.MaxRSABits:
		return unusable("it has more than %d bits", credential.MaxRSABits)
	case !key.Encrypted:
		return nil
	}
	var public bytes.Buffer
	if err := key.SerializeForHash(&public); err != nil {
		return unusable("it cannot be read")
	}
	const frame = 3 // what a key begins with when it is hashed: a mark and its length
	at := public.Len() - frame
	if at+3 >= len(contents) {
		return unusable("it cannot be read")
	}
	way := contents[at+2] // behind the kind of encryption and the cipher
	if contents[at] == encryptedAEAD {
		way = contents[at+3]
	}
	switch way {
	case simple, salted, iterated, dummy:
		return nil
	}
	return unusable("it is encrypted in a way that may take much memory to open: export it with gpg")
}

// decrypted opens all keys that are there and may sign, and counts them.
func decrypted(of *openpgp.Entity, passphrase credential.Secret) (count int, err error) {
	keys := []*packet.PrivateKey{of.PrivateKey}
	for i := range of.Subkeys {
		keys = append(keys, of.Subkeys[i].PrivateKey)
	}
	for _, key := range keys {
		if key == nil || key.Dummy() || !key.PubKeyAlgo.CanSign() {
			continue
		}
		if key.Encrypted && passphrase.IsZero() {
			return 0, unusable("it is encrypted, and there is no passphrase")
		}
		if key.Encrypted && key.Decrypt([]byte(passphrase.Reveal())) != nil {
			return 0, unusable("it is encrypted, and the passphrase does not open it")
		}
		count++
	}
	return count, nil
}

func signPGP(by *openpgp.Entity, payload []byte, when time.Time) ([]byte, error) {
	config := &packet.Config{
		DefaultHash: crypto.SHA512, Time: func() time.Time { return when },
		NonDeterministicSignaturesViaNotation: new(false),
	}
	if key, ok := by.SigningKeyById(when, 0); !ok || key.PrivateKey == nil || key.PrivateKey.Dummy() {
		return nil, unusable("no part of OpenPGP key %s may sign at %s: it has expired, was revoked, is not valid yet, or is not in it",
			by.PrimaryKey.KeyIdString(), when.UTC().Format(time.RFC3339))
	}
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, by, bytes.NewReader(payload), config); err != nil {
		return nil, fmt.Errorf("sign with OpenPGP key: %w", err)
	}
	return out.Bytes(), nil
}
