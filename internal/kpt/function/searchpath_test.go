package function

import "testing"

func TestASearchGoesThroughFoldersAsItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, file string
		want       bool
	}{
		{"*.yaml", "a.yaml", true},
		{"*.yaml", "b/a.yaml", false},
		{"**/*.yaml", "a.yaml", true},
		{"**/*.yaml", "b/c/a.yaml", true},
		{"b/**", "b/c/a.yaml", true},
		{"b/?.yaml", "b/a.yaml", true},
		{"b/?.yaml", "b/ab.yaml", false},
		{"a.yaml", "aXyaml", false},
	} {
		pattern, err := filePattern(c.glob)
		if err != nil {
			t.Fatal(err)
		}
		if got := pattern.MatchString(c.file); got != c.want {
			t.Errorf("%q matches %q: %v", c.glob, c.file, got)
		}
	}
	if _, err := filePattern("[ab].yaml"); err == nil {
		t.Error("brackets are taken")
	}
}

func TestAnExpressionThatTakesLongIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"(a{100}){100}", "((((a|b){9}){9}){9}){9}", "("} {
		if _, _, err := wholePattern(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	pattern, _, err := wholePattern("a|b")
	if err != nil || pattern.MatchString("ab") || !pattern.MatchString("b") {
		t.Error(err)
	}
}
