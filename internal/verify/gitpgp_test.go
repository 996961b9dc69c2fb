package verify_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"sluice.dev/sluice/internal/verify"
)

// The tags of packets and the algorithms that are written here by hand; see RFC 4880, sections 4.3 and 9.
const (
	signatureTag, publicKeyTag, userTag = 2, 6, 13
	rsaKey, dsaKey, sha1Hash            = 1, 17, 2
	positive                            = 0x13 // a signature of a key that a user is its own
)

func openPGP(tag byte, body ...[]byte) []byte {
	whole := slices.Concat(body...)
	return slices.Concat([]byte{0xc0 | tag, 255}, binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole)
}

func number(n *big.Int) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(n.BitLen())), n.Bytes()...)
}

func armored(t *testing.T, kind string, packets ...[]byte) []byte {
	t.Helper()
	var text bytes.Buffer
	out, err := armor.Encode(&text, kind, nil)
	if err == nil {
		_, err = out.Write(slices.Concat(packets...))
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(text.Bytes(), '\n')
}

func entity(t *testing.T, config *packet.Config) (made *openpgp.Entity, public []byte) {
	t.Helper()
	made, err := openpgp.NewEntity("Ada", "", "ada@upstream.example", config)
	var out bytes.Buffer
	if err == nil {
		err = made.Serialize(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made, out.Bytes()
}

// TestPGPSignaturesBySHA1DoNotCount: objects can be made in pairs that one signature of this kind fits.
func TestPGPSignaturesBySHA1DoNotCount(t *testing.T) {
	t.Parallel()
	ada, public := entity(t, &packet.Config{Algorithm: packet.PubKeyAlgoRSA, RSABits: 2048})
	head := []byte{4, 0, rsaKey, sha1Hash, 0, 6, 5, 2, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[8:], uint32(ada.PrimaryKey.CreationTime.Unix()))
	digest := sha1.Sum(slices.Concat([]byte(plainTag), head, []byte{4, 0xff, 0, 0, 0, byte(len(head))}))
	key, ok := ada.PrivateKey.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		t.Fatalf("the key is a %T", ada.PrivateKey.PrivateKey)
	}
	made, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA1, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	issuer := binary.BigEndian.AppendUint64([]byte{0, 10, 9, 16}, ada.PrimaryKey.KeyId)
	signature := openPGP(signatureTag, head, issuer, digest[:2], number(new(big.Int).SetBytes(made)))
	trusted := keys(t, map[string][]byte{"ada.asc": armored(t, openpgp.PublicKeyType, public)})
	by, err := verifyTag(trusted, slices.Concat([]byte(plainTag), armored(t, openpgp.SignatureType, signature)))
	if !errors.Is(err, verify.ErrSignature) || by != "" {
		t.Errorf("by %q, %v", by, err)
	}
}

// TestKeysOfDSAAreRefused: OpenPGP's may have numbers of 65,535 bits, and to check the one signature in such a key takes
// minutes that nothing can cut short.
func TestKeysOfDSAAreRefused(t *testing.T) {
	t.Parallel()
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 1024), big.NewInt(105))
	q, g := new(big.Int).Sub(p, big.NewInt(2)), new(big.Int).Sub(p, big.NewInt(77))
	key := openPGP(publicKeyTag, []byte{4, 0, 0, 0, 1, dsaKey}, number(p), number(q), number(g), number(g))
	read, err := packet.Read(bytes.NewReader(key))
	public, ok := read.(*packet.PublicKey)
	if err != nil || !ok {
		t.Fatalf("%T, %v", read, err)
	}
	issuer := binary.BigEndian.AppendUint64([]byte{0, 10, 9, 16}, public.KeyId)
	self := openPGP(signatureTag, []byte{4, positive, dsaKey, 8, 0, 6, 5, 2, 0, 0, 0, 1}, issuer, []byte{0, 0}, number(big.NewInt(1)), number(big.NewInt(2)))
	_, good := entity(t, nil)
	for what, ring := range map[string][]byte{"alone": key, "with a user": slices.Concat(key, openPGP(userTag, []byte("ada")), self)} {
		_, err := verify.NewGitKeys(map[string][]byte{"a.asc": armored(t, openpgp.PublicKeyType, good, ring)})
		if !errors.Is(err, verify.ErrPolicy) || !bytes.Contains([]byte(err.Error()), []byte("DSA")) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEachKeyOfABlockIsRead: one that is passed over would take a signer away silently.
func TestEachKeyOfABlockIsRead(t *testing.T) {
	t.Parallel()
	_, one := entity(t, nil)
	_, two := entity(t, nil)
	keys(t, map[string][]byte{"a.asc": armored(t, openpgp.PublicKeyType, one, two)})
	for what, block := range map[string][]byte{"nothing": nil, "a key of version 3": openPGP(publicKeyTag, []byte{3, 0, 0, 0, 1, 0, 0, rsaKey, 0, 1, 1, 0, 1, 1})} {
		_, err := verify.NewGitKeys(map[string][]byte{"a.asc": armored(t, openpgp.PublicKeyType, one), "b.asc": armored(t, openpgp.PublicKeyType, block)})
		if !errors.Is(err, verify.ErrPolicy) {
			t.Errorf("%s in a block: %v", what, err)
		}
	}
	two[len(two)-1] ^= 1
	if _, err := verify.NewGitKeys(map[string][]byte{"a.asc": armored(t, openpgp.PublicKeyType, one, two)}); !errors.Is(err, verify.ErrPolicy) {
		t.Errorf("the second is damaged: %v", err)
	}
}
