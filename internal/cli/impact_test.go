package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moved is what the test looks at of an impact.
type moved struct {
	Kind  string
	Edits []struct {
		Object        struct{ Name string }
		Before, After string
	}
	Installations []struct {
		Object                        struct{ Namespace, Name string }
		From, To, Consequence, Reason string
	}
	Follow, Others int
}

// edited is a file with objects of a namespace.
func edited(t *testing.T, namespace string, objects ...string) string {
	t.Helper()
	text := ""
	for _, object := range objects {
		text += strings.Replace(object, "metadata: {", "metadata: {namespace: "+namespace+", ", 1) + "---\n"
	}
	place := filepath.Join(t.TempDir(), "edited.yaml")
	if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return place
}

// TestImpact: whom an edited catalogue moves, by what each of them asks for and consents to.
func TestImpact(t *testing.T) {
	t.Parallel()
	system, free := shelf(t)
	manual, never, pinned, gone := env.NewNamespace(t), env.NewNamespace(t), env.NewNamespace(t), env.NewNamespace(t)
	suspended, paused, lost := env.NewNamespace(t), env.NewNamespace(t), env.NewNamespace(t)
	store(t, suspended, asking(ranged, ", suspend: true", system, ""))
	store(t, paused, asking(ranged, ", management: Paused", system, ""))
	store(t, lost, strings.ReplaceAll(asking("name: foo, channel: nothing", "", system, ""), "1.0.0", "0.1.0"))
	store(t, free, asking(ranged, "", system, ""))
	store(t, manual, asking(ranged, ", upgrade: {mode: Manual}", system, ""))
	store(t, never, asking(ranged, ", upgrade: {mode: Never}", system, ""))
	store(t, pinned, asking("name: foo, version: 1.0.0", "", system, ""))
	store(t, gone, strings.ReplaceAll(asking("name: foo, channel: experimental", "", system, ""), "1.0.0", "2.2.0"))
	names := map[string]string{free: "free", manual: "manual", never: "never", pinned: "pinned", gone: "gone", suspended: "suspended", paused: "paused", lost: "lost"}
	place := edited(t, system, template("foo-1.1.0", "1.1.0", ""), template("foo-experimental", "2.2.0", "other"))
	got := run(t, env.Kubeconfig, "impact", "-f", place, "-o", "json")
	var told moved
	if err := json.Unmarshal([]byte(got.out), &told); err != nil || got.code != 1 || told.Kind != "Impact" || told.Follow < 5 {
		t.Fatalf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	found := map[string]string{}
	for _, one := range told.Installations {
		if name := names[one.Object.Namespace]; name != "" {
			found[name] = strings.TrimSpace(one.From + " " + one.To + " " + one.Consequence + " " + one.Reason)
		}
	}
	want := map[string]string{
		"free": "1.0.0 1.1.0 UpgradesNow", "manual": "1.0.0 1.1.0 WaitsForApproval AwaitingApproval", "never": "1.0.0 1.1.0 Held UpgradesNever",
		"gone": "2.2.0  LosesRelease ChannelNotFound", "suspended": "1.0.0 1.1.0 Held Suspended", "paused": "1.0.0 1.1.0 Held Paused",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(told.Edits) != 2 || told.Edits[0].Before != "" || told.Edits[0].After != "1.1.0" || told.Edits[1].Before != "2.2.0 in channel experimental" {
		t.Errorf("got %+v", told.Edits)
	}
	text := run(t, env.Kubeconfig, "impact", "-f", place, "-o", "wide")
	lines := linesOf(text.out)
	for _, want := range []string{
		free + "/foo 1.0.0 -> 1.1.0 upgrades at once", "ModuleTemplate " + system + "/foo-experimental 2.2.0 in channel experimental -> 2.2.0 in channel other",
	} {
		if !strings.Contains(strings.ReplaceAll(strings.Join(lines, "\n"), "→", "->"), want) {
			t.Errorf("%q is not in %s", want, text.out)
		}
	}
}

// TestImpactOfNothing: what changes nobody's choice ends well, and what is no catalogue is refused.
func TestImpactOfNothing(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	if got := run(t, env.Kubeconfig, "impact", "-f", edited(t, system, template("foo-1.0.0", "1.0.0", ""))); got.code != 0 || !strings.Contains(got.out, " follow it: 0 upgrade at once") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Nothing":   {nil, 3, "nothing is edited"},
		"Other":     {[]string{"-f", edited(t, system, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}, 3, "neither a ModuleTemplate nor a Module"},
		"Missing":   {[]string{"-f", filepath.Join(t.TempDir(), "none")}, 2, "no such file"},
		"Arguments": {[]string{"foo", "-f", "x"}, 3, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, env.Kubeconfig, append([]string{"impact"}, tc.args...)...); got.code != tc.code || !strings.Contains(got.told, tc.want) {
				t.Errorf("ended with %d: %s", got.code, got.told)
			}
		})
	}
}

