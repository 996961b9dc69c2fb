package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// tab is one of a real browser. What its console says is kept.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string
}

// maxWait bounds what a tab is waited for.
const maxWait = 4 * time.Minute

// newTab opens an empty one.
func newTab(t *testing.T, further ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	options := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath("chromium-headless-shell"), chromedp.NoSandbox, chromedp.Headless, chromedp.WSURLReadTimeout(maxWait)}, further...)
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(allocated)
	t.Cleanup(leave)
	made := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, made.hear); err != nil {
		t.Fatal(err)
	}
	call(made, log.Enable, cdp.Empty{})
	return made
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *log.EventEntryAdded:
		b.said = append(b.said, fmt.Sprint(event.Entry.Level, ": ", event.Entry.Text, " ", event.Entry.URL))
	case *cdpruntime.EventExceptionThrown:
		b.said = append(b.said, fmt.Sprint(event.ExceptionDetails.Text))
	}
}

// call calls a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], parameters P) R {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, maxWait)
	defer stop()
	result, err := chromedp.Call(ctx, command, parameters)
	if err != nil {
		b.t.Fatalf("%v; the console says %q", err, b.console())
	}
	return result
}

// get does something that gives a value.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, maxWait)
	defer stop()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		b.picture("failed")
		b.t.Fatalf("%v; the console says %q", err, b.console())
	}
	return result
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, action := range actions {
		get(b, action)
	}
}

// console is what it has said since the last time.
func (b *tab) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.said
	b.said = nil
	return said
}

// widths are those of a window, and of a telephone.
const wide, narrow, high = 1280, 320, 900

// picture leaves pictures of the page where somebody asks for them: light and dark, wide and narrow.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("SLUICE_PICTURES")
	if folder == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		for _, width := range []int64{wide, narrow} {
			b.do(chromedp.EmulateViewport(width, high))
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), get(b, chromedp.CaptureScreenshot()), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do(chromedp.EmulateViewport(wide, high))
}

// names are the roles and names that Chromium tells assistive technology of the page.
func (b *tab) names() map[string]bool {
	b.t.Helper()
	found := map[string]bool{}
	for _, node := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if node.Role != nil && node.Name != nil && !node.Ignored {
			found[unquoted(b.t, node.Role)+" "+unquoted(b.t, node.Name)] = true
		}
	}
	return found
}

