package testenv

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the program into dir and returns its path.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	binary := filepath.Join(dir, "sluice")
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false"}, flags...), "-o", binary, ".")...)
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sluice: %w: %s", err, out)
	}
	return binary, nil
}

// DependOnSources opens every file that the program is built from. The go command remembers which files a test opens
// and reuses its result only while they stay as they are; it sees neither what TestMain opens before it runs the tests,
// nor what a compiler reads.
func DependOnSources() error {
	for _, top := range []string{"main.go", "go.mod", "go.sum", "api", "controllers", "internal", "storage"} {
		err := filepath.WalkDir(filepath.Join(Root(), top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil {
			return fmt.Errorf("look at the sources: %w", err)
		}
	}
	return nil
}
