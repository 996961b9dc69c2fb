package bucket_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/source"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// given is a credential without a Secret.
type given credential.Bucket

func (g given) Bucket(context.Context, auth.BucketRequest) (credential.Bucket, error) {
	return credential.Bucket(g), nil
}

// nothing is stored where the contract keeps its artifacts out of our sight.
type nothing struct{}

func (nothing) Record(context.Context, storage.Object) (storage.Record, error) {
	return storage.Record{}, storage.ErrNotFound
}

func (nothing) Open(context.Context, string) (storage.Body, error) { return nil, storage.ErrNotFound }

// side is a fake bucket and an object that follows it.
type side struct {
	t       *testing.T
	fake    *buckets.Fake
	obj     *sourcev1.Bucket
	opener  *bucketsource.Opener
	version int
}

func newSide(t *testing.T, provider string, options bucketsource.Options) *side {
	t.Helper()
	fake := buckets.New(t)
	s := &side{t: t, fake: fake, obj: &sourcev1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "subject"},
		Spec:       sourcev1.BucketSpec{Provider: provider, BucketName: buckets.Bucket, Endpoint: fake.Endpoint(), Insecure: true},
	}}
	if provider == "azure" {
		s.obj.Spec.Endpoint = fake.URL()
	}
	options.Clients = bucket.New(bucket.Options{
		Transport: transport.New(transport.Options{AllowLoopback: true}), GoogleEndpoint: fake.URL(),
	})
	options.Credentials, options.Dir = given{}, "bucket"
	if options.Stored == nil {
		options.Stored = nothing{}
	}
	if options.Cache == nil {
		options.Cache = bucket.NewCache(t.TempDir(), 1<<20)
	}
	s.opener = bucketsource.NewOpener(options)
	return s
}

// upstream is a side as the contract drives it.
type upstream struct{ *side }

func (u upstream) Open(ctx context.Context) (source.Session, error) {
	return u.opener.Open(ctx, u.obj)
}

func (u upstream) content() map[string]string {
	return map[string]string{
		"app.yaml": fmt.Sprint("version: ", u.version), "docs/read me.txt": "read me", "logo.png": "nothing is left out by default",
		".git/config": "not even this",
	}
}

func (u upstream) Advance() {
	u.version++
	u.fake.Put(u.content())
}

func (u upstream) Break() func() {
	u.fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
		buckets.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "later")
		return true
	})
	return u.fake.Heal
}

func (u upstream) Fetches() int             { return u.fake.Count("get") }
func (u upstream) Files() map[string]string { return u.content() }

func TestContract(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"generic", "gcp", "azure"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t *testing.T) sourcetest.Upstream {
				t.Helper()
				u := &upstream{newSide(t, provider, bucketsource.Options{})}
				u.Advance()
				return u
			})
		})
	}
}

// rig runs one object through the pipeline, with a store that the opener sees.
type rig struct {
	*side
	store    *localtest.Store
	pipeline *source.Pipeline
	told     int
}

func newRig(t *testing.T, options bucketsource.Options) *rig {
	t.Helper()
	store := localtest.Open(t, local.Options{})
	options.Stored, options.IndexDir = store, t.TempDir()
	return &rig{side: newSide(t, "generic", options), store: store, pipeline: &source.Pipeline{
		Store: store, Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0)), Observer: sourcetest.Silent{},
	}}
}

func (r *rig) try() (source.Outcome, error) {
	subject := source.Subject{Object: storage.Object{Kind: "bucket", Namespace: "tenant", Name: "subject"}, UID: "uid", Timeout: time.Minute}
	open := func(ctx context.Context) (source.Session, error) { return r.opener.Open(ctx, r.obj) }
	return r.pipeline.Run(r.t.Context(), subject, open, func(context.Context, source.Change) error {
		r.told++
		return nil
	})
}

