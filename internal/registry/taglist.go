package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxKeptTagBytes bounds a list that is kept beside its ETag.
	maxKeptTagBytes = 128 << 10
	// maxTagValue bounds what is held of a list to read one value in it. Tags have at most 128 characters.
	maxTagValue = 16 << 10
)

// tagReader shows the tags of all pages, within limits. It holds none but those of a short list.
type tagReader struct {
	maxTags  int
	maxBytes int64
	see      func(tag string)

	count int
	bytes int64
	// tags are those of a list of at most maxKeptTagBytes.
	tags []string
}

// tagBytes counts the bytes of all pages together, and those that wait to be a value.
type tagBytes struct {
	page    io.Reader
	reader  *tagReader
	decoder *json.Decoder
	read    int64
}

func (b *tagBytes) Read(p []byte) (int, error) {
	if b.read-b.decoder.InputOffset() > maxTagValue {
		return 0, limitErrorf("list of tags has a value of more than %d bytes", maxTagValue)
	}
	n, err := b.page.Read(p)
	b.read += int64(n)
	if b.reader.bytes += int64(n); b.reader.bytes > b.reader.maxBytes {
		return 0, limitErrorf("list of tags has more than %d bytes (MaxTagListBytes)", b.reader.maxBytes)
	}
	return n, err
}

// read reads one page: an object with a list of strings under "tags".
func (r *tagReader) read(page io.Reader) error {
	counted := &tagBytes{page: page, reader: r}
	decoder := json.NewDecoder(counted)
	counted.decoder = decoder
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return unreadable(err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return unreadable(err)
		}
		if key == "tags" {
			err = r.readTags(decoder)
		} else {
			err = skip(decoder)
		}
		if err != nil {
			return unreadable(err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return unreadable(err)
	}
	return nil
}

func (r *tagReader) readTags(decoder *json.Decoder) error {
	switch token, err := decoder.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil // So some registries write an empty list.
	case token != json.Delim('['):
		return errors.New("tags are not a list")
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		tag, ok := token.(string)
		if !ok {
			return errors.New("a tag is not a string")
		}
		if !IsTag(tag) {
			continue
		}
		if r.count++; r.count > r.maxTags {
			return limitErrorf("repository has more than %d tags (MaxTags)", r.maxTags)
		}
		if r.bytes <= maxKeptTagBytes {
			r.tags = append(r.tags, tag)
		}
		r.see(tag)
	}
	_, err := decoder.Token()
	return err
}

// skip reads over one value.
func skip(decoder *json.Decoder) error {
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return nil
		}
	}
}

func unreadable(err error) error {
	switch {
	case err == nil:
		return protocolErrorf("list of tags is not a JSON object")
	case errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: read the list of tags: %w", ErrProtocol, err)
}

// nextLink finds the target of the relation "next" in Link headers, see RFC 8288.
func nextLink(header http.Header) (target string, ok bool) {
	for _, value := range header.Values("Link") {
		for rest := value; ; {
			begin := strings.IndexByte(rest, '<')
			if begin < 0 {
				break
			}
			end := strings.IndexByte(rest[begin:], '>')
			if end < 0 {
				break
			}
			target, rest = rest[begin+1:begin+end], rest[begin+end+1:]
			params, _, _ := strings.Cut(rest, "<")
			for param := range strings.SplitSeq(params, ";") {
				name, rel, _ := strings.Cut(strings.Trim(param, " \t,"), "=")
				if strings.EqualFold(strings.TrimSpace(name), "rel") &&
					strings.EqualFold(strings.Trim(strings.TrimSpace(rel), `"`), "next") {
					return target, true
				}
			}
		}
	}
	return "", false
}
