package variant_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/variant"
)

// slots is an upstream package with points of all kinds.
const slots = `apiVersion: x.example/v1
kind: Site
metadata:
  name: site
spec:
  region: none # packages.sluice.dev/bind: region
  again: 'none' # packages.sluice.dev/bind: region
  rank: 1 # packages.sluice.dev/bind: rank
  hosts: [none] # packages.sluice.dev/bind: hosts optional
  near: none # packages.sluice.dev/bind: near
  far: none # packages.sluice.dev/bind: far
  of: none # packages.sluice.dev/bind: of optional
`

// binding makes a package of the blueprint with these bindings.
func binding(text string, bindings ...variant.Bound) variant.Version {
	return variant.Version{
		Blueprint: variant.Blueprint{
			Repo: "https://git.example/blueprints.git", Directory: "site", Ref: "site/v1", Commit: strings.Repeat("a", 40), Tree: strings.Repeat("b", 40),
			Package: kpt.Package{
				"Kptfile":   {Content: []byte("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: site\n"), Mode: 0o644},
				"site.yaml": {Content: []byte(text), Mode: 0o644},
			},
		},
		Config: variant.Config{Owner: kpt.Owner{Namespace: "fleet", Name: "eu"}, Package: "eu", Context: map[string]string{"tier": "gold"}, Bindings: bindings},
	}
}

// literal is a value of the spec.
func literal(name string, value any) variant.Bound {
	return variant.Bound{Name: name, Of: "the spec", Value: value}
}

// reads is a binding of what another object of the package has.
func reads(name, path string) variant.Bound {
	return variant.Bound{Name: name, Path: path, Of: "Site site of the package", Within: &variant.Within{Kind: "Site", Name: "site"}}
}

// conditionsOf are what the package says of its points, by name.
func conditionsOf(t *testing.T, p kpt.Package) map[string]string {
	t.Helper()
	facts, err := kpt.ReadFacts(p[kpt.KptfileName].Content)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range facts.Conditions {
		name, _ := kpt.SlotNameOf(c.Type)
		all[name] = c.Reason
		if c.Status == "False" {
			all[name] += ": " + c.Message
		}
	}
	return all
}