func (r *rig) run() source.Outcome {
	r.t.Helper()
	outcome, err := r.try()
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

// fails wants an error with the text, and nothing of a path of this machine in it.
func (r *rig) fails(text string) {
	r.t.Helper()
	_, err := r.try()
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), r.t.TempDir()[:8]) {
		r.t.Fatalf("want %q, got %v", text, err)
	}
}

// files reads the artifact as any consumer does.
func (r *rig) files(outcome source.Outcome) map[string]string {
	r.t.Helper()
	body, err := r.store.Open(r.t.Context(), outcome.Record.Current.Path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	unpacked, err := gzip.NewReader(body)
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]string{}
	for entries := tar.NewReader(unpacked); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			r.t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			r.t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			found[header.Name] = string(content)
		}
	}
}

// wants compares the artifact.
func (r *rig) wants(outcome source.Outcome, want map[string]string) {
	r.t.Helper()
	if got := r.files(outcome); !maps.Equal(got, want) {
		r.t.Errorf("want %q, got %q", want, got)
	}
}

// TestRevisionIsFluxs: consumers and people see the revision that Flux would give.
func TestRevisionIsFluxs(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{"b": "2", "a/b": "1", "B": "3", "folder/": "", ".sourceignore": "c\n", "c": "left out"})
	outcome := r.run()
	// The MD5 of "3", "1" and "2", in the order of the keys' bytes.
	lines := "B eccbc87e4b5ce2fe28308fd9f2a7baf3\na/b c4ca4238a0b923820dcc509a6f75849b\nb c81e728d9d4c2f636f067f89cc14862c\n"
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines))); outcome.Record.Current.Revision != want {
		t.Errorf("got %s, want %s", outcome.Record.Current.Revision, want)
	}
	if want := fmt.Sprintf("bucket/tenant/subject/%x.tar.gz", sha256.Sum256([]byte(lines))); outcome.Record.Current.Path != want {
		t.Errorf("got %s, want %s", outcome.Record.Current.Path, want)
	}
	if outcome.Record.Title != "3" {
		t.Errorf("%s files are told of", outcome.Record.Title)
	}
	r.wants(outcome, map[string]string{"b": "2", "a/b": "1", "B": "3", ".sourceignore": "c\n"})
}

// TestAPollIsTheListing: nothing else is asked, but where the bucket is, once.
func TestAPollIsTheListing(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.PageSize(2)
	r.fake.Put(map[string]string{"a": "1", "b": "2", "c": "3"})
	r.run()
	if got, want := r.fake.Take(), []string{"location", "list", "list", "get a", "get b", "get c"}; !sameRequests(got, want) {
		t.Errorf("at first %q", got)
	}
	if r.run().Changed {
		t.Error("it has changed")
	}
	if got, want := r.fake.Take(), []string{"list", "list"}; !slices.Equal(got, want) {
		t.Errorf("a poll asks %q", got)
	}
	r.fake.Put(map[string]string{"b": "two"})
	outcome := r.run()
	if got, want := r.fake.Take(), []string{"list", "list", "get b"}; !slices.Equal(got, want) {
		t.Errorf("one object more asks %q", got)
	}
	r.wants(outcome, map[string]string{"a": "1", "b": "two", "c": "3"})
}

func sameRequests(got, want []string) bool {
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

// TestUnchangedBodiesComeFromTheArtifact: the cache may have lost them, as after a start.
func TestUnchangedBodiesComeFromTheArtifact(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{Cache: bucket.NewCache("", 0)})
	want := map[string]string{}
	for i := range 500 {
		want[fmt.Sprintf("dir-%d/file-%d", i%7, i)] = strings.Repeat(fmt.Sprint(i), 1000)
	}
	r.fake.Put(want)
	r.run()
	r.fake.Take()
	r.fake.Put(map[string]string{"dir-3/file-3": "new", "dir-9/file": "more"})
	want["dir-3/file-3"], want["dir-9/file"] = "new", "more"
	r.fake.Delete("dir-4/file-4")
	delete(want, "dir-4/file-4")
	outcome := r.run()
	if got := r.fake.Count("get"); got != 2 {
		t.Errorf("%d objects were fetched", got)
	}
	r.wants(outcome, want)
	// What was put together is what would have been made from nothing.
	if err := r.store.Delete(t.Context(), storage.Object{Kind: "bucket", Namespace: "tenant", Name: "subject"}); err != nil {
		t.Fatal(err)
	}
	if again := r.run(); again.Record.Current.Digest != outcome.Record.Current.Digest {
		t.Error("it depends on what was there before")
	}
}

