package git

import (
	"encoding/binary"
	"errors"
)

// The commands of a delta; see "Deltified representation" in gitformat-pack(5).
const (
	copyCommand = 0x80
	// wholeCopy is the size that a copy without one has.
	wholeCopy = 0x10000
)

// errDelta says that a delta does not belong to its base, or is none.
var errDelta = errors.New("malformed delta")

// patch applies a delta to its base. The result takes exactly size bytes, which the caller has bounded; a delta that
// makes more or less is refused.
func patch(base, delta []byte, size int64) ([]byte, error) {
	from, n := binary.Uvarint(delta)
	if n <= 0 || from != uint64(len(base)) {
		return nil, errDelta
	}
	delta = delta[n:]
	to, n := binary.Uvarint(delta)
	if n <= 0 || size < 0 || to != uint64(size) {
		return nil, errDelta
	}
	delta = delta[n:]
	result := make([]byte, size)
	left := result
	for len(delta) > 0 {
		var piece []byte
		if command := delta[0]; command&copyCommand != 0 {
			offset, length, rest, ok := copyArguments(command, delta[1:])
			if !ok || offset > len(base) || length > len(base)-offset {
				return nil, errDelta
			}
			piece, delta = base[offset:offset+length], rest
		} else {
			end := 1 + int(command)
			if command == 0 || end > len(delta) {
				return nil, errDelta
			}
			piece, delta = delta[1:end], delta[end:]
		}
		if len(piece) > len(left) {
			return nil, errDelta
		}
		left = left[copy(left, piece):]
	}
	if len(left) > 0 {
		return nil, errDelta
	}
	return result, nil
}

// copyArguments reads what follows a copy command: the bytes of offset and length that its bits announce.
func copyArguments(command byte, delta []byte) (offset, length int, rest []byte, ok bool) {
	for bit := range 7 {
		if command&(1<<bit) == 0 {
			continue
		}
		if len(delta) == 0 {
			return 0, 0, nil, false
		}
		if bit < 4 {
			offset |= int(delta[0]) << (8 * bit)
		} else {
			length |= int(delta[0]) << (8 * (bit - 4))
		}
		delta = delta[1:]
	}
	if length == 0 {
		length = wholeCopy
	}
	return offset, length, delta, true
}
