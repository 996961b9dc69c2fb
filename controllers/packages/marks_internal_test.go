package packages

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/kpt"
)

const point = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {kpt.dev/config-injection: optional}\n"

// TestMarksKeepNoPackageInMemory: a point of injection is cached without its object, and a package with very many points is not cached.
func TestMarksKeepNoPackageInMemory(t *testing.T) {
	t.Parallel()
	c, m := newBlueprints(), &mirror{key: types.NamespacedName{Namespace: "tenant", Name: "r"}}
	read := 0
	marked := func(tree, text string) (content weak.Pointer[byte]) {
		marks, err := c.marked(m, tree, func() (kpt.Package, error) {
			read++
			file := []byte(text)
			content = weak.Make(&file[0])
			return kpt.Package{"objects.yaml": {Content: file, Mode: 0o644}}, nil
		})
		if err != nil || len(marks.Points) == 0 || marks.Points[0].File() != "objects.yaml" {
			t.Fatalf("%+v, %v", marks, err)
		}
		return content
	}
	large := fmt.Sprintf(point, "large") + "data:\n  large: " + strings.Repeat("x", 1<<20) + "\n"
	content := marked("large", large)
	runtime.GC()
	if content.Value() != nil {
		t.Error("the content of the file is kept in memory")
	}
	many := &strings.Builder{}
	for i := range 900 {
		fmt.Fprintf(many, point+"---\n", fmt.Sprintf("p%d-%s", i, strings.Repeat("x", 200)))
	}
	for range 2 {
		marked("large", large)
		marked("many", many.String())
	}
	if read != 3 {
		t.Errorf("packages were read %d times", read)
	}
}
