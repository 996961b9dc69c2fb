package merge_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

// files are a package of regular files.
func files(texts map[string]string) kpt.Package {
	p := kpt.Package{}
	for name, text := range texts {
		p[name] = kpt.File{Mode: 0o644, Content: []byte(text)}
	}
	return p
}

// pipeline is a Kptfile with these functions, a line each.
func pipeline(functions ...string) kpt.Package {
	text := "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n"
	if len(functions) > 0 {
		text += "pipeline:\n  mutators:\n  - " + strings.Join(functions, "\n  - ") + "\n"
	}
	return files(map[string]string{"Kptfile": text})
}

func TestNoFunctionIsLost(t *testing.T) {
	t.Parallel()
	const own = "name: sluice.dev/team/web/"
	cases := map[string]struct {
		reason              string
		base, theirs, local []string
		want                []string
		conflicts           string
	}{
		"people's beside the controller's and upstream's": {
			reason: "Named and unnamed functions in one list are merged one by one.",
			base:   []string{"{" + own + "0/ns, image: set-namespace:v1}", "{image: set-labels:v1}"},
			theirs: []string{"{" + own + "0/ns, image: set-namespace:v2}", "{image: set-labels:v2}", "{image: set-image:v1}"},
			local:  []string{"{" + own + "0/ns, image: set-namespace:v1}", "{image: set-labels:v1}", "{name: mine, image: set-labels:v1}", "{image: starlark:v1}"},
			want: []string{
				"{" + own + "0/ns, image: set-namespace:v2}", "{image: set-labels:v2}", "{image: set-image:v1}", "{name: mine, image: set-labels:v1}", "{image: starlark:v1}",
			},
		},
		"another registry": {
			reason: "A function is what it is called, wherever its image is and in whatever version.",
			base:   []string{"{image: ghcr.io/one/set-labels:v1, configMap: {a: b}}"},
			theirs: []string{"{image: ghcr.io/two/set-labels:v2, configMap: {a: b}}"},
			local:  []string{"{image: ghcr.io/one/set-labels:v1, configMap: {a: b, c: d}}"},
			want:   []string{"{image: ghcr.io/two/set-labels:v2, configMap: {a: b, c: d}}"},
		},
		"the same image several times": {
			reason: "What they are configured with tells them apart; one that upstream made another of is that one.",
			base:   []string{"{image: apply:v1, configPath: a.yaml}", "{image: apply:v1, configPath: b.yaml}"},
			theirs: []string{"{image: apply:v1, configPath: b.yaml}", "{image: apply:v2, configPath: c.yaml}"},
			local:  []string{"{image: apply:v1, configPath: a.yaml}", "{image: apply:v1, configPath: mine.yaml}", "{image: apply:v1, configPath: b.yaml}"},
			want:   []string{"{image: apply:v1, configPath: b.yaml}", "{image: apply:v2, configPath: c.yaml}", "{image: apply:v1, configPath: mine.yaml}"},
		},
		"both added the same image": {
			reason: "Two functions that both sides added are two, unless they say the same.",
			theirs: []string{"{image: set-labels:v1, configMap: {a: up}}", "{image: set-image:v1}"},
			local:  []string{"{image: set-labels:v1, configMap: {a: mine}}", "{image: set-image:v1}"},
			want:   []string{"{image: set-labels:v1, configMap: {a: up}}", "{image: set-labels:v1, configMap: {a: mine}}", "{image: set-image:v1}"},
		},
		"a pipeline that people removed": {
			reason: "What upstream adds is added; what people removed stays so.",
			base:   []string{"{image: set-labels:v1}"},
			theirs: []string{"{" + own + "0/ns, image: set-namespace:v1}", "{image: set-labels:v1}"},
			want:   []string{"{" + own + "0/ns, image: set-namespace:v1}"},
		},
		"a pipeline that upstream removed": {
			reason: "People's function has nothing to do with upstream's.",
			base:   []string{"{image: set-labels:v1}"},
			local:  []string{"{image: set-labels:v1}", "{name: mine, image: set-labels:v1}"},
			want:   []string{"{name: mine, image: set-labels:v1}"},
		},
		"a name for a function that upstream removed": {
			reason: "Who gives it a name makes it theirs.",
			base:   []string{"{image: set-labels:v1}", "{image: set-image:v1}"},
			theirs: []string{"{image: set-image:v1}"},
			local:  []string{"{name: mine, image: set-labels:v1}", "{image: set-image:v1}"},
			want:   []string{"{name: mine, image: set-labels:v1}", "{image: set-image:v1}"},
		},
		"the controller's functions in other places": {
			reason: "The index in the name is where it stands, and not which it is.",
			base:   []string{"{" + own + "0/ns, image: set-namespace:v1, configMap: {namespace: a}}"},
			theirs: []string{"{" + own + "0/new, image: set-labels:v1}", "{" + own + "1/ns, image: set-namespace:v1, configMap: {namespace: a}}"},
			local:  []string{"{image: mine:v1}", "{" + own + "0/ns, image: set-namespace:v1, configMap: {namespace: a, mine: b}}"},
			want:   []string{"{" + own + "0/new, image: set-labels:v1}", "{image: mine:v1}", "{" + own + "1/ns, image: set-namespace:v1, configMap: {namespace: a, mine: b}}"},
		},
		"a function that both changed": {
			reason: "The path says which function it is.",
			base:   []string{"{image: set-labels:v1, configMap: {a: b}}"},
			theirs: []string{"{image: set-labels:v1, configMap: {a: up}}"},
			local:  []string{"{image: set-labels:v1, configMap: {a: mine}}"},
			want:   []string{"{image: set-labels:v1, configMap: {a: up}}"}, conflicts: "pipeline.mutators[image=set-labels].configMap.a: b | up | mine",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, conflicts, err := merge.Merge(pipeline(c.base...), pipeline(c.theirs...), pipeline(c.local...), merge.Upstream)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(t, pipeline(c.want...), false), content(t, got, false)); diff != "" {
				t.Errorf("%s %s", c.reason, diff)
			}
			if diff := cmp.Diff(c.conflicts, told(conflicts)); diff != "" {
				t.Errorf("%s other conflicts: %s", c.reason, diff)
			}
		})
	}
}

