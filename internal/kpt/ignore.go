package kpt

import (
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// ignoreFile names, in the patterns of .gitignore, files that hold no objects although they are called as if they did.
const ignoreFile = ".krmignore"

// ignores tells of a file whether a .krmignore at or above it leaves it out.
func ignores(p Package) func(name string) bool {
	patterns := []gitignore.Pattern{}
	for _, name := range p.Paths() { // Outer folders stand before inner ones, whose patterns prevail.
		if path.Base(name) != ignoreFile || p[name].Mode.Type() != 0 {
			continue
		}
		domain := []string{}
		if at := folder(name); at != "" {
			domain = strings.Split(at, "/")
		}
		for line := range strings.Lines(string(p[name].Content)) {
			line = strings.TrimRight(line, "\r\n")
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				patterns = append(patterns, gitignore.ParsePattern(line, domain))
			}
		}
	}
	if len(patterns) == 0 {
		return func(string) bool { return false }
	}
	matcher := gitignore.NewMatcher(patterns)
	return func(name string) bool { return matcher.Match(strings.Split(name, "/"), false) }
}
