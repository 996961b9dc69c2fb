package archive_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"sluice.dev/sluice/internal/archive"
)

func rulesOf(tb testing.TB, tree fs.FS, spec string) *archive.Rules {
	tb.Helper()
	rules, err := archive.ReadRules(tb.Context(), tree, &spec, archive.Limits{})
	check(tb, err)
	return rules
}

func TestExcluded(t *testing.T) {
	t.Parallel()
	nested := fstest.MapFS{
		".sourceignore":          {Data: []byte("*.md\n")},
		"sub/.sourceignore":      {Data: []byte("/only\n!keep.md\n")},
		"sub/.git/.sourceignore": {Data: []byte("*\n")},
	}
	cases := map[string]struct {
		reason string
		tree   fs.FS
		spec   string
		out    []string
		in     []string
	}{
		"Default": {
			reason: "Without a rule, version control, pictures, archives and CI files stay out.",
			out: []string{
				".git/", ".git/config", "a/.gitignore", "a/b.png", "x.tar.gz", ".github/", ".github/x/y", ".travis.yml",
				"a/.goreleaser.yml", ".sops.yaml", "deep/down/.flux.yaml",
			},
			in: []string{"", ".", "a", "a/b.svg", ".git", ".github", "x.tar"},
		},
		"OneLine": {
			reason: "One line, wherever it is and even if it can match nothing, puts an end to the defaults.",
			spec:   "[\n",
			out:    []string{".git/", ".gitmodules", "a/.gitattributes"},
			in:     []string{"b.png", ".travis.yml", "a/.sops.yaml", "["},
		},
		"Comments": {
			reason: "Comments and blank lines are no rules.",
			spec:   "# comment\n\n  \n",
			out:    []string{"b.png"},
		},
		"Reinclude": {
			reason: "A file may come back although the folder above stays out, and version control may as well.",
			spec:   "/dir/\n!/dir/file\n!.gitignore\n",
			out:    []string{"dir/", "dir/other", ".gitmodules"},
			in:     []string{"dir/file", "dir", ".gitignore"},
		},
		"LastWins": {
			reason: "The last line that matches decides.",
			spec:   "!a\na\nb\n!b\n",
			out:    []string{"a", "x/a"},
			in:     []string{"b", "x/b"},
		},
		"Domain": {
			reason: "Rules in a folder bind that folder alone, after those above it; none are read in .git.",
			tree:   nested,
			out:    []string{"README.md", "sub/README.md", "sub/only", "sub/x.md"},
			in:     []string{"keep", "only", "sub/keep.md", "sub/deep/keep.md", "sub/deep/only", "b.png"},
		},
		"SpecLast": {
			reason: "The object's own rules come after those of the tree.",
			tree:   nested,
			spec:   "!/README.md\nkeep.md\n",
			out:    []string{"sub/keep.md", "x/README.md"},
			in:     []string{"README.md"},
		},
		"Greedy": {
			reason: "Matching does not go back, unlike git's.",
			spec:   "**/a/b\nx/**/y\n",
			out:    []string{"a/b", "c/a/b", "x/y", "x/1/2/y", "x/1/y/z"},
			in:     []string{"a/x/a/b", "b"},
		},
		"Endings": {
			reason: "Carriage returns and trailing spaces are dropped, unless the space is escaped.",
			spec:   "a\r\nb  \nc\\ \n",
			out:    []string{"a", "b", "c "},
			in:     []string{"a\r", "b  ", "c"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.tree == nil {
				tc.tree = fstest.MapFS{}
			}
			rules := rulesOf(t, tc.tree, tc.spec)
			for want, paths := range map[bool][]string{true: tc.out, false: tc.in} {
				for _, p := range paths {
					name, isDir := strings.CutSuffix(p, "/")
					if got := rules.Excluded(name, isDir); got != want {
						t.Errorf("%s\nExcluded(%q): want %t, got %t", tc.reason, p, want, got)
					}
				}
			}
		})
	}
}

func TestNilAndZeroRulesAreTheDefault(t *testing.T) {
	t.Parallel()
	for _, rules := range []*archive.Rules{nil, {}} {
		if !rules.Excluded("a/b.png", false) || rules.Excluded("a/b", false) {
			t.Errorf("%v do not exclude by default", rules)
		}
	}
}