func unquoted(t *testing.T, value *accessibility.Value) (text string) {
	t.Helper()
	if err := json.Unmarshal(value.Value, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// eventually waits until the page's text has the words.
func (b *tab) eventually(words string) {
	b.t.Helper()
	testenv.Eventually(b.t, "the page says "+words, func(context.Context) (bool, string) {
		ctx, stop := context.WithTimeout(b.ctx, maxWait)
		defer stop()
		// While the tab goes from one page to the next, there is an error instead of a text.
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body?.innerText ?? ''"))
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(text, words), text
	})
}

// TestPagesInABrowser: with the names that assistive technology needs, live, by keyboard, narrow, and with nothing on the console.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	namespace := sneaky(t)
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	foo.patch(fmt.Sprintf("status: {conditions: %s, pending: null}", condition("False", "HealthCheckFailed", `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`)))
	foo.patch("spec: {dependsOn: [{apiVersion: apps/v1, kind: Deployment, name: front}]}")
	b := started(t, env.Kubeconfig, "-n", namespace, "--actions")
	seen := newTab(t)
	seen.do(chromedp.EmulateViewport(wide, high), chromedp.Navigate(b.origin+b.key))
	seen.eventually("Needs attention")
	seen.picture("overview")
	base := get(seen, chromedp.Location())
	list := base + "installations?namespace=" + namespace
	of := base + "o/" + installations + "/" + namespace + "/foo"
	for page, wanted := range map[string][]string{
		"":                                     {"link Overview", "heading Needs attention", "columnheader State", "main "},
		"installations?namespace=" + namespace: {"searchbox Search", "rowheader " + namespace + "/foo", "columnheader Message", "button Show"},
		strings.TrimPrefix(of, base):           {"heading Conditions", "group What it comes from, and what is made of it", "link Suspend…", "heading Events"},
		strings.TrimPrefix(of, base) + "/graph?as=list": {"link As a drawing"},
		"modules/" + namespace + "/foo":                 {"heading Channels", "heading Releases", "columnheader no channel", "rowheader 2.0.0 foo-2.0.0"},
		strings.TrimPrefix(of, base) + "/why":           {"link " + namespace + "/foo"},
		strings.TrimPrefix(of, base) + "/do/suspend":    {"button Suspend", "textbox Why, for those who find it so"},
	} {
		seen.do(chromedp.Navigate(base + page))
		names := seen.names()
		for _, want := range wanted {
			if !names[want] {
				t.Errorf("%s has no %q: %v", page, want, names)
			}
		}
		seen.do(chromedp.EmulateViewport(narrow, high))
		needs := get(seen, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
		seen.do(chromedp.EmulateViewport(wide, high))
		if title := get(seen, chromedp.Title()); title == "owned" || needs > narrow {
			t.Errorf("%s: the title is %q, and on %d px it needs %d", page, title, narrow, needs)
		}
		seen.picture("page-" + strings.NewReplacer("/", "_", "?", "_").Replace(page))
	}

	seen.do(chromedp.Navigate(list))
	seen.eventually("live")
	foo.patch("status: {conditions: " + condition("False", "HealthCheckFailed", "something else") + "}")
	seen.eventually("something else")
	played(t, namespace, installation("newcomer", "", "{}"))
	seen.eventually("newcomer")
	foo.patch("status: {conditions: " + condition("False", "HealthCheckFailed", "and on") + "}")
	seen.eventually("and on")

	// A page that cannot be read anew is not live, and is read when it can be.
	get(seen, chromedp.Evaluate[bool](`(window.real = window.fetch, window.fetch = async () => new Response('', { status: 503 }), true)`))
	played(t, namespace, installation("second", "", "{}"))
	seen.eventually("not live")
	get(seen, chromedp.Evaluate[bool](`(window.fetch = window.real, true)`))
	seen.eventually("second")

	seen.do(chromedp.KeyEvent("j"))
	if focused := get(seen, chromedp.Evaluate[string]("document.activeElement.textContent")); focused != namespace+"/foo" {
		t.Errorf("j goes to %q", focused)
	}
	seen.do(chromedp.KeyEvent("/"))
	if focused := get(seen, chromedp.Evaluate[string]("document.activeElement.id")); focused != "search" {
		t.Errorf("/ goes to %q", focused)
	}
	if said := seen.console(); len(said) > 0 {
		t.Errorf("the console says %q", said)
	}
}

// TestLogInInABrowser: people come in, see theirs live, and are told when they are not known any more.
func TestLogInInABrowser(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	tenant := newTenant(t, namespace)
	pages := opensShop(t)
	pages.tokens = append(pages.tokens, tenant.token)
	seen := newTab(t, chromedp.Flag("host-resolver-rules", "MAP sluice.test:443 "+pages.address), chromedp.Flag("ignore-certificate-errors", true))
	seen.do(chromedp.EmulateViewport(narrow, high), chromedp.Navigate(pages.origin+"/installations"))
	if names := seen.names(); !names["textbox Bearer token"] || !names["button Log in"] {
		t.Errorf("the login has no names: %v", names)
	}
	if needs := get(seen, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); needs > narrow {
		t.Errorf("the login needs %d px", needs)
	}
	seen.picture("login")
	logIn := func() {
		t.Helper()
		get(seen, chromedp.Evaluate[bool](fmt.Sprintf(`(() => { document.querySelector('[name=token]').value = %q; document.querySelector('main form').requestSubmit(); return true })()`, tenant.token)))
		seen.eventually("3 found")
	}
	logIn()
	if at := get(seen, chromedp.Location()); at != pages.origin+"/installations" {
		t.Errorf("the login leads to %s", at)
	}
	if cookies := get(seen, chromedp.Evaluate[string]("document.cookie")); cookies != "" {
		t.Errorf("scripts read %q", cookies)
	}
	seen.eventually("live")
	get(seen, chromedp.Evaluate[bool](`(() => { document.querySelector('form[action="/logout"]').requestSubmit(); return true })()`))
	seen.eventually("Bearer token")
	seen.do(chromedp.Navigate(pages.origin + "/installations"))
	logIn()
	seen.eventually("live")
	for _, said := range seen.console() {
		if !strings.Contains(said, "401") {
			t.Errorf("the console says %q", said)
		}
	}
	if err := env.Client.Delete(t.Context(), tenant.account); err != nil {
		t.Fatal(err)
	}
	seen.eventually("not live: load the page anew to log in")
}

// TestPagesOfOthersDoNothing: a page of another origin neither reads, nor frames, nor acts.
func TestPagesOfOthersDoNothing(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	foo := played(t, namespace, installation("foo", "", "{conditions: "+condition("True", "Installed", "well")+"}"))
	b := started(t, env.Kubeconfig, "-n", namespace, "--actions")
	seen := newTab(t)
	seen.do(chromedp.Navigate(b.origin + b.key))
	base := get(seen, chromedp.Location())
	act := base + "o/" + installations + "/" + namespace + "/foo/do/suspend"
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>attack</title><iframe src="%s"></iframe><iframe name="hidden"></iframe>
<form method="post" action="%s" target="hidden"><input name="version" value="%s"></form>
<script>
window.read = 'nothing';
fetch('%[1]s', {credentials: 'include'}).then(r => r.text()).then(t => { window.read = t; }).catch(() => {}).finally(() => { window.done = true; });
fetch('%[2]s', {method: 'POST', credentials: 'include', mode: 'no-cors', headers: {'Content-Type': 'application/x-www-form-urlencoded'}, body: 'version=%[3]s'}).catch(() => {}).finally(() => { window.sent = true; });
document.forms[0].submit();
</script>`, base, act, foo.get().GetResourceVersion())
	}))
	t.Cleanup(evil.Close)
	for _, origin := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		seen.do(chromedp.Navigate(origin))
		get(seen, chromedp.Poll[bool]("window.done && window.sent"))
		read := get(seen, chromedp.Evaluate[string]("window.read"))
		frames := get(seen, chromedp.Evaluate[int](`(() => { try { return document.querySelector('iframe').contentDocument ? 1 : 0 } catch { return 0 } })()`))
		if read != "nothing" || frames != 0 {
			t.Errorf("%s reads %q, frames %d", origin, read, frames)
		}
	}
	if annotations := foo.get().GetAnnotations(); annotations["sluice.dev/suspended-at"] != "" {
		t.Errorf("a page of another origin has suspended it: %v", annotations)
	}
}
