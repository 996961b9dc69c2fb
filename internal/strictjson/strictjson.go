// Package strictjson refuses JSON documents that two readers could understand in two ways.
// It does not know what they say.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrTooMany says that an object or a list holds more values than may be.
var ErrTooMany = errors.New("it has too many values")

// Rules are what is special to a kind of document.
type Rules struct {
	// Depth is how many objects and lists may stand in each other.
	Depth int
	// Values is how many one of them may hold; zero is no bound. What is read of an empty value may take a hundred times
	// its bytes.
	Values int
	// Names are those that readers look for. What differs from one in upper and lower case alone is refused: some readers
	// take it for the name.
	Names []string
	// Free is the name of objects in which somebody chose the names: these may be any, as long as none comes twice.
	Free string
}

// Unmarshal reads one object that can be understood in one way only: it is UTF-8, no object in it has a name twice, in upper
// or lower case, and nothing follows it. The error says what is wrong with "it".
func (r Rules) Unmarshal(document []byte, into any) error {
	if !utf8.Valid(document) {
		return errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	switch first, err := decoder.Token(); {
	case err != nil:
		return notJSON(err)
	case first != json.Delim('{'):
		return errors.New("it is not a JSON object")
	}
	if err := r.inside(decoder, '{', r.Depth, false); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return json.Unmarshal(document, into)
}

// inside reads an object or a list to its end.
func (r Rules) inside(decoder *json.Decoder, opening json.Delim, depth int, free bool) error {
	if depth <= 0 {
		return fmt.Errorf("it is nested more than %d deep", r.Depth)
	}
	values := 0
	for seen := map[string]bool{}; decoder.More(); {
		if values++; r.Values > 0 && values > r.Values {
			return fmt.Errorf("%w: more than %d in one object or list", ErrTooMany, r.Values)
		}
		below := free
		if opening == '{' {
			name, err := r.name(decoder, seen, free)
			if err != nil {
				return err
			}
			below = free || r.Free != "" && name == r.Free
		}
		if err := r.value(decoder, depth, below); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return notJSON(err)
	}
	return nil
}

func (r Rules) value(decoder *json.Decoder, depth int, free bool) error {
	token, err := decoder.Token()
	if err != nil {
		return notJSON(err)
	}
	if nested, ok := token.(json.Delim); ok {
		return r.inside(decoder, nested, depth-1, free)
	}
	return nil
}

// name reads the name of a value.
func (r Rules) name(decoder *json.Decoder, seen map[string]bool, free bool) (string, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", notJSON(err)
	}
	name, _ := token.(string) // Nothing else stands before a colon.
	key := name
	if !free {
		key = strings.ToLower(strings.ToUpper(name)) // As encoding/json compares them.
	}
	if seen[key] {
		return "", fmt.Errorf("it has the name %.64q twice", name)
	}
	seen[key] = true
	for _, known := range r.Names {
		if !free && name != known && strings.EqualFold(name, known) {
			return "", fmt.Errorf("it has a name %.64q, which some take for %q", name, known)
		}
	}
	return name, nil
}

func notJSON(err error) error { return fmt.Errorf("it is not JSON: %w", err) }
