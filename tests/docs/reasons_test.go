package docs_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

// plane is a group of kinds that share their condition types and reasons.
type plane struct {
	// conditions is the file that defines the condition types and reasons.
	conditions string
	// pages are those of the kinds, by the file that defines each kind's schema.
	pages map[string]string
	// code is where reasons are given, and deciders where they are given for good: the constructors of events spell
	// reasons that nobody gives yet.
	code, deciders []string
}

var planes = map[string]plane{
	"source": {
		conditions: "api/source/v1/condition_types.go",
		pages: map[string]string{
			"config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml": "docs/gitrepository.md",
			"config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml": "docs/ocirepository.md",
			"config/crd/bases/source.toolkit.fluxcd.io_buckets.yaml":         "docs/bucket.md",

			"config/crd/bases/source.toolkit.fluxcd.io_helmrepositories.yaml": "docs/helmrepository.md",
			"config/crd/bases/source.toolkit.fluxcd.io_helmcharts.yaml":       "docs/helmchart.md",
		},
		code: []string{"controllers/source", "internal"},
		deciders: []string{
			"controllers/source", "internal/app", "internal/auth", "internal/event", "internal/kernel", "internal/source", "internal/status",
		},
	},
	"extensions": {
		conditions: "api/extensions/v1beta1/condition_types.go",
		pages: map[string]string{
			"config/crd/bases/source.extensions.fluxcd.io_artifactgenerators.yaml": "docs/artifactgenerator.md",
		},
		code:     []string{"controllers/source", "internal/source", "internal/kernel", "internal/status"},
		deciders: []string{"controllers/source", "internal/source", "internal/kernel", "internal/status"},
	},
	"modules": {
		conditions: "api/modules/v1alpha1/condition_types.go",
		pages: map[string]string{
			"config/crd/bases/modules.sluice.dev_moduletemplates.yaml":     "docs/moduletemplate.md",
			"config/crd/bases/modules.sluice.dev_modules.yaml":             "docs/module.md",
			"config/crd/bases/modules.sluice.dev_moduleinstallations.yaml": "docs/moduleinstallation.md",
			"config/crd/bases/modules.sluice.dev_inventories.yaml":         "docs/inventory.md",
		},
		code:     []string{"controllers/modules", "internal/catalog", "internal/engine", "internal/kernel", "internal/status"},
		deciders: []string{"controllers/modules", "internal/catalog", "internal/engine", "internal/kernel", "internal/status"},
	},
	"packages": {
		conditions: "api/packages/v1alpha1/condition_types.go",
		pages: map[string]string{
			"config/crd/bases/packages.sluice.dev_repositories.yaml":       "docs/repository.md",
			"config/crd/bases/packages.sluice.dev_packagevariants.yaml":    "docs/packagevariant.md",
			"config/crd/bases/packages.sluice.dev_packagevariantsets.yaml": "docs/packagevariantset.md",
			"config/crd/bases/packages.sluice.dev_packagerevisions.yaml":   "docs/packagerevision.md",
		},
		code:     []string{"controllers/packages", "internal/variant", "internal/kernel", "internal/status"},
		deciders: []string{"controllers/packages", "internal/variant", "internal/kernel", "internal/status"},
	},
}

// TestReasonsAreDocumented: every reason of the API has a row on some page of its plane, and no row is about one that
// is gone.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	for name, p := range planes {
		want, got := map[string]bool{}, map[string]bool{}
		for _, value := range constants(t, p.conditions, "Reason") {
			want[value] = true
		}
		for _, kindPage := range p.pages {
			maps.Copy(got, column(t, kindPage, "Reason"))
			maps.Copy(got, column(t, kindPage, "Reserved reason"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reasons of plane %s (-as the API has them +as documented):\n%s", name, diff)
		}
	}
}

// TestReservedReasonsAreNotUsed: what the page calls reserved, no code gives; what it does not, some code does.
func TestReservedReasonsAreNotUsed(t *testing.T) {
	t.Parallel()
	for group, p := range planes {
		words, deciders := read(t, p.code...), read(t, p.deciders...)
		used := func(in docs.Words, name, value string) bool { return in.Names[name] || in.Strings[value] }
		reserved, given := map[string]bool{}, map[string]bool{}
		for _, kindPage := range p.pages {
			maps.Copy(reserved, column(t, kindPage, "Reserved reason"))
			maps.Copy(given, column(t, kindPage, "Reason"))
		}
		// What one kind reserves, another may give.
		maps.DeleteFunc(reserved, func(reason string, _ bool) bool { return given[reason] })
		for name, value := range constants(t, p.conditions, "Reason") {
			if reserved[value] && used(deciders, name, value) {
				t.Errorf("reason %s of plane %s is documented as reserved, but some code gives it", value, group)
			}
			if !reserved[value] && !used(words, name, value) {
				t.Errorf("reason %s of plane %s is documented as given, but no code gives it", value, group)
			}
		}
	}
}

// TestConditionsAreDocumented: every condition type of the API has a row on some page of its plane.
func TestConditionsAreDocumented(t *testing.T) {
	t.Parallel()
	for name, p := range planes {
		got := map[string]bool{}
		for _, kindPage := range p.pages {
			maps.Copy(got, column(t, kindPage, "Type"))
		}
		want := append(slices.Collect(maps.Values(constants(t, p.conditions, "Condition"))), "Ready", "Reconciling", "Stalled")
		for _, value := range want {
			if !got[value] {
				t.Errorf("condition type %s of plane %s is on no page", value, name)
			}
		}
	}
}

// TestFieldsAreDocumented: every field is named where the page explains fields, and no row is about one that is gone.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	for _, p := range planes {
		for definition, kindPage := range p.pages {
			got := column(t, kindPage, "Field")
			known := schemaFields(t, definition)
			for _, field := range known {
				if !got[field] {
					t.Errorf("field %s is not in %s", field, kindPage)
				}
			}
			for field := range got {
				if !slices.Contains(known, field) {
					t.Errorf("%s explains %s, which is no field of the schema", kindPage, field)
				}
			}
		}
	}
}

func constants(t *testing.T, file, suffix string) map[string]string {
	t.Helper()
	found, err := docs.Constants(filepath.Join(testenv.Root(), file), suffix)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("%s has no constant that ends in %s", file, suffix)
	}
	return found
}

func column(t *testing.T, kindPage, header string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	for _, table := range page(t, kindPage).Tables() {
		for _, value := range table.Column(header) {
			values[value] = true
		}
	}
	return values
}

func read(t *testing.T, folders ...string) docs.Words {
	t.Helper()
	var found []string
	for _, folder := range folders {
		found = append(found, filepath.Join(testenv.Root(), folder))
	}
	words, err := docs.ReadWords(found...)
	if err != nil {
		t.Fatal(err)
	}
	return words
}
