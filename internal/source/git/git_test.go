package git_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/tests/upstream"
)

// anonymous is a cluster without Secrets.
type anonymous struct{}

func (anonymous) Git(context.Context, auth.GitRequest) (credential.Git, error) {
	return credential.Git{}, nil
}

func (anonymous) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return nil, failure.Retry(sourcev1.VerificationErrorReason, errors.New("there are no Secrets"))
}

// nothing is a cluster without other GitRepository objects.
type nothing struct{}

func (nothing) Included(context.Context, *sourcev1.GitRepository, string) (storage.Artifact, error) {
	return storage.Artifact{}, failure.Wait(sourcev1.NotFoundReason, 0, errors.New("not found"))
}

func (nothing) Body(context.Context, storage.Artifact) (io.ReadCloser, error) {
	return nil, storage.ErrNotFound
}

func newOpener(t *testing.T) *gitsource.Opener {
	t.Helper()
	return gitsource.NewOpener(gitsource.Options{Client: newClient(t), Credentials: anonymous{}, Artifacts: nothing{}})
}

// repository is a real git server with one object that follows its main branch.
type repository struct {
	t       *testing.T
	opener  *gitsource.Opener
	keys    *keyring
	edited  *upstream.Edited
	server  *upstream.GitHTTP
	obj     *sourcev1.GitRepository
	version int
}

func newRepository(t *testing.T) sourcetest.Upstream {
	t.Helper()
	fixture := upstream.ForTest(t)
	keys := &keyring{}
	opener := gitsource.NewOpener(gitsource.Options{Client: newClient(t), Credentials: keys, Artifacts: nothing{}})
	r := &repository{t: t, opener: opener, keys: keys, edited: fixture.Repository("subject"), server: fixture.HTTP(upstream.HTTPOptions{})}
	r.edited.Raw("config", "uploadpack.allowFilter", "true")
	r.obj = &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{
		URL: r.server.URL("subject"), Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
	}}
	r.Advance()
	return r
}

func (r *repository) Open(ctx context.Context) (source.Session, error) {
	return r.opener.Open(ctx, r.obj)
}

func (r *repository) Advance() {
	r.version++
	r.edited.Commit("main", fmt.Sprint("change ", r.version), upstream.Text(map[string]string{
		"app.yaml": fmt.Sprint("version: ", r.version), "docs/readme.txt": "read me", "logo.png": "excluded by default",
	}))
}

func (r *repository) Reconfigure() { r.obj.Spec.Ignore = new("docs/") }

func (r *repository) Break() func() {
	r.server.Always(upstream.Status(503))
	return r.server.Heal
}

// Fetches counts those of files: a proof needs the commit alone.
func (r *repository) Fetches() int { return fetches(r.server, false) }

func (r *repository) Files() map[string]string {
	files := map[string]string{"app.yaml": fmt.Sprint("version: ", r.version), "docs/readme.txt": "read me"}
	if r.obj.Spec.Ignore != nil {
		// With rules of one's own, the default exclusions end.
		delete(files, "docs/readme.txt")
		files["logo.png"] = "excluded by default"
	}
	return files
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, newRepository)
}

// history is a repository with something for every way to select.
type history struct {
	server              *upstream.GitHTTP
	first, second, side string
}

func newHistory(t *testing.T) history {
	t.Helper()
	fixture := upstream.ForTest(t)
	edited := fixture.Repository("subject")
	var h history
	h.first = edited.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	edited.Tag("v1.0.0", h.first, true)
	edited.Tag("1.2", h.first, false) // no version: a date or a build number would look like this
	h.second = edited.Commit("main", "second", upstream.Text(map[string]string{"a": "2"}))
	edited.Tag("v1.1.0", h.second, false)
	h.side = edited.Commit("side", "side", upstream.Text(map[string]string{"b": "1"}))
	edited.SetRef("refs/pull/7/head", h.side)
	edited.Tag("v2.0.0-rc.1", h.side, true)
	h.server = fixture.HTTP(upstream.HTTPOptions{})
	return h
}

