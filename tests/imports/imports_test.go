package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// TestImportsGoDownwards reads the files themselves: what is built, and for which system, makes no difference.
func TestImportsGoDownwards(t *testing.T) {
	t.Parallel()
	for name, file := range parse(t) {
		folder := path.Dir(name)
		if _, listed := layerOf(folder); !listed {
			t.Errorf("%s: %s is in no row of the import rule; say in levels.go where it stands", name, folder)
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := objection(folder, imported); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
	}
}

// TestRowsMatchFolders: a row for what does not exist says nothing, until something else takes the name.
func TestRowsMatchFolders(t *testing.T) {
	t.Parallel()
	folders := map[string]bool{}
	for name := range parse(t) {
		folders[path.Dir(name)] = true
	}
	for _, row := range layers() {
		for _, pattern := range row.packages {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(folders)), func(folder string) bool { return matches([]string{pattern}, folder) }) {
				t.Errorf("level %d lists %s, and no folder is that", row.level, pattern)
			}
		}
	}
}

// TestTimeIsHandedDown: below the controllers nothing reads the clock or waits for it, so that tests can step it.
func TestTimeIsHandedDown(t *testing.T) {
	t.Parallel()
	forbidden := []string{"Now", "Since", "Until", "Sleep"}
	for name, file := range parse(t) {
		if row, _ := layerOf(path.Dir(name)); row.level >= controllersLevel {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(forbidden, fun.Sel.Name) {
				t.Errorf("%s calls time.%s; take a clock", name, fun.Sel.Name)
			}
			return true
		})
	}
}

// TestRuleObjects: a rule that objects to nothing would keep nothing.
func TestRuleObjects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		folder   string
		imported string
		want     string
	}{
		"down": {
			reason: "The pipeline stores artifacts.",
			folder: "internal/source", imported: "sluice.dev/sluice/storage",
		},
		"up": {
			reason: "Storage does not know who stores.",
			folder: "storage", imported: "sluice.dev/sluice/internal/source", want: "imports go downwards only",
		},
		"sibling": {
			reason: "Two stores have nothing to tell each other.",
			folder: "storage/local", imported: "sluice.dev/sluice/storage/server", want: "siblings never import each other",
		},
		"sibling kinds": {
			reason: "A source kind knows no other kind.",
			folder: "internal/source/git", imported: "sluice.dev/sluice/internal/source/oci", want: "siblings never import each other",
		},
		"kind and pipeline": {
			reason: "A source kind fills in the pipeline.",
			folder: "internal/source/git", imported: "sluice.dev/sluice/internal/source",
		},
		"pipeline and kind": {
			reason: "The pipeline knows no kind.",
			folder: "internal/source", imported: "sluice.dev/sluice/internal/source/git", want: "siblings never import each other",
		},
		"siblings at the bottom": {
			reason: "Storage does not know the API.",
			folder: "storage", imported: "sluice.dev/sluice/api/source/v1", want: "siblings never import each other",
		},
		"how to decode": {
			reason: "Every group of kinds decodes its objects in one way.",
			folder: "api/modules/v1alpha1", imported: "sluice.dev/sluice/api/decode",
		},
		"kinds in decoding": {
			reason: "Decoding knows no kind.",
			folder: "api/decode", imported: "sluice.dev/sluice/api/source/v1", want: "imports go downwards only",
		},
		"parts of the engine": {
			reason: "The engine puts its parts together; they do not know each other.",
			folder: "internal/engine/health", imported: "sluice.dev/sluice/internal/engine/cluster", want: "siblings never import each other",
		},
		"what to delete": {
			reason: "Every store asks what to delete.",
			folder: "storage/local", imported: "sluice.dev/sluice/storage/retention",
		},
		"the program": {
			reason: "Nobody imports main.",
			folder: "internal/app", imported: "sluice.dev/sluice", want: "imports go downwards only",
		},
		"tests": {
			reason: "The product does not use what tests use.",
			folder: "internal/app", imported: "sluice.dev/sluice/tests/testenv",
			want: "the imported folder is in no row of the import rule, or only for tests",
		},
		"unlisted": {
			reason: "A new package has to say where it stands.",
			folder: "internal/util", imported: "fmt", want: "the folder is in no row of the import rule",
		},
		"Kubernetes in storage": {
			reason: "Storage does not know Kubernetes.",
			folder: "storage/local", imported: "k8s.io/apimachinery/pkg/types", want: "this layer does not know that part of Kubernetes",
		},
		"a name that starts alike": {
			reason: "The API may use apimachinery, and nothing that only starts like it.",
			folder: "api/source/v1", imported: "k8s.io/apimachinery2", want: "this layer does not know that part of Kubernetes",
		},
		"clock in storage": {
			reason: "A clock is no Kubernetes.",
			folder: "storage/local", imported: "k8s.io/utils/clock",
		},
		"client in auth": {
			reason: "It reads Secrets.",
			folder: "internal/auth", imported: "sigs.k8s.io/controller-runtime/pkg/client",
		},
		"controllers in auth": {
			reason: "It reconciles nothing.",
			folder: "internal/auth", imported: "sigs.k8s.io/controller-runtime/pkg/reconcile",
			want: "this layer does not know that part of Kubernetes",
		},
		"controllers in the kernel": {
			reason: "From the kernel upwards everything may be used.",
			folder: "internal/kernel", imported: "sigs.k8s.io/controller-runtime",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := objection(tc.folder, tc.imported); got != tc.want {
				t.Errorf("%s %s imports %s: want %q, got %q", tc.reason, tc.folder, tc.imported, tc.want, got)
			}
		})
	}
}

// parse reads the product's own files: neither tests nor what is there for tests alone.
func parse(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, set := map[string]*ast.File{}, token.NewFileSet()
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || forTests(name)) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files[name], err = parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no files found")
	}
	return files
}