func TestModesAreMerged(t *testing.T) {
	t.Parallel()
	file := func(text string, mode fs.FileMode) kpt.File { return kpt.File{Content: []byte(text), Mode: mode} }
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	cases := map[string]struct {
		reason                    string
		base, theirs, local, want kpt.File
		conflicts                 int
	}{
		"upstream's": {
			reason: "Its mode has nothing to do with people's text.",
			base:   file("a: 1\n", 0o644), theirs: file("a: 1\n", 0o755), local: file("a: 1\nb: 1\n", 0o644), want: file("a: 1\nb: 1\n", 0o755),
		},
		"people's": {
			reason: "Their mode has nothing to do with upstream's text.",
			base:   file("a: 1\n", 0o644), theirs: file("a: 1\nb: 1\n", 0o644), local: file("a: 1\n", 0o755), want: file("a: 1\nb: 1\n", 0o755),
		},
		"of objects": {
			reason: "A file of objects has a mode as well.",
			base:   file(object, 0o644), theirs: file(object, 0o755), local: file(object+"data: {a: b}\n", 0o644), want: file(object+"data: {a: b}\n", 0o755),
		},
		"a link in place of a file": {
			reason: "Nothing can be merged there.",
			base:   file("a\n", 0o644), theirs: file("b", fs.ModeSymlink), local: file("a\nb\n", 0o644), want: file("b", fs.ModeSymlink), conflicts: 1,
		},
		"a link in place of objects": {
			reason: "What is a link on one side holds no objects on the others.",
			base:   file(object, 0o644), theirs: file(object+"data: {a: b}\n", 0o644), local: file("b", fs.ModeSymlink), want: file(object+"data: {a: b}\n", 0o644), conflicts: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(file kpt.File) kpt.Package { return kpt.Package{"a.yaml": file} }
			got, conflicts, err := merge.Merge(at(c.base), at(c.theirs), at(c.local), merge.Upstream)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shown(at(c.want)), shown(got)); diff != "" || len(conflicts) != c.conflicts {
				t.Errorf("%s %v %s", c.reason, conflicts, diff)
			}
		})
	}
}