func TestReferencesSelectTheirCommit(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	opener := newOpener(t)
	cases := map[string]struct {
		reason   string
		ref      *sourcev1.GitRepositoryRef
		revision string
		requests int
	}{
		"Branch":      {"a branch", &sourcev1.GitRepositoryRef{Branch: "main"}, "main@sha1:" + h.second, 1},
		"Annotated":   {"an annotated tag gives its commit", &sourcev1.GitRepositoryRef{Tag: "v1.0.0"}, "v1.0.0@sha1:" + h.first, 1},
		"Lightweight": {"a lightweight tag", &sourcev1.GitRepositoryRef{Tag: "v1.1.0"}, "v1.1.0@sha1:" + h.second, 1},
		"Semver":      {"the newest version in the range, in the tag's own spelling", &sourcev1.GitRepositoryRef{SemVer: "1.x"}, "v1.1.0@sha1:" + h.second, 1},
		"Prerelease":  {"a pre-release only where the range names one", &sourcev1.GitRepositoryRef{SemVer: ">=1.0.0-0"}, "v2.0.0-rc.1@sha1:" + h.side, 1},
		"Name":        {"a full name stays spelt out", &sourcev1.GitRepositoryRef{Name: "refs/heads/side"}, "refs/heads/side@sha1:" + h.side, 1},
		"PullRequest": {"any reference can be named", &sourcev1.GitRepositoryRef{Name: "refs/pull/7/head"}, "refs/pull/7/head@sha1:" + h.side, 1},
		"TagName":     {"a tag by its full name", &sourcev1.GitRepositoryRef{Name: "refs/tags/v1.0.0"}, "refs/tags/v1.0.0@sha1:" + h.first, 1},
		"PeeledName":  {"the commit of an annotated tag, in the spelling of the spec", &sourcev1.GitRepositoryRef{Name: "refs/tags/v1.0.0^{}"}, "refs/tags/v1.0.0^{}@sha1:" + h.first, 1},
		"Commit":      {"a pin asks nobody", &sourcev1.GitRepositoryRef{Commit: h.first}, "sha1:" + h.first, 0},
		"CommitOf":    {"a pin is spelt after its branch", &sourcev1.GitRepositoryRef{Commit: h.first, Branch: "main"}, "main@sha1:" + h.first, 0},
		"CommitName":  {"a pin is spelt after its name", &sourcev1.GitRepositoryRef{Commit: h.side, Name: "refs/pull/7/head"}, "refs/pull/7/head@sha1:" + h.side, 0},
		"Precedence": {
			"commit, name, tag, semver, branch: the first one set decides",
			&sourcev1.GitRepositoryRef{Name: "refs/heads/side", Tag: "v1.0.0", SemVer: "1.x", Branch: "main"}, "refs/heads/side@sha1:" + h.side, 1,
		},
		"TagOverSemver": {"a tag beats a range", &sourcev1.GitRepositoryRef{Tag: "v1.0.0", SemVer: "1.x"}, "v1.0.0@sha1:" + h.first, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: tc.ref}}
			session, err := opener.Open(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			asked := h.server.Count(upstream.LsRefs)
			selected, err := session.Resolve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.revision, selected.Revision); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if asked = h.server.Count(upstream.LsRefs) - asked; asked != tc.requests {
				t.Errorf("%s: %d listings, want %d", tc.reason, asked, tc.requests)
			}
			content, err := session.Fetch(t.Context(), selected, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := content.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOnlyAnAnnotatedTagIsPeeled(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	for _, name := range []string{"refs/tags/v1.1.0^{}", "refs/heads/main^{}", "refs/tags/gone^{}"} {
		obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: &sourcev1.GitRepositoryRef{Name: name}}}
		session, err := newOpener(t).Open(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		_, err = session.Resolve(t.Context())
		if f := failure.Of(err); f == nil || f.Disposition != failure.Retries || f.Reason != sourcev1.GitOperationFailedReason || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v (%+v)", name, err, f)
		}
	}
}

