package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

// digestOf is a digest that tells the version.
func digestOf(version string) string { return fmt.Sprintf("sha256:%064x", version) }

// template is a release of foo; in a channel, if one is given.
func template(name, version, channel string) string {
	text := fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: %s}\nspec:\n  moduleName: foo\n  version: %s\n"+
		"  artifact: {oci: {repository: 'oci://registry.example.com/foo', digest: '%s'}}\n", name, version, digestOf(version))
	if channel != "" {
		text += "  channel: " + channel + "\n"
	}
	return text
}

// asking is an installation that runs 1.0.0 from the system's namespace, and asks by the spec.
func asking(module, spec, system, status string) string {
	return fmt.Sprintf("apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: foo}\nspec: {module: {%s}%s}\n"+
		"status: {observedGeneration: 1, resolution: {module: foo, catalog: System, namespace: %s, selectedBy: 'range/>=1.0.0 <2.0.0'}, "+
		"current: {module: foo, version: 1.0.0, template: foo-1.0.0, namespace: %s, content: '%s'}, "+
		"desired: {module: foo, version: 1.0.0, template: foo-1.0.0, namespace: %s, content: '%s'}%s}\n",
		module, spec, system, system, digestOf("1.0.0"), system, digestOf("1.0.0"), status)
}

const ranged = "name: foo, range: '>=1.0.0 <2.0.0'"

// shelf is a system catalogue of three releases, and a namespace that installs from it.
func shelf(t *testing.T) (system, team string) {
	t.Helper()
	system, team = env.NewNamespace(t), env.NewNamespace(t)
	store(t, system, template("foo-1.0.0", "1.0.0", ""))
	store(t, system, template("foo-2.0.0", "2.0.0", ""))
	store(t, system, template("foo-experimental", "2.2.0", "experimental"))
	return system, team
}

// lines are those of a text, without the spaces that end or align them.
func linesOf(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		indent := ""
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") {
			indent = "  "
		}
		lines = append(lines, indent+strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// TestWhy: the choice, rule by rule, and which edits lead to another release.
func TestWhy(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	chosen := []string{
		"runs 1.0.0 foo-1.0.0, by range/>=1.0.0 <2.0.0",
		"wants 1.0.0 nothing to do",
		"looks System catalogue, namespace " + system + " (Auto; kept since the first install)",
		"",
		strings.Join([]string{"RULE", "LEFT", "LEFT OUT"}, " "),
		"catalog 3",
		"offered 2 2.2.0 foo-experimental: in channel experimental only",
		"range 1 2.0.0 foo-2.0.0: outside >=1.0.0 <2.0.0",
		"unique, ready, notWithdrawn, consumers, prereleases, upgradePath, support: none left out",
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Choice": {"what is chosen", nil, nil},
		"Channel": {"what a channel alone has", []string{"--version", "2.2.0"}, []string{
			"", `Not 2.2.0, by rule "offered": it is in channel experimental only.`, "Leads to it (tried on the catalogue as it is):", "  spec.module: {name: foo, channel: experimental}",
		}},
		"Range": {"what is beyond the range", []string{"--version", "2.0.0"}, []string{
			"", `Not 2.0.0, by rule "range": it is outside >=1.0.0 <2.0.0.`, "Leads to it (tried on the catalogue as it is):",
			`  spec.module: {name: foo, range: ">=1.0.0 <2.0.0 || ^2.0.0"}`, `  spec.module: {name: foo, range: ">=1.0.0 <2.0.0 || 2.0.0"}`,
			"  spec.module: {name: foo, version: 2.0.0}", "  spec.module: {name: foo, latest: true}",
		}},
		"Missing": {"what is not there", []string{"--version", "2.1.0"}, []string{
			"", "Not 2.1.0: module foo has no such release in namespace " + system + ".", "Near it: 2.0.0, 2.2.0, 1.0.0",
		}},
		"Same": {"what runs", []string{"--version", "1.0.0"}, []string{"", "It is 1.0.0: it is selected, and nothing is in the way."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"why", "foo", "-n", team}, tc.args...)...)
			if diff := cmp.Diff(append(append([]string(nil), chosen...), tc.want...), linesOf(got.out)); diff != "" || got.code != 0 || got.told != "" {
				t.Errorf("%s: ended with %d, %s; -want +got:\n%s", tc.reason, got.code, got.told, diff)
			}
		})
	}
}

