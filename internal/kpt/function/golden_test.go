package function

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

var update = flag.Bool("update", false, "rewrite the golden directories")

// TestGolden renders testdata/render/*/in and compares with what is beside it: the package in want, and the results, or the error.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range goldens(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			in := read(t, filepath.Join(name, "in"))
			before := in.Digest()
			got, results, err := New(Options{Schemas: schemas(t)}).Render(t.Context(), in)
			if in.Digest() != before {
				t.Error("the package that was rendered has changed")
			}
			if *update {
				write(t, name, got, results, err)
			}
			wantErr, _ := os.ReadFile(filepath.Join(name, "error"))
			if diff := cmp.Diff(string(wantErr), errorText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			wantResults, _ := os.ReadFile(filepath.Join(name, "results"))
			if diff := cmp.Diff(string(wantResults), resultText(results)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(contents(read(t, filepath.Join(name, "want"))), contents(got)); diff != "" {
				t.Errorf("package (-want +got); rewrite it with -update once the change is meant:\n%s", diff)
			}
		})
	}
}

// TestRenderingTwiceIsRenderingOnce is so for every golden directory.
func TestRenderingTwiceIsRenderingOnce(t *testing.T) {
	t.Parallel()
	for _, name := range goldens(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			renderer := New(Options{Schemas: schemas(t)})
			once, _, err := renderer.Render(t.Context(), read(t, filepath.Join(name, "in")))
			if err != nil {
				return // TestGolden knows of it.
			}
			twice, _, err := renderer.Render(t.Context(), once)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(contents(once), contents(twice)); diff != "" {
				t.Errorf("rendering again changes (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestLineEndsStay is not in a golden directory, as tools that check files out may change line ends.
func TestLineEndsStay(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a # why\r\ndata:\r\n  b: c\r\n"
	p := packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", text)
	got, _, err := New(Options{}).Render(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "# why\r\n", "# why\r\n  labels:\r\n    a: b\r\n", 1)
	if diff := cmp.Diff(want, string(got["a.yaml"].Content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func goldens(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/render/*")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no golden directories", err)
	}
	return names
}

// read is the package in the folder; an empty one where there is none.
func read(t *testing.T, folder string) kpt.Package {
	t.Helper()
	p, err := kpt.Read(os.DirFS(folder), ".", kpt.Limits{})
	if errors.Is(err, fs.ErrNotExist) {
		return kpt.Package{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, name string, got kpt.Package, results []Result, err error) {
	t.Helper()
	for _, old := range []string{"want", "results", "error"} {
		if err := os.RemoveAll(filepath.Join(name, old)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"error": errorText(err)}
	if err == nil {
		files = map[string]string{"results": resultText(results)}
		for path, file := range got {
			files[filepath.Join("want", path)] = string(file.Content)
		}
	}
	for path, content := range files {
		path = filepath.Join(name, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + "\n"
}

func resultText(results []Result) string {
	out := strings.Builder{}
	for _, r := range results {
		stage := "mutator"
		if r.Validator {
			stage = "validator"
		}
		fmt.Fprintf(&out, "%q %s %s %q changed %d\n", r.Package, stage, r.Function, r.Entry, r.Changed)
		for _, note := range r.Notes {
			fmt.Fprintf(&out, "\t%s\n", note)
		}
	}
	return out.String()
}

func contents(p kpt.Package) map[string]string {
	texts := map[string]string{}
	for name, file := range p {
		texts[name] = string(file.Content)
	}
	return texts
}
