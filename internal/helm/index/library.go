package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/yamlweight"
)

const (
	// yamlWeight and jsonWeight are how many bytes of memory the libraries take for a byte of text in the style of indexes;
	// measured, and rounded up.
	yamlWeight, jsonWeight = 26, 8
	// byteWeight and valueWeight are what a byte and a value of YAML take in any style.
	byteWeight, valueWeight = 12, 250
)

// libraryBlock has the YAML library read one item of a list of versions.
func libraryBlock(ctx context.Context, text []byte) (versions []*Version, err error) {
	err = memory.Part(ctx, func(ctx context.Context) error {
		return library(ctx, text, &versions)
	})
	return versions, err
}

// library has the YAML library read a text, strictly as Helm has it.
func library(ctx context.Context, text []byte, into any) error {
	if err := memory.Draw(ctx, weightOf(text)); err != nil {
		return fmt.Errorf("YAML of %d bytes that is not in the style of Helm: %w", len(text), err)
	}
	if err := yamlweight.CheckAliases(text); err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return nil
}

// weightOf is what the YAML library takes for a text. Without one of the characters that are counted there is no further value.
func weightOf(text []byte) int64 {
	values := int64(0)
	for _, c := range text {
		switch c {
		case '\n', ',', ':', '[', '{':
			values++
		}
	}
	return max(yamlWeight*int64(len(text)), byteWeight*int64(len(text))+valueWeight*values)
}

// syntax tells whether the library stumbled over how a text is written, and not over what it says. A part of a document
// may be badly written only because it is a part.
func syntax(err error) bool {
	text := err.Error()
	return errors.Is(err, ErrIndex) && strings.Contains(text, "error converting YAML to JSON") && !strings.Contains(text, "unmarshal errors")
}

// whole reads a document as a whole, as Helm does: as JSON if it is that, and leniently, else as YAML, and strictly.
func whole(ctx context.Context, text []byte) (*file, error) {
	made := &file{}
	if json.Valid(text) {
		if err := memory.Draw(ctx, int64(len(text))*jsonWeight); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, made); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIndex, err)
		}
		return made, nil
	}
	if err := library(ctx, text, made); err != nil {
		return nil, err
	}
	return made, nil
}
