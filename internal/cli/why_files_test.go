package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

// file writes a file of manifests, which stand in the namespaces that they name.
func file(t *testing.T, folder, name string, documents ...string) string {
	t.Helper()
	at := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// in puts the namespace into a manifest.
func in(namespace, manifest string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {namespace: "+namespace+", ", 1)
}

// nowhere is a kubeconfig by which nobody can be asked.
func nowhere(t *testing.T) string {
	t.Helper()
	return file(t, t.TempDir(), "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"+
		"contexts: [{name: c, context: {cluster: c, namespace: team-a}}]\ncurrent-context: c\n")
}

// TestWhyOfFiles: what would be chosen once they are applied.
func TestWhyOfFiles(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	for name, tc := range map[string]struct {
		reason    string
		documents []string
		want      string
	}{
		"Edited":       {"a template is edited", []string{in(system, template("foo-2.0.0", "1.5.0", ""))}, "wants 1.5.0 foo-2.0.0, by range/>=1.0.0 <2.0.0; in the place of 1.0.0"},
		"Added":        {"a template comes", []string{in(system, template("foo-1.1.0", "1.1.0", ""))}, "wants 1.1.0 foo-1.1.0"},
		"Elsewhere":    {"of another namespace", []string{in("other", template("foo-1.1.0", "1.1.0", ""))}, "wants 1.0.0 nothing to do"},
		"Younger":      {"what comes has no right to a version that is there", []string{in(system, strings.Replace(template("foo-1.0.0-again", "1.0.0", ""), digestOf("1.0.0"), digestOf("2.0.0"), 1))}, "unique 2 1.0.0 foo-1.0.0-again: shares its version"},
		"Installation": {"the installation itself is edited", []string{in(team, asking("name: foo, latest: true", "", system, ""))}, "wants 2.0.0 foo-2.0.0, by latest"},
		"Catalogue":    {"the other catalogue is asked for from now on", []string{in(team, asking("name: foo, catalog: Local", "", system, ""))}, "wants - held by ModuleNotFound: There is no module foo in namespace " + team + "; the System catalogue has one"},
		"Told":         {"that status knows nothing of it", []string{in(system, template("foo-1.1.0", "1.1.0", ""))}, "Status says otherwise, that 1.0.0 (template foo-1.0.0) is selected: it knows nothing of the files."},
		"Module":       {"a module has the last word about its channels", []string{in(system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {channels: [{name: slow, version: 1.0.0}]}\n"), in(team, asking("name: foo, channel: slow", "", system, ""))}, "wants 1.0.0 nothing to do"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, "why", "foo", "-n", team, "-f", file(t, t.TempDir(), "edits.yaml", tc.documents...))
			if !strings.Contains(strings.Join(linesOf(got.out), "\n"), tc.want) || got.code != 0 || got.told != "" {
				t.Errorf("%s: %q is not in\n%s%s", tc.reason, tc.want, got.out, got.told)
			}
		})
	}
}

// TestWhyForgetsTheCatalogueOfBefore: an edit of which catalogue is asked for lets the nearer one have its say again.
func TestWhyForgetsTheCatalogueOfBefore(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, template("own", "3.0.0", ""))
	store(t, team, asking("name: foo, latest: true, catalog: System", "", system, ""))
	edits := file(t, t.TempDir(), "edits.yaml", in(team, asking("name: foo, latest: true", "", system, "")))
	for want, args := range map[string][]string{"wants 2.0.0": nil, "wants 3.0.0": {"-f", edits}} {
		if got := run(t, env.Kubeconfig, append([]string{"why", "foo", "-n", team}, args...)...); !strings.Contains(strings.Join(linesOf(got.out), "\n"), want) {
			t.Errorf("%q is not in %s%s", want, got.out, got.told)
		}
	}
}

// TestWhyOffline: no API server is asked, and folders are read whole.
func TestWhyOffline(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file(t, folder, "catalogue/releases.yaml", in("sluice-system", template("foo-1.0.0", "1.0.0", "")), "# nothing\n", in("sluice-system", template("foo-2.0.0", "2.0.0", "")))
	file(t, folder, "catalogue/.hidden/broken.yaml", "a: [\n")
	file(t, folder, "README.md", "no: [ manifest")
	file(t, folder, "other.yml", "kind: Secret\napiVersion: v1\nmetadata: {name: s}\nstringData: {a: b}\n", "[1, 2]\n")
	list, err := yaml.YAMLToJSON([]byte("apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(asking(ranged, "", "sluice-system", "")), "\n", "\n  ") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	file(t, folder, "list.json", string(list))
	got := run(t, nowhere(t), "why", "foo", "--offline", "-f", folder)
	want := []string{"runs 1.0.0 foo-1.0.0, by range/>=1.0.0 <2.0.0", "wants 1.0.0 nothing to do", "looks System catalogue, namespace sluice-system (Auto; kept since the first install)"}
	if lines := linesOf(got.out); len(lines) < 3 || !cmp.Equal(want, lines[:3]) || got.code != 0 || got.told != "Taken to be in namespace team-a, as they name none: foo\n" {
		t.Errorf("ended with %d, %q: %s", got.code, got.told, got.out)
	}
	if got := run(t, nowhere(t), "why", "bar", "--offline", "-f", folder); got.code != 2 || !strings.Contains(got.told, `find ModuleInstallation "bar" of namespace "team-a" in the files: not found`) || !strings.Contains(got.told, "they have team-a/foo") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	file(t, folder, "module.yaml", in("sluice-system", "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {consumers: {namespaceSelector: {matchLabels: {a: b}}}}\n"))
	if got := run(t, nowhere(t), "why", "foo", "--offline", "-f", folder); got.code != 2 || !strings.Contains(got.told, `read the labels of namespace "team-a": no file has it`) {
		t.Errorf("ended with %d: %s%s", got.code, got.told, got.out)
	}
	file(t, folder, "namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {a: b}}\n")
	if got := run(t, nowhere(t), "why", "foo", "--offline", "-f", folder); got.code != 0 || !strings.Contains(got.out, "nothing to do") {
		t.Errorf("ended with %d: %s%s", got.code, got.told, got.out)
	}
}

// TestWhyRefusesBadFiles: and says which one, and where in it. What it says of a Secret is not what is in it.
func TestWhyRefusesBadFiles(t *testing.T) {
	t.Parallel()
	good := in("a", template("foo", "1.0.0", ""))
	for name, tc := range map[string]struct {
		documents []string
		want      string
	}{
		"Syntax":  {[]string{good, "a: [\n"}, "bad.yaml, document 2: "},
		"Field":   {[]string{good, strings.Replace(good, "moduleName", "modulName", 1)}, `bad.yaml, document 2: unknown field "spec.modulName"`},
		"Type":    {[]string{in("a", strings.Replace(template("foo", "1.0.0", ""), "moduleName: foo", "moduleName: [foo]", 1))}, "bad.yaml, document 1: "},
		"Twice":   {[]string{good, good}, "ModuleTemplate a/foo stands in "},
		"NoName":  {[]string{strings.Replace(good, "name: foo}", "labels: {}}", 1)}, "document 1: "},
		"Key":     {[]string{"apiVersion: v1\nkind: Secret\nstringData: {a: canary}\nstringData: {a: canary}\n"}, "bad.yaml, document 1: "},
		"Control": {[]string{"a: \"\x1b[31m\x01\n"}, "bad.yaml, document 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, nowhere(t), "why", "foo", "--offline", "-f", file(t, t.TempDir(), "bad.yaml", tc.documents...))
			if got.code != 2 || got.out != "" || !strings.Contains(got.told, tc.want) || strings.Contains(got.told, "canary") || strings.Contains(got.told, "\x1b") {
				t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
			}
		})
	}
}

// world is a catalogue and an installation, made up from a seed.
type world struct {
	*rand.Rand
	templates    []modulesv1.ModuleTemplate
	module       *modulesv1.Module
	installation *modulesv1.ModuleInstallation
	record       *modulesv1.Inventory
}

func pick[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

var someVersions = []string{"1.0.0", "1.0.1", "1.1.0-rc.1", "1.1.0", "2.0.0"}

func makeWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7))}
	for i := range 2 + w.IntN(6) {
		template := modulesv1.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: pick(w, "sys", "sys", "sys", "team"), Name: fmt.Sprintf("t%d", i), CreationTimestamp: metav1.Unix(1e9+int64(w.IntN(2)), 0)}}
		version := pick(w, someVersions...)
		template.Spec = modulesv1.ModuleTemplateSpec{
			ModuleName: pick(w, "foo", "foo", "foo", "bar"), Version: version, Channel: pick(w, "", "", "fast"),
			Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{Repository: "oci://r/foo", Digest: digestOf(pick(w, version, version, "other"))}},
		}
		if w.IntN(6) == 0 {
			template.Spec.Support = &modulesv1.TemplateSupport{State: pick(w, modulesv1.SupportDeprecated, modulesv1.SupportWithdrawn)}
		}
		w.templates = append(w.templates, template)
	}
	if w.IntN(2) == 0 {
		w.module = &modulesv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: "foo"}}
		w.module.Spec.Channels = []modulesv1.Channel{{Name: pick(w, "fast", "slow"), Version: pick(w, someVersions...), OneWay: w.IntN(3) == 0, Suspended: w.IntN(4) == 0}}
		if w.IntN(4) == 0 {
			w.module.Spec.Consumers = &modulesv1.Consumers{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": pick(w, "gold", "none")}}}
		}
	}
	w.installation = &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "foo", UID: "u", Generation: 1}}
	spec := &w.installation.Spec
	spec.Module = pick(w,
		modulesv1.ModuleRequest{Name: "foo"}, modulesv1.ModuleRequest{Name: "foo", Latest: true}, modulesv1.ModuleRequest{Name: "foo", Range: "1.x"},
		modulesv1.ModuleRequest{Name: "foo", Channel: "fast"}, modulesv1.ModuleRequest{Name: "foo", Version: pick(w, someVersions...)},
		modulesv1.ModuleRequest{TemplateRef: &modulesv1.LocalReference{Name: "t1"}}, modulesv1.ModuleRequest{Name: "food"})
	spec.Module.Catalog = pick(w, modulesv1.CatalogAuto, modulesv1.CatalogAuto, modulesv1.CatalogSystem, modulesv1.CatalogLocal)
	spec.Upgrade = pick(w, nil, &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}, &modulesv1.UpgradePolicy{MaxStep: modulesv1.StepPatch}, &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeNever})
	if w.IntN(4) > 0 {
		w.runs()
	}
	return w
}

