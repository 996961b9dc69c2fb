package git_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
)

// lists serves repositories with many refs of long names, whatever is asked for: in version 2, and in version 0 below /old.
func lists(t *testing.T, refs int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := bufio.NewWriter(w)
		defer func() { _ = out.Flush() }() // The client may have gone.
		kind, isOld := "result", strings.HasPrefix(r.URL.Path, "/old")
		if strings.HasSuffix(r.URL.Path, "info/refs") {
			kind = "advertisement"
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-"+kind)
		if kind == "advertisement" && !isOld {
			_, _ = out.WriteString("000eversion 2\n000cls-refs\n0000")
			return
		}
		for i := range refs {
			line := fmt.Sprintf("%040x refs/heads/%s%d\n", i+1, strings.Repeat("x", 200), i)
			_, _ = fmt.Fprintf(out, "%04x%s", len(line)+4, line)
		}
		_, _ = out.WriteString("0000")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestListsOfRefsAreDrawn: several servers may each list as many as are allowed.
func TestListsOfRefsAreDrawn(t *testing.T) {
	t.Parallel()
	address := lists(t, 20_000)
	for name, c := range map[string]struct {
		reason, path, prefix string
		want                 error
	}{
		"all":      {"All that is listed is held.", "/app", "refs/heads/", memory.ErrBudget},
		"old":      {"In version 0 nobody can ask for less.", "/old", "refs/heads/main", memory.ErrBudget},
		"unwanted": {"What was not asked for is not held.", "/app", "refs/heads/main", nil},
	} {
		err := memory.New(4<<20, "--memory").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			_, err := newClient(t).ListRefs(ctx, git.Remote{URL: address + c.path}, c.prefix)
			return err
		})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %s %v, want %v", name, c.reason, err, c.want)
		}
	}
}