// TestWhatIsBoundGoesWhereItFits: what does not leaves its points as they are and says why, and all else is bound.
func TestWhatIsBoundGoesWhereItFits(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		bindings []variant.Bound
		// has are lines of the object, and says what is said of a name.
		has  []string
		says map[string]string
	}{
		"all points of a name": {
			"One value goes to all points of its name, and quotes stay.",
			[]variant.Bound{literal("region", "eu")},
			[]string{"region: eu # ", "again: 'eu' # "},
			map[string]string{"region": "ValueBound", "rank": "BindingMissing"},
		},
		"another type": {
			"A text is no number, and one wrong binding keeps none of the others back.",
			[]variant.Bound{literal("rank", "two"), literal("region", "eu")},
			[]string{"rank: 1 # ", "region: eu # "},
			map[string]string{"rank": "spec.rank of Site.x.example site in site.yaml: it takes an integer, and the spec is a string", "region": "ValueBound"},
		},
		"a type that is asked for": {
			"A text that says a number is one where the binding's type is.",
			[]variant.Bound{{Name: "rank", Of: "the spec", Type: kpt.Integer, Value: "2"}},
			[]string{"rank: 2 # "},
			map[string]string{"rank": "ValueBound"},
		},
		"a type that it is not": {
			"A text that says none is not bound.",
			[]variant.Bound{{Name: "rank", Of: "the spec", Type: kpt.Integer, Value: "two"}},
			[]string{"rank: 1 # "},
			map[string]string{"rank": "the binding's type is integer, and the spec is a string that says none"},
		},
		"a list": {
			"Lists and maps are values.",
			[]variant.Bound{literal("hosts", []any{"a", json.Number("1")})},
			[]string{"hosts: [a, 1] # "},
			map[string]string{"hosts": "ValueBound"},
		},
		"the context": {
			"What the context says is a value.",
			[]variant.Bound{{Name: "region", Path: "data.[tier]", Of: "the context", Within: variant.Context()}},
			[]string{"region: gold # "},
			map[string]string{"region": "ValueBound"},
		},
		"no such key": {
			"A key that the context lacks is named.",
			[]variant.Bound{{Name: "region", Path: "data.[tears]", Of: "the context", Within: variant.Context()}},
			[]string{"region: none # "},
			map[string]string{"region": `PathMissing: data.[tears] of the context: the path "data.[tears]" leads nowhere`},
		},
		"a chain": {
			"What is read holds what is bound to it, whatever the names are.",
			[]variant.Bound{reads("far", "spec.near"), reads("near", "spec.region"), literal("region", "eu")},
			[]string{"near: eu # ", "far: eu # "},
			map[string]string{"far": "ValueBound", "near": "ValueBound"},
		},
		"a cycle": {
			"Those that wait for each other are named, and one that reads of them goes on.",
			[]variant.Bound{reads("far", "spec.near"), reads("near", "spec.far"), reads("of", "spec.near"), literal("region", "eu")},
			[]string{"near: none # ", "far: none # ", "of: none # ", "region: eu # "},
			map[string]string{"far": "far -> near -> far", "near": "far -> near -> far", "of": "ValueBound"},
		},
		"itself": {
			"What reads where it is bound waits for itself.",
			[]variant.Bound{reads("far", "spec")},
			[]string{"far: none # "},
			map[string]string{"far": "far -> far"},
		},
		"a missing path beside it": {
			"A path that leads nowhere is said to, also in the object that is bound.",
			[]variant.Bound{reads("far", "spec.nowhere")},
			[]string{"far: none # "},
			map[string]string{"far": "leads nowhere"},
		},
		"a missing object": {
			"An object that is not there is named.",
			[]variant.Bound{{Name: "far", Path: "spec", Of: "Site moon of the package", Within: &variant.Within{Kind: "Site", Name: "moon"}}},
			[]string{"far: none # "},
			map[string]string{"far": "spec of Site moon of the package: the package has no such object"},
		},
		"refused": {
			"Why nothing was found is said.",
			[]variant.Bound{{Name: "region", Of: "ConfigMap a", Reason: variant.ReasonForbidden, Message: "may not"}},
			[]string{"region: none # "},
			map[string]string{"region": "InjectionForbidden: may not"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := binding(slots, test.bindings...)
			made := desired(t, v, "").Package
			for _, line := range test.has {
				if text := string(made["site.yaml"].Content); !strings.Contains(text, "  "+line+"packages.sluice.dev/bind: ") {
					t.Errorf("%s\n%q is not in\n%s", test.reason, line, text)
				}
			}
			said := conditionsOf(t, made)
			for name, want := range test.says {
				if !strings.Contains(said[name], want) {
					t.Errorf("%s\nof %s it is said: %q, and not %q", test.reason, name, said[name], want)
				}
			}
			again := desired(t, v, "").Package
			if !again.Equal(made) {
				t.Errorf("%s\nmade again, it is another package", test.reason)
			}
		})
	}
}

// TestSecretsAreBoundWhereItIsAllowed, whether they are read or written.
func TestSecretsAreBoundWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	const text = slots + "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: login\ndata:\n  user: YQ==\n  word: none # packages.sluice.dev/bind: word\n"
	secret := variant.Bound{Name: "region", Path: "data.user", Of: "Secret login of the package", Within: &variant.Within{Kind: "Secret", Name: "login"}}
	made := desired(t, binding(text, secret, literal("word", "Yg==")), "").Package
	for _, name := range []string{"region", "word"} {
		if said := conditionsOf(t, made)[name]; !strings.HasPrefix(said, variant.ReasonForbidden) || !strings.Contains(said, "allowSecrets") {
			t.Errorf("of %s it is said: %q", name, said)
		}
	}
	word := literal("word", "Yg==")
	secret.AllowSecrets, word.AllowSecrets = true, true
	got := string(desired(t, binding(text, secret, word), "").Package["site.yaml"].Content)
	for _, want := range []string{"region: YQ==", "word: Yg=="} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestFunctionsAreSeenByWhatReadsThePackage: what they make of an object is bound, and it is bound once.