// runs makes the installation one that has a release, by a record as the controller keeps it.
func (w *world) runs() {
	current := objects.RecordOf(&w.templates[w.IntN(len(w.templates))])
	current.Channel = pick(w, "", "fast")
	choice := &modulesv1.CatalogChoice{Requested: w.installation.Spec.Module.GetCatalog(), Module: current.Module, Catalog: modulesv1.CatalogSystem, Namespace: current.Namespace}
	if current.Namespace == "team" {
		choice.Catalog = modulesv1.CatalogLocal
	}
	w.record = &modulesv1.Inventory{Data: modulesv1.InventoryData{InstallationUID: "u", Current: &current, Choice: choice}}
	if w.IntN(4) == 0 {
		w.record.Data.Attempt = &modulesv1.Attempt{Release: objects.RecordOf(&w.templates[w.IntN(len(w.templates))])}
	}
}

// index is all that there is.
func (w *world) index() catalog.Index {
	releases := map[string][]catalog.Release{}
	for i := range w.templates {
		releases[w.templates[i].Namespace] = append(releases[w.templates[i].Namespace], objects.ReleaseOf(&w.templates[i]))
	}
	var modules []catalog.Module
	if w.module != nil {
		modules = append(modules, objects.ModuleOf(w.module, func(string) (labels.Set, bool) { return labels.Set{"tier": "gold"}, true }))
	}
	return catalog.Index{Local: catalog.New("team", releases["team"], nil), System: catalog.New("sys", releases["sys"], modules)}
}

