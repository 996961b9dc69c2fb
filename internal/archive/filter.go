package archive

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Everything are the rules of a tree that is archived as it is: nothing is left out, not even what version control keeps.
func Everything() *Rules { return &Rules{builtin: []cursor{}, print: "everything"} }

// Filter says which paths ignore rules leave out, where there is no tree to look for the rules in. Nothing is left out
// beforehand. It is not safe for concurrent use.
type Filter struct {
	top scope
	// dir and inside are the folder that was asked about last, which is mostly the next one's too.
	dir    string
	inside []scope
}

// NewFilter reads rules, each text after those before it; the last line that matches decides. Nil texts have none. The error
// is ErrLimit where they are too many or too long.
func NewFilter(ctx context.Context, limits Limits, texts ...io.Reader) (*Filter, error) {
	limits = limits.orDefault()
	r := &rulesReader{left: MaxRuleBytes, print: sha256.New()}
	var live []cursor
	for _, text := range texts {
		if text == nil {
			continue
		}
		lines, err := r.read(ctx, "", text)
		if err != nil {
			return nil, fmt.Errorf("read ignore rules: %w", err)
		}
		live = slices.Concat(lines, live)
	}
	return &Filter{top: scope{live: live, late: len(live), budget: &budget{left: limits.MaxMatch, limit: limits.MaxMatch}}}, nil
}

// Excludes gives the verdict about a file. Paths in order cost less than others.
func (f *Filter) Excludes(ctx context.Context, name string) (bool, error) {
	if len(f.top.live) == 0 {
		return false, nil
	}
	dir, base := "", name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		dir, base = name[:at+1], name[at+1:]
	}
	if err := f.enter(ctx, dir); err != nil {
		return false, err
	}
	if len(f.inside) > 0 {
		return f.inside[len(f.inside)-1].excludes(ctx, base)
	}
	return f.top.excludes(ctx, base)
}

// enter makes dir the folder that is asked about: it is empty, or ends with a slash.
func (f *Filter) enter(ctx context.Context, dir string) error {
	if dir == f.dir {
		return nil
	}
	common := 0
	for i := 0; i < min(len(dir), len(f.dir)) && dir[i] == f.dir[i]; i++ {
		if dir[i] == '/' {
			common = i + 1
		}
	}
	for f.dir != dir[:common] {
		at := len(f.inside) - 1
		f.inside[at].leave(ctx)
		f.inside, f.dir = f.inside[:at], f.dir[:strings.LastIndexByte(f.dir[:len(f.dir)-1], '/')+1]
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(dir[common:], "/"), "/") {
		outer := f.top
		if len(f.inside) > 0 {
			outer = f.inside[len(f.inside)-1]
		}
		if dir == f.dir {
			break
		}
		inner, err := outer.enter(ctx, name)
		if err != nil {
			return err
		}
		f.inside, f.dir = append(f.inside, inner), f.dir+name+"/"
	}
	return nil
}
