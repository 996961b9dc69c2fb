package registry

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
)

// TestWhatIsHeldIsDrawn: a document of 300 KiB takes that much as it came, and as much as it is read.
func TestWhatIsHeldIsDrawn(t *testing.T) {
	t.Parallel()
	content := manifestWith(`,"annotations":{"x":"` + strings.Repeat("a", 200<<10) + `"},"x":"` + strings.Repeat("a", 100<<10) + `"`)
	d := digest.FromString(content)
	r := serve(t, func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, ociImage, content) })
	client, _ := newClient(t, nil)
	budget := memory.New(1<<20, "--memory-budget=1048576")
	for release, want := range map[bool]error{true: nil, false: memory.ErrBudget} {
		err := budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			for range 3 {
				document, err := client.Manifest(ctx, r, d)
				if err != nil {
					return err
				}
				if release {
					Release(ctx, document.Raw)
				}
			}
			return nil
		})
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "--memory-budget=1048576") {
			t.Errorf("given back: %t: %v", release, err)
		}
	}
	// Where the digest is all that is wanted, the document is not held.
	if found, err := client.Resolve(t.Context(), r, d.String()); err != nil || found.Size != int64(len(content)) {
		t.Errorf("%+v, %v", found, err)
	}
}
