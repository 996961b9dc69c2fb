package publish_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

const (
	user     = "writer"
	password = "correct-horse-battery"
	origin   = "https://user:hidden@git.example.com/org/foo"
)

// clone is a work tree with one commit, made by git, whose commit has the same name in every test.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "deploy/app.yaml", "kind: ConfigMap\n")
	write(t, dir, "deploy/base/run.sh", "true\n")
	write(t, dir, "deploy/.sourceignore", "*.md\n")
	write(t, dir, "deploy/README.md", "read me\n")
	if err := os.Chmod(filepath.Join(dir, "deploy/base/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "remote", "add", "origin", origin)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "--quiet", "-m", "first")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	date := "2024-05-06T07:08:09+02:00"
	if _, err := upstream.Git(t.Context(), dir, []string{
		"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c",
	}, args...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	place := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o700), os.WriteFile(place, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func newClient(t *testing.T) *registry.Client {
	t.Helper()
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	client, err := registry.New(registry.Options{Transport: factory, Remedies: publish.Remedies("registry.example.com")})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// order is to push the folder of a clone to a registry.
func order(site *fixture.Fixture, dir string) publish.Order {
	return publish.Order{
		Folder: filepath.Join(dir, "deploy"), Tag: "2.0.0",
		Repository: registry.Repository{Host: site.Host(), Name: "modules/foo", Insecure: true, Push: true},
	}
}

func mustPush(t *testing.T, client *registry.Client, o publish.Order) publish.Outcome {
	t.Helper()
	done, err := publish.Push(t.Context(), client, o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestPushIsInFluxsFormat: the media types, what Git says of the commit, and nothing that is secret.
func TestPushIsInFluxsFormat(t *testing.T) {
	t.Parallel()
	site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), clone(t)
	o := order(site, dir)
	done := mustPush(t, client, o)
	document, err := client.Manifest(t.Context(), o.Repository, done.Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest := document.Manifest
	if manifest.Config.MediaType != fixture.FluxConfig || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != fixture.FluxContent {
		t.Errorf("pushed %+v", manifest)
	}
	revision := manifest.Annotations[ocispec.AnnotationRevision]
	if !strings.HasPrefix(revision, "main@sha1:") {
		t.Errorf("revision %q", revision)
	}
	want := map[string]string{
		ocispec.AnnotationSource: "https://git.example.com/org/foo", ocispec.AnnotationRevision: revision,
		ocispec.AnnotationCreated: "2024-05-06T05:08:09Z", ocispec.AnnotationVersion: "2.0.0",
	}
	if diff := cmp.Diff(want, manifest.Annotations); diff != "" {
		t.Error(diff)
	}
	if done.Files != 3 || !done.Changed || done.Dirty {
		t.Errorf("told %+v", done)
	}
	git(t, dir, "tag", "v2.0.0")
	o.Tag = "latest"
	o.Annotations = map[string]string{"a": "b"}
	o.Revision = "mine"
	if latest := mustPush(t, client, o).Annotations; latest[ocispec.AnnotationVersion] != "" || latest["a"] != "b" || latest[ocispec.AnnotationRevision] != "mine" {
		t.Errorf("of latest is said %v", latest)
	}
	o.Tag, o.Revision, o.MoveTag = "2.0.0", "", true
	if tagged := mustPush(t, client, o).Annotations[ocispec.AnnotationRevision]; !strings.HasPrefix(tagged, "v2.0.0@sha1:") {
		t.Errorf("with a tag of Git the revision is %q", tagged)
	}
}

// TestPushIsRepeatable: another clone, with other times and rights, gives the same digest, and pushes nothing.
func TestPushIsRepeatable(t *testing.T) {
	t.Parallel()
	site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), clone(t)
	first := mustPush(t, client, order(site, dir))
	other := filepath.Join(t.TempDir(), "other")
	git(t, filepath.Dir(other), "clone", "--quiet", dir, other)
	git(t, other, "remote", "set-url", "origin", "https://git.example.com/org/foo")
	if err := os.Chmod(filepath.Join(other, "deploy/app.yaml"), 0o664); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(other, "deploy/app.yaml"), first0, first0); err != nil {
		t.Fatal(err)
	}
	site.Reset()
	second := mustPush(t, client, order(site, other))
	if second.Digest != first.Digest || second.Changed || second.Was != first.Digest {
		t.Errorf("pushed %+v after %+v", second, first)
	}
	if sent := site.Count(fixture.Push); sent != 0 {
		t.Errorf("%d requests that write", sent)
	}
}

// TestWhatIsNoCommitsIsRefused: unless it is allowed, and then nothing is said of a commit.
func TestWhatIsNoCommitsIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		change func(t *testing.T, dir string)
		says   string
	}{
		"Changed": {"other bytes", func(t *testing.T, dir string) { t.Helper(); write(t, dir, "deploy/app.yaml", "kind: Secret\n") }, "app.yaml has changed"},
		"New":     {"a file that Git does not know", func(t *testing.T, dir string) { t.Helper(); write(t, dir, "deploy/b.yaml", "b") }, "b.yaml was not committed"},
		"Ignored": {"a file that Git ignores is packed as well", func(t *testing.T, dir string) {
			t.Helper()
			write(t, dir, ".git/info/exclude", "secret.yaml\n")
			write(t, dir, "deploy/secret.yaml", "s")
		}, "secret.yaml was not committed"},
		"Gone": {"a file that is missing", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "deploy/app.yaml")); err != nil {
				t.Fatal(err)
			}
		}, "app.yaml is gone"},
		"Executable": {"the archive has it too", func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Chmod(filepath.Join(dir, "deploy/app.yaml"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "app.yaml has changed"},
		"LeftOut":   {"what is not packed does not matter", func(t *testing.T, dir string) { t.Helper(); write(t, dir, "deploy/README.md", "other") }, ""},
		"Elsewhere": {"what is beside the folder does not matter", func(t *testing.T, dir string) { t.Helper(); write(t, dir, "other.yaml", "x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), clone(t)
			test.change(t, dir)
			o := order(site, dir)
			_, err := publish.Push(t.Context(), client, o)
			if test.says == "" {
				if err != nil {
					t.Errorf("%s: %v", test.reason, err)
				}
				return
			}
			if !errors.Is(err, publish.ErrDirty) || !strings.Contains(err.Error(), test.says) || site.Count() != 0 {
				t.Errorf("%s: %v", test.reason, err)
			}
			o.AllowDirty = true
			done := mustPush(t, client, o)
			if !done.Dirty || done.Annotations[ocispec.AnnotationRevision]+done.Annotations[ocispec.AnnotationCreated] != "" {
				t.Errorf("%s: told %+v", test.reason, done)
			}
		})
	}
}

// TestATagIsNotMovedUnasked: and a rehearsal pushes nothing.
func TestATagIsNotMovedUnasked(t *testing.T) {
	t.Parallel()
	site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), clone(t)
	o := order(site, dir)
	first := mustPush(t, client, o)
	o.Annotations = map[string]string{"other": "content"}
	if _, err := publish.Push(t.Context(), client, o); !errors.Is(err, publish.ErrTaken) || !strings.Contains(err.Error(), first.Digest.String()) {
		t.Fatalf("pushed: %v", err)
	}
	o.MoveTag, o.DryRun = true, true
	site.Reset()
	rehearsed := mustPush(t, client, o)
	if site.Count(fixture.Push) != 0 || rehearsed.Changed {
		t.Errorf("a rehearsal pushed: %+v", rehearsed)
	}
	o.DryRun = false
	moved := mustPush(t, client, o)
	at, err := client.Resolve(t.Context(), o.Repository, "2.0.0")
	if err != nil || at.Digest != moved.Digest || moved.Digest != rehearsed.Digest || moved.Was != first.Digest {
		t.Errorf("the tag stands for %s, %v; pushed %+v", at.Digest, err, moved)
	}
}

// TestWithoutGit: a folder outside of a work tree is pushed with what is said of it.
func TestWithoutGit(t *testing.T) {
	t.Parallel()
	site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), t.TempDir()
	write(t, dir, "deploy/app.yaml", "a")
	o := order(site, dir)
	o.Tag, o.Source, o.Created = "latest", "https://example.com", "2020-01-01T00:00:00Z"
	want := map[string]string{ocispec.AnnotationSource: o.Source, ocispec.AnnotationCreated: o.Created}
	if diff := cmp.Diff(want, mustPush(t, client, o).Annotations); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(dir, "deploy/app.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := publish.Push(t.Context(), client, o); !errors.Is(err, publish.ErrEmpty) {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestAnInterruptedPushLeavesNoTag: whichever request is the last one, but for that which writes the tag.
func TestAnInterruptedPushLeavesNoTag(t *testing.T) {
	t.Parallel()
	// Layer and config are two requests each, and then comes the manifest.
	const beforeTheTag = 5
	dir, client := clone(t), newClient(t)
	for last := 1; last <= beforeTheTag+1; last++ {
		site := fixture.ForTest(t, fixture.Options{})
		o := order(site, dir)
		ctx, stop := context.WithCancel(t.Context())
		var count atomic.Int32
		site.Always(fixture.Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if int(count.Add(1)) == last && last <= beforeTheTag {
				stop()
			}
			next.ServeHTTP(w, r)
		}).On(fixture.Push))
		_, err := publish.Push(ctx, client, o)
		stop()
		_, missing := client.Resolve(t.Context(), o.Repository, o.Tag)
		switch interrupted := last <= beforeTheTag; {
		case interrupted && (!errors.Is(err, context.Canceled) || !errors.Is(missing, registry.ErrNotFound)):
			t.Errorf("interrupted at request %d: %v, %v", last, err, missing)
		case !interrupted && (err != nil || missing != nil || count.Load() != beforeTheTag+1):
			t.Errorf("%d requests, %v, %v", count.Load(), err, missing)
		}
	}
}