func TestTieGoesToTheYoungestCommit(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	edited := fixture.Repository("subject")
	edited.Raw("config", "uploadpack.allowFilter", "true")
	older := edited.Commit("main", "older", upstream.Text(map[string]string{"a": rand.Text() + strings.Repeat(rand.Text(), 10)}))
	younger := edited.Commit("main", "younger", upstream.Text(map[string]string{"a": "2"}))
	edited.Tag("1.0.0+a", younger, false)
	edited.Tag("1.0.0+b", older, false)
	server := fixture.HTTP(upstream.HTTPOptions{})
	opener := newOpener(t)
	obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: server.URL("subject"), Reference: &sourcev1.GitRepositoryRef{SemVer: "*"}}}
	for round := range 2 {
		session, err := opener.Open(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		selected, err := session.Resolve(t.Context())
		if unclear := selected.Revision == ""; err != nil || unclear != (round == 0) {
			t.Errorf("round %d: got %q, %v", round, selected.Revision, err)
		}
		if confirmer, ok := session.(source.Confirmer); ok && round == 0 {
			selected, err = confirmer.Confirm(t.Context(), selected)
		}
		if err != nil || selected.Revision != "1.0.0+a@sha1:"+younger {
			t.Errorf("round %d: got %q, %v", round, selected.Revision, err)
		}
	}
	if fetches := server.Count(upstream.Fetch); fetches != 2 {
		t.Errorf("%d fetches; a commit's time is looked up once", fetches)
	}
	for _, request := range server.Requests() {
		if request.Kind == upstream.Fetch && !strings.Contains(string(request.Body), "filter tree:0") {
			t.Errorf("more than a commit is asked for: %q", request.Body)
		}
	}
	// What others have seen elsewhere is not told to whoever knows its id.
	obj.Spec.URL = fixture.HTTP(upstream.HTTPOptions{}).URL("subject")
	session, err := opener.Open(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if selected, err := session.Resolve(t.Context()); err != nil || selected.Revision != "" {
		t.Errorf("another server's: %q, %v", selected.Revision, err)
	}
}

func TestAPinIsOnWhatStandsBesideIt(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	opener := newOpener(t)
	cases := map[string]struct {
		reason   string
		ref      sourcev1.GitRepositoryRef
		revision string
	}{
		"Branch":    {"It is on the branch.", sourcev1.GitRepositoryRef{Commit: h.first, Branch: "main"}, "main@sha1:" + h.first},
		"Tip":       {"It is the branch's tip.", sourcev1.GitRepositoryRef{Commit: h.second, Branch: "main"}, "main@sha1:" + h.second},
		"Tag":       {"It is on the tag, which Flux does not name.", sourcev1.GitRepositoryRef{Commit: h.first, Tag: "v1.1.0"}, "sha1:" + h.first},
		"Annotated": {"It is what the tag points to.", sourcev1.GitRepositoryRef{Commit: h.first, Name: "refs/tags/v1.0.0^{}"}, "refs/tags/v1.0.0^{}@sha1:" + h.first},
		"Name":      {"It is on the reference.", sourcev1.GitRepositoryRef{Commit: h.side, Name: "refs/pull/7/head", Branch: "main"}, "refs/pull/7/head@sha1:" + h.side},
		"OffBranch": {"It is on another branch.", sourcev1.GitRepositoryRef{Commit: h.side, Branch: "main"}, ""},
		"OffTag":    {"It came after the tag.", sourcev1.GitRepositoryRef{Commit: h.second, Tag: "v1.0.0"}, ""},
		"OffName":   {"It is not on what the revision would name.", sourcev1.GitRepositoryRef{Commit: h.side, Name: "refs/heads/main", Branch: "side"}, ""},
		"NoBranch":  {"There is no such branch.", sourcev1.GitRepositoryRef{Commit: h.first, Branch: "gone"}, ""},
		"Absent":    {"There is no such commit.", sourcev1.GitRepositoryRef{Commit: strings.Repeat("ab", 20), Branch: "main"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			session, err := opener.Open(t.Context(), &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: &tc.ref}})
			if err != nil {
				t.Fatal(err)
			}
			selected, err := session.Resolve(t.Context())
			if err != nil || selected.Proof == "" {
				t.Fatalf("%+v, %v", selected, err)
			}
			confirmer, ok := session.(source.Confirmer)
			if !ok {
				t.Fatal("nothing is confirmed")
			}
			for range 2 {
				selected, err = confirmer.Confirm(t.Context(), selected)
				if f := failure.Of(err); tc.revision == "" && (f == nil || f.Disposition != failure.Retries || f.Reason != sourcev1.GitOperationFailedReason) {
					t.Errorf("%s got %v (%+v)", tc.reason, err, f)
				}
				if tc.revision != "" && (err != nil || selected.Revision != tc.revision) {
					t.Errorf("%s got %q, %v", tc.reason, selected.Revision, err)
				}
			}
		})
	}
}

// TestEachSpellingHasItsProof: what is proven of a tag says nothing of an annotated one.
func TestEachSpellingHasItsProof(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	opener := newOpener(t)
	seen := map[string]sourcev1.GitRepositoryRef{}
	for _, ref := range []sourcev1.GitRepositoryRef{{Name: "refs/tags/v1.1.0"}, {Name: "refs/tags/v1.1.0^{}"}, {Branch: "main"}} {
		ref.Commit = h.second
		session, err := opener.Open(t.Context(), &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: &ref}})
		if err != nil {
			t.Fatal(err)
		}
		selected, err := session.Resolve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[selected.Proof]; taken {
			t.Errorf("%+v and %+v are both proven by %q", other, ref, selected.Proof)
		}
		seen[selected.Proof] = ref
	}
}

