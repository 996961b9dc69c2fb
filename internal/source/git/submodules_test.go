package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/tests/upstream"
)

// account is a cluster whose only Secret has a user.
type account struct{ anonymous }

func (account) Git(context.Context, auth.GitRequest) (credential.Git, error) {
	return credential.Git{Username: "ada", Password: credential.NewSecret("secret-of-ada")}, nil
}

// module is an entry of .gitmodules.
func module(path, url string) string {
	return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, url)
}

func link(commit string) upstream.File {
	return upstream.File{Mode: upstream.Submodule, Content: commit}
}

// content fetches what the spec selects, and gives the files with their contents.
func content(t *testing.T, opener *gitsource.Opener, spec sourcev1.GitRepositorySpec) (map[string]string, error) {
	t.Helper()
	session, err := opener.Open(t.Context(), &sourcev1.GitRepository{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	selected, err := session.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := session.Fetch(t.Context(), selected, "")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := fetched.Close(); err != nil {
			t.Error(err)
		}
	}()
	return filesOf(t, fetched), nil
}

func filesOf(t *testing.T, fetched source.Content) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(fetched.Tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".git") {
			return err
		}
		text, err := fs.ReadFile(fetched.Tree, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// woods are repositories with submodules in each other.
type woods struct {
	fixture     *upstream.Fixture
	app, lib    *upstream.Edited
	server      *upstream.GitHTTP
	opener      *gitsource.Opener
	first, last string // commits of lib
}

func newWoods(t *testing.T) *woods {
	t.Helper()
	w := &woods{fixture: upstream.ForTest(t)}
	w.server = w.fixture.HTTP(upstream.HTTPOptions{Access: upstream.Access{Username: "ada", Password: "secret-of-ada"}})
	w.opener = gitsource.NewOpener(gitsource.Options{Client: newClient(t), Credentials: account{}, Artifacts: nothing{}})
	w.app, w.lib = w.fixture.Repository("team/app"), w.fixture.Repository("team/lib")
	deep := w.fixture.Repository("deep").Commit("main", "deep", upstream.Text(map[string]string{"d": "deep"}))
	w.first = w.lib.Commit("main", "first", upstream.Files{
		"l": {Content: "1"}, "sub/deep": link(deep), ".gitmodules": {Content: module("sub/deep", "../../deep.git")},
	})
	w.last = w.lib.Commit("main", "last", upstream.Text(map[string]string{"l": "2"}))
	return w
}

func (w *woods) spec(sparse ...string) sourcev1.GitRepositorySpec {
	return sourcev1.GitRepositorySpec{
		URL: w.server.URL("team/app"), Reference: &sourcev1.GitRepositoryRef{Branch: "main"}, RecurseSubmodules: true, SparseCheckout: sparse,
	}
}

func TestSubmodulesAreThoseOfTheCommit(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	w.app.Commit("main", "app", upstream.Files{
		"a": {Content: "a"}, "mod/one": link(w.first), "mod/two": link(w.last), "same": link(w.first),
		".gitmodules": {Content: module("mod/one", "../lib") + module("mod/two", w.server.URL("team/lib")) + module("same", "./../lib/")},
	})
	all := map[string]string{
		"a": "a", "mod/one/l": "1", "mod/one/sub/deep/d": "deep", "mod/two/l": "2", "mod/two/sub/deep/d": "deep", "same/l": "1", "same/sub/deep/d": "deep",
	}
	for name, tc := range map[string]struct {
		sparse  []string
		files   []string
		fetches int
	}{
		"All":               {nil, slices.Collect(maps.Keys(all)), 5},
		"None":              {[]string{"a"}, []string{"a"}, 1},
		"One of them":       {[]string{"mod/two", "a"}, []string{"a", "mod/two/l", "mod/two/sub/deep/d"}, 3},
		"A part of one":     {[]string{"mod/two/sub"}, []string{"mod/two/sub/deep/d"}, 3},
		"The folder of two": {[]string{"mod"}, []string{"mod/one/l", "mod/one/sub/deep/d", "mod/two/l", "mod/two/sub/deep/d"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.server.Count(upstream.Fetch)
			files, err := content(t, w.opener, w.spec(tc.sparse...))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, file := range tc.files {
				want[file] = all[file]
			}
			if !maps.Equal(files, want) {
				t.Errorf("got %v", files)
			}
			if fetches := w.server.Count(upstream.Fetch) - before; fetches > tc.fetches {
				t.Errorf("%d fetches, more than %d", fetches, tc.fetches)
			}
		})
	}
	spec := w.spec()
	spec.RecurseSubmodules = false
	if files, err := content(t, w.opener, spec); err != nil || !maps.Equal(files, map[string]string{"a": "a"}) {
		t.Errorf("unasked for: %v, %v", files, err)
	}
}

// TestSubmodulesOfSubmodulesThatAreLeftOut: one that nobody can have does no harm where nobody wants it. The same commit may
// be at a second place, of which more is wanted.
func TestSubmodulesOfSubmodulesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	broken := w.lib.Commit("broken", "broken", upstream.Files{
		"l/l": {Content: "3"}, "gone": link(w.last), ".gitmodules": {Content: module("gone", "../none")},
	})
	w.app.Commit("main", "app", upstream.Files{
		"one": link(broken), "two": link(w.first), "three": link(w.first),
		".gitmodules": {Content: module("one", "../lib") + module("two", "../lib") + module("three", "../lib")},
	})
	for want, sparse := range map[string][]string{
		"one/l/l":                        {"one/l"},
		"one/l/l three/sub/deep/d two/l": {"one/l", "two/l", "three/sub"},
		"three/l three/sub/deep/d two/l": {"three", "two/l"},
		"three/l two/sub/deep/d":         {"three/l", "two/sub/deep"},
	} {
		files, err := content(t, w.opener, w.spec(sparse...))
		if got := strings.Join(slices.Sorted(maps.Keys(files)), " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", sparse, got, err)
		}
	}
}

