package archive

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"

	"sluice.dev/sluice/internal/memory"
)

const (
	// gzipHeader is that of a member without name and time, as RFC 1952 has it.
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	// lastBlock is an empty one that ends a deflate stream, as RFC 1951 has it.
	lastBlock = "\x01\x00\x00\xff\xff"
	// level is what measuring chose: see docs/adr/0004-archive-bytes.md.
	level = 6
)

// member is a gzip member that is put together from parts. Each is deflated by itself and ends at a whole byte, so that it
// can be taken from an earlier archive as it is.
type member struct {
	index

	ctx    context.Context
	out    *bufio.Writer
	packer *flate.Writer
	now    part   // is being made
	crc    uint32 // of all parts
	raw    int64
	drawn  int64
	buffer []byte
}

func newMember(ctx context.Context, dst io.Writer) (*member, error) {
	m := &member{ctx: ctx, out: bufio.NewWriterSize(dst, bufferSize), buffer: make([]byte, bufferSize)}
	_, err := m.out.WriteString(gzipHeader)
	if err != nil {
		return nil, err
	}
	m.packer, err = flate.NewWriter(packed{m}, level)
	return m, err
}

// packed takes what the compressor makes.
type packed struct{ *member }

func (m packed) Write(p []byte) (int, error) {
	m.now.Packed += int64(len(p))
	m.now.Sum = crc32.Update(m.now.Sum, castagnoli, p)
	return m.out.Write(p)
}

// Write adds to the part that is being made.
func (m *member) Write(p []byte) (int, error) {
	m.now.Raw += int64(len(p))
	m.now.CRC = crc32.Update(m.now.CRC, crc32.IEEETable, p)
	return m.packer.Write(p)
}

// end ends the part.
func (m *member) end() error {
	if m.now.Raw > 0 {
		if err := m.packer.Flush(); err != nil {
			return err
		}
		m.packer.Reset(packed{m})
	}
	p := m.now
	m.now = part{}
	return m.add(p)
}

func (m *member) add(p part) error {
	if err := m.draw(recordCost); err != nil {
		return err
	}
	m.Parts = append(m.Parts, p)
	m.crc = combine(m.crc, p.CRC, p.Raw)
	m.raw += p.Raw
	return nil
}

func (m *member) draw(bytes int64) error {
	err := memory.Draw(m.ctx, bytes)
	if err == nil {
		m.drawn += bytes
	}
	return err
}

// take copies parts of an earlier archive.
func (m *member) take(from *earlier, first, parts int) error {
	if parts == 0 {
		return nil
	}
	if _, err := from.body.Seek(from.places[first], io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", ErrStored, err)
	}
	for _, p := range from.Parts[first : first+parts] {
		var sum uint32
		for left := p.Packed; left > 0; {
			chunk := m.buffer[:min(left, bufferSize)]
			if _, err := io.ReadFull(from.body, chunk); err != nil {
				return fmt.Errorf("%w: %w", ErrStored, err)
			}
			sum = crc32.Update(sum, castagnoli, chunk)
			if _, err := m.out.Write(chunk); err != nil {
				return err
			}
			left -= int64(len(chunk))
		}
		if sum != p.Sum {
			return fmt.Errorf("%w: a part has other bytes than it had", ErrStored)
		}
		if err := errors.Join(m.add(p), m.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// close ends the member.
func (m *member) close() error {
	end := binary.LittleEndian.AppendUint32([]byte(lastBlock), m.crc)
	end = binary.LittleEndian.AppendUint32(end, uint32(m.raw)) //nolint:gosec // The size is taken modulo 2^32.
	if _, err := m.out.Write(end); err != nil {
		return err
	}
	return m.out.Flush()
}

// combine gives the CRC-32 of two texts in a row from those of each, and the length of the second: appending a byte
// multiplies what a CRC-32 is the remainder of by x^8.
func combine(first, second uint32, length int64) uint32 {
	const x8 = 1 << 23 // The highest bit stands for x^0.
	for power := uint32(x8); length > 0; length >>= 1 {
		if length&1 == 1 {
			first = multiply(power, first)
		}
		power = multiply(power, power)
	}
	return first ^ second
}

// multiply multiplies polynomials over GF(2), modulo that of CRC-32.
func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1 << 31); bit > 0; bit >>= 1 {
		if a&bit > 0 {
			product ^= b
		}
		b = b>>1 ^ b&1*crc32.IEEE
	}
	return product
}
