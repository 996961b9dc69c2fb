package expression_test

import (
	"testing"

	"sluice.dev/sluice/internal/expression"
)

// TestMapsHaveOneOrder holds that what is made of a map's entries is the same each time: else each look at a package, or at a
// target, would find another result.
func TestMapsHaveOneOrder(t *testing.T) {
	t.Parallel()
	env, err := expression.New(10_000)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{"object": map[string]any{"b": 1, "a": 1, "d": 1, "c": 1, "e": 1}}
	for _, text := range []string{
		`object.map(k, k) == ["a", "b", "c", "d", "e"]`,
		`{"b": 1, "a": 1, "d": 1, "c": 1, "e": 1}.map(k, k) == ["a", "b", "c", "d", "e"]`,
		`{3: 1, 1: 1, 10: 1, 2: 1}.map(k, k) == [1, 2, 3, 10]`,
	} {
		program, err := env.Compile(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			result, _, err := program.Eval(given)
			if err != nil {
				t.Fatal(err)
			}
			if result.Value() != true {
				t.Fatalf("%s is %v", text, result.Value())
			}
		}
	}
}
