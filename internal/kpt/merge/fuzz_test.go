package merge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

// FuzzMerge: whatever the three texts say, the result can be read; what one side alone changed comes out as that side has it.
func FuzzMerge(f *testing.F) {
	seeds, err := filepath.Glob("testdata/stories/*/base/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		texts := [3]string{}
		for i, side := range []string{"base", "upstream", "local"} {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(name)), side, filepath.Base(name))) // Missing ones are empty.
			texts[i] = string(text)
		}
		f.Add(texts[0], texts[1], texts[2])
	}
	f.Add("a: &a [*a]", "a: &a {b: *a}", "a: 1")
	f.Add("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "? [x]\n: y\n<<: {a: 1}", "- a\n- - b\n  - c")
	f.Fuzz(func(t *testing.T, base, theirs, local string) {
		sides := [3]kpt.Package{}
		for i, text := range []string{base, theirs, local} {
			sides[i] = kpt.Package{"a.yaml": {Mode: 0o644, Content: []byte(text)}}
			if text == "" {
				sides[i] = kpt.Package{}
			}
			if _, err := kpt.OpenDocuments(sides[i]); err != nil {
				t.Skip()
			}
		}
		for _, policy := range []merge.Policy{merge.Upstream, merge.Local} {
			got, _, err := merge.Merge(sides[0], sides[1], sides[2], policy)
			if err != nil {
				continue
			}
			if _, err := kpt.OpenDocuments(got); err != nil {
				t.Fatalf("the result cannot be read: %v\n%s", err, text(got))
			}
			again, _, err := merge.Merge(sides[0], sides[1], sides[2], policy)
			if err != nil || !got.Equal(again) {
				t.Fatalf("another result: %v\n%s", err, cmp.Diff(text(got), text(again)))
			}
		}
		oneSided(t, sides[0], sides[1])
	})
}

// oneSided merges with a local side that added a document of its own and nothing else.
func oneSided(t *testing.T, base, theirs kpt.Package) {
	t.Helper()
	const own = "---\nmine: alone\n"
	local := kpt.Package{"a.yaml": base["a.yaml"], "mine.yaml": {Mode: 0o644, Content: []byte(own)}}
	if _, found := base["a.yaml"]; !found {
		delete(local, "a.yaml")
	}
	got, conflicts, err := merge.Merge(base, theirs, local, merge.Local)
	if err != nil {
		return
	}
	if _, found := theirs["a.yaml"]; found != (len(got) == 2) || text(got) != text(theirs) || len(conflicts) > 0 {
		t.Fatalf("%v %s", conflicts, cmp.Diff(text(theirs), text(got)))
	}
	if !saysAnything(t, base) || !saysAnything(t, theirs) {
		return // Comments alone are merged as text.
	}
	// With a comment the text is people's, and yet it says what upstream's does.
	local["a.yaml"] = kpt.File{Mode: 0o644, Content: append([]byte("# Mine.\n"), base["a.yaml"].Content...)}
	if !sameDocuments(base, local) {
		return // It was no comment there, or the text begins with something that must be first.
	}
	got, conflicts, err = merge.Merge(base, theirs, local, merge.Local)
	if err != nil {
		return
	}
	if !sameDocuments(theirs, got) || len(conflicts) > 0 {
		t.Fatalf("%v\nTHEIRS\n%s\nGOT\n%s", conflicts, text(theirs), text(got))
	}
}

func saysAnything(t *testing.T, p kpt.Package) bool {
	t.Helper()
	opened, err := kpt.OpenDocuments(p)
	if err != nil {
		t.Fatal(err)
	}
	return len(opened.Items) > 0
}

// sameDocuments tells whether both say the same in the file a.yaml, in whatever order of the documents.
func sameDocuments(a, b kpt.Package) bool {
	said := [2]map[string]int{{}, {}}
	for i, p := range []kpt.Package{a, b} {
		opened, err := kpt.OpenDocuments(kpt.Package{"a.yaml": p["a.yaml"]})
		if err != nil {
			return false
		}
		for _, item := range opened.Items {
			said[i][bounded(item.Node.YNode(), new(int))]++
		}
	}
	return cmp.Equal(said[0], said[1])
}

// bounded is canonical for values that may be very large, of which it writes the beginning.
func bounded(node *yaml.Node, size *int) string {
	if *size++; *size > 10_000 {
		return "…"
	}
	if node.Kind == yaml.AliasNode {
		return bounded(node.Alias, size)
	}
	text := node.ShortTag() + " " + node.Value
	if node.ShortTag() == yaml.NodeTagNull {
		text = node.ShortTag()
	}
	for _, child := range node.Content {
		text += "(" + bounded(child, size) + ")"
	}
	return text
}
