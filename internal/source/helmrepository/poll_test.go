package helmrepository_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/tests/upstream/files"
)

// TestAPollIsOneConditionalRequest: an index that has not changed is not sent again, also not to a process that has just begun.
func TestAPollIsOneConditionalRequest(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	pipeline := r.pipeline()
	first, err := r.runAs(pipeline, "a")
	if err != nil {
		t.Fatal(err)
	}
	if name := "index-" + strings.TrimPrefix(first.Record.Current.Revision, "sha256:") + ".yaml"; !strings.HasSuffix(first.Record.Current.Path, "/"+name) {
		t.Errorf("want the file %s, got %s", name, first.Record.Current.Path)
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			r.opener = helmrepository.NewOpener(r.opener.Options)
		}
		before := len(r.server.Requests())
		again, err := r.runAs(pipeline, "a")
		requests := r.server.Requests()[before:]
		if err != nil || again.Changed || len(requests) != 1 || requests[0].Status != http.StatusNotModified || requests[0].Sent != 0 {
			t.Errorf("restarted %t: changed %t, %v: %+v", restarted, again.Changed, err, requests)
		}
	}
	if got := r.server.Requests()[0].Header.Get("Accept-Encoding"); got != "gzip" {
		t.Errorf("the index was asked for with encoding %q", got)
	}
}

// TestTheSameBytesAreNoChange: a server that says nothing of versions sends all each time, and it counts for nothing.
func TestTheSameBytesAreNoChange(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.server.WithoutValidators()
	pipeline := r.pipeline()
	for run := range 3 {
		before := len(r.server.Requests())
		outcome, err := r.runAs(pipeline, "a")
		if err != nil || outcome.Changed != (run == 0) || len(r.server.Requests())-before != 1 {
			t.Errorf("run %d: changed %t after %d requests: %v", run, outcome.Changed, len(r.server.Requests())-before, err)
		}
	}
}

// TestValidatorsAreOfOneUpstream: what one server calls a version says nothing about another's, nor about what another
// user is shown.
func TestValidatorsAreOfOneUpstream(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *repository){
		"AnotherURL":  func(r *repository) { r.obj.Spec.URL += "other" },
		"AnotherUser": func(r *repository) { r.login.Username, r.login.Password = "u", credential.NewSecret("p") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, helmrepository.Options{})
			r.server.Put("/charts/other/index.yaml", []byte(indexOf(9)))
			pipeline := r.pipeline()
			if _, err := r.runAs(pipeline, "a"); err != nil {
				t.Fatal(err)
			}
			change(r)
			if _, err := r.runAs(pipeline, "a"); err != nil {
				t.Fatal(err)
			}
			requests := r.server.Requests()
			if last := requests[len(requests)-1]; last.Header.Get("If-None-Match") != "" || last.Status != http.StatusOK {
				t.Errorf("asked with %q, answered %d", last.Header.Get("If-None-Match"), last.Status)
			}
		})
	}
}

// TestManyObjectsDownloadOnce: each asks for itself, and one of them gets the bytes. One more may, where it overtakes who has
// them on the way to the storage; of what the others were about to be sent, they have read the beginning.
func TestManyObjectsDownloadOnce(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.server.WithoutCompression()
	pipeline := r.pipeline()
	names := "abcdefghijklmnopqrst"
	for round := range 2 {
		index := indexOf(3000 + round)
		r.put(index)
		before := r.received.Load()
		var all sync.WaitGroup
		for _, name := range names {
			all.Go(func() {
				outcome, err := r.runAs(pipeline, string(name))
				if err != nil || !outcome.Changed {
					t.Errorf("%c: changed %t, %v", name, outcome.Changed, err)
				}
			})
		}
		all.Wait()
		if got := r.received.Load() - before; got < int64(len(index)) || got > 3*int64(len(index)) {
			t.Errorf("round %d: %d bytes were received, and the index has %d", round, got, len(index))
		}
	}
}

// TestWhoIsRefusedGetsNothing: what another object was shown is nothing to one that the server refuses.
func TestWhoIsRefusedGetsNothing(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.server.Demand("u", "p")
	r.login.Username, r.login.Password = "u", credential.NewSecret("p")
	pipeline := r.pipeline()
	if _, err := r.runAs(pipeline, "a"); err != nil {
		t.Fatal(err)
	}
	r.login.Password = credential.NewSecret("q")
	if outcome, err := r.runAs(pipeline, "b"); err == nil || outcome.Record.Current.Path != "" {
		t.Errorf("got %q", outcome.Record.Current.Path)
	}
	r.login.Password = credential.NewSecret("p")
	r.server.Fail(files.Status(http.StatusUnauthorized))
	if _, err := r.runAs(pipeline, "c"); err == nil {
		t.Error("an object got by without asking")
	}
}

