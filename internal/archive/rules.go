package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
)

const (
	// maxRuleBytes bounds the ignore files of a tree together.
	maxRuleBytes = 1 << 20
	// maxRulePatterns bounds their lines that are patterns.
	maxRulePatterns = 10_000
	// maxRuleLine is the length that a line stays below.
	maxRuleLine = bufio.MaxScanTokenSize
)

// Rules say which paths of a tree stay out of its archive. They do not change and may be used concurrently.
// Nil and the zero value are the rules of a tree without any ignore file.
type Rules struct {
	patterns []cursor // last line first
}

// defaultRules are compiled once; they never change.
var defaultRules = compile(defaultPatterns()) //nolint:gochecknoglobals // Compiled patterns, only ever read.

// ReadRules collects the lines of every .sourceignore in the tree, each bound to its folder, in the order of a
// walk and followed by spec, which is bound to the root and may be nil. The last line that matches decides. Files
// of version control are excluded beforehand in any case; images, archives and the files of CI systems only if
// there is no line at all. Inside folders named .git no rules are looked for, and a .sourceignore that is not a
// regular file is none.
//
// The error is ErrLimit when the tree exceeds the limits of a walk, when the ignore files hold more than 1 MiB or
// 10,000 patterns together, or a line of 64 KiB.
func ReadRules(ctx context.Context, tree fs.FS, spec *string, limits Limits) (*Rules, error) {
	r := &rulesReader{walk: walk{tree: tree, limits: limits.orDefault()}, left: maxRuleBytes}
	if err := r.folder(ctx, root, nil); err != nil {
		return nil, err
	}
	if spec != nil {
		if err := r.read(strings.NewReader(*spec), nil); err != nil {
			return nil, fmt.Errorf("read ignore rules: %w", err)
		}
	}
	if r.lines == 0 {
		return defaultRules, nil
	}
	return compile(append(patternsOf(sourceignore.ExcludeVCS), r.patterns...)), nil
}

// scope is what the rules say in the root.
func (r *Rules) scope(budget *budget) scope {
	if r == nil || r.patterns == nil {
		r = defaultRules
	}
	return scope{live: r.patterns, budget: budget}
}

func compile(patterns []pattern) *Rules {
	r := &Rules{patterns: make([]cursor, 0, len(patterns))}
	for i := range patterns {
		r.patterns = append(r.patterns, cursor{pattern: &patterns[i]})
	}
	slices.Reverse(r.patterns)
	return r
}

func defaultPatterns() []pattern {
	return slices.Concat(
		patternsOf(sourceignore.ExcludeVCS),
		patternsOf(sourceignore.ExcludeExt),
		patternsOf(sourceignore.ExcludeCI),
		patternsOf(sourceignore.ExcludeExtra),
	)
}

func patternsOf(list string) []pattern {
	var patterns []pattern
	for line := range strings.SplitSeq(list, ",") {
		if p, ok := parsePattern(line, nil); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

type rulesReader struct {
	walk
	patterns []pattern
	lines    int   // that are patterns, also those that can match nothing
	left     int64 // bytes that may still be read
}

func (r *rulesReader) folder(ctx context.Context, dir string, domain []string) error {
	entries, err := r.list(ctx, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == sourceignore.IgnoreFile && entry.Type().IsRegular() {
			if err := r.file(join(dir, entry.Name()), domain); err != nil {
				return err
			}
		}
	}
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == ".git" {
			continue
		}
		name, err := r.join(dir, entry.Name())
		if err != nil {
			return err
		}
		// Siblings may share what is appended to: patterns take the names, not the slice.
		if err := r.folder(ctx, name, append(domain, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (r *rulesReader) file(name string, domain []string) (err error) {
	file, err := r.tree.Open(name)
	if err != nil {
		return fmt.Errorf("open %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := r.read(file, domain); err != nil {
		return fmt.Errorf("read %q: %w", name, err)
	}
	return nil
}

func (r *rulesReader) read(src io.Reader, domain []string) error {
	bounded := &io.LimitedReader{R: src, N: r.left + 1}
	lines := bufio.NewScanner(bounded)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if r.lines++; r.lines > maxRulePatterns {
			return fmt.Errorf("%w: more than %d ignore patterns", ErrLimit, maxRulePatterns)
		}
		if p, ok := parsePattern(line, domain); ok {
			r.patterns = append(r.patterns, p)
		}
	}
	if r.left = bounded.N - 1; r.left < 0 {
		return fmt.Errorf("%w: more than %d bytes of ignore rules", ErrLimit, maxRuleBytes)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: an ignore pattern of %d bytes", ErrLimit, maxRuleLine)
	}
	return lines.Err()
}
