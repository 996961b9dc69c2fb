package build_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/engine/build"
)

// TestNothingIsKeptWithoutRoom: whoever has no room for all objects of a release is not given them, whatever builds them.
func TestNothingIsKeptWithoutRoom(t *testing.T) {
	t.Parallel()
	full := errors.New("there is no room")
	objects := configMap("one", "data: {a: first}\n") + "---\n" + configMap("two", "data: {a: second}\n") + "---\n" + configMap("three", "data: {a: third}\n")
	for name, files := range map[string]map[string]string{
		"Here":   {"a.yaml": objects},
		"Worker": {"a.yaml": objects, "kustomization.yaml": "resources: [a.yaml]\n"},
	} {
		for rooms, want := range map[int]error{2: full, 3: nil} {
			seen := ""
			room := func(_ context.Context, object []byte) error {
				if rooms--; rooms < 0 {
					return full
				}
				seen += string(object)
				return nil
			}
			made, err := build.New(build.Options{Room: room}).Build(t.Context(), build.Request{Tree: tree(files)})
			if !errors.Is(err, want) || (len(made.Objects) == 3) != (want == nil) || !strings.Contains(seen, "second") {
				t.Errorf("%s: %d objects are kept, %v; seen were %s", name, len(made.Objects), err, seen)
			}
		}
	}
}
