package git

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

// all makes what fetches one commit of an omitter together with none.
func all(t *testing.T, client *Client, url string) func(hash string) (*Commit, error) {
	t.Helper()
	return func(hash string) (*Commit, error) {
		commits, err := client.FetchAll(t.Context(), Remote{URL: url}, []Want{{Hash: hash, Ref: "refs/heads/" + hash}})
		if err != nil {
			return nil, err
		}
		return commits[0], nil
	}
}

// TestALiarIsNotBelievedForEverAboutMany: what it leaves out is fetched, and soon it is not told any more what is there.
func TestALiarIsNotBelievedForEverAboutMany(t *testing.T) {
	t.Parallel()
	l, fetch := newOmitter(t, all)
	for i := range 8 {
		hash := l.add(t, fmt.Sprint("text ", i))
		before := l.asked.Load()
		commit, err := fetch(hash)
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if got, err := fs.ReadFile(commit.Tree(), "file"); string(got) != fmt.Sprint("text ", i) {
			t.Errorf("commit %d: %q, %v", i, got, err)
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
		want := int64(2)
		if i == 0 || i > maxDoubts {
			want = 1
		}
		if asked := l.asked.Load() - before; asked != want {
			t.Errorf("commit %d took %d questions, want %d", i, asked, want)
		}
	}
}

// TestATreeThatCameTooEarlyIsFoundOutWhenItIsRead, and the next fetch brings what is missing.
func TestATreeThatCameTooEarlyIsFoundOutWhenItIsRead(t *testing.T) {
	t.Parallel()
	l, fetch := newOmitter(t, all)
	first, second := l.add(t, "first", treeOf("second")), l.add(t, "second")
	for n, hash := range []string{first, second, second} {
		commit, err := fetch(hash)
		if err != nil {
			t.Fatal(err)
		}
		content, err := commit.ReadFile("file", 100)
		if isMissing := n == 1; isMissing != errors.Is(err, errDamaged) || isMissing != (err != nil) {
			t.Errorf("fetch %d: %q, %v", n, content, err)
		}
		if err := commit.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatIsLeftOutIsMissed, of many commits and of histories.
func TestWhatIsLeftOutIsMissed(t *testing.T) {
	t.Parallel()
	blob := plumbing.ComputeHash(plumbing.BlobObject, []byte("text"))
	tree := "100644 file\x00" + string(blob[:])
	id := plumbing.ComputeHash(plumbing.TreeObject, []byte(tree))
	commit := strings.Replace(commitOf(), plumbing.ZeroHash.String(), id.String(), 1)
	child := strings.Replace(commitOf(hashOf(commit)), plumbing.ZeroHash.String(), id.String(), 1)
	for name, c := range map[string]struct {
		reason string
		parts  string
		fetch  error
		seen   error
	}{
		"all":        {"Nothing is missing.", "child commit tree blob", nil, nil},
		"no blob":    {"A history is looked through without files.", "child commit tree", errIncomplete, nil},
		"no tree":    {"Without trees nobody knows.", "child commit blob", errIncomplete, ErrProtocol},
		"no commit":  {"A history may end anywhere.", "child tree blob", nil, nil},
		"no child":   {"What was asked for is not there.", "commit tree blob", ErrProtocol, ErrProtocol},
		"nothing":    {"Nor is it here.", "", ErrProtocol, ErrProtocol},
		"other tree": {"Another tree is of no use.", "child commit other", errIncomplete, ErrProtocol},
	} {
		w := &packWriter{t: t}
		for part := range strings.FieldsSeq(c.parts) {
			switch part {
			case "child":
				w.add(plumbing.CommitObject, len(child), nil, []byte(child))
			case "commit":
				w.add(plumbing.CommitObject, len(commit), nil, []byte(commit))
			case "tree":
				w.add(plumbing.TreeObject, len(tree), nil, []byte(tree))
			case "other":
				w.add(plumbing.TreeObject, 0, nil, nil)
			case "blob":
				w.blob("text")
			}
		}
		for _, cache := range []Options{{}, {CacheDir: t.TempDir(), MaxCacheBytes: 1 << 20}} {
			remote, client := liar(t, w.bytes()), reachingClient(t, cache)
			want := Want{Hash: hashOf(child).String(), Ref: "refs/heads/main"}
			seen, err := client.SeenIn(t.Context(), remote, Seen{Tip: want, Path: "folder", Tree: id.String(), Max: 10})
			if !errors.Is(err, c.seen) || c.seen == nil && err != nil || seen {
				t.Errorf("%s: %s history: want %v, got %t, %v", name, c.reason, c.seen, seen, err)
			}
			commits, err := client.FetchAll(t.Context(), remote, []Want{want})
			if !errors.Is(err, c.fetch) || c.fetch == nil && err != nil {
				t.Errorf("%s: %s many: want %v, got %v", name, c.reason, c.fetch, err)
			}
			if err := CloseAll(commits); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWhatIsNearIsTold: what was under the same refs, the first of what is there, and the newest, and not too much.
func TestWhatIsNearIsTold(t *testing.T) {
	t.Parallel()
	commit := func(n int) plumbing.Hash { return plumbing.ComputeHash(plumbing.CommitObject, fmt.Append(nil, n)) }
	var members []member
	for n := range 2000 {
		members = append(members, member{commit(n), refID(fmt.Sprint("ref ", n))})
	}
	k := &kept{remembered: (*kept)(nil).joined(members)}
	var present []plumbing.Hash
	for _, m := range members[500:] {
		present = append(present, m.commit)
	}
	for name, c := range map[string]struct {
		reason  string
		missing []Want
		present []plumbing.Hash
		first   []int
		count   int
	}{
		"nothing missing": {"The first of those that are there.", nil, present, []int{500, 501, 502}, fewHaves},
		"a new ref":       {"There is nothing under it.", []Want{{Ref: "new"}}, present, []int{500}, fewHaves + moreHaves},
		"no ref":          {"The newest are those that came first.", []Want{{}}, nil, []int{0, 1, 2}, fewHaves + moreHaves},
		"known refs":      {"What was there before.", []Want{{Ref: "ref 7"}, {Ref: "ref 1999"}}, nil, []int{7, 1999, 0, 1}, fewHaves + 2*moreHaves},
		"very many":       {"A request is not endless.", make([]Want, 5000), present, []int{500}, maxHaves},
	} {
		got := k.near(c.missing, c.present)
		var want []string
		for _, n := range c.first {
			want = append(want, commit(n).String())
		}
		if len(got) != c.count {
			t.Errorf("%s: %d are told, want %d", name, len(got), c.count)
		} else if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
}

// TestWhatIsRememberedIsBounded: what a ref has left goes at once, and of others the oldest.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	commit := func(n int) plumbing.Hash { return plumbing.ComputeHash(plumbing.CommitObject, fmt.Append(nil, n)) }
	k := &kept{remembered: remembered{tips: []tip{{commit(-1), false}}}}
	k.remembered = k.joined([]member{{commit(0), refID("main")}, {commit(0), refID("tag")}, {commit(1), refID("draft")}})
	k.remembered = k.joined([]member{{commit(2), refID("main")}, {commit(1), refID("other")}})
	want := []member{{commit(1), refID("draft")}, {commit(0), refID("tag")}, {commit(1), refID("other")}, {commit(2), refID("main")}}
	if diff := cmp.Diff(want, k.crowd, cmp.AllowUnexported(member{})); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	for _, n := range []int{-1, 0, 1, 2} {
		if !k.has(commit(n), false) || !k.complete()[commit(n)] {
			t.Errorf("commit %d is not remembered", n)
		}
	}
	var many []member
	for n := range maxOthers {
		many = append(many, member{commit(10 + n), refID(fmt.Sprint(n))})
	}
	k.remembered = k.joined(many)
	k.remembered = k.joined([]member{{commit(3), refID("main")}})
	if len(k.crowd) != maxOthers+1 || k.has(commit(0), false) || !k.has(many[0].commit, false) || len(k.tips) != 1 {
		t.Errorf("%d are remembered", len(k.crowd))
	}
	if !k.knows(many[:5]) || k.knows([]member{{commit(3), refID("tag")}}) || (*kept)(nil).knows(nil) {
		t.Error("what is known is not told")
	}
}
