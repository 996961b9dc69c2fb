package function

import (
	"strings"
	"testing"
)

// TestWhatCannotBeANameIsRefused names what is wrong.
func TestWhatCannotBeANameIsRefused(t *testing.T) {
	t.Parallel()
	own := "apiVersion: fn.kpt.dev/v1alpha1\nkind: EnsureNameSubstring\nmetadata: {name: n}\n"
	for name, c := range map[string]struct{ reason, entry, config, want string }{
		"nothing":     {"There is nothing to do.", "{image: ensure-name-substring, configMap: {prepend: ''}}", "", "does not say"},
		"a space":     {"No name has one.", "{image: ensure-name-substring, configMap: {append: 'a b'}}", "", `end with "a b"`},
		"a dash":      {"No name ends with one.", "{image: ensure-name-substring, configMap: {append: a-}}", "", `end with "a-"`},
		"too long":    {"Names end somewhere.", "{image: set-name-prefix, configMap: {prefix: " + strings.Repeat("a", 253) + "}}", "", "253"},
		"misspelt":    {"A key that nobody reads.", "{image: set-name-prefix, configMap: {prefx: a-}}", "", "data.prefx"},
		"a mode":      {"There are two.", "{image: ensure-name-substring, configPath: c.yaml}", own + "substring: a-\neditMode: put\n", "editMode"},
		"a path":      {"It leads nowhere.", "{image: ensure-name-substring, configPath: c.yaml}", own + "substring: a-\neditMode: prepend\nadditionalNameFields: [{path: a//b}]\n", "empty part"},
		"no settings": {"It needs some.", "{image: ensure-name-substring}", "", "no configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := packageOf("Kptfile", kptfileOf(c.entry), "a.yaml", configMap)
			if c.config != "" {
				p = packageOf("Kptfile", kptfileOf(c.entry), "a.yaml", configMap, "c.yaml", c.config)
			}
			if _, _, err := New(Options{}).Render(t.Context(), p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s\n%v", c.reason, err)
			}
		})
	}
}