// report writes the decision into status, as the controller does.
func (w *world) report(d catalog.Decision) {
	status := &w.installation.Status
	status.ObservedGeneration = 1
	status.Resolution = &modulesv1.Resolution{Module: d.Module, Catalog: d.Catalog, Namespace: d.Namespace, SelectedBy: d.SelectedBy.String()}
	if w.record != nil {
		status.Current = w.record.Data.Current
		if attempt := w.record.Data.Attempt; attempt != nil {
			status.Attempted = &attempt.Release
		}
	}
	if d.Hold != nil {
		status.Pending = &modulesv1.Pending{Reason: d.Hold.Reason}
	}
	if chosen := d.Chosen(); chosen != nil {
		status.Desired = &modulesv1.Release{Version: chosen.Version, Template: chosen.Template, Content: chosen.Digest, Namespace: d.Namespace}
	}
}

// manifests are the world as a file, with kinds.
func (w *world) manifests(t *testing.T) string {
	t.Helper()
	all := []any{w.installation}
	w.installation.TypeMeta = metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleInstallationKind}
	for i := range w.templates {
		w.templates[i].TypeMeta = metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleTemplateKind}
		all = append(all, &w.templates[i])
	}
	if w.module != nil {
		w.module.TypeMeta = metav1.TypeMeta{APIVersion: modulesv1.GroupVersion.String(), Kind: modulesv1.ModuleKind}
		all = append(all, w.module)
	}
	documents := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {tier: gold}}\n"}
	for _, obj := range all {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return file(t, t.TempDir(), "world.yaml", documents...)
}

