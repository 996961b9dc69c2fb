package docs_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/tests/docs"
)

// converted are objects by their kind, each with its fields by their paths.
type converted map[string]map[string]any

var coded = regexp.MustCompile("`([^`]+)`")

// TestPorchObjectsBecomeTheExamples: the page's tables lead from each example of Porch to the one beside it, which the API server
// takes. What they do not name would be lost, and what they have a dash for says why.
func TestPorchObjectsBecomeTheExamples(t *testing.T) {
	t.Parallel()
	guide := page(t, "docs/from-porch.md")
	before, after := guide.Blocks("yaml porch"), guide.Blocks("yaml")
	if len(before) != 3 || len(after) != 3 {
		t.Fatalf("%d examples of Porch, and %d of ours", len(before), len(after))
	}
	tables := tablesOf(guide)
	// ours are what Porch has nothing for.
	ours := map[string]bool{
		"GitRepository.spec.interval": true, "PackageVariant.spec.serviceAccountName": true, "PackageVariant.spec.dryRun": true, "PackageVariantSet.spec.dryRun": true, "PackageVariantSet.spec.serviceAccountName": true,
	}
	for i := range before {
		objects, err := decode(before[i].Text)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s:%d: %d objects, %v", guide.Path, before[i].Line, len(objects), err)
		}
		table := tables[objects[0].GetKind()+" of Porch"]
		got := convert(t, objects[0], table)
		want := converted{}
		made, err := decode(after[i].Text)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range made {
			fields := map[string]any{}
			flatten(fields, "", map[string]any{"metadata": object.Object["metadata"], "spec": object.Object["spec"]})
			for path := range fields {
				if ours[object.GetKind()+"."+path] {
					delete(fields, path)
				}
			}
			want[object.GetKind()] = fields
			ensureNamespace(t, object.GetNamespace())
			if err := accept(t, object); err != nil {
				t.Errorf("%s: %v", object.GetKind(), err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:%d: the table leads elsewhere (-example +table):\n%s", guide.Path, after[i].Line, diff)
		}
	}
}

// tablesOf are the tables of the page by their first header; each has the paths that a field becomes, none where there is no such.
func tablesOf(p docs.Page) map[string]map[string][]string {
	found := map[string]map[string][]string{}
	for _, table := range p.Tables() {
		rows := map[string][]string{}
		for _, row := range table.Rows {
			from := coded.FindStringSubmatch(row[0])
			if len(from) == 0 || len(row) < 2 {
				continue
			}
			rows[from[1]] = nil
			for _, to := range coded.FindAllStringSubmatch(row[1], -1) {
				rows[from[1]] = append(rows[from[1]], to[1])
			}
		}
		found[table.Header[0]] = rows
	}
	return found
}

// convert does what the table says to every field of the object.
func convert(t *testing.T, object *unstructured.Unstructured, table map[string][]string) converted {
	t.Helper()
	fields := map[string]any{}
	flatten(fields, "", map[string]any{"metadata": object.Object["metadata"], "spec": object.Object["spec"]})
	made := converted{}
	for path, value := range fields {
		from := ""
		for row := range table {
			if named := unnumbered(path); (named == row || strings.HasPrefix(named, row+".") || strings.HasPrefix(named, row+"[")) && len(row) > len(from) {
				from = row
			}
		}
		if from == "" {
			t.Errorf("the table of %s does not name %s", object.GetKind(), path)
			continue
		}
		for _, to := range table[from] {
			kind, rest, _ := strings.Cut(to, ".")
			if made[kind] == nil {
				made[kind] = map[string]any{}
			}
			made[kind][renumbered(rest, path)+strings.TrimPrefix(path, renumbered(from, path))] = revised(path, value)
		}
	}
	return made
}

var numbers = regexp.MustCompile(`\[\d+\]`)

func unnumbered(path string) string { return numbers.ReplaceAllString(path, "[]") }

// renumbered puts the places of lists of one path into another one.
func renumbered(path, like string) string {
	for _, place := range numbers.FindAllString(like, -1) {
		if !strings.Contains(path, "[]") {
			break
		}
		path = strings.Replace(path, "[]", place, 1)
	}
	return path
}

// revised is the value as it is written here.
func revised(path string, value any) any {
	if text, isText := value.(string); isText && path == "spec.upstream.revision" {
		if number, err := strconv.ParseFloat(strings.TrimPrefix(text, "v"), 64); err == nil {
			return number
		}
	}
	return value
}

// flatten lists what is at the ends of the paths.
func flatten(into map[string]any, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			flatten(into, strings.TrimPrefix(path+"."+key, "."), below)
		}
	case []any:
		for i, below := range value {
			flatten(into, fmt.Sprintf("%s[%d]", path, i), below)
		}
	default:
		into[path] = value
	}
}