// TestASlowRegistryIsNotWaitedFor: neither for its answer, nor until it takes what is sent.
func TestASlowRegistryIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	dir := t.TempDir()
	write(t, dir, "deploy/noise", string(noise))
	for name, test := range map[string]struct {
		options transport.Options
		says    string
	}{
		"Answer": {transport.Options{ResponseHeaderTimeout: 200 * time.Millisecond}, "timeout"},
		"Upload": {transport.Options{StallTimeout: 200 * time.Millisecond}, "takes no more data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := fixture.ForTest(t, fixture.Options{})
			site.Always(fixture.Custom(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodPut || name == "Answer" {
					<-r.Context().Done()
					return
				}
				next.ServeHTTP(w, r)
			}).On(fixture.Push))
			test.options.AllowLoopback = true
			factory := transport.New(test.options)
			t.Cleanup(factory.Close)
			client, err := registry.New(registry.Options{Transport: factory})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := publish.Push(t.Context(), client, order(site, dir)); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("pushed: %v", err)
			}
		})
	}
}

// TestRefusalsSayWhatHelps: the login is refused, missing, or the registry is no registry. None has the password.
func TestRefusalsSayWhatHelps(t *testing.T) {
	t.Parallel()
	dir := clone(t)
	for name, test := range map[string]struct {
		auth  fixture.Auth
		login credential.Registry
		says  string
	}{
		"Wrong":     {fixture.TokenAuth, credential.Registry{Username: user, Password: credential.NewSecret("wrong-" + password)}, "docker login registry.example.com"},
		"None":      {fixture.TokenAuth, credential.Registry{}, "docker login registry.example.com"},
		"Basic":     {fixture.Basic, credential.Registry{Username: user, Password: credential.NewSecret("wrong-" + password)}, "docker login registry.example.com"},
		"Right":     {fixture.TokenAuth, credential.Registry{Username: user, Password: credential.NewSecret(password)}, ""},
		"BasicToo":  {fixture.Basic, credential.Registry{Username: user, Password: credential.NewSecret(password)}, ""},
		"Anonymous": {fixture.None, credential.Registry{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := fixture.ForTest(t, fixture.Options{Auth: test.auth, Users: map[string]string{user: password}})
			o := order(site, dir)
			o.Repository.Credential = test.login
			_, err := publish.Push(t.Context(), newClient(t), o)
			if test.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "spec.") {
				t.Errorf("told %v", err)
			}
		})
	}
}

