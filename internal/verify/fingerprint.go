package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
)

// fingerprint hashes a policy. Every part is preceded by its length, so that no two policies share an encoding.
type fingerprint struct{ sum hash.Hash }

// newFingerprint starts with the kind of policy; another encoding needs another kind.
func newFingerprint(kind string) fingerprint {
	f := fingerprint{sum: sha256.New()}
	f.add([]byte("verify/1"))
	f.add([]byte(kind))
	return f
}

func (f fingerprint) add(part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	f.sum.Write(length[:])
	f.sum.Write(part)
}

func (f fingerprint) flag(set bool) {
	if set {
		f.add([]byte{1})
		return
	}
	f.add([]byte{0})
}

// set adds parts whose order and repetition do not matter.
func (f fingerprint) set(parts [][]byte) {
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, slices.Compare[[]byte])
	sorted = slices.CompactFunc(sorted, slices.Equal[[]byte])
	var count [8]byte
	binary.BigEndian.PutUint64(count[:], uint64(len(sorted)))
	f.add(count[:])
	for _, part := range sorted {
		f.add(part)
	}
}

func (f fingerprint) String() string { return "sha256:" + hex.EncodeToString(f.sum.Sum(nil)) }

// pair joins two strings without ambiguity.
func pair(first, second string) []byte {
	joined := binary.BigEndian.AppendUint64(nil, uint64(len(first)))
	joined = append(joined, first...)
	return append(joined, second...)
}
