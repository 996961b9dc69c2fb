package docs_test

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

// TestLinksResolve: a link inside the project leads to a file, and to a heading where it names one.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.Path] = p.Anchors()
	}
	internal := 0
	for _, p := range all {
		for _, link := range p.Links() {
			target, err := url.Parse(link.Target)
			if err != nil {
				t.Errorf("%s:%d: %v", p.Path, link.Line, err)
				continue
			}
			if target.Scheme != "" {
				continue
			}
			internal++
			name := p.Path
			if target.Path != "" {
				name = path.Join(path.Dir(p.Path), target.Path)
			}
			if _, err := os.Stat(filepath.Join(testenv.Root(), filepath.FromSlash(name))); err != nil {
				t.Errorf("%s:%d: %s leads nowhere", p.Path, link.Line, link.Target)
			}
			if known, isPage := anchors[name]; target.Fragment != "" && isPage && !known[target.Fragment] {
				t.Errorf("%s:%d: %s has no heading %q", p.Path, link.Line, name, target.Fragment)
			}
		}
	}
	if internal == 0 {
		t.Error("no link was found: they are looked for in the wrong place")
	}
}

// TestPagesAreLinked: each page can be reached from the README.
func TestPagesAreLinked(t *testing.T) {
	t.Parallel()
	links := map[string][]string{}
	for _, p := range pages(t) {
		for _, link := range p.Links() {
			target, _, _ := strings.Cut(link.Target, "#")
			links[p.Path] = append(links[p.Path], path.Join(path.Dir(p.Path), target))
		}
	}
	reached, queue := map[string]bool{}, []string{"README.md"}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if !reached[next] {
			reached[next] = true
			queue = append(queue, links[next]...)
		}
	}
	for _, p := range pages(t) {
		if !reached[p.Path] {
			t.Errorf("no link leads from the README to %s", p.Path)
		}
	}
}

var (
	makeTarget    = regexp.MustCompile(`\bmake ([a-z]+)\b`)
	kustomization = regexp.MustCompile(`\bapply -k ([\w./-]+)`)
	targetLine    = regexp.MustCompile(`(?m)^([a-z]+):`)
)

// TestCommandsExist: the targets of make and the kustomizations that commands name are there.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(testenv.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range targetLine.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	for _, p := range pages(t) {
		for _, command := range commands(p) {
			for _, match := range makeTarget.FindAllStringSubmatch(command, -1) {
				if !slices.Contains(targets, match[1]) {
					t.Errorf("%s: the Makefile has no target %q", p.Path, match[1])
				}
			}
			for _, match := range kustomization.FindAllStringSubmatch(command, -1) {
				if _, err := os.Stat(filepath.Join(testenv.Root(), match[1], "kustomization.yaml")); err != nil && !strings.HasPrefix(match[1], "my-") {
					t.Errorf("%s: there is no kustomization %s", p.Path, match[1])
				}
			}
		}
	}
}

var span = regexp.MustCompile("`([^`]+)`")

// commands are what stands in shell blocks and between backticks.
func commands(p docs.Page) []string {
	var found []string
	for _, block := range p.Blocks("sh") {
		found = append(found, block.Text)
	}
	for _, match := range span.FindAllStringSubmatch(p.Prose(), -1) {
		found = append(found, match[1])
	}
	return found
}
