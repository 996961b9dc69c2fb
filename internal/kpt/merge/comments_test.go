package merge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

func TestCommentsThatUpstreamTookOut(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, base, theirs, local, want string }{
		"above": {
			reason: "It goes, as far as no blank line parts it from the field.",
			base:   "# one\na: 1\nb: 1", theirs: "a: 1\nb: 1", local: "# one\na: 1\nb: 2",
			want: "a: 1\nb: 2",
		},
		"behind": {
			reason: "It goes, and the blanks before it.",
			base:   "a: 1   # one\nb: 1", theirs: "a: 1\nb: 1", local: "a: 1   # one\nb: 2",
			want: "a: 1\nb: 2",
		},
		"behind a value that changed": {
			reason: "It spoke of the value of before.",
			base:   "a: 1 # one\nb: 1", theirs: "a: 2\nb: 1", local: "a: 1 # one\nb: 2",
			want: "a: 2\nb: 2",
		},
		"behind a key": {
			reason: "It goes, and what is below the key stays.",
			base:   "a: # one\n  c: 1\nb: 1", theirs: "a:\n  c: 1\nb: 1", local: "a: # one\n  c: 1\nb: 2",
			want: "a:\n  c: 1\nb: 2",
		},
		"below": {
			reason: "It goes.",
			base:   "a:\n  c: 1\n  # one\nb: 1", theirs: "a:\n  c: 1\nb: 1", local: "a:\n  c: 1\n  # one\nb: 2",
			want: "a:\n  c: 1\nb: 2",
		},
		"of an element": {
			reason: "Lists are as maps.",
			base:   "l:\n# one\n- a # two\n- b\nb: 1", theirs: "l:\n- a\n- b\nb: 1", local: "l:\n# one\n- a # two\n- b\nb: 2",
			want: "l:\n- a\n- b\nb: 2",
		},
		"behind a block": {
			reason: "It stands behind the sign, and the text below it stays.",
			base:   "a: | # one\n  x\nb: 1", theirs: "a: |\n  x\nb: 1", local: "a: | # one\n  x\nb: 2",
			want: "a: |\n  x\nb: 2",
		},
		"changed by people": {
			reason: "What they wrote is theirs.",
			base:   "a: 1 # one\nb: 1", theirs: "a: 1\nb: 1", local: "a: 1 # ours\nb: 2",
			want: "a: 1 # ours\nb: 2",
		},
		"moved": {
			reason: "Whether it stands above or below is the library's to say; it is there once.",
			base:   "a:\n  c: 1\n# one\nb: 1", theirs: "a:\n  c: 1\n  # one\n\nb: 1", local: "a:\n  c: 1\n# one\nb: 2",
			want: "a:\n  c: 1\n  # one\n\nb: 2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, conflicts, err := merge.Merge(thing(c.base), thing(c.theirs), thing(c.local), merge.Upstream)
			if err != nil || len(conflicts) > 0 {
				t.Fatal(conflicts, err)
			}
			if diff := cmp.Diff(shown(thing(c.want)), shown(got)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestCommentsThatBlankLinesPartFromTheObject(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n"
	cases := map[string]struct{ reason, base, theirs, local, want string }{
		"added": {
			reason: "They are upstream's as much as all else.",
			base:   object, theirs: "# L\n\n" + object + "\n# end\n", local: object + "mine: 1\n",
			want: "# L\n\n" + object + "mine: 1\n\n# end\n",
		},
		"taken out": {
			reason: "They go, with what parted them.",
			base:   "# L\n# M\n\n" + object + "\n# end\n", theirs: object, local: "# L\n# M\n\n" + object + "mine: 1\n\n# end\n",
			want: object + "mine: 1\n",
		},
		"parted": {
			reason: "A blank line takes no comment away.",
			base:   "# L\n" + object, theirs: "# L\n\n" + object, local: "# L\n" + object + "mine: 1\n",
			want: "# L\n\n" + object + "mine: 1\n",
		},
		"joined": {
			reason: "Nor does the lack of one.",
			base:   "# L\n\n" + object, theirs: "# L\n" + object, local: "# L\n\n" + object + "mine: 1\n",
			want: "# L\n" + object + "mine: 1\n",
		},
		"behind a marker": {
			reason: "The marker stays where it is.",
			base:   "---\n# L\n\n" + object, theirs: "---\n# M\n\n" + object, local: "---\n# L\n\n" + object + "mine: 1\n",
			want: "---\n# M\n\n" + object + "mine: 1\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := func(text string) kpt.Package { return kpt.Package{"a.yaml": {Mode: 0o644, Content: []byte(text)}} }
			got, conflicts, err := merge.Merge(file(c.base), file(c.theirs), file(c.local), merge.Upstream)
			if err != nil || len(conflicts) > 0 {
				t.Fatal(conflicts, err)
			}
			if diff := cmp.Diff(c.want, string(got["a.yaml"].Content)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
