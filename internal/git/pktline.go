package git

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/transport"
)

// maxPacket is the longest pkt-line with its four digits of length, see gitprotocol-common(5).
const maxPacket = 65520

// packetBuffer suits lists of refs; what is longer is read past it.
const packetBuffer = 8 << 10

// packetKind tells data from the special packets.
type packetKind int

const (
	dataPacket packetKind = iota
	flushPacket
	delimPacket
	endPacket
)

// packetReader splits a stream into pkt-lines.
type packetReader struct {
	in     *bufio.Reader
	buffer []byte
}

func newPacketReader(in io.Reader) *packetReader {
	return &packetReader{in: bufio.NewReaderSize(in, packetBuffer)}
}

// next returns the next packet; the payload is good until the next call. io.EOF only between packets.
func (r *packetReader) next() (packetKind, []byte, error) {
	var digits [4]byte
	if n, err := io.ReadFull(r.in, digits[:]); err != nil {
		if errors.Is(err, io.EOF) && n == 0 {
			return 0, nil, io.EOF
		}
		return 0, nil, truncated(err)
	}
	length, err := strconv.ParseUint(string(digits[:]), 16, 16)
	switch {
	case err != nil || length == 3 || length > maxPacket:
		return 0, nil, unexpected(protocolErrorf("no packet length: %s",
			transport.PrintableQuoted(string(digits[:]))))
	case length == 0:
		return flushPacket, nil, nil
	case length == 1:
		return delimPacket, nil, nil
	case length == 2:
		return endPacket, nil, nil
	}
	if length -= 4; length > uint64(len(r.buffer)) {
		r.buffer = make([]byte, length)
	}
	payload := r.buffer[:length]
	if _, err := io.ReadFull(r.in, payload); err != nil {
		return 0, nil, truncated(err)
	}
	return dataPacket, payload, nil
}

// line is next for packets of text: without the line feed, and with the server's ERR packets as errors.
func (r *packetReader) line() (packetKind, string, error) {
	kind, payload, err := r.next()
	if err != nil || kind != dataPacket {
		return kind, "", err
	}
	text := strings.TrimSuffix(string(payload), "\n")
	if message, found := strings.CutPrefix(text, "ERR "); found {
		return 0, "", unexpected(&remoteError{message: message})
	}
	return dataPacket, text, nil
}

// truncated names an end in the middle; other errors of the connection stay what they are.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: answer is cut off: %w", ErrProtocol, io.ErrUnexpectedEOF)
	}
	return err
}

// remoteError is what the server said in an ERR packet or on the error band.
type remoteError struct{ message string }

func (e *remoteError) Error() string {
	return "server says " + transport.PrintableQuoted(strings.Trim(e.message, " \r\n\x00"))
}

// Is makes every refusal in the server's own words a protocol error.
func (e *remoteError) Is(target error) bool {
	return target == ErrProtocol
}

// appendLine appends one data packet.
func appendLine(to []byte, format string, args ...any) []byte {
	text := fmt.Sprintf(format, args...) + "\n"
	return fmt.Appendf(to, "%04x%s", len(text)+4, text)
}

func appendFlush(to []byte) []byte { return append(to, "0000"...) }

func appendDelim(to []byte) []byte { return append(to, "0001"...) }