// told is what the tests look at in an explanation.
type told struct {
	Wants struct {
		Version, Template, SelectedBy string
		Changed                       bool
		Hold                          struct{ Reason, Message string }
	}
	Looks struct{ Catalog, Namespace string }
	About struct {
		Chosen bool
		Edits  []struct {
			Module  *modulesv1.ModuleRequest
			Upgrade *modulesv1.UpgradePolicy
			Waits   bool
		}
	}
	Notes []string
}

// TestWhySaysWhatTheControllerDecides: from status alone it comes to the same, whatever the catalogue, and what it offers leads
// where it says.
func TestWhySaysWhatTheControllerDecides(t *testing.T) {
	t.Parallel()
	home, offered := nowhere(t), 0
	for seed := range uint64(300) {
		w := makeWorld(seed)
		d := catalog.Resolve(objects.RequestOf(w.installation), objects.InstalledOf(w.installation, w.record), w.index(), metav1.Now().Time)
		w.report(d)
		version := pick(w, someVersions...)
		got := run(t, home, "why", "foo", "-n", "team", "--offline", "-f", w.manifests(t), "--system-namespace", "sys", "--version", version, "-o", "json")
		var is, want told
		if err := json.Unmarshal([]byte(got.out), &is); err != nil || got.code != 0 {
			t.Fatalf("seed %d: ended with %d: %s%s", seed, got.code, got.out, got.told)
		}
		want.Wants.Changed, want.Wants.SelectedBy = d.Changed, d.SelectedBy.String()
		want.Looks.Catalog, want.Looks.Namespace = string(d.Catalog), d.Namespace
		chosen := d.Target
		if d.Hold != nil {
			chosen, want.Wants.Hold.Reason, want.Wants.Hold.Message = d.Hold.Candidate, d.Hold.Reason, d.Hold.Message
		}
		if chosen != nil {
			want.Wants.Version, want.Wants.Template = chosen.Version, chosen.Template
		}
		edits := is.About.Edits
		is.About, want.Notes = want.About, []string{}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Fatalf("seed %d: -want +got:\n%s\n%s", seed, diff, got.out)
		}
		for _, edit := range edits {
			offered++
			obj := w.installation.DeepCopy()
			if edit.Module != nil {
				obj.Spec.Module = *edit.Module
			}
			if edit.Upgrade != nil {
				obj.Spec.Upgrade = edit.Upgrade
			}
			d := catalog.Resolve(objects.RequestOf(obj), objects.InstalledOf(obj, w.record), w.index(), metav1.Now().Time)
			chosen := d.Target
			if edit.Waits && d.Hold != nil && d.Hold.Reason == modulesv1.AwaitingApprovalReason {
				chosen = d.Hold.Candidate
			}
			if chosen == nil || chosen.Version != version {
				t.Fatalf("seed %d: %+v does not lead to %s: %+v", seed, edit, version, d.Hold)
			}
		}
	}
	if offered < 100 {
		t.Errorf("only %d edits were offered", offered)
	}
}
