package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/tests/upstream"
)

func TestTheServerGivesArtifactsAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile(noise(2000, 3)))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	artifact := s.ready("app", mainAt(commit)).Status.Artifact
	body := s.download(artifact)
	base := strings.TrimSuffix(artifact.URL, "/"+artifact.Path)
	folder := "/" + path.Dir(artifact.Path)
	encoded := digest.Digest(artifact.Digest).Encoded()

	cases := map[string]struct {
		reason       string
		method, path string
		header       http.Header
		status       int
		body         []byte
	}{
		"whole":           {"An artifact is served as it is stored.", http.MethodGet, "/" + artifact.Path, nil, http.StatusOK, body},
		"head":            {"A HEAD has no body.", http.MethodHead, "/" + artifact.Path, nil, http.StatusOK, []byte{}},
		"range":           {"A download can be taken up again.", http.MethodGet, "/" + artifact.Path, http.Header{"Range": {"bytes=100-199"}}, http.StatusPartialContent, body[100:200]},
		"rest":            {"A range may be open.", http.MethodGet, "/" + artifact.Path, http.Header{"Range": {"bytes=100-"}}, http.StatusPartialContent, body[100:]},
		"beyond":          {"A range behind the end is refused.", http.MethodGet, "/" + artifact.Path, http.Header{"Range": {"bytes=999999-"}}, http.StatusRequestedRangeNotSatisfiable, nil},
		"known":           {"Who has the bytes does not get them again.", http.MethodGet, "/" + artifact.Path, http.Header{"If-None-Match": {`"` + artifact.Digest + `"`}}, http.StatusNotModified, []byte{}},
		"root":            {"Probes ask for the root.", http.MethodGet, "/", nil, http.StatusOK, nil},
		"post":            {"Nothing can be changed.", http.MethodPost, "/" + artifact.Path, nil, http.StatusMethodNotAllowed, nil},
		"delete":          {"Nothing can be removed.", http.MethodDelete, "/" + artifact.Path, nil, http.StatusMethodNotAllowed, nil},
		"list-kind":       {"Kinds are not listed.", http.MethodGet, "/gitrepository/", nil, http.StatusNotFound, nil},
		"list-namespace":  {"Namespaces are not listed.", http.MethodGet, "/gitrepository/" + s.namespace + "/", nil, http.StatusNotFound, nil},
		"list-object":     {"Objects are not listed.", http.MethodGet, folder, nil, http.StatusNotFound, nil},
		"list-slash":      {"Objects are not listed.", http.MethodGet, folder + "/", nil, http.StatusNotFound, nil},
		"own":             {"The storage's own folder is hidden.", http.MethodGet, "/.sluice/", nil, http.StatusNotFound, nil},
		"lock":            {"The lock is hidden.", http.MethodGet, "/.sluice/lock", nil, http.StatusNotFound, nil},
		"body":            {"Bodies are not served by their digest.", http.MethodGet, "/.sluice/blobs/sha256/" + encoded, nil, http.StatusNotFound, nil},
		"record":          {"Records are hidden.", http.MethodGet, "/.sluice/records" + folder + "/record.json", nil, http.StatusNotFound, nil},
		"climbing":        {"No path leads upwards.", http.MethodGet, folder + "/../../../../etc/passwd", nil, http.StatusNotFound, nil},
		"encoded":         {"There is one spelling.", http.MethodGet, folder + "%2f" + path.Base(artifact.Path), nil, http.StatusNotFound, nil},
		"dots":            {"There is one spelling.", http.MethodGet, folder + "/./" + path.Base(artifact.Path), nil, http.StatusNotFound, nil},
		"never published": {"Names that were never published are not there.", http.MethodGet, folder + "/other.tar.gz", nil, http.StatusNotFound, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			got, err := ask(t.Context(), c.method, base+c.path, c.header)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != c.status || c.body != nil && !bytes.Equal(got.body, c.body) {
				t.Errorf("%s %s: got %d with %d bytes, want %d with %d", c.method, c.path, got.status, len(got.body), c.status, len(c.body))
			}
		})
	}

	got, err := ask(t.Context(), http.MethodHead, artifact.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := hex.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	inBase64 := base64.StdEncoding.EncodeToString(sum)
	for key, want := range map[string]string{
		"ETag": `"` + artifact.Digest + `"`, "Content-Length": fmt.Sprint(len(body)), "Content-Type": "application/gzip",
		"Accept-Ranges": "bytes", "Repr-Digest": "sha-256=:" + inBase64 + ":",
		"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
	} {
		if is := got.header.Get(key); is != want {
			t.Errorf("header %s is %q, want %q", key, is, want)
		}
	}
}

func TestAStopUnderLoadCutsNoDownload(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile(noise(3<<20, 4)))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	artifact := s.ready("app", mainAt(commit)).Status.Artifact

	// A download that has begun and waits; it goes on while the process is being stopped.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, artifact.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := (&http.Transport{ReadBufferSize: 4 << 10}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Body.Close() }()

	// Others come and go without end. What they get is whole, or refused.
	var load sync.WaitGroup
	var served atomic.Int64
	for range 4 {
		load.Go(func() {
			for {
				got, err := get(t.Context(), artifact.URL)
				if err != nil {
					return // Nobody listens any more.
				}
				if is := digest.FromBytes(got.body); got.status != http.StatusOK || is.String() != artifact.Digest {
					t.Errorf("status %d with %d bytes of digest %s", got.status, len(got.body), is)
				}
				served.Add(1)
			}
		})
	}
	s.eventually("downloads are under way", func(context.Context) (bool, string) { return served.Load() > 8, fmt.Sprint(served.Load()) })

	stopped := make(chan error, 1)
	manager := s.manager
	go func() { stopped <- manager.Stop() }()
	load.Wait()
	body, err := io.ReadAll(slow.Body)
	if got := digest.FromBytes(body); err != nil || got.String() != artifact.Digest {
		t.Errorf("the download under way ended after %d bytes with digest %s: %v", len(body), got, err)
	}
	s.manager = nil
	if err := <-stopped; err != nil {
		t.Errorf("stopped under load: %v", err)
	}
	t.Logf("%d downloads", served.Load())
}
