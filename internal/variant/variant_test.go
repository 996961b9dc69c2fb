package variant_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/variant"
)

var update = flag.Bool("update", false, "rewrite the golden folders")

// blueprint is one of those in testdata.
func blueprint(t *testing.T, version string) variant.Blueprint {
	t.Helper()
	p, err := kpt.Read(os.DirFS("testdata/blueprints"), "web-"+version, kpt.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	script := p["check.sh"]
	script.Mode = 0o755
	p["check.sh"] = script
	return variant.Blueprint{
		Repo: "https://git.example/blueprints.git", Directory: "shops/web", Ref: "shops/web/" + version,
		Commit: strings.Repeat(version, 20), Tree: strings.Repeat("t"+version[1:], 20), Package: p,
	}
}

// config is one with everything in it.
func config() variant.Config {
	return variant.Config{
		Owner: kpt.Owner{Namespace: "fleet", Name: "web.eu"}, Package: "eu/web", Deployment: true,
		Labels: map[string]string{"site": "eu"}, Annotations: map[string]string{"note": "by the fleet"},
		Context: map[string]string{"tier": "gold"}, ContextGone: []string{"debug"},
		Namespace: "shop-eu",
		Pipeline: kpt.Pipeline{Mutators: []kpt.Function{
			{Image: "set-labels", Name: "site.labels", ConfigMap: map[string]string{"site": "eu"}, Exclude: []kpt.Selector{{Kind: "Site"}}},
		}},
		Sources: []variant.Source{
			{Version: "v1", Kind: "ConfigMap", Point: "net", Namespace: "fleet", Name: "eu-net", Content: data("region", "eu", "mtu", "9000")},
			{Version: "v1", Kind: "ConfigMap", Namespace: "fleet", Name: "dns", Content: data("servers", "192.0.2.1\n192.0.2.2\n")},
			{Group: "infra.example", Version: "v1", Kind: "Site", Name: "eu", Content: map[string]any{"spec": map[string]any{"rank": 3}}},
		},
	}
}

func data(pairs ...string) map[string]any {
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return map[string]any{"data": values}
}

func desired(t *testing.T, v variant.Version, base string) variant.Outcome {
	t.Helper()
	outcome, err := variant.Desired(t.Context(), v, base, function.New(function.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// edit replaces words in a file, or writes it where there is nothing to replace.
type edit struct{ file, from, to string }

func edited(t *testing.T, p kpt.Package, edits []edit) kpt.Package {
	t.Helper()
	p = maps.Clone(p)
	for _, e := range edits {
		before := string(p[e.file].Content)
		if e.from != "" && strings.Count(before, e.from) != 1 {
			t.Fatalf("%q is %d times in %s:\n%s", e.from, strings.Count(before, e.from), e.file, before)
		}
		after := strings.Replace(before, e.from, e.to, 1)
		if e.from == "" {
			after = e.to
		}
		if after == "" {
			delete(p, e.file)
			continue
		}
		p[e.file] = kpt.File{Content: []byte(after), Mode: 0o644}
	}
	return p
}

// people are edits of all kinds.
func people() []edit {
	return []edit{
		{"deployment.yaml", "    replicas: 2\n", "    replicas: 5 # for the sale\n"},
		{"deployment.yaml", "              - name: REGION\n", "              - name: DEBUG\n                value: \"1\"\n              - name: REGION\n"},
		{"Kptfile", "  # What the site is.\n", "  - image: set-annotations\n    configMap:\n      people: here\n  # What the site is.\n"},
		{"Kptfile", "info:\n", "info:\n  # Ours.\n  site: https://wiki.example\n"},
		{"mine/cm.yaml", "", "# Mine.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\ndata: {a: b}\n"},
		{"db/db.yaml", "        image: registry.example/db:1\n", "        image: registry.example/db:1\n      - name: backup\n        image: registry.example/backup:3\n"},
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		// last and next are what was and is to be applied; both start as config.
		last, next func(*variant.Version)
		edits      []edit
		policy     merge.Policy
	}{
		"edited": {
			reason: "A new upstream version comes with people's edits in it, in all files and lists.",
			next:   func(v *variant.Version) { v.Blueprint = blueprint(t, "v2") },
			edits:  people(),
		},
		"conflict-upstream": {
			reason: "Of two changes upstream's is taken, and all three values are told.",
			next:   func(v *variant.Version) { v.Blueprint = blueprint(t, "v2") },
			edits:  []edit{{"deployment.yaml", "web:1.0\"", "web:1.0-fix\""}}, policy: merge.Upstream,
		},
		"conflict-local": {
			reason: "Of two changes people's is taken.",
			next:   func(v *variant.Version) { v.Blueprint = blueprint(t, "v2") },
			edits:  []edit{{"deployment.yaml", "web:1.0\"", "web:1.0-fix\""}}, policy: merge.Local,
		},
		"leave": {
			reason: "What leaves the configuration leaves the package, and nothing of people's does.",
			next: func(v *variant.Version) {
				v.Config = variant.Config{Owner: v.Config.Owner, Package: v.Config.Package}
			},
			edits: people(),
		},
		"injected": {
			reason: "What is injected anew prevails over edits of it, and edits beside it stay.",
			next: func(v *variant.Version) {
				v.Config.Sources[0].Content = data("region", "asia", "new", "yes")
				v.Config.Sources[1] = variant.Source{Version: "v1", Kind: "ConfigMap", Reason: variant.ReasonAmbiguous, Message: "2 resources are selected: a, b"}
			},
			edits: append(people(), edit{"net.yaml", "  mtu: \"9000\"\n", "  mtu: \"1234\"\n  mine: x\n"}, edit{"dns.yaml", "  name: dns\n", "  name: dns # ours\n"}),
		},
		"moved": {
			reason: "Another namespace finds people's edits in the objects that move.",
			next:   func(v *variant.Version) { v.Config.Namespace = "shop-west" },
			edits:  people(),
		},
		"settled": {
			reason: "The controller's own parts are made as the configuration has them, whatever people did to them.",
			next:   func(v *variant.Version) { v.Config.Annotations = map[string]string{"note": "by the fleet, again"} },
			edits: []edit{
				{"Kptfile", "    name: sluice.dev/fleet/web.eu/1/site.labels\n", "    name: sluice.dev/fleet/web.eu/1/other\n"},
				{"Kptfile", "    note: by the fleet\n", "    note: by me\n"},
				{"Kptfile", "    ref: shops/web/v1\n  updateStrategy", "    ref: elsewhere\n  updateStrategy"},
				{"package-context.yaml", "  tier: gold\n", "  tier: iron\n  mine: too\n"},
				{"namespace.yaml", "", ""},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions := [2]variant.Version{{Blueprint: blueprint(t, "v1"), Config: config()}, {Blueprint: blueprint(t, "v1"), Config: config()}}
			for i, change := range []func(*variant.Version){tc.last, tc.next} {
				if change != nil {
					change(&versions[i])
				}
			}
			local := edited(t, desired(t, versions[0], "").Package, tc.edits)
			request := variant.Request{Last: told(t, local), Next: versions[1], Local: local, Base: "0b5e", Policy: tc.policy}
			if request.Policy == "" {
				request.Policy = merge.Fail
			}
			outcome := run(t, request)
			golden(t, name, local, outcome)
			again := request
			again.Last, again.Local = told(t, outcome.Package), outcome.Package
			if second := run(t, again); !second.Unchanged || len(second.Conflicts) > 0 {
				t.Errorf("%s: the second time changes more: %v\n%s", tc.reason, second.Conflicts, cmp.Diff(texts(outcome.Package), texts(second.Package)))
			}
		})
	}
}

// told is the version that the package says it was made as. Nobody else has to remember it.
func told(t *testing.T, p kpt.Package) *variant.Version {
	t.Helper()
	facts, err := kpt.ReadFacts(p["Kptfile"].Content)
	if err != nil {
		t.Fatal(err)
	}
	config, err := variant.DecodeApplied(facts.Applied)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Variant != config.Owner.String() {
		t.Errorf("the variant is %s, and not %s", facts.Variant, config.Owner)
	}
	made := blueprint(t, facts.Lock.Commit[:2])
	made.Tree = "unknown"
	return &variant.Version{Blueprint: made, Config: config}
}

func run(t *testing.T, request variant.Request) variant.Outcome {
	t.Helper()
	outcome, err := variant.Update(t.Context(), request, function.New(function.Options{}))
	if err != nil {
		t.Fatal(err, outcome.Conflicts)
	}
	return outcome
}

func texts(p kpt.Package) map[string]string {
	files := map[string]string{}
	for name, file := range p {
		files[name] = fmt.Sprintf("%v\n%s", file.Mode, file.Content)
	}
	return files
}

// golden compares the package, and what is said of it, with a folder of testdata.
func golden(t *testing.T, name string, before kpt.Package, outcome variant.Outcome) {
	t.Helper()
	dir := filepath.Join("testdata", "want", name)
	got := maps.Clone(outcome.Package)
	got["outcome.txt"] = kpt.File{Content: []byte(summary(before, outcome)), Mode: 0o644}
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for path, file := range got {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), file.Content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := kpt.Read(os.DirFS(dir), ".", kpt.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range want {
		file.Mode = got[path].Mode // The folder says nothing of modes.
		want[path] = file
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Error(diff)
	}
}

// summary is what the outcome says beside the package.
func summary(before kpt.Package, outcome variant.Outcome) string {
	var out strings.Builder
	fmt.Fprintf(&out, "basis %s, unchanged %v\n", outcome.Basis, outcome.Unchanged)
	for _, conflict := range outcome.Conflicts {
		fmt.Fprintf(&out, "conflict %s: %s | %s | %s\n", conflict, conflict.Base, conflict.Upstream, conflict.Local)
	}
	difference := variant.Diff(before, outcome.Package, 50)
	fmt.Fprintf(&out, "files %+v\n", difference.Files)
	for _, change := range difference.FileNames {
		fmt.Fprintf(&out, "  %s %s\n", change.Change, change.Path)
	}
	fmt.Fprintf(&out, "objects %+v\n", difference.Objects)
	for _, change := range difference.ObjectNames {
		fmt.Fprintf(&out, "  %s %s\n", change.Change, change.ID)
	}
	return out.String()
}

func TestDesired(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]variant.Version{
		"new":   {Blueprint: blueprint(t, "v1"), Config: config()},
		"plain": {Blueprint: blueprint(t, "v1"), Config: variant.Config{Owner: config().Owner, Package: "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := desired(t, v, "")
			golden(t, name, v.Blueprint.Package, outcome)
			again := run(t, variant.Request{Last: told(t, outcome.Package), Next: v, Local: outcome.Package, Policy: merge.Fail})
			if !again.Unchanged || !again.Package.Equal(outcome.Package) {
				t.Errorf("the second time: %s", cmp.Diff(texts(outcome.Package), texts(again.Package)))
			}
		})
	}
}

func TestUneditedPackageBecomesWhatIsDesired(t *testing.T) {
	t.Parallel()
	last := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	next := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	next.Config.Sources[0].Content = data("region", "asia")
	next.Config.Namespace = ""
	local := desired(t, last, "").Package
	outcome := run(t, variant.Request{Last: told(t, local), Next: next, Local: local, Base: "0b5e", Policy: merge.Fail})
	if diff := cmp.Diff(texts(desired(t, next, "0b5e").Package), texts(outcome.Package)); diff != "" {
		t.Error(diff)
	}
	if outcome.Unchanged || outcome.Basis != variant.BasisApplied {
		t.Errorf("unchanged %v, basis %s", outcome.Unchanged, outcome.Basis)
	}
}

func TestConflictMakesNothingWhereItMayNot(t *testing.T) {
	t.Parallel()
	last := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	next := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	local := edited(t, desired(t, last, "").Package, []edit{{"deployment.yaml", "web:1.0\"", "web:1.0-fix\""}})
	outcome, err := variant.Update(t.Context(), variant.Request{Last: told(t, local), Next: next, Local: local, Policy: merge.Fail}, function.New(function.Options{}))
	if !errors.Is(err, variant.ErrConflict) || len(outcome.Conflicts) != 1 || outcome.Package != nil {
		t.Errorf("%v, %+v", err, outcome)
	}
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	// Somebody cloned the package with kpt and changed it.
	v1 := blueprint(t, "v1")
	local := edited(t, v1.Package, []edit{
		{"Kptfile", "  name: web-blueprint #", "  name: shop #"},
		{"Kptfile", "info:\n", "upstream:\n  type: git\n  git:\n    repo: https://git.example/blueprints.git\n    directory: shops/web\n    ref: shops/web/v1\n  updateStrategy: copy-merge\ninfo:\n"},
		{"deployment.yaml", "    replicas: 2\n", "    replicas: 5 # for the sale\n"},
		{"deployment.yaml", "web:1.0\"", "web:1.0-fix\""},
		{"mine.yaml", "", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"},
	})
	for name, locked := range map[string]kpt.Package{"adopted-lock": v1.Package, "adopted-empty": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
			golden(t, name, local, run(t, variant.Request{Next: next, Local: local, Locked: locked, Base: "0b5e", Policy: merge.Upstream}))
		})
	}
}

func TestWhatIsNotThereIsMade(t *testing.T) {
	t.Parallel()
	v := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	outcome := run(t, variant.Request{Last: &v, Next: v, Policy: merge.Fail})
	if outcome.Basis != variant.BasisNone || !outcome.Package.Equal(desired(t, v, "").Package) {
		t.Errorf("basis %s", outcome.Basis)
	}
}

func TestModesSurvive(t *testing.T) {
	t.Parallel()
	v := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	v.Blueprint.Package["link"] = kpt.File{Content: []byte("check.sh"), Mode: fs.ModeSymlink}
	next := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	next.Blueprint.Package["link"] = v.Blueprint.Package["link"]
	local := edited(t, desired(t, v, "").Package, people())
	outcome := run(t, variant.Request{Last: &v, Next: next, Local: local, Policy: merge.Fail})
	if outcome.Package["check.sh"].Mode != 0o755 || outcome.Package["link"].Mode != fs.ModeSymlink {
		t.Errorf("%v", slices.Sorted(maps.Keys(outcome.Package)))
	}
}

// TestRoundsAccumulateNothing moves upstream to and fro. What was there comes back, and nothing is there twice.
func TestRoundsAccumulateNothing(t *testing.T) {
	t.Parallel()
	v1 := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	v2 := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	v2.Config.Labels, v2.Config.Pipeline = map[string]string{"other": "label"}, kpt.Pipeline{Validators: []kpt.Function{}}
	v2.Config.Context = map[string]string{"more": "context"}
	local := edited(t, desired(t, v1, "").Package, people())
	local = run(t, variant.Request{Last: told(t, local), Next: v1, Local: local, Policy: merge.Fail}).Package
	want := local
	for range 3 {
		for _, next := range []variant.Version{v2, v1} {
			local = run(t, variant.Request{Last: told(t, local), Next: next, Local: local, Policy: merge.Fail}).Package
		}
		for _, name := range []string{"Kptfile", "deployment.yaml", "net.yaml", "db/db.yaml"} {
			if got, want := lines(local, name), lines(want, name); !slices.Equal(got, want) {
				t.Fatalf("%s: %s", name, cmp.Diff(want, got))
			}
		}
	}
}

// lines are those of the file, in any order: what came back may stand elsewhere, and behind one blank where it was behind two.
func lines(p kpt.Package, name string) []string {
	return slices.Sorted(strings.Lines(strings.ReplaceAll(string(p[name].Content), "  #", " #")))
}

func TestPackageThatCannotBeMadeAgainIsUpdatedAllTheSame(t *testing.T) {
	t.Parallel()
	last := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	next := variant.Version{Blueprint: blueprint(t, "v2"), Config: config()}
	local := edited(t, desired(t, last, "").Package, people())
	last.Blueprint.Package = edited(t, last.Blueprint.Package, []edit{{"Kptfile", "  - image: set-labels\n", "  - image: gone-since\n"}})
	outcome := run(t, variant.Request{Last: &last, Next: next, Local: local, Policy: merge.Upstream})
	text := string(outcome.Package["deployment.yaml"].Content)
	if outcome.Basis != variant.BasisLock || !strings.Contains(text, "replicas: 5") || !strings.Contains(text, "web:2.0") {
		t.Errorf("basis %s\n%s", outcome.Basis, text)
	}
}

func TestErrorsSayWhichPackageIsMeant(t *testing.T) {
	t.Parallel()
	v := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	local := desired(t, v, "").Package
	cases := map[string]struct {
		reason string
		next   func(*variant.Version)
		edits  []edit
		want   string
	}{
		"function": {
			"A function that people added and nobody knows.", nil,
			[]edit{{"Kptfile", "  # What the site is.\n", "  - image: nobody/knows:v1\n  # What the site is.\n"}},
			"knows",
		},
		"local field": {
			"A field that people added and kpt does not know.", nil,
			[]edit{{"Kptfile", "info:\n", "infos: {}\ninfo:\n"}},
			"read the local package: Kptfile:",
		},
		"local syntax": {
			"A file that nobody can read.", nil, []edit{{"mine.yaml", "", "a: b: c\n"}}, "the local package: mine.yaml:1:",
		},
		"no package": {
			"An upstream folder that is no package.",
			func(v *variant.Version) { v.Blueprint.Package = kpt.Package{"README.md": {Mode: 0o644}} }, nil,
			"there is no Kptfile",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := v
			if tc.next != nil {
				tc.next(&next)
			}
			request := variant.Request{Last: &v, Next: next, Local: edited(t, local, tc.edits), Policy: merge.Fail}
			_, err := variant.Update(t.Context(), request, function.New(function.Options{}))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
