package script

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestTheLanguageIsStarlark holds that guarded operations do what the library's own do.
func TestTheLanguageIsStarlark(t *testing.T) {
	t.Parallel()
	//nolint:dupword // It is a program.
	const source = `
def eq(got, want):
    if got != want:
        fail("want %r, got %r" % (want, got))

eq(1 + 2 * 3 - 4 // 2 % 3, 5)
eq(7 / 2, 3.5)
eq(6 & 3 | 8 ^ 1, 2 | 9)
eq(1 << 4 >> 2, 4)
eq("a" + "b" * 2, "abb")
eq([1] + [2] * 2, [1, 2, 2])
eq((1,) + (2,), (1, 2))
eq({"a": 1} | {"b": 2}, {"a": 1, "b": 2})
eq(-(1), ~0)
eq("a" in "abc" and "d" not in "abc", True)
eq("a" in {"a": 1} and 1 in [1] and 2 not in set([1]) and 5 in range(9), True)
eq([1 < 2, 2 <= 2, 3 > 2, 2 >= 3, 1 == 1.0, 1 != 2], [True, True, True, False, True, True])
eq("%s-%d-%r" % ("a", 1, "b"), 'a-1-"b"')
eq("{} {x}".format(1, x=2), "1 2")
l = [3, 1, 2]
same = l
l += [4]
eq(same, [3, 1, 2, 4])
l += range(2)
eq(l, [3, 1, 2, 4, 0, 1])
d = {"n": 1, "l": [1]}
other = d
d |= {"m": 2}
eq(other["m"], 2)
d["n"] += 1
d["l"] += [2]
l[-1] *= 5
eq((d["n"], d["l"], l[-1]), (2, [1, 2], 5))
s = "a"
s += "b"
eq(s[::-1], "ba")
eq(sorted([3, 1, 2], key=lambda x: -x, reverse=True), [1, 2, 3])
eq(max(["aa", "b"], key=len), "aa")
eq(min(4, 2, 3), 2)
eq([x * y for x in range(3) if x for y in [1, 2]], [1, 2, 2, 4])
eq({k: v for k, v in {"a": 1}.items()}, {"a": 1})
eq(list(zip([1, 2], "a b".split())), [(1, "a"), (2, "b")])
eq([i for i, _ in enumerate(["x", "y"])], [0, 1])
eq(dict([("a", 1)], b=2), {"a": 1, "b": 2})
eq(dict([("a", [0] * 1000)])["a"][999], 0)
eq("a,b".split(","), "a\nb".splitlines())
eq("-".join(["a", "b"]).replace("-", "+").upper(), "A+B")
eq(" x ".strip().startswith("x"), True)
eq(getattr("a", "upper")(), "A")
eq(getattr("a", "no", 1), 1)
eq(hasattr({}, "keys"), True)
eq(type(set([1]) | set([2])), "set")
eq(int("7") + int(2.9), 9)
eq(str([1, "a", None, True]), '[1, "a", None, True]')

def variadic(first, *rest, key=0, **more):
    return (first, rest, key, more)

eq(variadic(1, 2, key=5, *[3, 4], **{"z": 6}), (1, (2, 3, 4), 5, {"z": 6}))

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

eq(fib(10), 55)
n = 0
while n < 5:
    n += 1
    if n == 3:
        break
eq(n, 3)
(a, b), c = (1, [2]), 3
b[0], e = 4, 5
eq((a, b, c, e), (1, [4], 3, 5))
t = {}
t[("a", 1)] = 2
eq(t[("a", 1)], 2)
x = 1 if t else 2
eq((lambda y, z=x: y + z)(1), 2)
print("done", 1)
`
	outcome, err := Run(t.Context(), Script{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"done 1"}, outcome.Printed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	const text = `a: 1
b: 0x10
c: 1.5
d: 1.0
e: "1"
f: yes
g: true
h: null
i: 2020-01-01
j: [1, {k: v}, []]
k: 123456789012345678901234567890
l: {}
m: .inf
`
	item := yaml.MustParse(text).YNode()
	outcome, err := Run(t.Context(), Script{Source: "ctx.resource_list['items'].append(dict(ctx.resource_list['items'][0]))", Items: []*yaml.Node{item}})
	if err != nil {
		t.Fatal(err)
	}
	want := `a: 1
b: 16
c: 1.5
d: 1.0
e: "1"
f: yes
g: true
h: null
i: "2020-01-01"
j:
- 1
- k: v
- []
k: 1.2345678901234568e+29
l: {}
m: .inf
`
	for i, from := range []int{0, -1} {
		if diff := cmp.Diff(want, yaml.NewRNode(outcome.Items[i].Node).MustString()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if outcome.Items[i].From != from {
			t.Errorf("item %d is from %d", i, outcome.Items[i].From)
		}
	}
}

func TestWhatIsWrongIsToldWithItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"a mistake":        {"\nx = 1 + 'a'\n", "line 2: unknown binary op: int + string"},
		"a syntax":         {"x = (", "read the script: source:1:6: got end of file, want primary expression"},
		"a name":           {"x = y\n", "read the script: source:1:5: undefined: y"},
		"fail":             {"def f():\n  fail('no', 1)\nf()\n", "line 2: fail: no 1"},
		"load":             {"load('http.star', 'http')\n", "read the script: line 1: there is no load: a script is all in its source"},
		"bytes":            {"x = b'a'\n", "read the script: line 1: there are no bytes; strings are text"},
		"bytes of a text":  {"x = bytes('a')\n", "line 1: there is no bytes here"},
		"characters":       {"x = 'a'.codepoints()\n", "line 1: string has no .codepoints here"},
		"environment":      {"x = ctx.environment\n", "line 1: ctx has no environment: what a script makes follows from the package alone"},
		"no field":         {"x = ctx.http\n", "line 1: context has no .http field or method"},
		"a missing key":    {"x = {}\nx['a'] += 1\n", "line 2: key \"a\" not in dict"},
		"a field":          {"x = ctx\nx.a = 1\n", "read the script: line 2: this cannot be assigned to"},
		"no list":          {"ctx.resource_list['items'] = 1\n", `resource_list["items"] is no list, but of type int`},
		"no object":        {"ctx.resource_list['items'] = ['a']\n", `resource_list["items"][0]: is no map`},
		"a function":       {"ctx.resource_list['items'] = [{'a': len}]\n", `resource_list["items"][0]: a value of type builtin_function_or_method is nothing that YAML has`},
		"a key":            {"ctx.resource_list['items'] = [{1: 2}]\n", `resource_list["items"][0]: a key is of type int, and not a string`},
		"a wrong result":   {"ctx.resource_list['results'] = [{'message': []}]\n", `resource_list["results"][0]: is no result: it has a severity and a message, both texts`},
		"a name of ours":   {"x = $attr\n", "read the script: source:1:5: unexpected input character '$'"},
		"a long source":    {strings.Repeat(" ", maxSource+1), "the script takes too much: its source has 65537 bytes, and 65536 are allowed"},
		"a huge number":    {"x = 1" + strings.Repeat("0", 400) + "\n", "read the script: line 1: an integer has at most 1024 bits"},
		"a range too long": {"x = list(range(1 << 30))\n", "line 1: the script takes too much: it makes more than 134217728 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if _, err := Run(t.Context(), Script{Source: c.source}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
