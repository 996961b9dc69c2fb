package expression_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"sluice.dev/sluice/internal/expression"
)

// TestTextsAreThoseOfTheExtension compares with CEL's own, where those do little.
func TestTextsAreThoseOfTheExtension(t *testing.T) {
	t.Parallel()
	ours, err := expression.New(10_000, expression.Texts())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := expression.New(10_000, ext.Strings(ext.StringsVersion(2)))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`"a,b,,c".split(",") == ["a", "b", "", "c"] && "äb".split("") == ["ä", "b"]`,
		`["a", "b"].join("-") == "a-b" && "a".split(",").join("") == "a"`,
		`"aäa".replace("a", "bb") == "bbäbb" && "ab".replace("", "-") == "-a-b-"`,
		`"äbc".substring(1) == "bc" && "äbc".substring(0, 1) == "ä" && "a".substring(1) == ""`,
		`"äbcb".indexOf("b") == 1 && "äbcb".lastIndexOf("b") == 3 && "a".indexOf("x") == -1`,
		`"  a ".trim() == "a" && "AÄz".lowerAscii() == "aÄz" && "aäZ".upperAscii() == "AäZ"`,
	} {
		for name, env := range map[string]*expression.Env{"ours": ours, "theirs": theirs} {
			program, err := env.Compile(text, cel.BoolType)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _, err := program.Eval(nil); err != nil || got.Value() != true {
				t.Errorf("%s: %s: %v, %v", name, text, got, err)
			}
		}
	}
}

func TestTextsThatGrowAreRefused(t *testing.T) {
	t.Parallel()
	env, err := expression.New(1_000_000, expression.Texts())
	if err != nil {
		t.Fatal(err)
	}
	most := strings.Repeat("x", 64<<10)
	for text, reason := range map[string]string{
		`s.replace("", s)`:              "It would have four gibibytes.",
		`s.replace("x", s)`:             "It would have four gibibytes.",
		`s.split("").join(s)`:           "It would have four gibibytes.",
		`(s + s).trim()`:                "It is too long to be looked at.",
		`"a".substring(2)`:              "There is no such part.",
		`"a".substring(1, 0)`:           "It ends before it begins.",
		`"a".substring(-1)`:             "Nothing is before the beginning.",
		`(s + s).split("").join("")`:    "It is too long to be split.",
		`["a", "b"].map(x, s).join("")`: "Both together are too long.",
	} {
		program, err := env.Compile(text, nil, "s")
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := program.Eval(map[string]any{"s": most}); err == nil {
			t.Errorf("%s is a text of %v: %s", text, got.Type(), reason)
		}
	}
}
