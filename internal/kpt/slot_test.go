package kpt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

// slotted is a package with one file, read.
func slotted(t *testing.T, text string) *kpt.Resources {
	t.Helper()
	r, err := kpt.Open(kpt.Package{"a.yaml": {Content: []byte(text), Mode: 0o644}, "Kptfile": {Content: []byte(kptfile), Mode: 0o644}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// written is the file as it is now.
func written(t *testing.T, r *kpt.Resources) string {
	t.Helper()
	p, err := r.Package()
	if err != nil {
		t.Fatal(err)
	}
	return string(p["a.yaml"].Content)
}

func TestMarksAreFound(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: x.example/v1\nkind: X\nmetadata:\n  name: x\n"
	annotated := func(mark string) string { return head + "  annotations:\n    packages.sluice.dev/bind: " + mark + "\n" }
	cases := map[string]struct {
		reason string
		text   string
		// want are the name, need, path and type of each point.
		want []string
		err  string
	}{
		"fields": {
			reason: "A comment behind a field marks it, of whatever type it is.",
			text: head + "spec:\n  a: x # packages.sluice.dev/bind: one\n  b: 3 #packages.sluice.dev/bind:two optional\n  c: 1.5 # packages.sluice.dev/bind: a.b-c_D required\n" +
				"  d: true # packages.sluice.dev/bind: d\n  e: # packages.sluice.dev/bind: e\n  f: null # packages.sluice.dev/bind: f\n",
			want: []string{
				"one required spec.a string", "two optional spec.b integer", "a.b-c_D required spec.c number",
				"d required spec.d boolean", "e required spec.e ", "f required spec.f ",
			},
		},
		"blocks": {
			reason: "Of what takes several lines, the comment is beside the key, or the first line of a text.",
			text: head + "spec:\n  a: # packages.sluice.dev/bind: a\n    b: c\n  d: # packages.sluice.dev/bind: d\n  - e\n  f: {g: h} # packages.sluice.dev/bind: f\n" +
				"  i: [1, 2] # packages.sluice.dev/bind: i\n  j: | # packages.sluice.dev/bind: j\n    text\n",
			want: []string{"a required spec.a map", "d required spec.d list", "f required spec.f map", "i required spec.i list", "j required spec.j string"},
		},
		"elements": {
			reason: "An element of a list is marked like a field.",
			text:   head + "spec:\n  hosts:\n  - a\n  - b # packages.sluice.dev/bind: b\n  list:\n  - name: x # packages.sluice.dev/bind: n\n",
			want:   []string{"b required spec.hosts.1 string", "n required spec.list.0.name string"},
		},
		"an object": {
			reason: "An annotation marks what the object holds, also where it holds nothing yet.",
			text:   annotated("site optional"), want: []string{"site optional spec map"},
		},
		"a comment elsewhere": {
			reason: "A comment above a field, or that says more, is none.",
			text:   head + "# packages.sluice.dev/bind: a\nspec:\n  # packages.sluice.dev/bind: b\n  c: d # See packages.sluice.dev/bind: e\n",
		},
		"no name":   {reason: "A mark has a name.", text: head + "spec: {} # packages.sluice.dev/bind:\n", err: "a.yaml:5"},
		"bad name":  {reason: "Names have few characters.", text: head + "spec: {} # packages.sluice.dev/bind: a/b\n", err: `"a/b"`},
		"bad need":  {reason: "A need is one of two.", text: head + "spec: {} # packages.sluice.dev/bind: a sometimes\n", err: "may be followed by 'optional'"},
		"long name": {reason: "Names are bounded.", text: head + "spec: {} # packages.sluice.dev/bind: " + strings.Repeat("a", 64) + "\n", err: "at most 63"},
		"its name": {
			reason: "What an object is known by does not change.", text: "apiVersion: v1\nkind: X\nmetadata:\n  name: x # packages.sluice.dev/bind: a\n",
			err: "metadata.name cannot be a binding point",
		},
		"in a point": {
			reason: "What is filled already is filled once.", text: annotated("whole") + "spec:\n  a: b # packages.sluice.dev/bind: part\n",
			err: "part is inside of what the binding point whole fills",
		},
		"in a field": {
			reason: "So it is inside of a field.", text: head + "spec: # packages.sluice.dev/bind: whole\n  a: b # packages.sluice.dev/bind: part\n",
			err: "part is inside of what the binding point whole fills",
		},
		"an alias for its name": {
			reason: "Nor does it by way of an alias.", text: "apiVersion: v1\nkind: X\nspec: &n x # packages.sluice.dev/bind: a\nmetadata:\n  name: *n\n",
			err: "a.yaml:3: the binding point a has an anchor that aliases refer to",
		},
		"an alias for its kind": {
			reason: "As little as what it is a kind of.", text: "apiVersion: v1\nspec: &k X # packages.sluice.dev/bind: a\nkind: *k\nmetadata:\n  name: x\n",
			err: "has an anchor that aliases refer to",
		},
		"an alias for what is inside": {
			reason: "No alias is left without what it stands for.", text: head + "spec: # packages.sluice.dev/bind: a\n  a: &in {k: v}\nother: *in\n",
			err: "has an anchor that aliases refer to",
		},
		"an alias in the point": {
			reason: "Wherever it is.", text: head + "spec: # packages.sluice.dev/bind: a\n  a: &in v\n  b: *in\n", err: "has an anchor that aliases refer to",
		},
		"an alias for a key": {
			reason: "And whatever it is in the place of.", text: head + "spec: # packages.sluice.dev/bind: a\n  &in a: v\nother: *in\n",
			err: "has an anchor that aliases refer to",
		},
		"an alias in the whole": {
			reason: "That holds for a whole object too.", text: annotated("a") + "spec:\n  a: &in v\nother: *in\n", err: "has an anchor that aliases refer to",
		},
		"an alias and an anchor elsewhere": {
			reason: "What an alias in a point stands for may be elsewhere.",
			text:   head + "other: &x v\nspec: {a: *x} # packages.sluice.dev/bind: a\nmore: &y w # packages.sluice.dev/bind: b\n",
			want:   []string{"a required spec map", "b required more string"},
		},
		"in what is injected": {
			reason: "And in what a point of injection takes over.",
			text:   head + "  annotations: {kpt.dev/config-injection: required}\nspec:\n  a: b # packages.sluice.dev/bind: part\n",
			err:    "part is inside of what an injector fills",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots, err := slotted(t, test.text).Slots()
			if test.err != "" {
				if syntax := (*kpt.SyntaxError)(nil); !errors.As(err, &syntax) || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%s\nthe error is %v, and does not say %q", test.reason, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range slots {
				need := "optional"
				if s.Required {
					need = "required"
				}
				got = append(got, fmt.Sprintf("%s %s %s %s", s.Name, need, s.Path(), s.Type()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
		})
	}
}

func TestPointsAreBounded(t *testing.T) {
	t.Parallel()
	many, names := strings.Builder{}, strings.Builder{}
	many.WriteString("apiVersion: v1\nkind: X\nmetadata: {name: x}\nspec:\n")
	names.WriteString(many.String())
	for i := range 10_001 {
		fmt.Fprintf(&many, "  k%d: a # packages.sluice.dev/bind: a\n", i)
	}
	for i := range 257 {
		fmt.Fprintf(&names, "  k%d: a # packages.sluice.dev/bind: a%d\n", i, i)
	}
	for want, text := range map[string]string{"more than 10000 binding points": many.String(), "more than 256 names": names.String()} {
		if _, err := slotted(t, text).Slots(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, and not that there are %s", err, want)
		}
	}
}

// TestAFieldTakesAValueOver: its comment stays where it marks the field, and all else is as it was.
func TestAFieldTakesAValueOver(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, field, value, want string }{
		"text":            {"A text is one.", "f: x # M\n", `"z"`, "f: z # M\n"},
		"same":            {"What is the same stays, with its quotes.", "f: 'x'  # M\n", `"x"`, "f: 'x'  # M\n"},
		"quotes":          {"Quotes stay.", "f: 'x' # M\n", `"y"`, "f: 'y' # M\n"},
		"needs quotes":    {"A text that looks like something else gets some.", "f: x # M\n", `"true"`, "f: \"true\" # M\n"},
		"number":          {"A number is one.", "f: 1 # M\n", `2`, "f: 2 # M\n"},
		"long number":     {"It is so to its last digit.", "f: 1 # M\n", `12345678901234567890`, "f: 12345678901234567890 # M\n"},
		"boolean":         {"And so is a boolean.", "f: false # M\n", `true`, "f: true # M\n"},
		"several lines":   {"A text of several lines keeps its mark.", "f: x # M\n", `"a\nb\n"`, "f: | # M\n  a\n  b\n"},
		"one line":        {"And so does one that had several.", "f: | # M\n  a\n  b\n", `"c"`, "f: |- # M\n  c\n"},
		"nothing":         {"A field that held nothing takes any.", "f: # M\n", `"z"`, "f: z # M\n"},
		"map for none":    {"Of a map, the mark is beside the key.", "f: # M\n", `{"b":1,"a":["x"]}`, "f: # M\n  a:\n  - x\n  b: 1\n"},
		"map":             {"In a map, what is the same stays.", "f: # M\n  # Above.\n  a: 'x' # Behind.\n  b: 1\n", `{"a":"x","c":true}`, "f: # M\n  # Above.\n  a: 'x' # Behind.\n  c: true\n"},
		"flow":            {"In a flow map as well.", "f: {a: x, b: 1} # M\n", `{"a":"x","b":2}`, "f: {a: x, b: 2} # M\n"},
		"list":            {"And in a list.", "f: # M\n- a # First.\n- b\n", `["a","c","d"]`, "f: # M\n- a # First.\n- c\n- d\n"},
		"flow list":       {"And in a flow list.", "f: [a, b] # M\n", `["a"]`, "f: [a] # M\n"},
		"empty":           {"What becomes empty keeps its mark.", "f: # M\n  a: b\n", `{}`, "f: {} # M\n"},
		"an element":      {"An element of a list too.", "f:\n- a\n- b # M\n- c\n", `"d"`, "f:\n- a\n- d # M\n- c\n"},
		"a map in a list": {"An element that becomes a map stays on its line.", "f:\n- b # M\n", `{"d":["e"]}`, "f:\n- {d: [e]} # M\n"},
		"an anchor":       {"An anchor stays.", "f: &x a # M\n", `"c"`, "f: &x c # M\n"},
		"anchor of a map": {"It goes where the mark would be behind it.", "f: &x 0 # M\n", `{"a":"c"}`, "f: # M\n  a: c\n"},
		"another anchor":  {"What an alias stood for is changed here alone.", "e: &x {a: b}\nf: *x # M\n", `{"a":"c"}`, "e: &x {a: b}\nf: # M\n  a: c\n"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const head = "apiVersion: x.example/v1\nkind: X\nmetadata:\n  name: x\n"
			mark := strings.NewReplacer("# M", "# packages.sluice.dev/bind: m")
			var value any
			decoder := json.NewDecoder(strings.NewReader(test.value))
			decoder.UseNumber()
			if err := decoder.Decode(&value); err != nil {
				t.Fatal(err)
			}
			r := slotted(t, head+mark.Replace(test.field))
			for range 2 { // A value that is there already changes nothing, also where the mark went elsewhere.
				slots, err := r.Slots()
				if err != nil || len(slots) != 1 {
					t.Fatalf("%s\n%d points are there: %v", test.reason, len(slots), err)
				}
				slots[0].Set(value)
				text := written(t, r)
				if diff := cmp.Diff(head+mark.Replace(test.want), text); diff != "" {
					t.Errorf("%s\n%s", test.reason, diff)
				}
				r = slotted(t, text)
			}
		})
	}
}

func TestValuesAreOfATypeOrMadeOne(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		value  any
		wanted kpt.Type
		want   any
		ok     bool
	}{
		"text to number":       {"12", kpt.Integer, json.Number("12"), true},
		"text to a real":       {"1.5e3", kpt.Number, json.Number("1.5e3"), true},
		"whole is a number":    {json.Number("3"), kpt.Number, json.Number("3"), true},
		"real is not whole":    {json.Number("3.5"), kpt.Integer, nil, false},
		"octal is no number":   {"010", kpt.Integer, nil, false},
		"text to boolean":      {"true", kpt.Boolean, true, true},
		"yes is no boolean":    {"yes", kpt.Boolean, nil, false},
		"number to text":       {json.Number("3"), kpt.String, "3", true},
		"boolean to text":      {false, kpt.String, "false", true},
		"a map is no text":     {map[string]any{}, kpt.String, nil, false},
		"a list stays":         {[]any{}, kpt.List, []any{}, true},
		"nothing fits nowhere": {nil, kpt.Anything, nil, false},
	}
	for name, test := range cases {
		got, ok := kpt.Convert(test.value, test.wanted)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("%s: %v\n%s", name, ok, diff)
		}
	}
}

// FuzzMark: what a mark says is either an error with its line or a name, and what is bound to it is there when it is read again.
func FuzzMark(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "x"}, {"a optional", "| # y\n  z"}, {" a   required ", "{a: [b]}"}, {"\u00a0a", "*x"}, {"a", "&x"}, {"a", "&x 0"}, {"", ""}, {"a b", "!!str 1"}, {"a", "# packages.sluice.dev/bind: b\n  c: d"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, mark, field string) {
		text := "apiVersion: v1\nkind: X\nmetadata: {name: x}\nspec:\n  f: " + field + " # packages.sluice.dev/bind:" + mark + "\n"
		r, err := kpt.Open(kpt.Package{"a.yaml": {Content: []byte(text), Mode: 0o644}, "Kptfile": {Content: []byte(kptfile), Mode: 0o644}})
		if err != nil {
			return
		}
		slots, err := r.Slots()
		if syntax := (*kpt.SyntaxError)(nil); err != nil && !errors.As(err, &syntax) {
			t.Fatalf("the error is %T: %v", err, err)
		}
		if err != nil || len(slots) == 0 {
			return
		}
		for _, s := range slots {
			s.Set(map[string]any{"k": "v"})
		}
		again := slotted(t, written(t, r))
		same, err := again.Slots()
		if err != nil || len(same) != len(slots) {
			t.Fatalf("%q has %d points and not %d: %v", written(t, again), len(same), len(slots), err)
		}
		once := written(t, again)
		for i, s := range same {
			if s.Name != slots[i].Name || s.Type() != kpt.Map {
				t.Fatalf("%s %s became %s %s", slots[i].Name, slots[i].Type(), s.Name, s.Type())
			}
			s.Set(map[string]any{"k": "v"})
		}
		if got := written(t, again); got != once {
			t.Fatalf("%q became %q the second time", once, got)
		}
	})
}