func TestIgnoreFilesThatAreNoFilesAreNone(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		".sourceignore":      {Data: []byte("rules"), Mode: fs.ModeSymlink},
		"rules":              {Data: []byte("secret\n")},
		"a/.sourceignore/x":  {Data: []byte("secret\n")},
		"b/.sourceignore":    {Mode: fs.ModeNamedPipe},
		"link/.sourceignore": {Mode: fs.ModeIrregular},
	}
	rules, err := archive.ReadRules(t.Context(), tree, nil, archive.Limits{})
	check(t, err)
	if rules.Excluded("secret", false) || !rules.Excluded("b.png", false) {
		t.Error("rules were read from what is no regular file")
	}
}

func TestRuleLimits(t *testing.T) {
	t.Parallel()
	file := func(text string) fs.FS { return fstest.MapFS{"a/.sourceignore": {Data: []byte(text)}} }
	half := "#" + strings.Repeat(strings.Repeat("x", 1023)+"\n", 512)[1:]
	cases := map[string]struct {
		reason string
		tree   fs.FS
		spec   string
		limits archive.Limits
		want   error
	}{
		"Bytes":   {reason: "1 MiB is allowed.", tree: file(half), spec: half},
		"TooLong": {reason: "1 MiB is for all together.", tree: file(half), spec: half + "\n", want: archive.ErrLimit},
		"Lines":   {reason: "10,000 patterns are allowed.", tree: file(strings.Repeat("a\n", 9_999)), spec: "a"},
		"TooMany": {
			reason: "10,000 patterns are for all together.",
			tree:   file(strings.Repeat("a\n", 10_000)), spec: "a", want: archive.ErrLimit,
		},
		"Line": {
			reason: "A line that Flux would silently stop at is refused.",
			tree:   file(strings.Repeat("a", 64<<10)), want: archive.ErrLimit,
		},
		"Deep": {
			reason: "The walk for rules is bounded.",
			tree:   fstest.MapFS{"a/b/c/.sourceignore": {}}, limits: archive.Limits{MaxDepth: 2}, want: archive.ErrLimit,
		},
		"Endless": {
			reason: "A tree that contains itself is given up.",
			tree:   endless{}, limits: archive.Limits{MaxFiles: 1000, MaxDepth: 1 << 20, MaxPath: 1 << 30}, want: archive.ErrLimit,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := archive.ReadRules(t.Context(), tc.tree, &tc.spec, tc.limits); !errors.Is(err, tc.want) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// oracle is the matcher that Flux uses, over an ignore file in the root, one in the folder sub, and the spec.
func oracle(top, sub, spec string) gitignore.Matcher {
	patterns := sourceignore.ReadPatterns(strings.NewReader(top), nil)
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(sub), []string{"sub"})...)
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(spec), nil)...)
	if len(patterns) == 0 {
		return sourceignore.NewDefaultMatcher(nil, nil)
	}
	return sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), patterns...))
}

func compareRules(t *testing.T, top, sub, spec, name string) {
	t.Helper()
	tree := fstest.MapFS{".sourceignore": {Data: []byte(top)}, "sub/.sourceignore": {Data: []byte(sub)}}
	rules, matcher := rulesOf(t, tree, spec), oracle(top, sub, spec)
	for _, isDir := range []bool{true, false} {
		want, got := matcher.Match(strings.Split(name, "/"), isDir), rules.Excluded(name, isDir)
		if want != got {
			t.Fatalf("rules %q, in sub %q, spec %q: Excluded(%q, %t): want %t", top, sub, spec, name, isDir, want)
		}
	}
}

// atRandom is how many random cases are tried: a fifth of so many, unless SLUICE_TORTURE asks for all.
func atRandom(all int) int {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return all
	}
	return all / 5
}

func TestExcludedEqualsOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 3))
	for range atRandom(20_000) {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = someNames[random.IntN(len(someNames))]
		}
		compareRules(t, someRules(random), someRules(random), someRules(random), strings.Join(parts, "/"))
	}
}