// TestWhatWasBroughtIsNotBroughtAgain: a fetch that fails is gone on with.
func TestWhatWasBroughtIsNotBroughtAgain(t *testing.T) {
	t.Parallel()
	got := 0
	// On a machine with much else to do, the others may come later than the refusal.
	for late := 50 * time.Millisecond; late < time.Minute; late *= 4 {
		r := newRig(t, bucketsource.Options{})
		r.fake.Put(map[string]string{"a": "1", "b": "2", "z": "3"})
		r.fake.Always(func(w http.ResponseWriter, request buckets.Request) bool {
			if request.Key != "z" {
				return false
			}
			time.Sleep(late)
			buckets.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
			return true
		})
		r.fails("fetch from bucket 'objects' failed: failed to get 'z' object: the storage answers 403 Forbidden AccessDenied")
		r.fake.Heal()
		r.fake.Take()
		r.wants(r.run(), map[string]string{"a": "1", "b": "2", "z": "3"})
		if got = r.fake.Count("get"); got == 1 {
			return
		}
	}
	t.Errorf("%d objects were fetched", got)
}

// TestTheRevisionIsOfWhatWasFetched: objects change and go between the listing and the fetch.
func TestTheRevisionIsOfWhatWasFetched(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{"changes": "old", "goes": "away", "stays": "here"})
	changed := false
	r.fake.Always(func(_ http.ResponseWriter, request buckets.Request) bool {
		if request.Kind == "get" && !changed {
			changed = true
			r.fake.Put(map[string]string{"changes": "new and longer"})
			r.fake.Delete("goes")
		}
		return false
	})
	outcome := r.run()
	r.fake.Heal()
	want := map[string]string{"changes": "new and longer", "stays": "here"}
	if _, there := r.files(outcome)["goes"]; there {
		want["goes"] = "away" // It was fetched before it went.
	}
	r.wants(outcome, want)
	delete(want, "goes")
	if again := r.run(); again.Changed != (len(r.files(outcome)) == 3) {
		t.Errorf("the revision is not of what was fetched: %+v", again.Record.Current)
	}
}

// TestEmptySelection: an artifact of nothing is one.
func TestEmptySelection(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{"folder/": ""})
	outcome := r.run()
	if want := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; outcome.Record.Current.Revision != want {
		t.Errorf("got %s", outcome.Record.Current.Revision)
	}
	r.wants(outcome, map[string]string{})
}

// TestRulesSelect: those of the bucket's root, then those of the spec, and no others.
func TestRulesSelect(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{
		".sourceignore": "docs/\n*.tmp\n", "docs/a": "x", "docs/b": "x", "x.tmp": "x", "app/y": "y", "app/.sourceignore": "y\n", "logo.png": "p",
	})
	first := r.run()
	all := map[string]string{".sourceignore": "docs/\n*.tmp\n", "app/y": "y", "app/.sourceignore": "y\n", "logo.png": "p"}
	r.wants(first, all)
	r.obj.Spec.Ignore = new("!docs/b\nlogo.png\n")
	second := r.run()
	delete(all, "logo.png")
	all["docs/b"] = "x"
	r.wants(second, all)
	r.obj.Spec.Ignore = new("!docs/b\nlogo.png\n# the same set\n")
	r.fake.Take()
	if r.run().Changed || r.fake.Count("get") != 0 {
		t.Error("the same selection was built again, or the rules were read again")
	}
}

