package archive

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Excluded tells whether the rules keep a path out. The path is relative to the tree and separated by slashes; the
// root itself is never excluded. A path beneath an excluded folder may be included again.
func (r *Rules) Excluded(path string, isDir bool) bool {
	if path == root || path == "" {
		return false
	}
	// Without a budget nothing fails.
	ctx, s := context.Background(), r.scope(nil)
	for {
		name, rest, more := strings.Cut(path, "/")
		switch {
		case more:
			s, _ = s.enter(ctx, name)
		case isDir:
			s, _ = s.enter(ctx, name)
			return s.excluded
		default:
			excluded, _ := s.excludes(ctx, name)
			return excluded
		}
		path = rest
	}
}

// Sealed is an index with its checksum.
func Sealed(index []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(index, castagnoli)), index...)
}
