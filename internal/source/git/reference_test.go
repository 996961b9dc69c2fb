package git

import (
	"regexp"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// FuzzParseReference checks that nothing a user can write in spec.ref gets past the parser in another shape than a
// commit id or a reference name that Git itself would accept, and that a refusal names the field.
func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{
		"", "main", "abc", "..x", "refs/heads/x.lock", "HEAD", "refs/pull/1/head", "v1.0.0", ">=1.0.0 <2", "a b", "x\x00y", "-x",
		"0123456789abcdef0123456789ABCDEF01234567", "refs/heads/" + strings.Repeat("a", 300), "@{u}", "refs//x", "\xff",
	} {
		for kind := range 5 {
			f.Add(kind, seed)
		}
	}
	commit := regexp.MustCompile(`^[0-9a-f]{40}$`)
	f.Fuzz(func(t *testing.T, kind int, text string) {
		fields := []string{"branch", "tag", "semver", "name", "commit"}
		field := fields[((kind%len(fields))+len(fields))%len(fields)]
		ref := &sourcev1.GitRepositoryRef{}
		*map[string]*string{"branch": &ref.Branch, "tag": &ref.Tag, "semver": &ref.SemVer, "name": &ref.Name, "commit": &ref.Commit}[field] = text
		got, err := parseReference(ref)
		switch {
		case err != nil && !strings.Contains(err.Error(), "spec.ref."+field):
			t.Errorf("%s %q: the error names another field: %v", field, text, err)
		case err != nil, got.bySemver:
		case got.commit != "" && !commit.MatchString(got.commit):
			t.Errorf("%s %q: got commit %q", field, text, got.commit)
		case got.commit == "" && got.full != "HEAD" && !strings.HasPrefix(got.full, "refs/"):
			t.Errorf("%s %q: got reference %q", field, text, got.full)
		case strings.ContainsAny(got.full, " \x00\n~^:?*[\\") || strings.Contains(got.full, ".."):
			t.Errorf("%s %q: got reference %q", field, text, got.full)
		}
	})
}