// TestPrefix: keys keep it, and the rules are the root's.
func TestPrefix(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.obj.Spec.Prefix = "apps/"
	r.fake.Put(map[string]string{".sourceignore": "*.tmp\n", ".sourceignore-not": "", "apps/a": "1", "apps/a.tmp": "2", "other": "3"})
	r.wants(r.run(), map[string]string{".sourceignore": "*.tmp\n", "apps/a": "1"})
	r.fake.Take()
	r.run()
	if got := r.fake.Take(); !slices.Equal(got, []string{"list", "list"}) {
		t.Errorf("a poll asks %q", got)
	}
}

// TestObjectsShareWhatIsFetched: twenty objects of one bucket fetch it once.
func TestObjectsShareWhatIsFetched(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{"a": "1", "b": "2"})
	for i := range 20 {
		subject := source.Subject{Object: storage.Object{Kind: "bucket", Namespace: "tenant", Name: fmt.Sprint("subject-", i)}, UID: "uid", Timeout: time.Minute}
		obj := r.obj.DeepCopy()
		obj.Name = subject.Object.Name
		open := func(ctx context.Context) (source.Session, error) { return r.opener.Open(ctx, obj) }
		if _, err := r.pipeline.Run(t.Context(), subject, open, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.fake.Count("get"); got != 2 {
		t.Errorf("%d objects were fetched", got)
	}
}

// TestRule9NamesFromOutsideAreSafePaths: keys that are none are refused by name, and can be left out.
func TestRule9NamesFromOutsideAreSafePaths(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"..", "../x", "a/../b", "/x", "a//b", "./x", "a/.", "a\x00b"} {
		t.Run(fmt.Sprintf("%q", key), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, bucketsource.Options{})
			r.fake.Put(map[string]string{key: "bad", "good": "good"})
			r.fails("is no path of a file")
			if _, err := r.try(); !errors.Is(err, archive.ErrUnsafe) || r.fake.Count("get") != 0 {
				t.Errorf("got %v", err)
			}
			r.obj.Spec.Ignore = new("*\n!good\n")
			r.wants(r.run(), map[string]string{"good": "good"})
		})
	}
}

// TestAKeyIsNoFileAndFolder: a consumer could not unpack both.
func TestAKeyIsNoFileAndFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.fake.Put(map[string]string{"x": "1", "x-y": "2", "x/y": "3"})
	r.fails("key 'x' is a file, and the folder of key 'x/y'")
	r.obj.Spec.Ignore = new("x-y\n/x/y\n")
	r.wants(r.run(), map[string]string{"x": "1"})
}

// TestLongKeys: 1,024 bytes are legal, and a name that no file system takes is refused with a reason.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	long := strings.Repeat(strings.Repeat("k", 127)+"/", 7) + strings.Repeat("n", 128)
	r.fake.Put(map[string]string{long: "1"})
	r.wants(r.run(), map[string]string{long: "1"})
	r.fake.Put(map[string]string{strings.Repeat("n", 1024): "1"})
	r.fails("longer than 255 bytes")
}

// TestRule4BoundWhileReading: limits hold before anything is fetched.
func TestRule4BoundWhileReading(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{Limits: archive.Limits{MaxBytes: 10, MaxFiles: 3}, MaxObjects: 5})
	r.fake.Put(map[string]string{"a": "123456", "b": "123456"})
	r.fails("the selected objects hold more than 10 bytes")
	r.fake.Clear()
	r.fake.Put(map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"})
	r.fails("4 objects are selected, more than 3")
	r.fake.Put(map[string]string{"e": "1", "f": "1"})
	r.fails("it has more than 5 objects")
	if got := r.fake.Count("get"); got != 0 {
		t.Errorf("%d objects were fetched", got)
	}
	full := newRig(t, bucketsource.Options{Limits: archive.Limits{MaxBytes: 10, MaxFiles: 3}, MaxObjects: 3})
	want := map[string]string{"a": "12345", "b": "1234", ".sourceignore": "#"}
	full.fake.Put(want)
	full.wants(full.run(), want)
}