func TestFunctionsAreSeenByWhatReadsThePackage(t *testing.T) {
	t.Parallel()
	const text = slots + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: net\n  namespace: none\n"
	space := variant.Bound{Name: "region", Path: "metadata.namespace", Of: "ConfigMap net of the package", Within: &variant.Within{Kind: "ConfigMap", Name: "net"}}
	v := binding(text, space)
	v.Config.Namespace = "shop"
	if got := string(desired(t, v, "").Package["site.yaml"].Content); !strings.Contains(got, "region: shop # ") {
		t.Errorf("the namespace that a function set is not bound:\n%s", got)
	}
}

// TestWhatIsBoundIsNobodysEdit: a value that changes or goes makes no conflict, edits beside it stay, and one of a point to which
// nothing is bound is people's.
func TestWhatIsBoundIsNobodysEdit(t *testing.T) {
	t.Parallel()
	last := binding(slots, literal("region", "eu"), literal("rank", "two"))
	there := edited(t, desired(t, last, "").Package, []edit{
		{"site.yaml", "region: eu #", "region: us #"}, {"site.yaml", "rank: 1 #", "rank: 9 #"}, {"site.yaml", "spec:\n", "spec:\n  ours: yes\n"},
	})
	applied, err := last.Config.Applied()
	if err != nil {
		t.Fatal(err)
	}
	before := variant.Version{Blueprint: last.Blueprint}
	if before.Config, err = variant.DecodeApplied(applied); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		bindings []variant.Bound
		region   string
	}{
		"changed": {[]variant.Bound{literal("region", "asia"), literal("rank", "two")}, "asia"},
		"same":    {last.Config.Bindings, "eu"},
		"gone":    {nil, "none"},
	} {
		request := variant.Request{Next: binding(slots, test.bindings...), Local: there, Last: &before, Policy: merge.Fail}
		outcome, err := variant.Update(t.Context(), request, function.New(function.Options{}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := strings.NewReplacer("region: none", "region: "+test.region, "'none'", "'"+test.region+"'", "rank: 1", "rank: 9", "spec:\n", "spec:\n  ours: yes\n").Replace(slots)
		if diff := cmp.Diff(want, string(outcome.Package["site.yaml"].Content)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		request.Local, request.Last = outcome.Package, &request.Next
		again, err := variant.Update(t.Context(), request, function.New(function.Options{}))
		if err != nil || !again.Unchanged {
			t.Errorf("%s: made again, it is another package: %v", name, err)
		}
	}
}

// wholes is an upstream package with objects that are points, with and without the field that is bound.
const wholes = `apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  annotations:
    packages.sluice.dev/bind: one
data:
  kept: none # As it was.
binaryData:
  raw: AA==
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  annotations:
    packages.sluice.dev/bind: two
---
apiVersion: v1
kind: Secret
metadata:
  name: login
  annotations:
    packages.sluice.dev/bind: login
type: Opaque
---
apiVersion: x.example/v1
kind: Site
metadata:
  name: there
  annotations:
    packages.sluice.dev/bind: site
spec:
  zones:
  - none
---
apiVersion: x.example/v1
kind: Site
metadata:
  name: absent
  annotations:
    packages.sluice.dev/bind: site
`

// wholeBindings bind each of its points, whose values have the mark in them.
func wholeBindings(mark string) []variant.Bound {
	login := literal("login", map[string]any{"word": mark})
	login.AllowSecrets = true
	return []variant.Bound{
		literal("one", map[string]any{"a": mark}), literal("two", map[string]any{"b": mark + "2"}), login,
		literal("site", map[string]any{"zones": []any{mark}, "rank": json.Number("3")}),
	}
}

// TestObjectsAreBoundAsAWhole: several points of one kind each hold what is bound to them, whether or not they held something before.
// What is bound changes and goes with the binding, and nobody's edits beside it do.
func TestObjectsAreBoundAsAWhole(t *testing.T) {
	t.Parallel()
	filled := func(mark string) string {
		return strings.NewReplacer(
			"data:\n  kept: none # As it was.\n", "data:\n  a: "+mark+"\n",
			"bind: two\n", "bind: two\ndata:\n  b: "+mark+"2\n",
			"type: Opaque\n", "type: Opaque\ndata:\n  word: "+mark+"\n",
			"spec:\n  zones:\n  - none\n", "spec:\n  zones:\n  - "+mark+"\n  rank: 3\n",
			"name: absent\n  annotations:\n    packages.sluice.dev/bind: site\n",
			"name: absent\n  annotations:\n    packages.sluice.dev/bind: site\nspec:\n  rank: 3\n  zones:\n  - "+mark+"\n",
		).Replace(wholes)
	}
	last := binding(wholes, wholeBindings("first")...)
	there := desired(t, last, "").Package
	if diff := cmp.Diff(filled("first"), string(there["site.yaml"].Content)); diff != "" {
		t.Fatal(diff)
	}
	for name, said := range conditionsOf(t, there) {
		if said != "ValueBound" {
			t.Errorf("of %s it is said: %s", name, said)
		}
	}
	ours := strings.NewReplacer("  name: two\n", "  name: two\n  labels: {ours: yes}\n")
	there["site.yaml"] = kpt.File{Content: []byte(ours.Replace(string(there["site.yaml"].Content))), Mode: 0o644}
	for _, step := range []struct {
		reason   string
		bindings []variant.Bound
		want     string
	}{
		{"Other values take their places.", wholeBindings("second"), filled("second")},
		{"Without a binding, all is as upstream has it.", nil, wholes},
		{"They come back.", wholeBindings("third"), filled("third")},
	} {
		next := binding(wholes, step.bindings...)
		outcome, err := variant.Update(t.Context(), variant.Request{Next: next, Local: there, Last: &last, Policy: merge.Fail}, function.New(function.Options{}))
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if diff := cmp.Diff(ours.Replace(step.want), string(outcome.Package["site.yaml"].Content)); diff != "" {
			t.Errorf("%s\n%s", step.reason, diff)
		}
		there, last = outcome.Package, next
	}
}

// TestWhatPeopleMakeOfABoundObjectIsTakenBack, also where they took all out of it.
func TestWhatPeopleMakeOfABoundObjectIsTakenBack(t *testing.T) {
	t.Parallel()
	last := binding(wholes, wholeBindings("first")...)
	made := desired(t, last, "").Package
	there := edited(t, made, []edit{
		{"site.yaml", "data:\n  a: first\n", ""},
		{"site.yaml", "  b: first2\n", "  b: theirs\n  c: theirs\n"},
		{"site.yaml", "data:\n  word: first\n", ""},
		{"site.yaml", "spec:\n  zones:\n  - first\n  rank: 3\n", ""},
	})
	next := binding(wholes, wholeBindings("second")...)
	outcome, err := variant.Update(t.Context(), variant.Request{Next: next, Local: there, Last: &last, Policy: merge.Fail}, function.New(function.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	want, err := kpt.Open(desired(t, next, "").Package)
	if err != nil {
		t.Fatal(err)
	}
	got, err := kpt.Open(outcome.Package)
	if err != nil {
		t.Fatal(err)
	}
	for i, object := range want.Items {
		must, mustErr := object.Value()
		is, isErr := got.Items[i].Value()
		if diff := cmp.Diff(must, is); diff != "" || mustErr != nil || isErr != nil {
			t.Errorf("%s: %v %v\n%s", object.ID(), mustErr, isErr, diff)
		}
	}
}

// TestABoundObjectHoldsAMap: anything else stays out of it, and a type that is asked for changes nothing about that.
func TestABoundObjectHoldsAMap(t *testing.T) {
	t.Parallel()
	text := literal("one", "text")
	asked := literal("two", "3")
	asked.Type = kpt.Integer
	made := desired(t, binding(wholes, text, asked), "").Package
	if diff := cmp.Diff(wholes, string(made["site.yaml"].Content)); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"one": "it takes a map, and the spec is a string", "two": "it takes a map, and the spec is an integer"} {
		if said := conditionsOf(t, made)[name]; !strings.Contains(said, want) {
			t.Errorf("of %s it is said: %q, and not %q", name, said, want)
		}
	}
}

// TestAnObjectReadsAnother: what is read of a bound object is what is bound to it, also where it held nothing.
func TestAnObjectReadsAnother(t *testing.T) {
	t.Parallel()
	of := func(name, object string) variant.Bound {
		return variant.Bound{Name: name, Of: "ConfigMap " + object + " of the package", Within: &variant.Within{Kind: "ConfigMap", Name: object}}
	}
	made := desired(t, binding(wholes, of("one", "two"), literal("two", map[string]any{"b": "c"})), "").Package
	got := string(made["site.yaml"].Content)
	for _, want := range []string{"bind: one\ndata:\n  b: c\nbinaryData:", "bind: two\ndata:\n  b: c\n---"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestWhatIsBoundInAllIsBounded: what goes beyond the bound is refused by its name, and what is small enough behind it is bound.
func TestWhatIsBoundInAllIsBounded(t *testing.T) {
	t.Parallel()
	const most, each = 8 << 20, 128 << 10
	text := strings.Repeat("x", each-2) // With its quotes, it has that many bytes.
	for name, test := range map[string]struct {
		reason string
		points int
		says   map[string]string
	}{
		"as much as may be": {"All that is allowed is bound.", most / each, map[string]string{"many": "ValueBound", "one": "BindingInvalid", "two": "BindingInvalid"}},
		"more":              {"Nothing of a name that is too much is bound.", most/each + 1, map[string]string{"many": "BindingInvalid", "one": "ValueBound", "two": "ValueBound"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := strings.Builder{}
			points.WriteString(slots)
			for i := range test.points {
				fmt.Fprintf(&points, "  many%d: none # packages.sluice.dev/bind: many\n", i)
			}
			points.WriteString("  one: none # packages.sluice.dev/bind: one\n  two: none # packages.sluice.dev/bind: two\n")
			said := conditionsOf(t, desired(t, binding(points.String(), literal("many", text), literal("one", "a"), literal("two", "b")), "").Package)
			for point, want := range test.says {
				if !strings.HasPrefix(said[point], want) || want == variant.ReasonInvalid && !strings.Contains(said[point], "more than 8388608 bytes are bound in all") {
					t.Errorf("%s\nof %s it is said: %.200q, and not %s", test.reason, point, said[point], want)
				}
			}
		})
	}
}

// TestAnObjectIsConvertedOnce, and not for each binding that reads it. It is not parallel, as it counts allocations.
func TestAnObjectIsConvertedOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: x.example/v1\nkind: Site\nmetadata:\n  name: site\nspec:\n  source: x\n")
	var all []variant.Bound
	for i := range 64 {
		fmt.Fprintf(&text, "  p%d: none # packages.sluice.dev/bind: p%d\n", i, i)
		all = append(all, reads(fmt.Sprint("p", i), "spec.source"))
	}
	for i := range 2000 {
		fmt.Fprintf(&text, "  k%d: v\n", i)
	}
	cost := func(n int) float64 {
		return testing.AllocsPerRun(1, func() { desired(t, binding(text.String(), all[:n]...), "") })
	}
	if one, many := cost(1), cost(64); many > 2*one {
		t.Errorf("64 bindings allocate %.0f times, and one %.0f times", many, one)
	}
}
