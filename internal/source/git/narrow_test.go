package git_test

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/git"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/tests/upstream"
)

// archived is what becomes of the object's commit.
func archived(t *testing.T, opener *gitsource.Opener, obj *sourcev1.GitRepository) []byte {
	t.Helper()
	session, err := opener.Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	selected, err := session.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	content, err := session.Fetch(t.Context(), selected, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := content.Close(); err != nil {
			t.Error(err)
		}
	}()
	rules, err := archive.ReadRules(t.Context(), content.Tree, content.Ignore, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var to bytes.Buffer
	if err := archive.Write(t.Context(), &to, content.Tree, rules, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

// TestAnArchiveDoesNotTellHowItsCommitWasFetched: alone, after others, or only the files that are needed.
func TestAnArchiveDoesNotTellHowItsCommitWasFetched(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	edited := fixture.Repository("subject")
	edited.Bulk("main", 300, 600<<10)
	edited.Commit("main", "rules", upstream.Text(map[string]string{"README.md": "read me", "teams/.sourceignore": "*-03.yaml\n"}))
	edited.Commit("main", "module", upstream.Files{"module": {Mode: upstream.Submodule, Content: strings.Repeat("12", 20)}})
	edited.Raw("config", "uploadpack.allowFilter", "true")
	server := fixture.HTTP(upstream.HTTPOptions{})
	folder := path.Dir(path.Dir(upstream.BulkPath(0)))
	specs := map[string]sourcev1.GitRepositorySpec{
		"Whole":  {},
		"Sparse": {SparseCheckout: []string{folder, "README.md"}},
		"Listed": {Ignore: new("/*\n!/README.md\n")},
		"Team":   {Ignore: new("/*\n!/teams\n/teams/*\n!/" + path.Dir(folder) + "\n")},
		"Both":   {SparseCheckout: []string{"teams"}, Ignore: new("/*\n!/teams")},
		"Module": {Ignore: new("/*\n!/module/")},
		"Apart":  {SparseCheckout: []string{folder, "README.md"}, Ignore: new("/*\n!/teams")},
	}
	var had []git.How
	keeping := func() *gitsource.Opener {
		client := newClient(t, func(o *git.Options) {
			o.CacheDir, o.MaxCacheBytes, o.Fetched = t.TempDir(), 1<<30, func(how git.How) { had = append(had, how) }
		})
		return gitsource.NewOpener(gitsource.Options{Client: client, Credentials: anonymous{}, Artifacts: nothing{}})
	}
	narrow := map[string]*gitsource.Opener{}
	shared := keeping()
	for round := range 3 {
		for name, spec := range specs {
			spec.URL, spec.Reference = server.URL("subject"), &sourcev1.GitRepositoryRef{Branch: "main"}
			obj := &sourcev1.GitRepository{Spec: spec}
			if narrow[name] == nil {
				narrow[name] = keeping()
			}
			had = nil
			want := archived(t, newOpener(t), obj)
			if got := archived(t, narrow[name], obj); !bytes.Equal(got, want) {
				t.Errorf("round %d, %s: by itself it is another archive", round, name)
			}
			if isNarrow := slices.Contains(had, git.Selected); isNarrow != (name != "Whole") {
				t.Errorf("round %d, %s: had by %v", round, name, had)
			}
			if got := archived(t, shared, obj); !bytes.Equal(got, want) {
				t.Errorf("round %d, %s: beside others it is another archive", round, name)
			}
		}
		edited.Commit("main", "next", upstream.Text(map[string]string{upstream.BulkPath(round): "changed", upstream.BulkPath(299 - round): "too"}))
	}
}
