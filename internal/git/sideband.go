package git

import (
	"errors"
	"io"
)

// maxProgressBytes bounds the chatter beside a pack.
const maxProgressBytes = 16 << 20

// sideband gives the data band of a multiplexed stream; see "side-band" in gitprotocol-capabilities(5).
type sideband struct {
	packets  *packetReader
	rest     []byte
	progress int
	// said takes the beginning of the messages; it may be nil.
	said *opening
	done bool
}

// Read returns bytes of the data band, and io.EOF after the closing flush packet.
func (s *sideband) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.done {
			return 0, io.EOF
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *sideband) fill() error {
	kind, payload, err := s.packets.next()
	switch {
	case errors.Is(err, io.EOF):
		return truncated(io.ErrUnexpectedEOF)
	case err != nil:
		return err
	case kind == flushPacket || kind == endPacket:
		s.done = true
		return nil
	case kind != dataPacket || len(payload) == 0:
		return protocolErrorf("packet without a band inside the pack")
	}
	switch payload[0] {
	case 1:
		s.rest = payload[1:]
		return nil
	case 2:
		if s.progress += len(payload); s.progress > maxProgressBytes {
			return limitErrorf("more than %d bytes of progress messages", maxProgressBytes)
		}
		if s.said != nil {
			_, _ = s.said.Write(payload[1:]) // It takes everything.
		}
		return nil
	case 3:
		return &remoteError{message: string(payload[1:])}
	default:
		return protocolErrorf("unknown band %d", payload[0])
	}
}
