package build

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What the builder and its worker say to each other is frames: four bytes of length, big endian, one byte that tells what
// it is, and the content. The builder begins with the job and answers calls; the worker calls, sends objects, and ends
// with one frame of how it went.
const (
	frameJob    = 'j' // JSON of the job
	frameKind   = 'k' // call: what is this name?
	frameRead   = 'r' // call: the content of this file
	frameAnswer = 'a' // to a call
	frameRefuse = 'x' // to a call, or at the end: a code and the error
	frameObject = 'o' // the origin, a zero byte, and JSON
	frameEnd    = 'z' // all objects were sent: the names of the variables that were used, with zero bytes between
)

// errBroken says that the other side does not speak this language, or not any more.
var errBroken = errors.New("conversation with the build process broke off")

func writeFrame(w io.Writer, tag byte, content []byte) error {
	head := make([]byte, 5, 5+len(content))
	binary.BigEndian.PutUint32(head, uint32(len(content))) //nolint:gosec // Nothing of 4 GiB is ever sent.
	head[4] = tag
	if _, err := w.Write(append(head, content...)); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

func readFrame(r io.Reader, limit int) (tag byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if int64(size) > int64(limit) {
		return 0, nil, fmt.Errorf("%w: %d bytes in a row", errBroken, size)
	}
	content = make([]byte, size)
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	return head[4], content, nil
}

// codes are the errors that keep their meaning on the way from a worker.
func codes() []error {
	return []error{ErrEmpty, ErrPath, ErrDocument, ErrLimit, ErrForbidden, ErrKustomize, ErrVariable}
}

func encodeError(err error) []byte {
	code := byte('?')
	for i, known := range codes() {
		if errors.Is(err, known) {
			code = '0' + byte(i)
			break
		}
	}
	return append([]byte{code}, err.Error()...)
}

// told is an error that was told by the other side.
type told struct {
	text string
	is   error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.is }

func decodeError(content []byte) error {
	if len(content) == 0 {
		return errBroken
	}
	e := &told{text: string(content[1:]), is: errBroken}
	if i := int(content[0]) - '0'; i >= 0 && i < len(codes()) {
		e.is = codes()[i]
	}
	return e
}
