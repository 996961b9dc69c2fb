package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
)

// RootOnly tells which entries of a tree's root may be in its archive, where rules that come after all others leave out
// whatever they do not name; nil where they do not. Without what it refuses the archive has the same files. The error is
// that there is too little memory.
func RootOnly(ctx context.Context, spec *string) (keep func(name string, isDir bool) bool, err error) {
	if spec == nil {
		return nil, nil
	}
	r := &rulesReader{left: MaxRuleBytes, print: sha256.New()}
	lines, err := r.read(ctx, "spec.ignore", strings.NewReader(*spec))
	if errors.Is(err, ErrLimit) {
		return nil, nil // Whoever reads the rules says so.
	}
	if err != nil {
		return nil, fmt.Errorf("read ignore rules: %w", err)
	}
	rules := scope{live: lines, late: len(lines), budget: &budget{left: DefaultMaxMatch, limit: DefaultMaxMatch}}
	// No line names what has this name.
	if excluded, err := rules.excludes(ctx, "\x00"); err != nil || !excluded {
		return nil, nil //nolint:nilerr // It is as much work to write the archive, which says so.
	}
	return func(name string, isDir bool) bool {
		if name == sourceignore.IgnoreFile {
			return true // Its lines decide where none of these does.
		}
		if !isDir {
			excluded, err := rules.excludes(ctx, name)
			return err != nil || !excluded
		}
		inner, err := rules.enter(ctx, name)
		if err != nil {
			return true // It is as much work to write the archive, which says so.
		}
		defer inner.leave(ctx)
		return !inner.excluded || inner.mayInclude()
	}, nil
}