// TestWhyOffersEdits: of which each is taken by the API server, and leads there.
func TestWhyOffersEdits(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged+", prereleases: {policy: Exclude}", ", upgrade: {mode: Manual}", system, ""))
	got := run(t, env.Kubeconfig, "why", "mi/foo", "-n", team, "--version", "2.2.0", "-o", "json")
	var about struct {
		About struct {
			Edits []struct {
				Module  *modulesv1.ModuleRequest
				Upgrade *modulesv1.UpgradePolicy
				Waits   bool
			}
		}
	}
	if err := json.Unmarshal([]byte(got.out), &about); err != nil || len(about.About.Edits) != 2 || got.code != 0 {
		t.Fatal(err, got)
	}
	for _, edit := range about.About.Edits {
		obj := &modulesv1.ModuleInstallation{}
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "foo"}, obj); err != nil {
			t.Fatal(err)
		}
		if edit.Module != nil {
			obj.Spec.Module = *edit.Module
		}
		if edit.Upgrade != nil {
			obj.Spec.Upgrade = edit.Upgrade
		}
		if err := env.Client.Update(t.Context(), obj, client.DryRunAll); err != nil {
			t.Errorf("%+v is not taken: %v", edit, err)
		}
		if d := chosenByManager(t, obj, system); d.Target == nil && !edit.Waits || d.Target != nil && d.Target.Version != "2.2.0" {
			t.Errorf("%+v leads to %+v, %+v", edit, d.Target, d.Hold)
		}
	}
}

// chosenByManager chooses with what the controller has, which reads whole catalogues.
func chosenByManager(t *testing.T, obj *modulesv1.ModuleInstallation, system string) catalog.Decision {
	t.Helper()
	var index catalog.Index
	for namespace, to := range map[string]**catalog.Contents{obj.Namespace: &index.Local, system: &index.System} {
		var list modulesv1.ModuleTemplateList
		if err := env.Client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		var releases []catalog.Release
		for i := range list.Items {
			releases = append(releases, objects.ReleaseOf(&list.Items[i]))
		}
		*to = catalog.New(namespace, releases, nil)
	}
	current := obj.Status.Current
	record := &modulesv1.Inventory{Data: modulesv1.InventoryData{
		InstallationUID: string(obj.UID), Current: current,
		Choice: &modulesv1.CatalogChoice{Requested: modulesv1.CatalogAuto, Module: "foo", Catalog: modulesv1.CatalogSystem},
	}}
	return catalog.Resolve(objects.RequestOf(obj), objects.InstalledOf(obj, record), index, obj.CreationTimestamp.Time)
}

