package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/sourceignore"
)

// reference archives a folder on disk in the plainest way that gives Flux's bytes: with the matcher that Flux uses,
// the paths as they are on disk, and nothing left out of the walk.
func reference(tb testing.TB, dir string, spec *string) []byte {
	tb.Helper()
	domain := strings.Split(dir, "/")
	patterns, err := sourceignore.LoadIgnorePatterns(dir, domain)
	if err != nil {
		tb.Fatal(err)
	}
	if spec != nil {
		patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(*spec), domain)...)
	}
	matcher := sourceignore.NewDefaultMatcher(nil, domain)
	if len(patterns) > 0 {
		matcher = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(domain), patterns...))
	}

	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	err = filepath.Walk(dir, func(name string, info fs.FileInfo, err error) error {
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		if matcher.Match(strings.Split(name, "/"), info.IsDir()) {
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: relative, Typeflag: tar.TypeDir, Mode: 0o750}
		var body []byte
		if !info.IsDir() {
			if body, err = os.ReadFile(name); err != nil {
				return err
			}
			header.Typeflag, header.Size, header.Mode = tar.TypeReg, int64(len(body)), 0o600
			if info.Mode()&0o111 != 0 {
				header.Mode = 0o700
			}
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(body)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// someNames are few, so that rules made of them match often.
var someNames = []string{
	"a", "b", "ab", "foo", "bar", "sub", "x.jpg", "y.yaml", "z.tar.gz", ".git", ".github", ".gitignore", ".travis.yml",
	".sops.yaml", "foo bar", "[a]", "!a", "#a", "é", "foo ", `b\a`, "-", "A",
}

// someRules makes lines of every kind that the matcher tells apart.
func someRules(random *rand.Rand) string {
	pieces := []string{
		"*", "**", "?", "a*", "*b", "*.jpg", "f*o", "[ab]", "[^a]", "[", `\*`, `\[a]`, "***", "a**", "[a-", `\`, "",
	}
	var text strings.Builder
	for range random.IntN(6) {
		switch random.IntN(12) {
		case 0:
			text.WriteString("# a comment\n")
			continue
		case 1:
			text.WriteString("  \n")
			continue
		}
		if random.IntN(3) == 0 {
			text.WriteString("!")
		}
		if random.IntN(3) == 0 {
			text.WriteString("/")
		}
		for i := range 1 + random.IntN(3) {
			if i > 0 {
				text.WriteString("/")
			}
			if random.IntN(2) == 0 {
				text.WriteString(pieces[random.IntN(len(pieces))])
			} else {
				text.WriteString(someNames[random.IntN(len(someNames))])
			}
		}
		text.WriteString([]string{"", "", "/", "/**", " ", `\ `, "\r"}[random.IntN(7)])
		text.WriteString("\n")
	}
	return text.String()
}

// growTree makes a tree on disk: files of all modes, links, empty folders, ignore files here and there.
func growTree(tb testing.TB, random *rand.Rand, dir string, depth int) {
	tb.Helper()
	for range random.IntN(7) {
		name := filepath.Join(dir, someNames[random.IntN(len(someNames))])
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		switch kind := random.IntN(10); {
		case kind < 4 && depth > 0:
			check(tb, os.Mkdir(name, 0o700))
			growTree(tb, random, name, depth-1)
		case kind == 4:
			check(tb, os.Symlink([]string{"a", "..", "/etc/passwd", "missing"}[random.IntN(4)], name))
		default:
			body := strings.Repeat(fmt.Sprintf("%d\n", random.IntN(1000)), random.IntN(1000))
			check(tb, os.WriteFile(name, []byte(body), []fs.FileMode{0o600, 0o644, 0o755, 0o410}[random.IntN(4)]))
		}
	}
	if random.IntN(4) == 0 {
		check(tb, os.WriteFile(filepath.Join(dir, ".sourceignore"), []byte(someRules(random)), 0o600))
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
