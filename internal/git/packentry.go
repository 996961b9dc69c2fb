package git

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// readEntryHeader reads kind and size: three bits and four, then seven a byte, least significant first.
func readEntryHeader(in io.ByteReader) (plumbing.ObjectType, int64, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size := plumbing.ObjectType(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if shift > 53 {
			return 0, 0, errors.New("size overflows")
		}
		if b, err = in.ReadByte(); err != nil {
			return 0, 0, err
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// readOffset reads the distance back to a base: seven bits a byte, most significant first, plus one a byte.
func readOffset(in io.ByteReader) (int64, error) {
	b, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	distance := int64(b & 0x7f)
	for b&0x80 != 0 {
		if distance >= 1<<53 {
			return 0, errors.New("offset overflows")
		}
		if b, err = in.ReadByte(); err != nil {
			return 0, err
		}
		distance = (distance+1)<<7 | int64(b&0x7f)
	}
	return distance, nil
}

// deltaHead keeps the first bytes of a delta, which tell the sizes of base and result.
type deltaHead struct {
	bytes [20]byte
	n     int
}

// Write takes everything and keeps the beginning.
func (h *deltaHead) Write(p []byte) (int, error) {
	h.n += copy(h.bytes[h.n:], p)
	return len(p), nil
}

func (h *deltaHead) resultSize() (int64, error) {
	_, n := binary.Uvarint(h.bytes[:h.n])
	if n <= 0 {
		return 0, errors.New("malformed delta")
	}
	size, n := binary.Uvarint(h.bytes[n:h.n])
	if n <= 0 || size > 1<<53 {
		return 0, errors.New("malformed delta")
	}
	return int64(size), nil
}
