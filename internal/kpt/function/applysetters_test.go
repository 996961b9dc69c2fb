package function

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

// FuzzSetters holds that whatever setters make of a document is read and set again as it is.
func FuzzSetters(f *testing.F) {
	f.Add("data:\n  a: b # kpt-set: ${x}\n", "x", "1")
	f.Add("data:\n  a: # kpt-set: ${x}\n  - b\n", "x", "[c, d]")
	f.Add("data:\n  a: [] # kpt-set: ${x}\n  b: |  # kpt-set: a${x}\n    ab\n", "x", "- c\n- 'd'\n")
	f.Add("data: {a: b} # kpt-set: ${x}\nlist:\n- a # kpt-set: ${x}:${y}\n", "x", "")
	f.Add("data:\n  a: !!str 1 # kpt-set: ${x}\n  b: # kpt-set: ${x}\n", "x", "yes")
	f.Add("data:\n  'a': \"b\"   # kpt-set: ${x}-${y}\n", "x", "two\nlines")
	f.Fuzz(func(t *testing.T, document, name, value string) {
		config := "apiVersion: fn.kpt.dev/v1alpha1\nkind: ApplySetters\nmetadata: {name: s}\nsetters: {" +
			newQuoted(name) + ": " + newQuoted(value) + "}\n"
		p := packageOf("Kptfile", kptfileOf("{image: apply-setters, configPath: setters.yaml}"), "setters.yaml", config,
			"a.yaml", configMap+document)
		once, _, err := New(Options{}).Render(t.Context(), p)
		if err != nil {
			if errors.Is(err, ErrPanic) {
				t.Fatal(err)
			}
			return
		}
		twice, _, err := New(Options{}).Render(t.Context(), once)
		if err != nil {
			t.Fatalf("%q with %q=%q makes %q, which fails: %v", document, name, value, once["a.yaml"].Content, err)
		}
		if diff := cmp.Diff(contents(once), contents(twice)); diff != "" {
			t.Errorf("rendering again changes (-once +twice):\n%s", diff)
		}
		if _, err := kpt.Open(once); err != nil {
			t.Error(err)
		}
	})
}

// newQuoted is the value in the quotes of YAML, without what does not print.
func newQuoted(value string) string {
	out := []byte{'"'}
	for _, c := range []byte(value) {
		switch {
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= ' ' && c <= '~':
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}
