package pkgrepo_test

import (
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

func TestSelectors(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.settings.Directory, s.settings.Push.URL = "blueprints", "" })
	commits := map[string]string{}
	for _, name := range []string{"one", "two", "three", "four"} {
		commits[name] = s.Commit("main", name, packaged("blueprints/web", name))
	}
	for tag, at := range map[string]string{
		"blueprints/web/v1": "one", "blueprints/web/v2": "two", "blueprints/web/v10": "three", "blueprints/web/nightly": "four",
		"blueprints/web/v1.2.0": "one", "blueprints/web/v1.3.0-rc.1": "three", "v1.2.5": "two", "release": "one",
		"blueprints/web/2.0.0+build.9": "one", "2.0.0+build.10": "two", "v3.0.0": "one", "blueprints/web/v3.0.0": "two",
		"blueprints/other/v9.0.0": "four", "v4.0": "four", "nightly": "one",
	} {
		s.Tag(tag, commits[at], at == "two")
	}
	s.SetRef("refs/heads/release/1", commits["one"])
	s.SetRef("refs/heads/empty", s.Commit("aside", "nothing", upstream.Text(map[string]string{"README.md": "nothing"})))
	s.sync()
	for name, tc := range map[string]struct {
		reason   string
		selector pkgrepo.Selector
		ref, at  string
		want     error
	}{
		"A number":                     {"", pkgrepo.Selector{Revision: "v10"}, "refs/tags/blueprints/web/v10", "three", nil},
		"A number without letter":      {"an integer, as Porch has it", pkgrepo.Selector{Revision: "2"}, "refs/tags/blueprints/web/v2", "two", nil},
		"A version":                    {"", pkgrepo.Selector{Revision: "v1.2.0"}, "refs/tags/blueprints/web/v1.2.0", "one", nil},
		"No such number":               {"", pkgrepo.Selector{Revision: "v3"}, "", "", pkgrepo.ErrNotFound},
		"No number":                    {"", pkgrepo.Selector{Revision: "latest"}, "", "", pkgrepo.ErrSelector},
		"The package's tag":            {"before the repository's of the same name", pkgrepo.Selector{Tag: "nightly"}, "refs/tags/blueprints/web/nightly", "four", nil},
		"The repository's tag":         {"", pkgrepo.Selector{Tag: "release"}, "refs/tags/release", "one", nil},
		"No such tag":                  {"", pkgrepo.Selector{Tag: "none"}, "", "", pkgrepo.ErrNotFound},
		"A branch":                     {"", pkgrepo.Selector{Branch: "release/1"}, "refs/heads/release/1", "one", nil},
		"The branch":                   {"", pkgrepo.Selector{Branch: "main"}, "refs/heads/main", "four", nil},
		"No such branch":               {"", pkgrepo.Selector{Branch: "none"}, "", "", pkgrepo.ErrNotFound},
		"A branch without it":          {"", pkgrepo.Selector{Branch: "empty"}, "", "", pkgrepo.ErrNotFound},
		"A range over both":            {"", pkgrepo.Selector{Range: "1.x"}, "refs/tags/v1.2.5", "two", nil},
		"A range with a prerelease":    {"it names one itself", pkgrepo.Selector{Range: ">=1.0.0-0 <2.0.0"}, "refs/tags/blueprints/web/v1.3.0-rc.1", "three", nil},
		"A tie of build metadata":      {"ten is more than nine", pkgrepo.Selector{Range: "~2.0.0"}, "refs/tags/2.0.0+build.10", "two", nil},
		"A tie of both":                {"the package's own is meant", pkgrepo.Selector{Range: "3.x"}, "refs/tags/blueprints/web/v3.0.0", "two", nil},
		"A range of nothing":           {"v4.0 is no version, and v9.0.0 another package's", pkgrepo.Selector{Range: ">=4.0.0"}, "", "", pkgrepo.ErrNotFound},
		"No range":                     {"", pkgrepo.Selector{Range: "newest"}, "", "", pkgrepo.ErrSelector},
		"Nothing":                      {"", pkgrepo.Selector{}, "", "", pkgrepo.ErrSelector},
		"Two":                          {"", pkgrepo.Selector{Tag: "nightly", Branch: "main"}, "", "", pkgrepo.ErrSelector},
		"A commit of a tag":            {"what the tag leads to by now is not asked", pkgrepo.Selector{Tag: "nightly", Commit: commits["two"]}, "refs/tags/blueprints/web/nightly", "two", nil},
		"A commit of a branch":         {"nor the branch", pkgrepo.Selector{Branch: "main", Commit: commits["one"]}, "refs/heads/main", "one", nil},
		"A commit of a revision":       {"nor the revision", pkgrepo.Selector{Revision: "v2", Commit: commits["three"]}, "refs/tags/blueprints/web/v2", "three", nil},
		"A commit of a tag that went":  {"it need not be there", pkgrepo.Selector{Tag: "blueprints/web/v77", Commit: commits["one"]}, "refs/tags/blueprints/web/v77", "one", nil},
		"A commit without a name":      {"it has to be known by something", pkgrepo.Selector{Commit: commits["one"]}, "", "", pkgrepo.ErrSelector},
		"A commit of a range":          {"which may mean anything", pkgrepo.Selector{Range: "1.x", Commit: commits["one"]}, "", "", pkgrepo.ErrSelector},
		"A commit of nobody":           {"it has to be the repository's", pkgrepo.Selector{Branch: "main", Commit: strings.Repeat("ab", 20)}, "", "", pkgrepo.ErrNotFound},
		"A commit without the package": {"", pkgrepo.Selector{Branch: "empty", Commit: s.Raw("rev-parse", "aside")}, "", "", pkgrepo.ErrNotFound},
		"A name that leads elsewhere":  {"", pkgrepo.Selector{Package: "../web", Branch: "main"}, "", "", pkgrepo.ErrName},
		"No such package":              {"", pkgrepo.Selector{Package: "none", Branch: "main"}, "", "", pkgrepo.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.selector.Package == "" {
				tc.selector.Package = "web"
			}
			found, err := s.Resolve(t.Context(), tc.selector)
			if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			if found.Ref != tc.ref || found.Commit != commits[tc.at] || found.Tree != s.at(commits[tc.at]+":blueprints/web") {
				t.Errorf("%s: %+v, want %s at %s", tc.reason, found, tc.ref, commits[tc.at])
			}
			read, err := s.Read(t.Context(), found.Commit, "web")
			if err != nil || string(read["file0.yaml"].Content) != tc.at {
				t.Errorf("%q, %v", read["file0.yaml"].Content, err)
			}
		})
	}
	if _, err := s.Read(t.Context(), commits["one"], "none"); !errors.Is(err, pkgrepo.ErrNotFound) {
		t.Error(err)
	}
	if r := s.Apply(t.Context(), []pkgrepo.Change{write("web", "", "x")})[0]; !errors.Is(r.Err, pkgrepo.ErrReadOnly) {
		t.Error(r.Err)
	}
}
