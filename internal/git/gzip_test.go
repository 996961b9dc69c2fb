package git_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/git"
)

// compressed serves version 0 advertisements of so many refs under gzip, as some proxies do.
func compressed(t *testing.T, refs int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		w.Header().Set("Content-Encoding", "gzip")
		body, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		line := func(text string) { _, _ = fmt.Fprintf(body, "%04x%s\n", len(text)+5, text) } // The client may leave.
		line("# service=git-upload-pack")
		_, _ = body.Write([]byte("0000"))
		for i := 0; i < refs && r.Context().Err() == nil; i++ {
			line(fmt.Sprintf("%s refs/heads/%01000d", strings.Repeat("ab", 20), i))
		}
		_, _ = body.Write([]byte("0000"))
		_ = body.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL + "/app"
}

func TestCompressedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	refs, err := client.ListRefs(t.Context(), git.Remote{URL: compressed(t, 1000)})
	if err != nil || len(refs) != 1000 {
		t.Errorf("%d refs, %v", len(refs), err)
	}
	// About 80 MB of refs in less than 1 MB on the wire, and fewer than MaxRefs.
	_, err = client.ListRefs(t.Context(), git.Remote{URL: compressed(t, 80_000)})
	checkError(t, "bomb", err, git.ErrLimit)
}
