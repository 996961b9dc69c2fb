package yamltext_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/kpt/yamltext"
)

type part struct {
	Text string
	Line int
}

// joined is the file that the documents' texts make.
func joined(documents []yamltext.Document) string {
	var file strings.Builder
	for _, document := range documents {
		file.Write(document.Text)
	}
	return file.String()
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		src    string
		want   []part
	}{
		"Nothing": {reason: "a file without a byte has no document"},
		"One":     {reason: "no marker is needed", src: "a: 1\n", want: []part{{"a: 1\n", 1}}},
		"Marked": {
			reason: "a first marker opens the first document, and the license above belongs to it",
			src:    "# License\n---\na: 1\n---\nb: 2\n",
			want:   []part{{"# License\n---\na: 1\n", 1}, {"---\nb: 2\n", 4}},
		},
		"Literal": {
			reason: "an indented marker inside a block scalar is text",
			src:    "a: |\n  ---\n  b\n---\nc: |\n  x\n---\nd: 1\n",
			want:   []part{{"a: |\n  ---\n  b\n", 1}, {"---\nc: |\n  x\n", 4}, {"---\nd: 1\n", 7}},
		},
		"AlmostMarkers": {
			reason: "a marker stands alone at the beginning of a line",
			src:    "a: ---\n----: 1\n---b: 2\n# ---\n....: 3\n",
			want:   []part{{"a: ---\n----: 1\n---b: 2\n# ---\n....: 3\n", 1}},
		},
		"ContentOnTheMarker": {
			reason: "what stands behind a marker is content, unless it is a comment",
			src:    "--- {a: 1}\n--- # two\n--- |\n  text\n---\t\n",
			want:   []part{{"--- {a: 1}\n", 1}, {"--- # two\n", 2}, {"--- |\n  text\n", 3}, {"---\t\n", 5}},
		},
		"Empty": {
			reason: "documents of comments alone are there",
			src:    "---\n# nothing\n\n---\n\n---\na: 1\n---\n",
			want:   []part{{"---\n# nothing\n\n", 1}, {"---\n\n", 4}, {"---\na: 1\n", 6}, {"---\n", 8}},
		},
		"CommentOnly": {reason: "a file of comments is one document", src: "# nothing\n", want: []part{{"# nothing\n", 1}}},
		"Ended": {
			reason: "what follows the end of a document is the next one, but blank lines and comments need something to belong to",
			src:    "a: 1\n...\n# between\n---\nb: 2\n...\nc: 3\n...\n\n# over\n",
			want:   []part{{"a: 1\n...\n", 1}, {"# between\n---\nb: 2\n...\n", 3}, {"c: 3\n...\n\n# over\n", 7}},
		},
		"Directives": {
			reason: "directives belong to the document that they precede",
			src:    "%YAML 1.1\n---\na: 1\n...\n%TAG ! tag:x,2000:\n---\nb: 2\n",
			want:   []part{{"%YAML 1.1\n---\na: 1\n...\n", 1}, {"%TAG ! tag:x,2000:\n---\nb: 2\n", 5}},
		},
		"Windows": {
			reason: "CR and LF are one break, and a byte order mark hides no marker",
			src:    "\ufeff---\r\na: 1\r\n---\r\nb: 2\r\n",
			want:   []part{{"\ufeff---\r\na: 1\r\n", 1}, {"---\r\nb: 2\r\n", 3}},
		},
		"NoLastBreak": {reason: "the last line may end with the file", src: "a: 1\n---", want: []part{{"a: 1\n", 1}, {"---", 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents, err := yamltext.Split([]byte(tc.src))
			if err != nil {
				t.Fatal(err)
			}
			var got []part
			for _, document := range documents {
				got = append(got, part{string(document.Text), document.Line})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if again := joined(documents); again != tc.src {
				t.Errorf("joined again: %q", again)
			}
		})
	}
}

func TestSplitRefusesUTF16(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"\xff\xfea\x00", "\xfe\xff\x00a"} {
		if _, err := yamltext.Split([]byte(src)); !errors.Is(err, yamltext.ErrEncoding) {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// FuzzSplit: the parts are the file, and hold the documents that the parser finds in the whole.
func FuzzSplit(f *testing.F) {
	for _, src := range []string{
		"a: 1\n---\nb: 2\n", "# c\n---\n\n...\n---\na: |\n ---\n", "%YAML 1.1\n---\n!!str a\n...\n# x\nb\n", "\ufeff--- >\r\n a\r\n", "'a\n ---'",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		documents, err := yamltext.Split(src)
		if err != nil {
			return
		}
		if again := joined(documents); again != string(src) {
			t.Fatalf("joined again: %q", again)
		}
		whole, err := decode(src)
		if err != nil {
			return
		}
		var got []any
		for _, document := range documents {
			values, err := decode(document.Text)
			if err != nil {
				t.Fatalf("%q of %q: %v", document.Text, src, err)
			}
			if len(values) > 1 {
				t.Fatalf("%q of %q holds %d documents", document.Text, src, len(values))
			}
			got = append(got, values...)
		}
		if diff := cmp.Diff(whole, got, cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })); diff != "" {
			t.Fatalf("%q (-whole +parts):\n%s", src, diff)
		}
	})
}

// decode reads all documents.
func decode(src []byte) ([]any, error) {
	var values []any
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		values = append(values, plain(&node))
	}
}

// plain is what a node says, without positions and comments.
func plain(node *yaml.Node) any {
	if node.Kind == yaml.ScalarNode || node.Kind == yaml.AliasNode {
		if node.ShortTag() == "!!null" {
			return nil
		}
		return node.ShortTag() + " " + node.Value
	}
	if node.Kind == yaml.DocumentNode {
		return plain(node.Content[0])
	}
	values := []any{node.ShortTag()}
	for _, child := range node.Content {
		values = append(values, plain(child))
	}
	return values
}
