package fanout_test

import (
	"fmt"
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// rich is a template with an expression for most of what may be one.
func rich() *packagesv1.VariantTemplate {
	return &packagesv1.VariantTemplate{
		Downstream:    &packagesv1.DownstreamTemplate{RepoExpr: "repoDefault + '-config'", PackageExpr: "target.labels.region + '/' + packageDefault"},
		LabelExprs:    []packagesv1.MapExpr{{Key: "region", ValueExpr: "target.labels.region.upperAscii()"}, {KeyExpr: "'tier-' + repository.labels.tier", Value: new("")}},
		NamespaceExpr: "target.?labels.team.orValue('none')",
	}
}

func compiler(tb testing.TB) *fanout.Compiler {
	tb.Helper()
	c, err := fanout.NewCompiler()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestASetIsCompiledOnce(t *testing.T) {
	t.Parallel()
	c, spec, compiled := compiler(t), set(rich()), 0
	c.Compiled = func() { compiled++ }
	first, err := c.Compile("uid/1", spec)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if again, _ := c.Compile("uid/1", spec); again != first {
			t.Fatal("it is compiled again though nobody has edited it")
		}
	}
	spec.Targets[0].Template.LabelExprs[0].ValueExpr = "'edited'"
	if got := first.Variants([]fanout.Target{cluster("a")}, upstream(), repositories); got.Variants[got.Places()[0]].Labels["region"] != "NORTH" {
		t.Error("what is kept changes with the object that it was made of")
	}
	if edited, _ := c.Compile("uid/2", spec); edited == first {
		t.Error("an edit is not compiled")
	}
	spec.Targets[0].Template.LabelExprs[0].ValueExpr = "'edited"
	_, before := c.Compile("uid/3", spec)
	if _, after := c.Compile("uid/3", spec); before == nil || after != before { //nolint:errorlint // It has to be the same one.
		t.Error("what is wrong is found out again")
	}
	if compiled != 3 {
		t.Errorf("three edits were compiled %d times", compiled)
	}
}

// TestHundredsOfSetsAreKeptCompiled, as people write them.
func TestHundredsOfSetsAreKeptCompiled(t *testing.T) {
	t.Parallel()
	c, compiled := compiler(t), 0
	c.Compiled = func() { compiled++ }
	for range 3 {
		for i := range 400 {
			if _, err := c.Compile(fmt.Sprint(i), set(rich())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if compiled != 400 {
		t.Errorf("400 sets were compiled %d times", compiled)
	}
}

// TestWhatIsKeptCompiledIsBounded: the longest unused goes, and comes back when it is asked for.
func TestWhatIsKeptCompiledIsBounded(t *testing.T) {
	t.Parallel()
	c := compiler(t)
	long := strings.Repeat(" ", 4000)
	large := func() *packagesv1.PackageVariantSetSpec {
		template := rich()
		for i := range 10 {
			template.LabelExprs = append(template.LabelExprs, packagesv1.MapExpr{Key: fmt.Sprint(i), ValueExpr: "'a'" + long})
		}
		return set(template)
	}
	first, err := c.Compile("0", large())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := c.Compile(fmt.Sprint(i+1), large()); err != nil {
			t.Fatal(err)
		}
	}
	if again, _ := c.Compile("0", large()); again == first {
		t.Error("more is kept than may be")
	}
	larger := large()
	for i := range 10 {
		larger.Targets[0].Template.LabelExprs = append(larger.Targets[0].Template.LabelExprs, packagesv1.MapExpr{Key: fmt.Sprint(i, "more"), ValueExpr: "'a'" + long})
	}
	if _, err := c.Compile("larger", larger); err == nil || !strings.Contains(err.Error(), "at most 65536 are allowed") {
		t.Errorf("a set of too many expressions: %v", err)
	}
}

// TestBindingsThatNoVariantCouldHave are refused with the set, each by its name.
func TestBindingsThatNoVariantCouldHave(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		path string
		from packagesv1.BindingSourceTemplate
		err  string
	}{
		"the longest literal":    {"", packagesv1.BindingSourceTemplate{Literal: packagesv1.TextLiteral(strings.Repeat("x", packagesv1.MaxLiteral-2))}, ""},
		"one byte more":          {"", packagesv1.BindingSourceTemplate{Literal: packagesv1.TextLiteral(strings.Repeat("x", packagesv1.MaxLiteral-1))}, "has 16385 bytes; at most 16384 are allowed"},
		"null":                   {"", packagesv1.BindingSourceTemplate{Literal: &packagesv1.Literal{JSON: "null"}}, "from.literal is null"},
		"null as it is read":     {"", packagesv1.BindingSourceTemplate{}, "from.literal is null"},
		"an expression":          {"", packagesv1.BindingSourceTemplate{LiteralExpr: "target.name"}, ""},
		"a path":                 {"data.[a.b]", packagesv1.BindingSourceTemplate{Object: &packagesv1.BindingObjectTemplate{}}, ""},
		"a path without its end": {"data.[a", packagesv1.BindingSourceTemplate{Object: &packagesv1.BindingObjectTemplate{}}, "a bracket is not closed"},
	} {
		_, err := compile(t, set(&packagesv1.VariantTemplate{Bindings: []packagesv1.BindingTemplate{{
			BindingTarget: packagesv1.BindingTarget{Name: "region", Path: test.path}, From: test.from,
		}}}))
		want := "spec.targets[0].template.bindings[0] (region): "
		if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: the error is %v, and not %q", reason, err, test.err)
		}
	}
}

// BenchmarkTemplate fills in a template for 25,000 targets: 100,000 expressions and more.
func BenchmarkTemplate(b *testing.B) {
	s, err := compile(b, set(rich()))
	if err != nil {
		b.Fatal(err)
	}
	targets := make([]fanout.Target, 25_000)
	for i := range targets {
		targets[i] = cluster(fmt.Sprintf("edge-%d", i))
	}
	for b.Loop() {
		if got := s.Variants(targets, upstream(), repositories); len(got.Variants) != len(targets) {
			b.Fatal(got.Problems[0].Err)
		}
	}
}

// BenchmarkCompile compiles a set anew.
func BenchmarkCompile(b *testing.B) {
	c, spec, i := compiler(b), set(rich()), 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		if _, err := c.Compile(fmt.Sprint(i), spec); err != nil {
			b.Fatal(err)
		}
	}
}
