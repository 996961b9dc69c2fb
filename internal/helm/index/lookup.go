package index

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/memory"
)

// lookupWeight is how many bytes of memory a list of versions takes, read, for a byte of its text.
const lookupWeight = 4

// Lookup returns the versions of a chart, newest first. It reads the chart's part of the artifact alone. ErrNoChart without
// one, ErrTable when the table is not usable.
func Lookup(ctx context.Context, artifact, table io.ReaderAt, chart string) ([]Version, error) {
	charts, err := readTable(table)
	if err != nil {
		return nil, err
	}
	at, err := find(charts, chart)
	if err != nil {
		return nil, err
	}
	if err := memory.Draw(ctx, at.length*lookupWeight); err != nil {
		return nil, fmt.Errorf("the versions of %q take %d bytes: %w", chart, at.length, err)
	}
	text := make([]byte, at.length)
	if n, err := artifact.ReadAt(text, at.offset); n < len(text) {
		return nil, fmt.Errorf("read the versions of %q: %w", chart, err)
	}
	var versions []Version
	if err := json.Unmarshal(text, &versions); err != nil {
		return nil, fmt.Errorf("read the versions of %q: %w", chart, err)
	}
	return versions, nil
}

// EntriesHash names the versions of a chart as they are in the artifact: as long as it is the same, Lookup gives the same.
// The errors are those of Lookup.
func EntriesHash(table io.ReaderAt, chart string) (Hash, error) {
	charts, err := readTable(table)
	if err != nil {
		return Hash{}, err
	}
	at, err := find(charts, chart)
	return at.entries, err
}
