package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sluice.dev/sluice/internal/transport"
)

// maxDepth is far more than any document nests.
const maxDepth = 16

// checkJSON refuses documents that two readers of JSON could understand in two ways: the same key twice, a key that
// only some take for the one they know, invalid text, and anything behind the end.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	first, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if first != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	if err := checkObject(decoder, maxDepth, false); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// checkObject reads to the end of an object. In a free one, keys are names that somebody chose.
func checkObject(decoder *json.Decoder, depth int, free bool) error {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		key, _ := token.(string) // Nothing else stands before a colon.
		if seen[key] {
			return fmt.Errorf("it has the key %s twice", transport.PrintableQuoted(key))
		}
		seen[key] = true
		if name, ok := misspelt(key); ok && !free {
			return fmt.Errorf("it has a key %s, which some take for %q", transport.PrintableQuoted(key), name)
		}
		if err := checkValue(decoder, depth-1, free || key == "annotations"); err != nil {
			return err
		}
	}
	return closing(decoder)
}

func checkValue(decoder *json.Decoder, depth int, free bool) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	delimiter, nested := token.(json.Delim)
	switch {
	case !nested:
		return nil
	case depth <= 0:
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	case delimiter == '{':
		return checkObject(decoder, depth, free)
	}
	for decoder.More() {
		if err := checkValue(decoder, depth-1, free); err != nil {
			return err
		}
	}
	return closing(decoder)
}

func closing(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	return nil
}

// misspelt finds a name that the key equals but for upper and lower case, as encoding/json compares them.
func misspelt(key string) (name string, ok bool) {
	for _, name := range []string{
		"schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "blobs", "fsLayers", "subject",
		"annotations", "digest", "size", "urls", "data", "platform",
	} {
		if key != name && strings.EqualFold(key, name) {
			return name, true
		}
	}
	return "", false
}
