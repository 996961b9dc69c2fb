package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSONDepth is how deep the JSON documents that we read ourselves may nest.
const maxJSONDepth = 64

// decodeStrictly reads one JSON document that can be understood in one way only: no name appears twice in an
// object, and nothing follows the document.
func decodeStrictly(document []byte, into any) error {
	if err := unambiguous(document); err != nil {
		return err
	}
	return json.Unmarshal(document, into)
}

func unambiguous(document []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := scanValue(decoder, 0); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data follows the JSON document")
	}
	return nil
}

func scanValue(decoder *json.Decoder, depth int) error {
	if depth > maxJSONDepth {
		return fmt.Errorf("JSON nests deeper than %d", maxJSONDepth)
	}
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return scanObject(decoder, depth)
	case json.Delim('['):
		for decoder.More() {
			if err := scanValue(decoder, depth+1); err != nil {
				return err
			}
		}
		_, err := decoder.Token()
		return err
	}
	return nil
}

func scanObject(decoder *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return errors.New("a JSON object has a name that is no string")
		}
		folded := foldName(name)
		if seen[folded] {
			return fmt.Errorf("JSON name %q appears twice", name)
		}
		seen[folded] = true
		if err := scanValue(decoder, depth+1); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// foldName is the same for two names that encoding/json would put into the same field: it ignores case.
func foldName(name string) string { return string(bytes.ToLower(bytes.ToUpper([]byte(name)))) }