// TestTheSameURLIsTakenEachTime: where several entries are about one place, the last by name counts.
func TestTheSameURLIsTakenEachTime(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	var modules strings.Builder
	for i := range 8 {
		url := "../none"
		if i == 7 {
			url = "../lib"
		}
		fmt.Fprintf(&modules, "[submodule \"%d\"]\n\tpath = mod\n\turl = %s\n", i, url)
	}
	w.app.Commit("main", "app", upstream.Files{"mod": link(w.last), ".gitmodules": {Content: modules.String()}})
	for range 5 {
		if _, err := content(t, w.opener, w.spec()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubmodulesAreAskedForByEachObject: one that was public may be private by now, while its parent still is.
func TestSubmodulesAreAskedForByEachObject(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	w.app.Commit("main", "app", upstream.Files{"mod": link(w.last), ".gitmodules": {Content: module("mod", "../lib")}})
	spec := w.spec()
	for _, nested := range []bool{false, true} {
		spec.RecurseSubmodules = nested
		session, err := w.opener.Open(t.Context(), &sourcev1.GitRepository{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		selected, err := session.Resolve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sharer, ok := session.(source.Sharer)
		if !ok || (sharer.Share(t.Context(), selected) == "") != nested {
			t.Errorf("recurseSubmodules %v: what others have made is not what it should be", nested)
		}
	}
}

// TestNobodyElseGetsTheCredential: a submodule may name any server.
func TestNobodyElseGetsTheCredential(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	elsewhere := w.fixture.HTTP(upstream.HTTPOptions{})
	w.app.Commit("main", "app", upstream.Files{
		"mod": link(w.last), ".gitmodules": {Content: module("mod", elsewhere.URL("team/lib"))},
	})
	files, err := content(t, w.opener, w.spec())
	if err != nil || files["mod/l"] != "2" || files["mod/sub/deep/d"] != "deep" {
		t.Errorf("%v, %v", files, err)
	}
	for _, request := range elsewhere.Requests() {
		if request.Authorized {
			t.Errorf("%s %s shows a credential", request.Method, request.URI)
		}
	}
}

// signer is a cluster with CodeCommit's credentials, each of which is for one URL.
type signer struct{ anonymous }

func (signer) Git(_ context.Context, r auth.GitRequest) (credential.Git, error) {
	if r.Provider != sourcev1.GitProviderAWS {
		return credential.Git{}, nil
	}
	if strings.HasSuffix(r.URL, "/unsigned.git") {
		return credential.Git{}, failure.Stall(sourcev1.InvalidProviderConfigurationReason, errors.New("no such repository"))
	}
	return credential.Git{Username: "ada", Password: credential.NewSecret("for " + r.URL)}, nil
}

// TestASignatureIsForOneURL: a submodule of CodeCommit gets its own, also where it is at the same origin.
func TestASignatureIsForOneURL(t *testing.T) {
	t.Parallel()
	w := newWoods(t)
	w.opener = gitsource.NewOpener(gitsource.Options{Client: newClient(t), Credentials: signer{}, Artifacts: nothing{}})
	inner, err := url.Parse(w.fixture.HTTP(upstream.HTTPOptions{}).BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(inner)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		before, _, _ := strings.Cut(r.URL.Path, ".git")
		if _, password, _ := r.BasicAuth(); password != "for http://"+r.Host+before+".git" {
			rw.Header().Set("WWW-Authenticate", "Basic")
			http.Error(rw, "signed for another", http.StatusUnauthorized)
			return
		}
		behind.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w.app.Commit("main", "app", upstream.Files{
		"a": {Content: "a"}, "mod": link(w.last), ".gitmodules": {Content: module("mod", "../lib.git")},
	})
	spec := w.spec()
	spec.URL, spec.Provider = front.URL+"/team/app.git", sourcev1.GitProviderAWS
	files, err := content(t, w.opener, spec)
	if err != nil || files["mod/l"] != "2" || files["mod/sub/deep/d"] != "deep" {
		t.Errorf("%v, %v", files, err)
	}

	w.app.Commit("main", "app", upstream.Files{"mod": link(w.last), ".gitmodules": {Content: module("mod", "../unsigned.git")}})
	_, err = content(t, w.opener, spec)
	if f := failure.Of(err); f == nil || f.Disposition != failure.Retries || f.Reason != sourcev1.InvalidProviderConfigurationReason {
		t.Errorf("a submodule that nothing can be signed for: %v (%+v)", err, f)
	}
}

func TestSubmodulesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		modules, says string
	}{
		"No .gitmodules":     {"", "no .gitmodules"},
		"Not in it":          {module("other", "../lib"), `submodule "mod": .gitmodules has no url for it`},
		"No such repository": {module("mod", "../none"), "repository not found"},
		"A file":             {module("mod", "file:///etc"), "scheme must be http, https or ssh"},
		"A path":             {module("mod", "/etc"), "scheme must be http, https or ssh"},
		"A command":          {module("mod", "ext::sh -c id"), "url is not usable"},
		"An option":          {module("mod", "-oProxyCommand=id"), "url is not usable"},
		"Out of the host":    {module("mod", "../../../../lib"), "leads out of the host"},
		"SSH without a key":  {module("mod", "git@git.example.com:team/lib.git"), "spec.secretRef is for http://127.0.0.1"},
		"Too many sections":  {strings.Repeat("[mod]\n", 3000), "more than 2000 sections"},
		"Garbage":            {"[submodule \"mod", ".gitmodules"},
		"Another commit":     {module("mod", "../../deep"), "commit not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWoods(t)
			files := upstream.Files{"a": {Content: "a"}, "mod": link(w.last)}
			if tc.modules != "" {
				files[".gitmodules"] = upstream.File{Content: tc.modules}
			}
			w.app.Commit("main", "app", files)
			_, err := content(t, w.opener, w.spec())
			if f := failure.Of(err); f == nil || f.Reason != sourcev1.GitOperationFailedReason || !strings.Contains(err.Error(), tc.says) ||
				strings.Contains(err.Error(), "secret-of-ada") {
				t.Errorf("got %v (%+v), want it to say %q", err, f, tc.says)
			}
		})
	}
}

// TestSubmodulesAreNotNestedForEver: each commit names an older one of the same repository, so that they end by themselves
// where they are few.
func TestSubmodulesAreNotNestedForEver(t *testing.T) {
	t.Parallel()
	for nested, says := range map[int]string{10: "", 11: "nested deeper than 10"} {
		w := newWoods(t)
		inner := w.app.Commit("main", "innermost", upstream.Text(map[string]string{"a": "0"}))
		for i := range nested {
			inner = w.app.Commit("main", "next", upstream.Files{
				"a": {Content: fmt.Sprint(i)}, "in": link(inner), ".gitmodules": {Content: module("in", "../app")},
			})
		}
		files, err := content(t, w.opener, w.spec())
		if says == "" && (err != nil || files[strings.Repeat("in/", nested)+"a"] != "0") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%d: %v, %v", nested, slices.Sorted(maps.Keys(files)), err)
		}
	}
}