// TestNothingIsSentElsewhere: a registry that names another place for an upload gets neither content nor login there.
func TestNothingIsSentElsewhere(t *testing.T) {
	t.Parallel()
	var asked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.Header.Get("Authorization")) }))
	t.Cleanup(elsewhere.Close)
	site := fixture.ForTest(t, fixture.Options{Auth: fixture.Basic, Users: map[string]string{user: password}})
	site.Always(fixture.Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Location", elsewhere.URL+"/upload")
		w.WriteHeader(http.StatusAccepted)
	}).On(fixture.Push))
	o := order(site, clone(t))
	o.Repository.Credential = credential.Registry{Username: user, Password: credential.NewSecret(password)}
	if _, err := publish.Push(t.Context(), newClient(t), o); err == nil || !strings.Contains(err.Error(), "different host") || len(asked) != 0 {
		t.Errorf("pushed: %v; asked elsewhere: %q", err, asked)
	}
}

// TestAGivenSourceHasNoLogin: what a pipeline calls the URL has its token in it.
func TestAGivenSourceHasNoLogin(t *testing.T) {
	t.Parallel()
	site, client, dir := fixture.ForTest(t, fixture.Options{}), newClient(t), clone(t)
	o := order(site, dir)
	o.Source = "https://pipeline:" + password + "@git.example.com/org/bar"
	if got := mustPush(t, client, o).Annotations[ocispec.AnnotationSource]; got != "https://git.example.com/org/bar" {
		t.Errorf("said that the source is %q", got)
	}
}
