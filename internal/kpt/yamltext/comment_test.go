package yamltext_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

// TestCommentsOutliveTheirValue: new nodes carry no comments, and those in the text stay.
func TestCommentsOutliveTheirValue(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				r := rand.New(rand.NewPCG(seed, 2))
				want := read(t, text)
				replaceScalars(want, func() bool { return r.IntN(3) == 0 })
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				before, after := commentsOf(text), commentsOf(string(got))
				if !slices.Equal(before, after) {
					t.Fatalf("seed %d: comments\n%q became\n%q in\n%s", seed, before, after, got)
				}
			}
		})
	}
}

// replaceScalars puts new nodes in the places of some values.
func replaceScalars(node *yaml.Node, chosen func() bool) {
	for i, child := range node.Content {
		isKey := node.Kind == yaml.MappingNode && i%2 == 0
		if !isKey && child.Kind == yaml.ScalarNode && child.Anchor == "" && child.Style&^(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 && chosen() {
			node.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "new value"}
			continue
		}
		replaceScalars(child, chosen)
	}
}

// commentsOf is a rough reading: the corpus has no hash signs elsewhere, but for the lines of one script.
func commentsOf(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if _, comment, ok := strings.Cut(" "+strings.ReplaceAll(line, "\t", " "), " #"); ok {
			found = append(found, comment)
		}
	}
	return found
}

// TestNewCommentsAreWritten gives values that have no comment one, and asks the parser for it.
func TestNewCommentsAreWritten(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		if strings.Contains(text, "{\n") || name == "windows.yaml" {
			// In a flow collection of several lines there is no place for a comment beside a value, and the parser takes every line
			// break of two characters for two, so that a comment above is below something else.
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := len(commentable(read(t, text)))
			for at := range count {
				want := read(t, text)
				entries := commentable(want)
				e := entries[at]
				e.head.HeadComment = strings.Trim(e.head.HeadComment+"\n# new head", "\n")
				e.line.LineComment = "# new line"
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				again := commentable(read(t, string(got)))
				if len(again) != count {
					t.Fatalf("%d entries became %d:\n%s", count, len(again), got)
				}
				// The first comment of a document may be the document's.
				if head := again[at].head.HeadComment; !strings.HasSuffix(head, "# new head") && at > 0 {
					t.Errorf("entry %d: head %q in\n%s", at, head, got)
				}
				if line := again[at].line.LineComment; line != "# new line" {
					t.Errorf("entry %d: line %q in\n%s", at, line, got)
				}
			}
		})
	}
}

// TestCommentsAreTakenOut takes out one comment after the other, and nothing else goes. One stays where the parser says that it is
// of another entry than the one it stands below.
func TestCommentsAreTakenOut(t *testing.T) {
	t.Parallel()
	for name, text := range corpus(t) {
		if strings.Contains(text, "{\n") || name == "windows.yaml" || name == "directive.yaml" {
			continue // As above; and there are no nodes before the marker.
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stayed := 0
			for at := range commentsIn(read(t, text)) {
				want := read(t, text)
				gone := commentsIn(want)[at]
				lines := strings.Split(strings.Trim(*gone, "\n"), "\n")
				*gone = yamltext.NoComment
				got, err := yamltext.Rewrite([]byte(text), want)
				if err != nil {
					t.Fatal(err)
				}
				left := commentsOf(text)
				for _, line := range lines {
					if i := slices.Index(left, strings.TrimPrefix(line, "#")); i >= 0 {
						left = slices.Delete(left, i, i+1)
					}
				}
				found := commentsOf(string(got))
				slices.Sort(left)
				slices.Sort(found)
				all := commentsOf(text)
				slices.Sort(all)
				switch {
				case slices.Equal(all, found):
					stayed++
				case !slices.Equal(left, found):
					t.Errorf("without %q there are %q and not %q in\n%s", lines, found, left, got)
				}
			}
			if stayed > 1 {
				t.Errorf("%d comments stay", stayed)
			}
		})
	}
}

// commentsIn are the comments of the nodes, the document's own among them.
func commentsIn(node *yaml.Node) []*string {
	var found []*string
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		if *comment != "" {
			found = append(found, comment)
		}
	}
	for _, child := range node.Content {
		found = append(found, commentsIn(child)...)
	}
	return found
}

type commented struct{ head, line *yaml.Node }

// commentable lists the entries of block collections whose value is a scalar.
func commentable(node *yaml.Node) []commented {
	var found []commented
	for i, child := range node.Content {
		block := node.Style&yaml.FlowStyle == 0
		switch {
		case child.Kind == yaml.ScalarNode && child.Value == "" && child.Style == 0:
			// The parser has no comments for what is not there.
		case node.Kind == yaml.MappingNode && i%2 == 0, !block, node.Kind == yaml.DocumentNode:
		case child.Kind == yaml.ScalarNode && node.Kind == yaml.MappingNode:
			found = append(found, commented{head: node.Content[i-1], line: child})
		case child.Kind == yaml.ScalarNode:
			found = append(found, commented{head: child, line: child})
		}
		found = append(found, commentable(child)...)
	}
	return found
}