// TestWhySaysWhatStatusDoesNot: an edit that nobody has looked at, and a choice that would be another one.
func TestWhySaysWhatStatusDoesNot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, module, spec, status string
		want                         []string
	}{
		"Edited":    {"the status is of another spec", "name: foo, channel: experimental", "", "", []string{"wants 2.2.0 foo-experimental, by channel/experimental; in the place of 1.0.0", "Status says otherwise, that 1.0.0 (template foo-1.0.0) is selected: the controller has not looked at what has changed since, or sees what you may not."}},
		"Suspended": {"nobody looks", ranged, ", suspend: true", "", []string{"It is suspended: nothing is chosen for it before that is taken back."}},
		"Waits":     {"it waits for something else", ranged, "", ", pending: {reason: Paused, message: left alone}", []string{"waits Paused left alone"}},
		"Held":      {"it is held by the choice", "name: foo, version: 2.0.0", ", upgrade: {maxStep: Patch}", "", []string{"wants 2.0.0 foo-2.0.0, by version/2.0.0; held by UpgradeBlocked: Version 2.0.0 is a larger step from 1.0.0 than Patch"}},
		"Unknown":   {"the channel is misspelt", "name: foo, channel: experimentel", "", "", []string{"wants - held by ChannelNotFound: Module foo has no channel experimentel; it has experimental"}},
		"Hostile":   {"text of others moves no cursor", ranged, "", `, pending: {reason: Paused, message: "a\e[31mb\r\u202ec"}`, []string{`waits Paused a\x1b[31mb\r\u202ec`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			system, team := shelf(t)
			store(t, team, asking(tc.module, tc.spec, system, tc.status))
			got := run(t, env.Kubeconfig, "why", "foo", "-n", team)
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(linesOf(got.out), "\n"), want) {
					t.Errorf("%s: %q is not in\n%s", tc.reason, want, got.out)
				}
			}
			if got.code != 0 || got.told != "" || strings.ContainsAny(got.out, "\x1b\r\u202e") {
				t.Errorf("ended with %d, %q: %q", got.code, got.told, got.out)
			}
		})
	}
}

// TestWhyLooksIntoBothCatalogues: where nothing was installed yet, as the controller does.
func TestWhyLooksIntoBothCatalogues(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: foo}\nspec: {module: {name: foo}}\n")
	for _, want := range [][]string{
		{"runs nothing", "wants 2.0.0 foo-2.0.0, by latest; to be installed", "looks System catalogue, namespace " + system + " (Auto; namespace " + team + " does not have the module)"},
		{"runs nothing", "wants 3.0.0 own, by latest; to be installed", "looks Local catalogue, namespace " + team + " (Auto; namespace " + team + " has the module)"},
	} {
		got := run(t, env.Kubeconfig, "why", "foo", "-n", team, "--system-namespace", system)
		if diff := cmp.Diff(want, linesOf(got.out)[:3]); diff != "" || !strings.Contains(got.out, "The controller has not looked at it yet") {
			t.Errorf("ended with %d, %s; -want +got:\n%s\n%s", got.code, got.told, diff, got.out)
		}
		if want[1] == "wants 2.0.0 foo-2.0.0, by latest; to be installed" {
			store(t, team, template("own", "3.0.0", ""))
		}
	}
}

// TestWhyTakesTheUsualNamespace: where nothing says another, and says so.
func TestWhyTakesTheUsualNamespace(t *testing.T) {
	t.Parallel()
	_, team := shelf(t)
	store(t, team, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: foo}\nspec: {module: {name: foo, catalog: System}}\n")
	got := run(t, reader(t, team), "why", "foo", "-n", team)
	for _, want := range []string{"is taken to be sluice-system (forbidden: ", "; --system-namespace names another", "ask for the ClusterRole sluice-catalogue, bound in namespace sluice-system"} {
		if !strings.Contains(got.told, want) {
			t.Errorf("%q is not told in %q", want, got.told)
		}
	}
	if got.code != 2 || !strings.Contains(got.out, "nothing") {
		t.Errorf("ended with %d: %s", got.code, got.out)
	}
}

