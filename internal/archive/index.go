package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"hash/crc32"
	"io"
)

// key names what something is made of.
type key string

// part is one piece of an archive, which can be read without those before it.
type part struct {
	Key     key    // empty where nobody knows what it is made of
	Raw     int64  // its length in the tar archive
	Packed  int64  // its length in the compressed one
	Bytes   int64  // what its files hold
	Entries int64  // how many files and folders it has
	CRC     uint32 // of the raw bytes, as gzip has it
	Sum     uint32 // of the packed ones
}

// span is the contents of a folder that has parts of its own.
type span struct {
	Key    key
	First  int // of its parts
	Parts  int
	Nested int // how many spans before it are inside it
}

// index says which parts an archive is made of.
type index struct {
	Parts []part
	Spans []span
}

// castagnoli is computed by the processor.
var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // A table, only ever read.

// encode puts a checksum before the index: nobody would notice all of what can happen to it.
func (x *index) encode() ([]byte, error) {
	to := bytes.NewBuffer(make([]byte, crc32.Size))
	err := gob.NewEncoder(to).Encode(x)
	binary.BigEndian.PutUint32(to.Bytes(), crc32.Checksum(to.Bytes()[crc32.Size:], castagnoli))
	return to.Bytes(), err
}

// decode gives an empty index where encode has not made it.
func decode(from []byte) (x index) {
	if len(from) < crc32.Size || binary.BigEndian.Uint32(from) != crc32.Checksum(from[crc32.Size:], castagnoli) ||
		gob.NewDecoder(bytes.NewReader(from[crc32.Size:])).Decode(&x) != nil {
		return index{}
	}
	for i, s := range x.Spans {
		if min(s.First, s.Parts, s.Nested) < 0 || s.First+s.Parts > len(x.Parts) || s.Nested > i {
			return index{}
		}
	}
	return x
}

// earlier is an archive that was stored before.
type earlier struct {
	index

	body   io.ReadSeeker
	places []int64 // where each part begins
	partAt map[key]int
	spanAt map[key]int
}

// recordCost is what a part takes in memory at most, with its span and their places in maps; of its record indexCost is
// written at least.
const (
	recordCost = 512
	indexCost  = 32
)

// read makes sense of what is stored.
func (s Stored) read() *earlier {
	e := &earlier{index: decode(s.Index), body: s.Body, partAt: map[key]int{}, spanAt: map[key]int{}}
	place := int64(len(gzipHeader))
	for i, p := range e.Parts {
		e.places = append(e.places, place)
		if place += p.Packed; p.Key != "" {
			e.partAt[p.Key] = i
		}
	}
	for i, s := range e.Spans {
		e.spanAt[s.Key] = i
	}
	return e
}
