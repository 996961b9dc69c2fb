package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestOfANewCommitOnlyWhatChangedIsRead, and the artifact made of it is that of a client which knows nothing.
func TestOfANewCommitOnlyWhatChangedIsRead(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository, hash := newFleet(t, f, 240)
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client, random := newClient(t, keeping(t.TempDir(), &hows{})), rand.New(rand.NewPCG(1, 1))
	var before, index []byte
	for round := range 7 {
		commit := fetch(t, client, remote, git.Want{Hash: hash})
		warm, next := archivedFrom(t, commit, archive.Stored{Body: bytes.NewReader(before), Index: index})
		all := fetch(t, newClient(t), remote, git.Want{Hash: hash})
		if diff := cmp.Diff(files(t, all.Tree()), files(t, fetch(t, client, remote, git.Want{Hash: hash}).Tree())); diff != "" {
			t.Fatalf("round %d: files (-alone +with what is known):\n%s", round, diff)
		}
		if cold, _ := archivedFrom(t, all, archive.Stored{}); !bytes.Equal(cold, warm) {
			t.Fatalf("round %d: another archive than of the commit alone", round)
		}
		if round > 0 && round != 5 && commit.Read() > all.Read()/2 {
			t.Errorf("round %d: %d entries were read, of %d", round, commit.Read(), all.Read())
		}
		before, index = warm, next
		changed := upstream.Files{upstream.BulkPath(random.IntN(240)): {Content: fmt.Sprint("round ", round)}}
		if round%3 == 0 {
			changed["new/"+upstream.BulkPath(round)] = upstream.File{Content: "new"}
		}
		if round == 4 { // Under other rules all is archived anew.
			changed["teams/.sourceignore"] = upstream.File{Content: "app-001\n"}
		}
		hash = repository.Commit("main", "m", changed)
	}
}

func archivedFrom(t *testing.T, commit *git.Commit, stored archive.Stored) (body, index []byte) {
	t.Helper()
	rules, err := archive.ReadRules(t.Context(), commit.Tree(), nil, archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	index, err = archive.WriteFrom(t.Context(), &out, commit.Tree(), rules, archive.Limits{}, stored)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), index
}

// TestWhatIsKnownOfATreeIsHeldAgainstTheLimits: where it stands and how often is not known of it.
func TestWhatIsKnownOfATreeIsHeldAgainstTheLimits(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	blob := repository.Object("blob", []byte("x"))
	file := upstream.Entry{Mode: "100644", Name: "file", Hash: blob}
	dir := func(name, hash string) upstream.Entry {
		return upstream.Entry{Mode: "40000", Name: name, Hash: hash}
	}
	module := upstream.Entry{Mode: "160000", Name: "module", Hash: strings.Repeat("12", 20)}
	small := repository.RawTree(file, module)
	two := repository.RawTree(dir("a", small))
	empty := repository.RawTree()
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}), func(o *git.Options) { o.MaxTreeDepth, o.MaxFiles = 3, 10 })
	for _, tc := range []struct {
		reason  string
		root    string
		want    error
		modules int
	}{
		{"A tree with a submodule.", repository.RawTree(dir("b", two)), nil, 1},
		{"As deep as may be.", repository.RawTree(dir("b", repository.RawTree(dir("c", two)))), nil, 1},
		{"One too deep.", repository.RawTree(dir("b", repository.RawTree(dir("c", repository.RawTree(dir("d", two)))))), git.ErrLimit, 0},
		{"As many as may be.", repository.RawTree(dir("a", two), dir("b", two), file, dir("z", empty)), nil, 2},
		{"One too many, though it is left out.", repository.RawTree(dir("a", two), dir("b", two), file, dir("y", empty), dir("z", empty)), git.ErrLimit, 0},
	} {
		hash := repository.CommitTree(tc.root, "m")
		repository.SetRef("refs/heads/main", hash)
		commit, err := client.Fetch(t.Context(), remote, git.Want{Hash: hash})
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
		}
		if err != nil {
			continue
		}
		found, err := commit.Submodules()
		if err != nil || len(found) != tc.modules {
			t.Errorf("%s: submodules %v, %v", tc.reason, found, err)
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSubmodulesOfWhatIsWanted, where nothing may be remembered of the folders above.
func TestSubmodulesOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	module := upstream.File{Mode: upstream.Submodule, Content: strings.Repeat("12", 20)}
	hash := f.Repository("app").Commit("main", "m", upstream.Files{"a/b/module": module, "a/module": module, "module": module})
	remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{}).URL("app")}
	client := newClient(t, keeping(t.TempDir(), &hows{}))
	for range 2 {
		for _, want := range []git.Want{
			{Hash: hash, Paths: []string{"a/b"}},
			{Hash: hash, Keep: func(name string, _ bool) bool { return name == "module" }},
		} {
			found, err := fetch(t, client, remote, want).Submodules()
			if err != nil || len(found) != 1 {
				t.Errorf("submodules %v, %v", found, err)
			}
		}
	}
}
