package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// fingerprint hashes a policy of a kind; another encoding needs another kind.
func fingerprint(kind string, parts ...[]byte) string {
	sum := sha256.Sum256(encode(append([][]byte{[]byte("verify/1"), []byte(kind)}, parts...)...))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// encode joins the parts, each preceded by its length, so that no two lists of parts share an encoding.
func encode(parts ...[]byte) []byte {
	var encoded []byte
	for _, part := range parts {
		encoded = append(binary.BigEndian.AppendUint64(encoded, uint64(len(part))), part...)
	}
	return encoded
}

func flag(set bool) []byte {
	if set {
		return []byte{1}
	}
	return []byte{0}
}

// set adds parts whose order and repetition do not matter, and how many they are.
func set(to [][]byte, parts [][]byte) [][]byte {
	slices.SortFunc(parts, bytes.Compare)
	parts = slices.CompactFunc(parts, bytes.Equal)
	return append(append(to, binary.BigEndian.AppendUint64(nil, uint64(len(parts)))), parts...)
}
