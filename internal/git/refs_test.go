package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

func TestListRefs(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	first := repository.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	second := repository.Commit("dev", "second", upstream.Text(map[string]string{"a": "2"}))
	annotated := repository.Tag("v1.0.0", first, true)
	repository.Tag("v1.1.0", second, false)
	repository.SetRef("refs/pull/1/head", second)

	head := git.Ref{Name: "HEAD", Hash: first, Symref: "refs/heads/main"}
	dev := git.Ref{Name: "refs/heads/dev", Hash: second}
	master := git.Ref{Name: "refs/heads/main", Hash: first}
	pull := git.Ref{Name: "refs/pull/1/head", Hash: second}
	tag := git.Ref{Name: "refs/tags/v1.0.0", Hash: annotated, Peeled: first}
	light := git.Ref{Name: "refs/tags/v1.1.0", Hash: second}
	if tag.Target() != first || light.Target() != second {
		t.Errorf("targets: %s, %s", tag.Target(), light.Target())
	}
	cases := map[string]struct {
		reason   string
		prefixes []string
		want     []git.Ref
	}{
		"all":     {"Without prefixes everything is listed.", nil, []git.Ref{head, dev, master, pull, tag, light}},
		"branch":  {"A full name is a prefix.", []string{"refs/heads/main"}, []git.Ref{master}},
		"head":    {"HEAD tells the default branch.", []string{"HEAD"}, []git.Ref{head}},
		"tags":    {"Annotated tags come peeled.", []string{"refs/tags/"}, []git.Ref{tag, light}},
		"pull":    {"Any namespace can be asked for.", []string{"refs/pull/1/head"}, []git.Ref{pull}},
		"several": {"Prefixes add up.", []string{"refs/tags/v1.1", "refs/heads/d"}, []git.Ref{dev, light}},
		"nothing": {"A missing ref is no error.", []string{"refs/heads/nope"}, nil},
	}
	for _, version2 := range []bool{true, false} {
		server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
		client := newClient(t)
		for name, c := range cases {
			got, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")}, c.prefixes...)
			if err != nil {
				t.Errorf("%s (v2 %t): %v", name, version2, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s %s (v2 %t) (-want +got):\n%s", name, c.reason, version2, diff)
			}
		}
	}
}

func TestPollIsOneRequest(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "1"}))
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	for range 5 {
		if _, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")}, "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.Count(upstream.InfoRefs); got != 1 {
		t.Errorf("want one advertisement, got %d", got)
	}
	if got := server.Count(upstream.LsRefs); got != 5 {
		t.Errorf("want five lists, got %d", got)
	}
	if got := server.Connections(); got != 1 {
		t.Errorf("want one connection, got %d", got)
	}
}

func TestStaleAdvertisementIsReadAgain(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "1"}))
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	for _, version2 := range []bool{true, false, true} {
		server.SetV2(version2)
		refs, err := client.ListRefs(t.Context(), git.Remote{URL: server.URL("app")}, "refs/heads/main")
		if err != nil || len(refs) != 1 || refs[0].Hash != hash {
			t.Errorf("v2 %t: %v, %v", version2, refs, err)
		}
	}
}

func TestEmptyRepositoryIsNotAMissingRef(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("empty")
	for _, version2 := range []bool{true, false} {
		remote := git.Remote{URL: f.HTTP(upstream.HTTPOptions{WithoutV2: !version2}).URL("empty")}
		for _, prefixes := range [][]string{nil, {"refs/heads/main"}, {"HEAD"}} {
			if refs, err := newClient(t).ListRefs(t.Context(), remote, prefixes...); !errors.Is(err, git.ErrEmptyRepository) {
				t.Errorf("v2 %t, prefixes %v: want %v, got %v, %v", version2, prefixes, git.ErrEmptyRepository, refs, err)
			}
		}
	}
}

func TestManyRefsCostNothingBehindAPrefix(t *testing.T) {
	t.Parallel()
	const many = 100_000
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Text(map[string]string{"a": "1"}))
	packed := strings.Builder{}
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range many {
		fmt.Fprintf(&packed, "%s refs/changes/%06d/1\n", hash, i)
	}
	if err := os.WriteFile(filepath.Join(repository.Dir(), "packed-refs"), []byte(packed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := f.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	var received int64
	client := newClient(t, func(o *git.Options) { o.Observe = func(bytes int64) { received = bytes } })
	for range 2 {
		if refs, err := client.ListRefs(t.Context(), remote, "refs/heads/main"); err != nil || len(refs) != 1 {
			t.Fatalf("%v, %v", refs, err)
		}
	}
	if received == 0 || received > 200 {
		t.Errorf("a poll received %d bytes", received)
	}
	if refs, err := client.ListRefs(t.Context(), remote); err != nil || len(refs) != many+2 {
		t.Errorf("want %d refs, got %d, %v", many+2, len(refs), err)
	}
	limited := newClient(t, func(o *git.Options) { o.MaxRefs = many })
	for _, version2 := range []bool{true, false} {
		server.SetV2(version2)
		if _, err := limited.ListRefs(t.Context(), remote); !errors.Is(err, git.ErrLimit) {
			t.Errorf("v2 %t: want %v, got %v", version2, git.ErrLimit, err)
		}
	}
}
