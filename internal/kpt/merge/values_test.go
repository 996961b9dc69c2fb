package merge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

// thing is an object that no schema is known of, with the fields given.
func thing(fields string) kpt.Package {
	return kpt.Package{"thing.yaml": {Mode: 0o644, Content: []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n" + fields + "\n")}}
}

// told is where the conflicts are, and what each side had there.
func told(conflicts []merge.Conflict) string {
	lines := []string{}
	for _, one := range conflicts {
		lines = append(lines, one.Path+": "+one.Base+" | "+one.Upstream+" | "+one.Local)
	}
	return strings.Join(lines, "\n")
}

func TestFieldsAndListsWithoutASchema(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason              string
		base, theirs, local string
		// wantUpstream and wantLocal are by policy; the latter is the same if it is empty.
		wantUpstream, wantLocal string
		conflicts               string
	}{
		"both changed": {
			reason: "Only a policy can decide, and all values are told.",
			base:   "a: 1", theirs: "a: 2", local: "a: 3",
			wantUpstream: "a: 2", wantLocal: "a: 3", conflicts: "a: 1 | 2 | 3",
		},
		"both changed to the same": {
			reason: "What is equal is no conflict, however it is written.",
			base:   "a: one", theirs: "a: two", local: "a: 'two'",
			wantUpstream: "a: 'two'",
		},
		"another type": {
			reason: "A number is not the text of it.",
			base:   "a: 1", theirs: `a: "2"`, local: "a: 2",
			wantUpstream: `a: "2"`, wantLocal: "a: 2", conflicts: "a: 1 | 2 | 2",
		},
		"removed upstream, changed here": {
			reason: "Both did something to it.",
			base:   "a: 1\nb: 1", theirs: "b: 1", local: "a: 2\nb: 1",
			wantUpstream: "b: 1", wantLocal: "a: 2\nb: 1", conflicts: "a: 1 |  | 2",
		},
		"changed upstream, removed here": {
			reason: "Both did something to it.",
			base:   "a: 1\nb: 1", theirs: "a: 2\nb: 1", local: "b: 1",
			wantUpstream: "a: 2\nb: 1", wantLocal: "b: 1", conflicts: "a: 1 | 2 | ",
		},
		"removed here, unchanged upstream": {
			reason: "What people removed does not come back by itself.",
			base:   "a: {x: 1}\nb: 1", theirs: "a: {x: 1}\nb: 2", local: "b: 1",
			wantUpstream: "b: 2",
		},
		"a map removed upstream that people added to": {
			reason: "Part of a map may be worse than none, so that it goes or stays as a whole.",
			base:   "a:\n  x: 1\n  y: 1", theirs: "b: 1", local: "a:\n  x: 1\n  y: 1\n  z: 1",
			wantUpstream: "b: 1", wantLocal: "b: 1\na:\n  x: 1\n  y: 1\n  z: 1",
			conflicts: "a: {x: 1, y: 1} |  | {x: 1, y: 1, z: 1}",
		},
		"a map in place of a value": {
			reason: "They have nothing in common that could be merged.",
			base:   "a: 1", theirs: "a:\n  x: 1", local: "a: 2",
			wantUpstream: "a:\n  x: 1", wantLocal: "a: 2", conflicts: "a: 1 | {x: 1} | 2",
		},
		"maps that both added": {
			reason: "What both have in common is there once, and what they do not agree on is a conflict.",
			base:   "z: 1", theirs: "z: 1\na:\n  x: 1\n  y: 1", local: "z: 1\na:\n  x: 1\n  y: 2\n  w: 1",
			wantUpstream: "z: 1\na:\n  x: 1\n  y: 1\n  w: 1", wantLocal: "z: 1\na:\n  x: 1\n  y: 2\n  w: 1",
			conflicts: "a.y:  | 1 | 2",
		},
		"empty text": {
			reason: "What is empty is not missing.",
			base:   `a: ""`, theirs: "a: 1", local: "b: 1",
			wantUpstream: "a: 1\nb: 1", wantLocal: "b: 1", conflicts: `a: "" | 1 | `,
		},
		"words both added": {
			reason: "Nobody's element is lost.",
			base:   "l: [a]", theirs: "l: [a, t]", local: "l: [a, l]",
			wantUpstream: "l: [a, t, l]",
		},
		"the same word twice": {
			reason: "A word that both added is there once.",
			base:   "l: [a]", theirs: "l: [a, x]", local: "l: [a, x, l]",
			wantUpstream: "l: [a, x, l]",
		},
		"arguments with the same value": {
			reason: "Words of a command belong together: the second 80 is another.",
			base:   "l: [run]", theirs: "l: [run, port, 80]", local: "l: [run, other, 80]",
			wantUpstream: "l: [run, port, 80, other, 80]",
		},
		"a word changed and another added": {
			reason: "Changes of different elements have nothing to do with each other.",
			base:   "l: [a, x=1, c]", theirs: "l: [a, x=2, c]", local: "l: [z, a, x=1, c, d]",
			wantUpstream: "l: [z, a, x=2, c, d]",
		},
		"a word changed by both": {
			reason: "One element stood there before, and one will.",
			base:   "l: [a, x=1, c]", theirs: "l: [a, x=2, c]", local: "l: [a, x=3, c]",
			wantUpstream: "l: [a, x=2, c]", wantLocal: "l: [a, x=3, c]", conflicts: "l[1]: x=1 | x=2 | x=3",
		},
		"an argument removed here and changed upstream": {
			reason: "The same argument with another value is a change of it.",
			base:   "l: [a, x=1, c]", theirs: "l: [a, x=2, c]", local: "l: [a, c]",
			wantUpstream: "l: [a, x=2, c]", wantLocal: "l: [a, c]", conflicts: "l[1]: x=1 | x=2 | ",
		},
		"an element replaced upstream and removed here": {
			reason: "Another element in its place is one that upstream added.",
			base:   "l: [a, b]", theirs: "l: [c, b]", local: "l: [b]",
			wantUpstream: "l: [c, b]",
		},
		"a list removed here and added to upstream": {
			reason: "A list that is missing has nothing in it, and what is added is added.",
			base:   "l: [a]\nm: 1", theirs: "l: [a, b]\nm: 1", local: "m: 1",
			wantUpstream: "l: [b]\nm: 1",
		},
		"a list removed upstream and added to here": {
			reason: "Whatever upstream thinks of its own elements, people's stay.",
			base:   "l: [a]\nm: 1", theirs: "m: 1", local: "l: [a, b]\nm: 1",
			wantUpstream: "l: [b]\nm: 1",
		},
		"a list emptied by both": {
			reason: "An empty list stays where one is.",
			base:   "l: [a, b]", theirs: "l: [a]", local: "l: [b]",
			wantUpstream: "l: []",
		},
		"elements known by a name": {
			reason:       "Names tell elements apart where no schema does, wherever they stand.",
			base:         "l:\n- name: a\n  v: 1\n- name: b\n  v: 1",
			theirs:       "l:\n- name: t\n  v: 1\n- name: a\n  v: 2\n- name: b\n  v: 1",
			local:        "l:\n- name: b\n  v: 3\n- name: a\n  v: 1\n- name: l\n  v: 1",
			wantUpstream: "l:\n- name: t\n  v: 1\n- name: b\n  v: 3\n- name: a\n  v: 2\n- name: l\n  v: 1",
		},
		"names that are there twice": {
			reason:       "Then they tell nothing, and order does.",
			base:         "l:\n- name: a\n  v: 1\n- name: a\n  v: 2",
			theirs:       "l:\n- name: a\n  v: 1\n- name: a\n  v: 5",
			local:        "l:\n- name: a\n  v: 4\n- name: a\n  v: 2",
			wantUpstream: "l:\n- name: a\n  v: 4\n- name: a\n  v: 5",
		},
		"both put elements in another order": {
			reason:       "Order can matter, as for init containers.",
			base:         "l:\n- name: a\n- name: b\n- name: c",
			theirs:       "l:\n- name: c\n- name: a\n- name: b",
			local:        "l:\n- name: b\n- name: a\n- name: c",
			wantUpstream: "l:\n- name: c\n- name: a\n- name: b", wantLocal: "l:\n- name: b\n- name: a\n- name: c",
			conflicts: "l: [{name: a}, {name: b}, {name: c}] | [{name: c}, {name: a}, {name: b}] | [{name: b}, {name: a}, {name: c}]",
		},
		"elements without a key": {
			reason:       "Elements that are much the same are the same one, changed.",
			base:         "l:\n- from: 1\n  to: 2\n- from: 3\n  to: 4",
			theirs:       "l:\n- from: 0\n  to: 0\n- from: 1\n  to: 2\n  via: 5\n- from: 3\n  to: 4",
			local:        "l:\n- from: 1\n  to: 7\n- from: 3\n  to: 4\n- from: 9\n  to: 9",
			wantUpstream: "l:\n- from: 0\n  to: 0\n- from: 1\n  to: 7\n  via: 5\n- from: 3\n  to: 4\n- from: 9\n  to: 9",
		},
		"lists in lists": {
			reason: "They are elements like others.",
			base:   "l:\n- [1, 2]\n- [3, 4]", theirs: "l:\n- [1, 2]\n- [3, 4, 5]", local: "l:\n- [0, 1, 2]\n- [3, 4]",
			wantUpstream: "l:\n- [0, 1, 2]\n- [3, 4, 5]",
		},
		"a list in a list that upstream removed": {
			reason: "It goes where people left it alone; where they changed it, it is a conflict.",
			base:   "l:\n- [1, 2]\n- [3, 4]\n- z", theirs: "l:\n- z", local: "l:\n- [1, 2]\n- [3, 4, 5]\n- z",
			wantUpstream: "l:\n- z", wantLocal: "l:\n- [3, 4, 5]\n- z", conflicts: "l[1]: [3, 4] |  | [3, 4, 5]",
		},
		"a key that is there twice": {
			reason: "Nobody can say which of them counts: the map is changed as a whole.",
			base:   "m: {a: 1, a: 2}\nn: 1", theirs: "m: {a: 1, a: 3}\nn: 1", local: "m: {a: 1, a: 2}\nn: 2",
			wantUpstream: "m: {a: 1, a: 3}\nn: 2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for policy, want := range map[merge.Policy]string{merge.Upstream: c.wantUpstream, merge.Local: c.wantLocal, merge.Fail: c.wantLocal} {
				if want == "" {
					want = c.wantUpstream
				}
				got, conflicts, err := merge.Merge(thing(c.base), thing(c.theirs), thing(c.local), policy)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(shown(thing(want)), shown(got)); diff != "" {
					t.Errorf("%s %s: %s", c.reason, policy, diff)
				}
				if diff := cmp.Diff(c.conflicts, told(conflicts)); diff != "" {
					t.Errorf("%s %s: other conflicts: %s", c.reason, policy, diff)
				}
			}
		})
	}
}

func TestConflictsAreBoundedAndPrintable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1000)
	_, conflicts, err := merge.Merge(thing("a: 1\nb: 1\n\"c\\nd\": 1"), thing("a: "+long+"\nb: \"\\e[31m\\u202e\"\n\"c\\nd\": 2"), thing("a: 2\nb: 2\n\"c\\nd\": 3"), merge.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	want := []merge.Conflict{
		{Path: "a", Base: "1", Upstream: long[:256] + "…", Local: "2"},
		{Path: "b", Base: "1", Upstream: `\x1b[31m\u202e`, Local: "2"},
		{Path: `["c\nd"]`, Base: "1", Upstream: "2", Local: "3"},
	}
	for i := range want {
		want[i].File, want[i].Resource = "thing.yaml", "Thing.example.com a"
	}
	if diff := cmp.Diff(want, conflicts); diff != "" {
		t.Error(diff)
	}
}
