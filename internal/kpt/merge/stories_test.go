package merge_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

// TestStories merges the folders base, upstream and local of every story, by the policy that a file of that name says, and compares
// with the folder want and the file conflicts.yaml.
func TestStories(t *testing.T) {
	t.Parallel()
	stories, err := os.ReadDir("testdata/stories")
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range stories {
		t.Run(story.Name(), func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("testdata", "stories", story.Name())
			policy := merge.Upstream
			if text, err := os.ReadFile(filepath.Join(folder, "policy")); err == nil {
				policy = merge.Policy(strings.TrimSpace(string(text)))
			}
			got, conflicts, err := merge.Merge(read(t, folder, "base"), read(t, folder, "upstream"), read(t, folder, "local"), policy)
			if err != nil {
				t.Fatal(err)
			}
			if flag.Lookup("update").Value.String() == "true" {
				write(t, folder, got, conflicts)
			}
			if diff := cmp.Diff(shown(read(t, folder, "want")), shown(got)); diff != "" {
				t.Errorf("another package: %s", diff)
			}
			if diff := cmp.Diff(wanted(t, folder), conflicts); diff != "" {
				t.Errorf("other conflicts: %s", diff)
			}
		})
	}
}

func read(t *testing.T, folder, side string) kpt.Package {
	t.Helper()
	p, err := kpt.Read(os.DirFS(folder), side, kpt.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shown is a package as differences show it best.
func shown(p kpt.Package) map[string]string {
	files := map[string]string{}
	for name, file := range p {
		files[name+" "+file.Mode.String()] = string(file.Content)
	}
	return files
}

func wanted(t *testing.T, folder string) []merge.Conflict {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "conflicts.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var conflicts []merge.Conflict
	if err != nil || yaml.Unmarshal(text, &conflicts) != nil {
		t.Fatalf("the conflicts cannot be read: %v", err)
	}
	return conflicts
}

func write(t *testing.T, folder string, p kpt.Package, conflicts []merge.Conflict) {
	t.Helper()
	for _, name := range []string{"want", "conflicts.yaml"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range p {
		path := filepath.Join(folder, "want", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		var err error
		if file.Mode == fs.ModeSymlink {
			err = os.Symlink(string(file.Content), path)
		} else {
			err = os.WriteFile(path, file.Content, file.Mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(conflicts) == 0 {
		return
	}
	text, err := yaml.Marshal(conflicts)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "conflicts.yaml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