// TestWhyAsksForConsumers: modules that admit some namespaces alone are asked for as the controller does.
func TestWhyAsksForConsumers(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {consumers: {namespaceSelector: {matchLabels: {tier: gold}}}}\n")
	store(t, team, asking("name: foo, latest: true", "", system, ""))
	if got := run(t, env.Kubeconfig, "why", "foo", "-n", team); !strings.Contains(got.out, "ConsumerNotAllowed: Module foo does not admit namespace "+team) || got.code != 0 {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	namespace := &corev1.Namespace{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: team}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels["tier"] = "gold"
	if err := env.Client.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if got := run(t, env.Kubeconfig, "why", "foo", "-n", team); !strings.Contains(strings.Join(linesOf(got.out), "\n"), "wants 2.0.0 foo-2.0.0, by latest; in the place of 1.0.0") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}

// TestWhySaysWhatHelps: nobody is left without a word of what to do.
func TestWhySaysWhatHelps(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		told []string
	}{
		"NotFound":  {[]string{"fo"}, 2, "", []string{`get ModuleInstallation "fo" in namespace "` + team + `": not found`, "similar: foo"}},
		"Kind":      {[]string{"mt/foo"}, 3, "", []string{"this is not for moduletemplates", "moduleinstallations"}},
		"None":      {nil, 3, "", []string{"one object has to be named"}},
		"Version":   {[]string{"foo", "--version", "v2"}, 3, "", []string{"--version: ", "v2"}},
		"Offline":   {[]string{"foo", "--offline"}, 3, "", []string{"--offline needs files"}},
		"Format":    {[]string{"foo", "-o", "xml"}, 3, "", []string{"xml"}},
		"File":      {[]string{"foo", "-f", "none/here.yaml"}, 2, "", []string{"read none/here.yaml: no such file"}},
		"Away":      {[]string{"foo", "--server", "http://127.0.0.1:1"}, 2, "", []string{"no answer from the API server", "check --kubeconfig"}},
		"Catalogue": {[]string{"foo"}, 2, "wants 1.0.0 nothing to do", []string{`list moduletemplates in namespace "` + system + `": forbidden: `, "ask for the ClusterRole sluice-catalogue, bound in namespace " + system}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kubeconfig := env.Kubeconfig
			if name == "Catalogue" {
				kubeconfig = reader(t, team)
			}
			got := run(t, kubeconfig, append([]string{"why", "-n", team}, tc.args...)...)
			for _, want := range tc.told {
				if !strings.Contains(got.told, want) {
					t.Errorf("%q is not told in %q", want, got.told)
				}
			}
			if got.code != tc.code || !strings.Contains(strings.Join(linesOf(got.out), "\n"), tc.out) || tc.out == "" && got.out != "" {
				t.Errorf("ended with %d: %s%s", got.code, got.out, got.told)
			}
		})
	}
}

// TestWhyAsksFourTimes: whatever the number of templates, and nothing has to be discovered.
func TestWhyAsksFourTimes(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	for i := range 997 {
		store(t, system, template(fmt.Sprintf("foo-3.%d.0", i), fmt.Sprintf("3.%d.0", i), ""))
	}
	store(t, system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {consumers: {namespaceSelector: {matchLabels: {in: nowhere}}}}\n")
	store(t, team, asking(ranged, "", system, ""))
	kubeconfig, err := env.KubeconfigAs("wonders-in-"+team, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, kubeconfig, "why", "foo", "-n", team, "--version", "3.7.0")
	if got.code != 0 || !strings.Contains(got.out, "Not 3.7.0, by rule") || !strings.Contains(got.out, "and 989 more, with -o wide") {
		t.Fatalf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	requests, err := env.Requests("wonders-in-" + team)
	if err != nil || len(requests) != 4 {
		t.Errorf("%v, %+v", err, requests)
	}
}

// TestWhyCompletes: the names of installations, and the versions that there are.
func TestWhyCompletes(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"Names":    {[]string{""}, []string{"foo"}},
		"Pair":     {[]string{"mi/f"}, []string{"mi/foo"}},
		"Versions": {[]string{"foo", "--version", "2."}, []string{"2.2.0", "2.0.0"}},
		"Unknown":  {[]string{"none", "--version", ""}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			completes(t, tc.want, append([]string{"why", "--kubeconfig", env.Kubeconfig, "--namespace", team}, tc.args...)...)
		})
	}
}
