package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"sluice.dev/sluice/tests/testenv"
)

// TestOverlaysBuild: a kustomization on a page builds when it stands beside the folder config, and moves everything
// to its namespace.
func TestOverlaysBuild(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		for _, block := range p.Blocks("yaml kustomization") {
			found++
			disk := filesys.MakeFsInMemory()
			if err := disk.WriteFile("/overlay/kustomization.yaml", []byte(dedent(block.Text))); err != nil {
				t.Fatal(err)
			}
			copyConfig(t, disk)
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/overlay")
			if err != nil {
				t.Errorf("%s:%d: %v", p.Path, block.Line, err)
				continue
			}
			text, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			if built.Size() < 5 || strings.Contains(string(text), "sluice-system") {
				t.Errorf("%s:%d: objects are missing or stay in the namespace sluice-system:\n%s", p.Path, block.Line, text)
			}
		}
	}
	if found == 0 {
		t.Error("no kustomization was found: they are looked for in the wrong place")
	}
}

func copyConfig(t *testing.T, to filesys.FileSystem) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(testenv.Root(), "config"), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(testenv.Root(), name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return to.WriteFile(path.Join("/", filepath.ToSlash(relative)), text)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dedent takes the indentation of the first line off every line; blocks inside lists have one.
func dedent(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n")
}
