package kpt_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
)

// TestFunctionsOfPorchAreKnown by their names, also by those that Porch itself does not know again.
func TestFunctionsOfPorchAreKnown(t *testing.T) {
	t.Parallel()
	type entry struct {
		Function string
		Index    int
	}
	for name, test := range map[string]struct {
		reason string
		want   *entry
	}{
		"PackageVariant.edge.ns.0":           {"The usual form.", &entry{"ns", 0}},
		"PackageVariant.edge..12":            {"A function without a name.", &entry{"", 12}},
		"PackageVariant.other.ns.3":          {"One of a variant of another name.", &entry{"ns", 3}},
		"PackageVariant.web.eu.ns.1":         {"The variant's name has a dot.", &entry{"ns", 1}},
		"PackageVariant.edge.a.b.2":          {"The function's name has a dot.", &entry{"a.b", 2}},
		"PackageVariant.edge.ns":             {"There is no index.", nil},
		"PackageVariant.edge.ns.-1":          {"No index is negative.", nil},
		"PackageVariant.edge.ns.99999999999": {"No list is as long.", nil},
		"PackageVariant.":                    {"There is nothing behind it.", nil},
		"packagevariant.edge.ns.0":           {"Another kind.", nil},
		"sluice.dev/fleet/edge/0/ns":         {"One of our own.", nil},
	} {
		variant := "edge"
		if strings.Contains(name, "web.eu") {
			variant = "web.eu"
		}
		var got *entry
		if function, index, ok := kpt.PorchFunction(name, variant); ok {
			got = &entry{function, index}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", name, test.reason, diff)
		}
	}
}

// TestFunctionsOfTheUpstreamVariantStay: in a chain of variants, the package that is cloned has entries of its own maker.
func TestFunctionsOfTheUpstreamVariantStay(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\npipeline:\n  mutators:\n"
	const regional = "  - name: PackageVariant.regional.ns.0 # of the region\n    image: set-namespace\n"
	resources, kptfile := opened(t, head+"  - name: PackageVariant.edge.ns.0\n    image: set-namespace\n"+regional+"  - image: set-labels\n")
	_, upstream := opened(t, head+regional)
	kptfile.AdoptFunctions(kpt.Owner{Namespace: "fleet", Name: "edge"}, upstream)
	made, err := resources.Package()
	if err != nil {
		t.Fatal(err)
	}
	want := head + "  - name: sluice.dev/fleet/edge/0/ns\n    image: set-namespace\n" + regional + "  - image: set-labels\n"
	if diff := cmp.Diff(want, string(made[kpt.KptfileName].Content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func opened(t *testing.T, text string) (*kpt.Resources, *kpt.Kptfile) {
	t.Helper()
	resources, err := kpt.Open(kpt.Package{kpt.KptfileName: kpt.File{Mode: 0o644, Content: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		t.Fatal(err)
	}
	return resources, kptfile
}

// FuzzPorchFunction: whatever people call an entry, what is read of it stands in it.
func FuzzPorchFunction(f *testing.F) {
	for _, name := range []string{"PackageVariant.edge.ns.0", "PackageVariant.edge..1", "PackageVariant...", "PackageVariant.a.b.c.2", "x"} {
		f.Add(name, "edge")
	}
	f.Fuzz(func(t *testing.T, name, variant string) {
		function, index, ok := kpt.PorchFunction(name, variant)
		if ok && (index < 0 || !strings.HasPrefix(name, "PackageVariant.") || !strings.Contains(name, "."+function+".")) {
			t.Errorf("%q of %q is %q at %d", name, variant, function, index)
		}
	})
}