// TestImpactWithinOnesRights: those of the own namespace are shown, and what is missing is named.
func TestImpactWithinOnesRights(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	place := edited(t, system, template("foo-1.1.0", "1.1.0", ""))
	got := run(t, reader(t, team), "impact", "-f", place, "-n", team)
	if got.code != 2 || !strings.Contains(got.told, "list the installations of all namespaces: forbidden") || !strings.Contains(got.told, "ask for the ClusterRole sluice-catalogue, bound in namespace "+system) ||
		strings.Count(got.told, "list moduletemplates in namespace") != 1 || !strings.Contains(got.out, "1 follow it: 0 upgrade at once") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}

// TestPlansThatAnImpactLacks: it is told whose they are, and of where the controllers are taken to be, once.
func TestPlansThatAnImpactLacks(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, template("foo-1.0.0", "1.0.0", ""))
	for _, name := range []string{"one", "two"} {
		store(t, namespace, "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleInstallation\nmetadata: {name: "+name+"}\nspec: {module: {"+ranged+"}}\n")
	}
	kubeconfig := through(t, func(w http.ResponseWriter, r *http.Request) bool {
		isRefused := strings.HasSuffix(r.URL.Path, "/deployments")
		if isRefused {
			refuse(w, http.StatusForbidden, "Forbidden", "deployments.apps is forbidden: not yours")
		}
		return isRefused
	})
	line := []string{"impact", "--plan", "-f", edited(t, namespace, template("foo-1.1.0", "1.1.0", ""))}
	got := run(t, kubeconfig, line...)
	for _, want := range []string{"plan for " + namespace + "/one: make the plan: the release is in the files alone", "plan for " + namespace + "/two: make the plan: ", "is taken to be"} {
		if strings.Count(got.told, want) != 1 {
			t.Errorf("%q is not told once in %s", want, got.told)
		}
	}
	if got.code != 2 || !strings.Contains(got.out, "2 upgrade at once") {
		t.Errorf("ended with %d: %s", got.code, got.out)
	}
	// What one of them does not have is not typed wrongly for all.
	if got := run(t, kubeconfig, append(line, "--as-installation")...); got.code != 2 || !strings.Contains(got.told, "plan for "+namespace+"/one: ") || !strings.Contains(got.told, "names no ServiceAccount") {
		t.Errorf("ended with %d: %s", got.code, got.told)
	}
	// What all plans will lack is looked for once.
	var looks atomic.Int32
	kubeconfig = through(t, func(w http.ResponseWriter, r *http.Request) bool {
		isOne := strings.Contains(r.URL.Path, "/moduleinstallations/")
		if isOne {
			looks.Add(1)
			refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		}
		return isOne
	})
	if got := run(t, kubeconfig, line...); got.code != 2 || looks.Load() != 1 || strings.Count(got.told, "does not take the login") != 1 {
		t.Errorf("ended with %d, and looked %d times: %s", got.code, looks.Load(), got.told)
	}
}

// TestImpactBesideWhatIsLacking: of whom the labels cannot be read nothing is known, and of others all.
func TestImpactBesideWhatIsLacking(t *testing.T) {
	t.Parallel()
	system, one := shelf(t)
	other := env.NewNamespace(t)
	store(t, system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {consumers: {namespaceSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}}}\n")
	for _, namespace := range []string{one, other} {
		store(t, namespace, asking(ranged, "", system, ""))
	}
	first, second := min(one, other), max(one, other)
	kubeconfig := through(t, func(w http.ResponseWriter, r *http.Request) bool {
		isRefused := r.URL.Path == "/api/v1/namespaces" || r.URL.Path == "/api/v1/namespaces/"+first
		if isRefused {
			refuse(w, http.StatusForbidden, "Forbidden", "namespaces is forbidden: not yours")
		}
		return isRefused
	})
	got := run(t, kubeconfig, "impact", "-f", edited(t, system, template("foo-1.1.0", "1.1.0", "")), "-o", "wide")
	if got.code != 2 || strings.Count(got.told, "read the labels of namespace") != 1 || strings.Contains(got.out, first+"/foo") || !strings.Contains(got.out, second+"/foo") {
		t.Errorf("ended with %d, %s: %s", got.code, got.told, got.out)
	}
}
