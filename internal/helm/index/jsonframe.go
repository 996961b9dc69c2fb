package index

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sluice.dev/sluice/internal/memory"
)

// maxFields is how many fields an index may have, whether they are known or not.
const maxFields = 1000

// jsonFrame splits an index that is JSON into its versions, with one of them in memory. It is read as Go's library reads it:
// leniently, with keys in any case. What that library would have to see as a whole is errUnusual.
type jsonFrame struct {
	text  *bufio.Reader
	to    *builder
	value bytes.Buffer
	drawn int64
	head  map[string]json.RawMessage
	size  int
}

// readJSON reads the document into the builder, and returns what stands beside the entries.
func readJSON(ctx context.Context, document io.Reader, to *builder) (*file, error) {
	f := &jsonFrame{text: bufio.NewReaderSize(document, readSize), to: to, head: map[string]json.RawMessage{}}
	if err := f.members(func(key string) error { return f.field(ctx, key) }); err != nil {
		return nil, err
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		return nil, errUnusual
	}
	text, err := json.Marshal(f.head)
	if err != nil {
		return nil, errUnusual
	}
	made := &file{}
	if err := json.Unmarshal(text, made); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return made, nil
}

// field reads a field of the index.
func (f *jsonFrame) field(ctx context.Context, key string) error {
	if len(f.head) == maxFields {
		return fmt.Errorf("%w: it has more than %d fields", ErrIndex, maxFields)
	}
	for known := range f.head {
		if strings.EqualFold(known, key) {
			return errUnusual // What comes later counts, and is read into what was there.
		}
	}
	if !strings.EqualFold(key, "entries") {
		value, err := f.read(ctx)
		if f.size += len(key) + len(value); f.size > maxHead {
			return fmt.Errorf("%w: more than %d bytes beside the entries", ErrIndex, maxHead)
		}
		f.head[key] = bytes.Clone(value)
		f.free(ctx)
		return err
	}
	f.head[key] = json.RawMessage("null")
	return f.members(func(name string) error { return f.chart(ctx, name) })
}

func (f *jsonFrame) chart(ctx context.Context, name string) error {
	err := f.to.beginChart(ctx, name)
	if errors.Is(err, errTwice) {
		return errUnusual // The last one counts.
	}
	if err != nil {
		return err
	}
	first, err := f.next()
	if err != nil || first != '[' {
		return errUnusual
	}
	for n := 0; ; n++ {
		switch next, err := f.next(); {
		case err != nil:
			return errUnusual
		case next == ']' && n == 0:
			f.to.endChart()
			return nil
		default:
			_ = f.text.UnreadByte() // It was read just now.
		}
		if err := f.version(ctx); err != nil {
			return err
		}
		switch next, err := f.next(); {
		case err == nil && next == ',':
		case err == nil && next == ']':
			f.to.endChart()
			return nil
		default:
			return errUnusual
		}
	}
}

func (f *jsonFrame) version(ctx context.Context) error {
	text, err := f.read(ctx)
	if err != nil {
		return err
	}
	if err := f.to.jsonBlock(ctx, text); err != nil {
		return err
	}
	f.free(ctx)
	return nil
}

// members reads an object: for each key, what reads its value.
func (f *jsonFrame) members(value func(key string) error) error {
	if c, err := f.next(); err != nil || c != '{' {
		return errUnusual
	}
	for n := 0; ; n++ {
		c, err := f.next()
		if err == nil && c == '}' && n == 0 {
			return nil
		}
		if err != nil || c != '"' {
			return errUnusual
		}
		key, err := f.key()
		if err != nil {
			return err
		}
		if err := value(key); err != nil {
			return err
		}
		switch c, err := f.next(); {
		case err == nil && c == ',':
		case err == nil && c == '}':
			return nil
		default:
			return errUnusual
		}
	}
}

// next is the next byte that is no space.
func (f *jsonFrame) next() (byte, error) {
	for {
		c, err := f.text.ReadByte()
		if err != nil || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, err
		}
	}
}

// key reads a key, whose first quote was read, and the colon behind it.
func (f *jsonFrame) key() (key string, err error) {
	f.value.Reset()
	f.value.WriteByte('"')
	if err := f.quoted(maxHead); err != nil {
		return "", err
	}
	if json.Unmarshal(f.value.Bytes(), &key) != nil {
		return "", errUnusual
	}
	if c, err := f.next(); err != nil || c != ':' {
		return "", errUnusual
	}
	return key, nil
}

// quoted reads a string up to its closing quote.
func (f *jsonFrame) quoted(limit int) error {
	for escaped := false; f.value.Len() <= limit; {
		c, err := f.text.ReadByte()
		if err != nil {
			return errUnusual
		}
		f.value.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			return nil
		}
	}
	return errUnusual
}

// read reads a value. Whether it is one is for the library to say: it ends where the brackets are closed.
func (f *jsonFrame) read(ctx context.Context) ([]byte, error) {
	f.value.Reset()
	depth := 0
	for quoted, escaped := false, false; ; {
		c, err := f.text.ReadByte()
		if err != nil {
			return nil, errUnusual
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			_ = f.text.UnreadByte() // It was read just now.
			return f.value.Bytes(), nil
		case c == '}' || c == ']':
			depth--
		}
		f.value.WriteByte(c)
		if n := f.value.Len(); n%readSize == 0 {
			if err := memory.Draw(ctx, readSize*jsonWeight); err != nil {
				return nil, fmt.Errorf("a version of more than %d bytes: %w", n, err)
			}
			f.drawn += readSize * jsonWeight
		}
	}
}

// free gives back what a long value took.
func (f *jsonFrame) free(ctx context.Context) {
	if f.drawn > 0 {
		f.value = bytes.Buffer{}
		memory.Return(ctx, f.drawn)
		f.drawn = 0
	}
}

// jsonBlock adds a version as JSON.
func (b *builder) jsonBlock(ctx context.Context, text []byte) error {
	hash := hashOf(text)
	if at, ok := b.known[hash]; ok {
		return b.keep(ctx, span{blockAt: at, copied: true})
	}
	if !json.Valid(text) {
		return errUnusual
	}
	var v *Version
	if err := json.Unmarshal(text, &v); err != nil {
		// Where the rest is no JSON, it is YAML, which takes a number for a text.
		return fmt.Errorf("%w: %w", errUnusual, b.explain(fmt.Errorf("%w: %w", ErrIndex, err)))
	}
	return b.version(ctx, v, hash)
}
