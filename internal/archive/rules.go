package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
)

const (
	// MaxRuleBytes bounds the ignore files of a tree together.
	MaxRuleBytes = 1 << 20
	// maxRulePatterns bounds their lines that are patterns.
	maxRulePatterns = 10_000
	// maxRuleLine is the length that a line stays below.
	maxRuleLine = bufio.MaxScanTokenSize
	// patternCost and stepCost are what a pattern takes in memory, and each name in it, while slices grow.
	patternCost = 128
	stepCost    = 128
)

// Rules say which paths of a tree stay out of its archive. They do not change and may be used concurrently.
// Nil and the zero value are the rules of a tree without any ignore file.
type Rules struct {
	spec    []cursor     // of spec.ignore
	files   *folderRules // of the ignore files
	builtin []cursor
	print   key // of all lines and their places; zero without any
}

// folderRules are the lines of a folder's ignore file, and of those beneath it. Nil has none.
type folderRules struct {
	lines   []cursor
	negated bool // Some line, here or beneath, includes something again.
	folders map[string]*folderRules
}

// defaultRules are compiled once; they never change.
var defaultRules = &Rules{builtin: compile(defaultPatterns())} //nolint:gochecknoglobals // Compiled patterns, only ever read.

// ReadRules collects the lines of every .sourceignore in the tree, each bound to its folder, in the order of a
// walk and followed by spec, which is bound to the root and may be nil. The last line that matches decides. Files
// of version control are excluded beforehand in any case; images, archives and the files of CI systems only if
// there is no line at all. Inside folders named .git no rules are looked for, and a .sourceignore that is not a
// regular file is none.
//
// The error is ErrLimit when the tree exceeds the limits of a walk, when the ignore files hold more than 1 MiB or
// 10,000 patterns together, or a line of 64 KiB.
func ReadRules(ctx context.Context, files fs.FS, spec *string, limits Limits) (*Rules, error) {
	limits = limits.orDefault()
	top, err := plant(ctx, files, limits)
	if err != nil {
		return nil, err
	}
	r := &rulesReader{walk: walk{limits: limits}, left: MaxRuleBytes, print: sha256.New()}
	found, err := r.folder(ctx, root, top)
	if err != nil {
		return nil, err
	}
	rules := &Rules{files: found, builtin: compile(patternsOf(sourceignore.ExcludeVCS))}
	if spec != nil {
		if rules.spec, err = r.read(ctx, "", strings.NewReader(*spec)); err != nil {
			return nil, fmt.Errorf("read ignore rules: %w", err)
		}
	}
	if r.lines == 0 {
		return defaultRules, nil
	}
	rules.print = key(r.print.Sum(nil))
	return rules, nil
}

// scope is what the rules say in the root.
func (r *Rules) scope(budget *budget) scope {
	if r == nil || r.builtin == nil {
		r = defaultRules
	}
	return scope{budget: budget, live: slices.Concat(r.spec, r.files.own(), r.builtin), late: len(r.spec), files: r.files}
}

// compile returns the lines as cursors, last line first.
func compile(patterns []pattern) []cursor {
	cursors := make([]cursor, 0, len(patterns))
	for i := range patterns {
		cursors = append(cursors, cursor{pattern: &patterns[i]})
	}
	slices.Reverse(cursors)
	return cursors
}

// own are the lines of the folder itself.
func (f *folderRules) own() []cursor {
	if f == nil {
		return nil
	}
	return f.lines
}

// in are the rules of a folder in the folder.
func (f *folderRules) in(name string) *folderRules {
	if f == nil {
		return nil
	}
	return f.folders[name]
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
		if p, ok := parsePattern(line); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

type rulesReader struct {
	walk
	lines int   // that are patterns, also those that can match nothing
	left  int64 // bytes that may still be read
	print hash.Hash
}

// folder reads the rules of a folder and of all beneath it; nil when there are none. It lists no folder without any.
func (r *rulesReader) folder(ctx context.Context, dir string, n *tree.Node) (*folderRules, error) {
	if facts, err := n.Facts(); err != nil || !facts.IgnoreFile {
		return nil, err
	}
	entries, err := r.list(ctx, dir, n)
	if err != nil {
		return nil, err
	}
	found := &folderRules{folders: map[string]*folderRules{}}
	isRules := func(entry *tree.Node) bool {
		return entry.Name == sourceignore.IgnoreFile && entry.Mode.IsRegular()
	}
	if i := slices.IndexFunc(entries, isRules); i >= 0 {
		if found.lines, err = r.file(ctx, join(dir, sourceignore.IgnoreFile), entries[i]); err != nil {
			return nil, err
		}
		found.negated = slices.ContainsFunc(found.lines, negated)
	}
	for _, entry := range entries {
		if !entry.Mode.IsDir() || entry.Name == ".git" {
			continue
		}
		name, err := r.join(dir, entry.Name)
		if err != nil {
			return nil, err
		}
		beneath, err := r.folder(ctx, name, entry)
		if err != nil {
			return nil, err
		}
		if beneath != nil {
			found.folders[entry.Name] = beneath
			found.negated = found.negated || beneath.negated
		}
	}
	if len(found.lines)+len(found.folders) == 0 {
		return nil, nil
	}
	return found, nil
}

func (r *rulesReader) file(ctx context.Context, name string, n *tree.Node) (lines []cursor, err error) {
	file, err := n.Source.Open(n)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if lines, err = r.read(ctx, name, file); err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	return lines, nil
}

func (r *rulesReader) read(ctx context.Context, from string, src io.Reader) ([]cursor, error) {
	var patterns []pattern
	fmt.Fprintf(r.print, "from %q\n", from)
	bounded := &io.LimitedReader{R: src, N: r.left + 1}
	lines := bufio.NewScanner(bounded)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if r.lines++; r.lines > maxRulePatterns {
			return nil, fmt.Errorf("%w: more than %d ignore patterns", ErrLimit, maxRulePatterns)
		}
		if err := memory.Draw(ctx, patternCost+stepCost*int64(1+strings.Count(line, "/"))+int64(len(line))); err != nil {
			return nil, err
		}
		fmt.Fprintf(r.print, "%q\n", line)
		if p, ok := parsePattern(line); ok {
			patterns = append(patterns, p)
		}
	}
	if r.left = bounded.N - 1; r.left < 0 {
		return nil, fmt.Errorf("%w: more than %d bytes of ignore rules", ErrLimit, MaxRuleBytes)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: an ignore pattern of %d bytes", ErrLimit, maxRuleLine)
	}
	return compile(patterns), lines.Err()
}
