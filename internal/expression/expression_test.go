package expression_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"sluice.dev/sluice/internal/expression"
)

// TestExpressionsEndWithAValueOrAReason: one that runs away is broken off, and what cannot be bounded is refused beforehand.
func TestExpressionsEndWithAValueOrAReason(t *testing.T) {
	t.Parallel()
	env, err := expression.New(1000)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]any, 500)
	for i := range many {
		many[i] = "text"
	}
	values := map[string]any{"target": map[string]any{"name": "edge", "many": many}}
	for _, test := range []struct{ reason, expr, want string }{
		{"a value", "target.name + '-1'", ""},
		{"it runs away", "target.many.filter(a, target.many.exists(b, a != b)).size() > 0 ? 'a' : 'b'", "cost limit"},
		{"a key that is missing", "target.region", "no such key: region"},
		{"nothing", " ", "the expression is empty"},
		{"too long", "'" + strings.Repeat("a", 5000) + "'", "at most 4096 are allowed"},
		{"another type", "1 + 1", "int in place of string"},
		{"a name that nobody gives", "other.name", "undeclared reference"},
		{"a pattern", "target.name.matches('a') ? 'a' : 'b'", "regular expressions are not allowed"},
		{"a list that grows", "string([target.name, target.name].size())", "values that are not constant"},
	} {
		p, err := env.Compile(test.expr, cel.StringType, "target")
		if err == nil {
			_, _, err = p.Eval(values)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
