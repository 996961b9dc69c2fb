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

const conditions = "api/source/v1/condition_types.go"

// kindPages are the pages of the kinds, by the file that defines each kind's schema.
var kindPages = map[string]string{
	"config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml": "docs/gitrepository.md",
	"config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml": "docs/ocirepository.md",
}

// TestReasonsAreDocumented: every reason of the API has a row on some page, and no row is about one that is gone.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	want, got := map[string]bool{}, map[string]bool{}
	for _, value := range constants(t, "Reason") {
		want[value] = true
	}
	for _, kindPage := range kindPages {
		maps.Copy(got, column(t, kindPage, "Reason"))
		maps.Copy(got, column(t, kindPage, "Reserved reason"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-as the API has them +as documented):\n%s", diff)
	}
}

// TestReservedReasonsAreNotUsed: what the page calls reserved, no code gives; what it does not, some code does.
func TestReservedReasonsAreNotUsed(t *testing.T) {
	t.Parallel()
	words := read(t, "controllers", "internal")
	// The constructors of events spell reasons that nobody gives yet.
	deciders := read(t, "controllers", "internal/app", "internal/auth", "internal/event", "internal/kernel", "internal/source", "internal/status")
	used := func(in docs.Words, name, value string) bool { return in.Names[name] || in.Strings[value] }
	reserved, given := map[string]bool{}, map[string]bool{}
	for _, kindPage := range kindPages {
		maps.Copy(reserved, column(t, kindPage, "Reserved reason"))
		maps.Copy(given, column(t, kindPage, "Reason"))
	}
	// What one kind reserves, another may give.
	maps.DeleteFunc(reserved, func(reason string, _ bool) bool { return given[reason] })
	for name, value := range constants(t, "Reason") {
		if reserved[value] && used(deciders, name, value) {
			t.Errorf("reason %s is documented as reserved, but some code gives it", value)
		}
		if !reserved[value] && !used(words, name, value) {
			t.Errorf("reason %s is documented as given, but no code gives it", value)
		}
	}
}

// TestConditionsAreDocumented: every condition type of the API has a row of its own.
func TestConditionsAreDocumented(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, kindPage := range kindPages {
		maps.Copy(got, column(t, kindPage, "Type"))
	}
	want := append(slices.Collect(maps.Values(constants(t, "Condition"))), "Ready", "Reconciling", "Stalled")
	for _, value := range want {
		if !got[value] {
			t.Errorf("condition type %s is on no page", value)
		}
	}
}

// TestFieldsAreDocumented: every field of spec and status is named where the page explains fields.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	for definition, kindPage := range kindPages {
		got := column(t, kindPage, "Field")
		for _, field := range schemaFields(t, definition) {
			if !got[field] {
				t.Errorf("field %s is not in %s", field, kindPage)
			}
		}
	}
}

func constants(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found, err := docs.Constants(filepath.Join(testenv.Root(), conditions), suffix)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("%s has no constant that ends in %s", conditions, suffix)
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
	for i, folder := range folders {
		folders[i] = filepath.Join(testenv.Root(), folder)
	}
	words, err := docs.ReadWords(folders...)
	if err != nil {
		t.Fatal(err)
	}
	return words
}