func TestRefusedSpecs(t *testing.T) {
	t.Parallel()
	opener := newOpener(t)
	valid := "https://git.example.com/x"
	cases := map[string]struct {
		spec   sourcev1.GitRepositorySpec
		reason string
		says   string
	}{
		"Scheme": {sourcev1.GitRepositorySpec{URL: "file:///etc"}, sourcev1.URLInvalidReason, "spec.url"},
		"Dash":   {sourcev1.GitRepositorySpec{URL: "ssh://-oProxyCommand=x/y"}, sourcev1.URLInvalidReason, "spec.url"},
		"Commit": {sourcev1.GitRepositorySpec{URL: valid, Reference: &sourcev1.GitRepositoryRef{Commit: "abc"}}, sourcev1.GitOperationFailedReason, "spec.ref.commit"},
		"Branch": {sourcev1.GitRepositorySpec{URL: valid, Reference: &sourcev1.GitRepositoryRef{Branch: "a..b"}}, sourcev1.GitOperationFailedReason, "spec.ref.branch"},
		"Name":   {sourcev1.GitRepositorySpec{URL: valid, Reference: &sourcev1.GitRepositoryRef{Name: "main"}}, sourcev1.GitOperationFailedReason, "spec.ref.name"},
		"Tag":    {sourcev1.GitRepositorySpec{URL: valid, Reference: &sourcev1.GitRepositoryRef{Tag: "v1\n"}}, sourcev1.GitOperationFailedReason, "spec.ref.tag"},
		"Semver": {sourcev1.GitRepositorySpec{URL: valid, Reference: &sourcev1.GitRepositoryRef{SemVer: "newest"}}, sourcev1.GitOperationFailedReason, "spec.ref.semver"},
		"Sparse": {sourcev1.GitRepositorySpec{URL: valid, SparseCheckout: make([]string, 1001)}, sourcev1.FailedReason, "spec.sparseCheckout"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := opener.Open(t.Context(), &sourcev1.GitRepository{Spec: tc.spec})
			f := failure.Of(err)
			if f == nil || f.Disposition != failure.Stalls || f.Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v (%+v); want a stall with %s that names %s", err, f, tc.reason, tc.says)
			}
		})
	}
}

func TestUpstreamFailuresHaveTheirReason(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		prepare func(*upstream.GitHTTP)
		branch  string
		says    string
	}{
		"Unauthorized": {func(s *upstream.GitHTTP) { s.SetAccess(upstream.Access{Username: "u", Password: "p"}) }, "main", "authentication failed"},
		"Forbidden":    {func(s *upstream.GitHTTP) { s.Always(upstream.Status(403)) }, "main", "authentication failed"},
		"NotFound":     {func(s *upstream.GitHTTP) { s.Always(upstream.Status(404)) }, "main", "repository not found"},
		"ServerError":  {func(s *upstream.GitHTTP) { s.Always(upstream.Status(500)) }, "main", "500"},
		"HTML":         {func(s *upstream.GitHTTP) { s.Always(upstream.HTML()) }, "main", "content type"},
		"Garbage":      {func(s *upstream.GitHTTP) { s.Always(upstream.Garbage()) }, "main", "git protocol error"},
		"NoBranch":     {func(*upstream.GitHTTP) {}, "gone", "refs/heads/gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			tc.prepare(h.server)
			obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: &sourcev1.GitRepositoryRef{Branch: tc.branch}}}
			session, err := newOpener(t).Open(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			_, err = session.Resolve(t.Context())
			if f := failure.Of(err); f == nil || f.Disposition != failure.Retries || f.Reason != sourcev1.GitOperationFailedReason ||
				!strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v (%+v); want it retried with %s, saying %q", err, f, sourcev1.GitOperationFailedReason, tc.says)
			}
		})
	}
}

func TestEmptyRepositoryIsToldApart(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	fixture.Repository("subject")
	server := fixture.HTTP(upstream.HTTPOptions{})
	session, err := newOpener(t).Open(t.Context(), &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: server.URL("subject")}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = session.Resolve(t.Context())
	if f := failure.Of(err); f == nil || f.Reason != sourcev1.EmptyGitRepositoryReason {
		t.Errorf("got %v (%+v)", err, f)
	}
}