// TestLinesAreMerged: other text than YAML is merged where the sides changed different lines.
func TestLinesAreMerged(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason                              string
		base, theirs, local, upstream, mine string
		conflicts                           int
	}{
		"apart": {
			reason: "There is a line between them that nobody changed.",
			base:   "a\nb\nc\n", theirs: "A\nb\nc\n", local: "a\nb\nC\nd", upstream: "A\nb\nC\nd", mine: "A\nb\nC\nd",
		},
		"beside each other": {
			reason: "Lines that touch may belong together; what is apart from them is merged all the same.",
			base:   "a\nb\nc\nd\n", theirs: "A\nb\nc\nD\n", local: "a\nB\nc\nd\n", upstream: "A\nb\nc\nD\n", mine: "a\nB\nc\nD\n", conflicts: 1,
		},
		"the same": {
			reason: "Equal changes are none that meet.",
			base:   "a\nb\n", theirs: "A\nb\n", local: "A\nb\nc\n", upstream: "A\nb\nc\n", mine: "A\nb\nc\n",
		},
		"bytes": {
			reason: "What is no text is taken as a whole.",
			base:   "a\n\xff\nc\n", theirs: "A\n\xff\nc\n", local: "a\n\xff\nC\n", upstream: "A\n\xff\nc\n", mine: "a\n\xff\nC\n", conflicts: 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(text string) kpt.Package { return files(map[string]string{"a.txt": text}) }
			for policy, want := range map[merge.Policy]string{merge.Upstream: c.upstream, merge.Local: c.mine, merge.Fail: c.mine} {
				got, conflicts, err := merge.Merge(at(c.base), at(c.theirs), at(c.local), policy)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(shown(at(want)), shown(got)); diff != "" || len(conflicts) != c.conflicts {
					t.Errorf("%s %s: %v %s", c.reason, policy, conflicts, diff)
				}
			}
		})
	}
}

func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	good, other := files(map[string]string{"a.yaml": "a: 1\n"}), files(map[string]string{"a.yaml": "a: 2\n"})
	var syntax *kpt.SyntaxError
	_, _, err := merge.Merge(good, other, files(map[string]string{"a.yaml": "a: 1\n", "sub/b.yaml": "a: 1\nb: [\n"}), merge.Upstream)
	if !errors.As(err, &syntax) || syntax.File != "sub/b.yaml" || !strings.Contains(err.Error(), "the local package") {
		t.Errorf("got %v", err)
	}
	deep := strings.Repeat("[", 700) + strings.Repeat("]", 700)
	loop := "a: &a [*a]\n"
	bomb := "a0: &a0 [q, w, e, r, t, y, u, i, o, p]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for name, text := range map[string]string{"deep": "a: " + deep, "loop": loop, "bomb": bomb} {
		bad := files(map[string]string{"a.yaml": text})
		for i, sides := range [][3]kpt.Package{{bad, good, other}, {good, bad, other}, {good, other, bad}} {
			if _, _, err := merge.Merge(sides[0], sides[1], sides[2], merge.Upstream); !errors.Is(err, merge.ErrTooComplex) || !strings.Contains(err.Error(), "a.yaml") {
				t.Errorf("%s, side %d: got %v", name, i, err)
			}
		}
		if got, _, err := merge.Merge(bad, bad, other, merge.Upstream); err != nil || !got.Equal(other) {
			t.Errorf("%s: what nobody looks into needs no limits, but got %v", name, err)
		}
	}
}

// TestPackagesAreNotChanged: they are shared with whoever else holds them.
func TestPackagesAreNotChanged(t *testing.T) {
	t.Parallel()
	sides := [3]kpt.Package{}
	before := [3]string{}
	for i, side := range []string{"base", "upstream", "local"} {
		sides[i] = read(t, "testdata/stories/subpackages-upstream", side)
		before[i] = sides[i].Digest()
	}
	if _, _, err := merge.Merge(sides[0], sides[1], sides[2], merge.Upstream); err != nil {
		t.Fatal(err)
	}
	for i := range sides {
		if sides[i].Digest() != before[i] {
			t.Errorf("side %d was changed", i)
		}
	}
}
