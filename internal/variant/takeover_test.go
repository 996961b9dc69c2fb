package variant_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/variant"
)

// byPorch is what a PackageVariant of Porch would have made: the same, with its own names in the pipeline, no notes, the upstream in
// its own spelling, and another layout.
func byPorch(t *testing.T, v variant.Version) kpt.Package {
	t.Helper()
	made := desired(t, v, "").Package
	resources, err := kpt.Open(made)
	if err != nil {
		t.Fatal(err)
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		t.Fatal(err)
	}
	for key := range kptfile.Annotations() {
		if strings.HasPrefix(key, "packages.sluice.dev/") {
			kptfile.RemoveAnnotation(key)
		}
	}
	lock := kptfile.Lock()
	lock.Repo, lock.Directory = strings.TrimSuffix(lock.Repo, ".git"), "/"+lock.Directory
	kptfile.SetLock(*lock)
	if made, err = resources.Package(); err != nil {
		t.Fatal(err)
	}
	file := made[kpt.KptfileName]
	owner := "sluice.dev/" + v.Config.Owner.String() + "/"
	text := strings.NewReplacer(owner+"0/namespace", "PackageVariant.web.eu.namespace.0", owner+"1/site.labels", "PackageVariant.web.eu.site.labels.1",
		"  - image", "      # moved\n  - image").Replace(string(file.Content))
	if strings.Contains(text, "sluice.dev") {
		t.Fatalf("it still says who made it:\n%s", text)
	}
	file.Content = []byte(text)
	made[kpt.KptfileName] = file
	return made
}

// TestWhatPorchMadeStands where it is what would be made, also where people have edited it; all else is made.
func TestWhatPorchMadeStands(t *testing.T) {
	t.Parallel()
	one := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	for name, test := range map[string]struct {
		reason string
		change func(kpt.Package, *variant.Request)
		stands bool
	}{
		"the same": {"It lacks the notes alone.", func(kpt.Package, *variant.Request) {}, true},
		"edited": {"What people added stays, and is no reason for a commit.", func(p kpt.Package, _ *variant.Request) {
			p["notes.txt"] = kpt.File{Mode: 0o644, Content: []byte("ours\n")}
		}, true},
		"another release of upstream": {"It is to be upgraded.", func(_ kpt.Package, r *variant.Request) {
			r.Next.Blueprint = blueprint(t, "v2")
		}, false},
		"another commit of the same content": {"Nothing would change.", func(_ kpt.Package, r *variant.Request) {
			r.Next.Blueprint.Commit = strings.Repeat("ab", 20)
		}, true},
		"another label": {"The spec has one that the package lacks.", func(_ kpt.Package, r *variant.Request) {
			r.Next.Config.Labels = map[string]string{"site": "us"}
		}, false},
		"another function": {"The spec has another configuration.", func(_ kpt.Package, r *variant.Request) {
			r.Next.Config.Pipeline.Mutators[0].ConfigMap = map[string]string{"site": "us"}
		}, false},
		"unknown upstream": {"Nobody can tell what is people's.", func(_ kpt.Package, r *variant.Request) { r.Locked = nil }, true},
		"another repository": {"It is of another one.", func(p kpt.Package, _ *variant.Request) {
			rewrite(t, p, "git.example/blueprints", "git.example/elsewhere")
		}, false},
		"a branch": {"It follows a branch, and the spec tags.", func(p kpt.Package, _ *variant.Request) { rewrite(t, p, "ref: shops/web/v1", "ref: main") }, false},
		"twice": {"Porch has added an entry more than once.", func(p kpt.Package, _ *variant.Request) {
			const entry = "    name: PackageVariant.web.eu.site.labels.1\n    exclude:\n    - kind: Site\n"
			rewrite(t, p, entry, entry+"  - image: set-labels\n    configMap:\n      site: eu\n"+entry)
		}, false},
		"no context": {"Porch did not write one.", func(p kpt.Package, _ *variant.Request) { delete(p, "package-context.yaml") }, false},
		"marked": {"A variant has marked it.", func(p kpt.Package, _ *variant.Request) {
			p[kpt.KptfileName] = desired(t, one, "").Package[kpt.KptfileName]
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := variant.Request{
				Next: variant.Version{Blueprint: one.Blueprint, Config: config()}, Local: byPorch(t, one), Locked: one.Blueprint.Package, Policy: merge.Upstream,
			}
			test.change(request.Local, &request)
			got := run(t, request)
			kptfile := string(got.Package[kpt.KptfileName].Content)
			if got.Stands != test.stands {
				t.Errorf("%s it stands: %v\n%s", test.reason, got.Stands, kptfile)
			}
			if !got.Stands && (strings.Contains(kptfile, "PackageVariant.") || strings.Count(kptfile, "name: sluice.dev/fleet/web.eu/1/site.labels") != 1) {
				t.Errorf("the variant's functions are not there once, under their own names:\n%s", kptfile)
			}
		})
	}
}

// TestWhatPorchMadeIsUpgradedLikeOurOwn: without conflicts, with people's edits, and with nothing of Porch's pipeline left.
func TestWhatPorchMadeIsUpgradedLikeOurOwn(t *testing.T) {
	t.Parallel()
	one, two := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}, variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	got := run(t, variant.Request{Next: two, Local: byPorch(t, one), Locked: one.Blueprint.Package, Policy: merge.Fail})
	want := desired(t, two, "").Package
	if got.Basis != variant.BasisApplied || len(got.Conflicts) > 0 || strings.Contains(string(got.Package[kpt.KptfileName].Content), "PackageVariant.") {
		t.Errorf("%s %v\n%s", got.Basis, got.Conflicts, got.Package[kpt.KptfileName].Content)
	}
	for name := range want {
		if name != kpt.KptfileName && string(got.Package[name].Content) != string(want[name].Content) {
			t.Errorf("%s is\n%s\nnot\n%s", name, got.Package[name].Content, want[name].Content)
		}
	}
	if len(got.Package) != len(want) {
		t.Errorf("it has %d files, not %d", len(got.Package), len(want))
	}
}

// rewrite replaces text in the Kptfile of a package, which has to have it.
func rewrite(t *testing.T, p kpt.Package, old, text string) {
	t.Helper()
	file := p[kpt.KptfileName]
	changed := strings.ReplaceAll(string(file.Content), old, text)
	if changed == string(file.Content) {
		t.Fatalf("%q is not in\n%s", old, changed)
	}
	file.Content = []byte(changed)
	p[kpt.KptfileName] = file
}
