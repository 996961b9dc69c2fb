package cli_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// rowOf is the text of a table's row whose head is the link to a page.
func rowOf(t *testing.T, page, head string) string {
	t.Helper()
	row := regexp.MustCompile(`(?s)<tr[^>]*><th scope="row"><a href="[^"]*` + regexp.QuoteMeta(head) + `".*?</tr>`).FindString(page)
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")
	return strings.Join(strings.Fields(text), " ")
}

// TestModulePage: where channels lead, who has which release and who is on the way, in two requests for the catalogue and one for the
// installations.
func TestModulePage(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	other, unseen, left := env.NewNamespace(t), env.NewNamespace(t), env.NewNamespace(t)
	store(t, system, "apiVersion: modules.sluice.dev/v1alpha1\nkind: Module\nmetadata: {name: foo}\nspec: {description: A store, channels: [{name: regular, version: 2.0.0, message: for all}, {name: old, version: 9.9.9}]}\n")
	object{t, played(t, system, template("foo-1.1.0", "1.1.0", "")).kind, system, "foo-1.1.0"}.patch("spec: {support: {state: Deprecated, message: it leaks, replacedBy: 2.0.0}}")
	waits := strings.ReplaceAll(asking("name: foo, channel: regular", "", system, ", pending: {version: 2.0.0, reason: AwaitingApproval}"), "selectedBy: 'range/>=1.0.0 <2.0.0'", "selectedBy: channel/regular")
	waits = strings.Replace(waits, "desired: {module: foo, version: 1.0.0, template: foo-1.0.0", "desired: {module: foo, version: 2.0.0, template: foo-2.0.0", 1)
	store(t, team, waits)
	store(t, other, strings.Replace(waits, ", pending: {version: 2.0.0, reason: AwaitingApproval}", "", 1))
	store(t, unseen, installation("foo", "", "{}"))
	store(t, left, strings.Replace(asking(ranged, "", system, ""), "resolution: {module: foo", "resolution: {module: bar", 1))
	kubeconfig, err := env.KubeconfigAs("librarian-of-"+system, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	b := opened(t, kubeconfig, "-n", team)
	list := b.eventually("modules?namespace="+system, "5 found")
	if strings.Count(list, `href="`+b.base+"modules/"+system+`/foo"`) != 5 {
		t.Errorf("each template and the module lead to the page: %s", list)
	}
	b.eventually("installations?namespace="+team, "1 found")
	listed := func() map[string]int {
		requests, err := env.Requests("librarian-of-" + system)
		if err != nil {
			t.Fatal(err)
		}
		lists := map[string]int{}
		for _, r := range requests {
			if r.Verb == "list" && r.Object.Namespace != "" || r.Verb == "list" && r.Object.Resource == "moduleinstallations" {
				lists[r.Object.Resource]++
			}
		}
		return lists
	}
	before := listed()
	page := b.page("modules/" + system + "/foo")
	after := listed()
	for _, resource := range []string{"moduletemplates", "modules", "moduleinstallations"} {
		if after[resource]-before[resource] > 1 {
			t.Errorf("%s are listed %d times", resource, after[resource]-before[resource])
		}
	}
	templates := "o/modules.sluice.dev/ModuleTemplate/" + system + "/"
	for head, want := range map[string]string{
		"channel=regular#users":              "regular 2.0.0 foo-2.0.0 1 on the way 1 waiting for all",
		"channel=old#users":                  "old nowhere: 9.9.9 ChannelTargetMissing: Channel old of module foo points to",
		templates + "foo-2.0.0":              "2.0.0 foo-2.0.0 Supported leads here 1 on the way 1 waiting 1 on the way 1 waiting",
		templates + "foo-1.0.0":              "1.0.0 foo-1.0.0 Supported 2 installed 1 installed 3 installed",
		templates + "foo-1.1.0":              "1.1.0 foo-1.1.0 Deprecated; replaced by 2.0.0: it leaks",
		installations + "/" + team + "/foo":  team + "/foo channel/regular 1.0.0 foo-1.0.0 2.0.0 foo-2.0.0 AwaitingApproval",
		installations + "/" + other + "/foo": other + "/foo channel/regular 1.0.0 foo-1.0.0 2.0.0 foo-2.0.0",
	} {
		if got := rowOf(t, page, head); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", head, got, want)
		}
	}
	for _, want := range []string{"Installations that choose from it: 2, of which 0 have what was chosen, 1 are on the way, 1 wait.", "still with a release of this one: 1.", "not looked at by a controller yet", "A store"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := b.page("modules/" + system + "/foo?channel=experimental"); strings.Contains(found, team+"/foo") || !strings.Contains(found, "Installations in channel experimental") {
		t.Errorf("those of a channel: %s", found)
	}
	for _, path := range []string{"o/" + installations + "/" + team + "/foo", templates + "foo-2.0.0", "o/modules.sluice.dev/Module/" + system + "/foo"} {
		if !strings.Contains(b.page(path), `href="`+b.base+"modules/"+system+`/foo"`) {
			t.Errorf("%s does not lead to the module", path)
		}
	}
	if code, text, _ := b.ask(http.MethodGet, b.base+"modules/"+system+"/fooo", ""); code != http.StatusNotFound || !strings.Contains(text, "similar: foo") {
		t.Errorf("a module that is none answers %d: %s", code, text)
	}
	events := b.stream(b.base + "live?" + url.Values{"page": {"modules/" + system + "/foo"}}.Encode())
	object{t, played(t, system, template("foo-3.0.0", "3.0.0", "")).kind, system, "foo-3.0.0"}.patch("metadata: {labels: {a: b}}")
	events("reload")
}

// TestModulePageShowsWhatMayBeRead: what installations say of it, and which roles grant the rest.
func TestModulePageShowsWhatMayBeRead(t *testing.T) {
	t.Parallel()
	system, team := shelf(t)
	store(t, team, asking(ranged, "", system, ""))
	b := opened(t, reader(t, team), "-n", team)
	page := b.eventually("modules/"+system+"/foo", "Installations that choose from it: 1,")
	for _, want := range []string{"ask for the ClusterRole sluice-catalogue, bound in namespace " + system, "ask for the ClusterRole sluice-view", "those of namespace " + team + " are shown"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if got := rowOf(t, page, "ModuleTemplate/"+system+"/foo-1.0.0"); strings.Contains(got, "not in the catalogue") || !strings.Contains(got, "1 installed") {
		t.Errorf("a release that is known by who has it: %q", got)
	}
}

// TestModulePageOfATenant: whoever logs in and may list the installations of a namespace alone has those counted.
func TestModulePageOfATenant(t *testing.T) {
	t.Parallel()
	system, mine := shelf(t)
	theirs := env.NewNamespace(t)
	store(t, mine, asking(ranged, "", system, ""))
	store(t, theirs, asking(ranged, "", system, ""))
	b := opensShop(t).logIn(newTenant(t, mine).token)
	b.eventually("installations", "1 found")
	page := b.page("modules/" + system + "/foo")
	if !strings.Contains(page, "Installations that choose from it: 1, of which 1 have") || strings.Contains(page, theirs) {
		t.Errorf("the page of a tenant: %s", page)
	}
	for _, want := range []string{"ask for the ClusterRole sluice-catalogue, bound in namespace " + system, "All of them are seen with the ClusterRole sluice-view"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
}