// TestAQueryStays: some servers take tokens there.
func TestAQueryStays(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.obj.Spec.URL += "?token=x"
	if _, err := r.runAs(r.pipeline(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := r.server.Requests()[0]; got.Query != "token=x" || got.Path != "/charts/index.yaml" {
		t.Errorf("asked for %s?%s", got.Path, got.Query)
	}
}

// lastModified answers with an index, and with the time of it alone, as servers of files without etags do. It was sent at the
// second that date says.
func lastModified(content string, modified, date time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Date", date.UTC().Format(http.TimeFormat))
		http.ServeContent(w, q, "", modified, strings.NewReader(content))
	}
}

// withETag adds an etag that is made of time and size, as nginx does.
func withETag(etag string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", etag)
		serve(w, q)
	}
}

// TestTwoVersionsOfOneSecondAreTwo: where a server tells versions apart by a second's time, the time of a second that was not over
// says nothing, RFC 9110, 8.8.2.2; nor does what is made of it.
func TestTwoVersionsOfOneSecondAreTwo(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(http.HandlerFunc) http.HandlerFunc{
		"ByTheTimeAlone": func(plain http.HandlerFunc) http.HandlerFunc { return plain },
		"ByAnEtagOfIt":   func(plain http.HandlerFunc) http.HandlerFunc { return withETag(`"6553f100-9c"`, plain) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seesBoth(t, serve)
		})
	}
}

func seesBoth(t *testing.T, serve func(http.HandlerFunc) http.HandlerFunc) {
	t.Helper()
	r := newRepository(t, helmrepository.Options{})
	pipeline, then := r.pipeline(), time.Unix(1_700_000_000, 0)
	r.server.Fail(serve(lastModified(indexOf(1), then, then)))
	first, err := r.runAs(pipeline, "a")
	if err != nil {
		t.Fatal(err)
	}
	r.server.Fail(serve(lastModified(indexOf(2), then, then.Add(time.Minute))))
	second, err := r.runAs(pipeline, "a")
	if err != nil || second.Record.Current.Revision == first.Record.Current.Revision {
		t.Errorf("the second version is not seen: %v", err)
	}
	before := len(r.server.Requests())
	third, err := r.runAs(pipeline, "a")
	if requests := r.server.Requests()[before:]; err != nil || third.Changed || len(requests) != 1 || requests[0].Status != http.StatusNotModified {
		t.Errorf("a second that was over is not asked about: %v, %+v", err, requests)
	}
}

// TestAnOlderIndexIsAnotherOne: what was restored has an older time, and servers take that for not modified since.
func TestAnOlderIndexIsAnotherOne(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	pipeline, then := r.pipeline(), time.Unix(1_700_000_000, 0)
	r.server.Fail(lastModified(indexOf(2), then, then.Add(time.Hour)))
	if _, err := r.runAs(pipeline, "a"); err != nil {
		t.Fatal(err)
	}
	r.server.Fail(lastModified(indexOf(1), then.Add(-time.Hour), then.Add(2*time.Hour)))
	if restored, err := r.runAs(pipeline, "a"); err != nil || !restored.Changed {
		t.Errorf("it is not seen: %v", err)
	}
}

// TestThePathStaysAsItIsWritten: some servers have names with a slash in it.
func TestThePathStaysAsItIsWritten(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"/projects/group%2Fproject/helm":  "/projects/group%2Fproject/helm/index.yaml",
		"/projects/group%2Fproject/helm/": "/projects/group%2Fproject/helm/index.yaml",
		"/a%20b/./c//d":                   "/a%20b/c/d/index.yaml",
		"":                                "/index.yaml",
	} {
		r := newRepository(t, helmrepository.Options{})
		r.obj.Spec.URL = r.server.URL + url
		var got string
		r.server.Fail(func(w http.ResponseWriter, q *http.Request) {
			got = q.RequestURI
			send(nil, indexOf(1))(w, q)
		})
		if _, err := r.runAs(r.pipeline(), "a"); err != nil || got != want {
			t.Errorf("%s: asked for %s: %v", url, got, err)
		}
	}
}
