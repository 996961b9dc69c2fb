package fanout_test

import (
	"os"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// TestExamplesInTheDocsAreTrue: each line of a block of the language cel is an expression, ' → ', and its value or its error.
func TestExamplesInTheDocsAreTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cel.md")
	if err != nil {
		t.Fatal(err)
	}
	c, run := compiler(t), 0
	for _, block := range strings.Split(string(page), "```cel\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			expr, want, ok := strings.Cut(strings.TrimSpace(line), " → ")
			if !ok {
				t.Errorf("the example %q has no value", line)
				continue
			}
			run++
			if got := example(c, strings.TrimSpace(expr)); got != want && (!strings.HasPrefix(want, "error: ") || !strings.Contains(got, strings.TrimPrefix(want, "error: "))) {
				t.Errorf("%s\n got %s\nwant %s", expr, got, want)
			}
		}
	}
	if run < 30 {
		t.Errorf("only %d examples were found", run)
	}
}

// example is the value of an expression for the target that the page speaks of.
func example(c *fanout.Compiler, expr string) string {
	s, err := c.Compile(expr, set(&packagesv1.VariantTemplate{LabelExprs: []packagesv1.MapExpr{{Key: "is", ValueExpr: expr}}}))
	if err != nil {
		return err.Error()
	}
	seen := fanout.Seen("edge-1", "fleet", map[string]string{"region": "eu-north", "tier": "gold"}, map[string]string{"example.com/owner": "ops"})
	seen["spec"] = map[string]any{"version": "1.34.2", "podCIDR": "10.8.0.0/16", "endpoint": "https://edge-1.example.com:6443/api", "zones": []any{"a", "b"}}
	got := s.Variants([]fanout.Target{{Name: "Cluster edge-1", Repo: "edge-1", Package: "web", Value: seen}}, map[string]any{"repo": "blueprints", "package": "web", "name": "blueprints"}, repositories)
	if len(got.Problems) > 0 {
		return got.Problems[0].Err.Error()
	}
	return got.Variants[got.Places()[0]].Labels["is"]
}
