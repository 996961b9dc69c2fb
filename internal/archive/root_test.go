package archive_test

import (
	"bytes"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/tree"
)

func TestWhatRulesLeaveOfTheRoot(t *testing.T) {
	t.Parallel()
	folders, files := []string{"deploy", "docs", "src"}, []string{"README.md", "app.yaml"}
	for name, tc := range map[string]struct {
		reason, spec string
		want         []string // nil: nothing can be told
	}{
		"One folder":  {"All but a folder is left out.", "/*\n!/deploy", []string{"deploy"}},
		"A file":      {"Or all but a file.", "/*\n!/app.yaml", []string{"app.yaml"}},
		"Deep":        {"What is included again may be anywhere beneath.", "/*\n!/deploy/prod", []string{"deploy"}},
		"Anywhere":    {"A name without a place may be in each folder.", "*\n!*.yaml", []string{"app.yaml", "deploy", "docs", "src"}},
		"All":         {"Nothing is left.", "/*", []string{}},
		"Some":        {"What is not named stays.", "/docs\n*.md", nil},
		"Taken back":  {"The last line decides.", "/*\n!/*", nil},
		"Comment":     {"These are no rules.", "# /*\n\n", nil},
		"A bad line":  {"It can match nothing.", "/[*\n", nil},
		"Folder only": {"Files at the root stay.", "/*/\n!/deploy/", nil},
	} {
		keep, err := archive.RootOnly(t.Context(), &tc.spec)
		check(t, err)
		if keep == nil || tc.want == nil {
			if (keep == nil) != (tc.want == nil) {
				t.Errorf("%s: told %t. %s", name, keep != nil, tc.reason)
			}
			continue
		}
		got := []string{}
		for _, folder := range folders {
			if keep(folder, true) {
				got = append(got, folder)
			}
		}
		for _, file := range files {
			if keep(file, false) {
				got = append(got, file)
			}
		}
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: kept %v, want %v. %s", name, got, tc.want, tc.reason)
		}
	}
	if keep, err := archive.RootOnly(t.Context(), nil); keep != nil || err != nil {
		t.Error("without rules something is told", err)
	}
}

// TestWhatIsLeftOutOfTheRootChangesNoArchive: rules that leave out an ignore file do not undo it.
func TestWhatIsLeftOutOfTheRootChangesNoArchive(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"/[^a]*\n", "/*\n!/[^a]*/\n!/app/deploy\n", "/?\n/.*\n", "*\n!*.yaml\n"} {
		garden := &plot{files: map[string]string{
			".sourceignore": "secret.yaml\n/api\n", "app/deploy/a.yaml": "a", "app/secret.yaml": "b", "api/c.yaml": "c", "apart/.sourceignore": "d.yaml\n",
			"apart/d.yaml": "d", "docs/e.yaml": "e", "f.yaml": "f", "a": "g",
		}}
		whole, left := garden.tree(), garden.tree()
		keep, err := archive.RootOnly(t.Context(), &spec)
		check(t, err)
		left, err = left.Keep(keep)
		check(t, err)
		var names [][]string
		for _, grown := range []*tree.Tree{whole, left} {
			rules, err := archive.ReadRules(t.Context(), grown, &spec, archive.Limits{})
			check(t, err)
			var out bytes.Buffer
			check(t, archive.Write(t.Context(), &out, grown, rules, archive.Limits{}))
			names = append(names, list(t, out.Bytes()))
		}
		if !slices.Equal(names[0], names[1]) {
			t.Errorf("%q: %q became %q", spec, names[0], names[1])
		}
	}
}
