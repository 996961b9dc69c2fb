package cli_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// browser is somebody who has opened the pages.
type browser struct {
	t      *testing.T
	client *http.Client
	// origin is http://HOST, and base the path of all pages.
	origin, base string
	key          string
	// shown is what the command has printed.
	shown func() string
}

// opened starts the command, and opens what it prints.
func opened(t *testing.T, kubeconfig string, args ...string) *browser {
	t.Helper()
	b := started(t, kubeconfig, args...)
	b.enter()
	return b
}

// started starts the command alone.
func started(t *testing.T, kubeconfig string, args ...string) *browser {
	t.Helper()
	shown := served(t, kubeconfig, func(answer) {}, args...)
	parsed, err := url.Parse(strings.TrimSpace(shown()))
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, client: &http.Client{Jar: jar}, origin: "http://" + parsed.Host, key: parsed.RequestURI(), shown: shown}
}

// served starts the command, waits until it has printed where it listens, and holds what it says in the end against the check too.
func served(t *testing.T, kubeconfig string, check func(answer), args ...string) (shown func() string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	shown, wait := beginShown(ctx, kubeconfig, append([]string{"ui", "--listen", "127.0.0.1:0"}, args...)...)
	t.Cleanup(func() {
		stop()
		got := wait()
		if check(got); got.code != 0 {
			t.Errorf("it ends with %d: %s", got.code, got.told)
		}
	})
	testenv.Eventually(t, "it listens", func(context.Context) (bool, string) { return shown() != "", "" })
	return shown
}

// enter opens the URL that is printed.
func (b *browser) enter() {
	b.t.Helper()
	code, _, headers := b.ask(http.MethodGet, b.key, "")
	if code != http.StatusOK {
		b.t.Fatalf("the URL that is printed answers %d", code)
	}
	b.base = headers.Get("X-Test-Path")
}

// ask makes a request with what a browser sends, and gives the answer after redirects.
func (b *browser) ask(method, path, body string, headers ...string) (int, string, http.Header) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.origin+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	response.Header.Set("X-Test-Path", response.Request.URL.Path)
	return response.StatusCode, string(text), response.Header
}

// page is one that is there.
func (b *browser) page(path string) string {
	b.t.Helper()
	code, text, _ := b.ask(http.MethodGet, b.base+path, "")
	if code != http.StatusOK {
		b.t.Fatalf("%s answers %d: %s", path, code, text)
	}
	return text
}

// eventually waits until a page has the text.
func (b *browser) eventually(path, text string) string {
	b.t.Helper()
	var got string
	testenv.Eventually(b.t, path+" has "+text, func(context.Context) (bool, string) {
		got = b.page(path)
		return strings.Contains(got, text), got
	})
	return got
}

const installations = "modules.sluice.dev/ModuleInstallation"

// TestPages: each page has what the objects say, in the person's own rights.
func TestPages(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	b := opened(t, env.Kubeconfig, "-n", namespace)
	list := b.eventually("installations?namespace="+namespace, "3 found")
	for _, want := range []string{namespace + "/", `class="state ready"`, "Failed"} {
		if !strings.Contains(list, want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if found := b.page("installations?state=Failed&namespace=" + namespace); !strings.Contains(found, "1 found") {
		t.Errorf("by state: %s", found)
	}
	for _, page := range []string{"", "sources", "modules", "packages"} {
		b.page(page)
	}
	if code, _, _ := b.ask(http.MethodGet, b.base+"o/x/Y/z/a", ""); code != http.StatusNotFound {
		t.Errorf("a kind that is not ours answers %d", code)
	}
}

// TestPagesShowHarmlessText: text of the cluster is nothing but text, and of Secrets there is none.
func TestPagesShowHarmlessText(t *testing.T) {
	t.Parallel()
	namespace := sneaky(t)
	markup := `<img src=x onerror=alert(1)>"'{{.}}`
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	foo.patch(fmt.Sprintf("status: {conditions: %s}", condition("False", "Failed", hostile+markup)))
	other := object{t, played(t, namespace, repository("more", "")).kind, namespace, "more"}
	other.patch("spec: {url: 'https://example.com/javascript:alert(1)'}")
	b := opened(t, env.Kubeconfig, "-n", namespace, "--actions")
	b.eventually("installations?namespace="+namespace, "onerror")
	of := "o/" + installations + "/" + namespace + "/foo"
	for _, path := range []string{"", "sources", "installations?q=%22%3E%3Cimg%20src=y%3E", "installations?namespace=" + namespace, of, of + "/graph", of + "/graph?as=list", of + "/why", of + "/do/suspend", "modules/" + namespace + "/foo", "nothing"} {
		code, text, headers := b.ask(http.MethodGet, b.base+path, "")
		if code != http.StatusOK && path != "nothing" {
			t.Errorf("%s answers %d: %s", path, code, text)
		}
		checkPage(t, path, text, headers)
	}
	code, text, headers := b.ask(http.MethodPost, b.base+of+"/plan", "a=b", "Sec-Fetch-Site", "same-origin")
	if code != http.StatusOK && code != http.StatusBadGateway {
		t.Errorf("the plan answers %d: %s", code, text)
	}
	checkPage(t, "plan", text, headers)
}

// checkPage says that a page has no Secret, and nothing that acts.
func checkPage(t *testing.T, path, text string, headers http.Header) {
	t.Helper()
	checkHarmless(t, path, answer{out: text})
	if found := regexp.MustCompile(`<img|<script[^>]*>[^<]|style=|href="javascript`).FindString(text); found != "" {
		t.Errorf("%s has %s", path, found)
	}
	if policy := headers.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; script-src 'self'; style-src 'self'") ||
		headers.Get("X-Content-Type-Options") != "nosniff" || headers.Get("Referrer-Policy") != "no-referrer" || headers.Get("Cache-Control") != "no-store" {
		t.Errorf("%s has the headers %v", path, headers)
	}
}

// TestNobodyElseSeesThePages: neither other users of the machine, nor pages of others.
func TestNobodyElseSeesThePages(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	b := opened(t, env.Kubeconfig, "-n", namespace, "--actions")
	if code, _, _ := b.ask(http.MethodGet, b.key, ""); code != http.StatusForbidden {
		t.Errorf("the URL is good twice: %d", code)
	}
	stranger := &browser{t: t, client: &http.Client{}, origin: b.origin, base: b.base}
	if code, _, _ := stranger.ask(http.MethodGet, b.base, ""); code != http.StatusForbidden {
		t.Errorf("somebody without the cookie gets %d", code)
	}
	for _, host := range []string{"evil.example.com", "evil.example.com:9191", "127.0.0.1.evil.example.com", "127.0.0.1"} {
		for _, path := range []string{b.base, b.base + "assets/x.js", "/"} {
			if code, text, _ := b.ask(http.MethodGet, path, "", "Host", host); code != http.StatusMisdirectedRequest || strings.Contains(text, namespace) {
				t.Errorf("%s as %s answers %d", path, host, code)
			}
		}
	}
	act := b.base + "o/" + installations + "/" + namespace + "/redis/do/suspend"
	for _, site := range []string{"cross-site", "same-site"} {
		if code, _, _ := b.ask(http.MethodPost, act, "version=1", "Sec-Fetch-Site", site, "Origin", "https://evil.example.com"); code != http.StatusForbidden {
			t.Errorf("a page of another site acts: %d", code)
		}
	}
	if code, _, _ := b.ask(http.MethodPost, act, "version=1", "Origin", "http://localhost:1"); code != http.StatusForbidden {
		t.Errorf("a page of another port acts: %d", code)
	}
}

// TestPagesAreLive: a row that changes is sent, and what comes or goes has the page read anew.
func TestPagesAreLive(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	foo := played(t, namespace, installation("foo", "", "{conditions: "+condition("True", "Installed", "well")+"}"))
	b := opened(t, env.Kubeconfig, "-n", namespace)
	page := "installations?namespace=" + namespace
	b.eventually(page, "1 found")
	events := b.stream(b.base + "live?" + url.Values{"page": {page}}.Encode())
	foo.patch("status: {conditions: " + condition("False", "Failed", "it does not") + "}")
	if got := events("patch"); !strings.Contains(got, "it does not") || !strings.Contains(got, "r-"+string(foo.get().GetUID())) {
		t.Errorf("patch: %s", got)
	}
	played(t, namespace, installation("bar", "", "{}"))
	events("reload")
	of := b.stream(b.base + "live?" + url.Values{"page": {"o/" + installations + "/" + namespace + "/foo"}}.Encode())
	foo.patch("status: {conditions: " + condition("True", "Installed", "well again") + "}")
	of("reload")
}

// TestPagesOfMembersAreLive: what is made of an installation, and by whom it was changed, is read anew when it changes. The page is
// told by its mark whether it was read before it was followed.
func TestPagesOfMembersAreLive(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	b := opened(t, env.Kubeconfig, "-n", namespace)
	b.eventually("installations?namespace="+namespace, "1 found")
	page := b.base + "o/" + installations + "/" + namespace + "/foo"
	of := b.stream(b.live(page))
	of("reload") // It is watched from now on.
	touched := func(kind, name string) {
		object{t, corev1.SchemeGroupVersion.WithKind(kind), namespace, name}.patch("metadata: {annotations: {touched: '" + rand.Text() + "'}}")
		of("reload")
	}
	touched("ConfigMap", "a")
	touched("Pod", "foo-1-x")
	member(t, namespace, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}")
	foo := object{t, modulesv1.GroupVersion.WithKind("ModuleInstallation"), namespace, "foo"}
	foo.patch(fmt.Sprintf("status: {inventory: {contents: [{version: v1, kind: ServiceAccount, namespaces: [%s], count: 1}]}}", namespace))
	of("reload")
	// The first time it may be told that it is watched.
	touched("ServiceAccount", "other")
	touched("ServiceAccount", "other")
}

// TestMembersOfWhichSomeCannotBeHad: a kind that is not listed, as one whose webhook is down, does not keep the others from being watched,
// and is watched once it is.
func TestMembersOfWhichSomeCannotBeHad(t *testing.T) {
	t.Parallel()
	namespace := rolling(t)
	var isUp atomic.Bool
	server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
		isDown := strings.HasSuffix(r.URL.Path, "/secrets") && !isUp.Load()
		if isDown {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return isDown
	})
	b := opened(t, env.Kubeconfig, "-n", namespace, "--server", server)
	b.eventually("installations?namespace="+namespace, "1 found")
	of := b.stream(b.live(b.base + "o/" + installations + "/" + namespace + "/foo"))
	of("reload") // What can be is watched from now on.
	isUp.Store(true)
	of("reload") // And so is the other kind.
	object{t, corev1.SchemeGroupVersion.WithKind("Secret"), namespace, "s"}.patch("metadata: {annotations: {touched: now}}")
	of("reload")
}

// live is the stream that a page asks for.
func (b *browser) live(path string) string {
	b.t.Helper()
	_, text, _ := b.ask(http.MethodGet, path, "")
	found := regexp.MustCompile(`data-live="([^"]+)"`).FindStringSubmatch(text)
	if found == nil {
		b.t.Fatalf("%s is not live: %s", path, text)
	}
	return html.UnescapeString(found[1])
}

// TestAPageThatWasReadBeforeIsReadAnew: a tab that was opened behind others is followed when it is looked at.
func TestAPageThatWasReadBeforeIsReadAnew(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	foo := played(t, namespace, installation("foo", "", "{}"))
	b := opened(t, env.Kubeconfig, "-n", namespace)
	b.eventually("installations?namespace="+namespace, "1 found")
	pages := []string{b.base, b.base + "installations?namespace=" + namespace, b.base + "o/" + installations + "/" + namespace + "/foo"}
	var streams []string
	for _, page := range pages {
		streams = append(streams, b.live(page))
	}
	foo.patch("status: {conditions: " + condition("False", "Failed", "it does not") + "}")
	b.eventually("installations?namespace="+namespace, "it does not")
	for _, stream := range streams {
		b.stream(stream)("reload")
	}
}

// opens is a stream that was opened just now.
func (b *browser) opens(path string) *bufio.Reader {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.origin+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		b.t.Fatalf("the stream at %s answers %d", path, response.StatusCode)
	}
	return bufio.NewReader(response.Body)
}

// stream opens a stream, and gives what waits for an event of a name, with its data.
func (b *browser) stream(path string) func(name string) string {
	b.t.Helper()
	lines := bufio.NewScanner(b.opens(path))
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		b.t.Fatal("the stream does not begin")
	}
	begun := true // There is a line already.
	return func(name string) string {
		b.t.Helper()
		for begun || lines.Scan() {
			begun = false
			if lines.Text() == "event: "+name && lines.Scan() {
				return lines.Text()
			}
		}
		b.t.Fatalf("the stream ends before %s: %v", name, lines.Err())
		return ""
	}
}

// TestPagesShowWhatMayBeRead: what is missing is told, and what the person may not do is not done.
func TestPagesShowWhatMayBeRead(t *testing.T) {
	t.Parallel()
	namespace, other := three(t), three(t)
	b := opened(t, reader(t, namespace), "-n", namespace, "--actions")
	list := b.eventually("installations", "3 found")
	if strings.Contains(list, other) || !strings.Contains(list, "sluice-view") || !strings.Contains(list, "those of namespace "+namespace+" are shown") {
		t.Errorf("the table of one who may read one namespace: %s", list)
	}
	names := regexp.MustCompile(`/ModuleInstallation/` + namespace + `/([a-z]+)"`).FindStringSubmatch(list)
	of := b.base + "o/" + installations + "/" + namespace + "/" + names[1]
	if _, text, _ := b.ask(http.MethodGet, of, ""); strings.Contains(text, "/do/") {
		t.Errorf("buttons are offered to one who may not patch: %s", text)
	}
	if code, _, _ := b.ask(http.MethodPost, of+"/do/suspend", "version=1"); code != http.StatusConflict && code != http.StatusForbidden {
		t.Errorf("suspend answers %d", code)
	}
	if code, text, _ := b.ask(http.MethodGet, b.base+"o/"+installations+"/"+other+"/"+names[1], ""); code == http.StatusOK || !strings.Contains(text, "forbidden") {
		t.Errorf("an object of another namespace answers %d: %s", code, text)
	}
}

// TestPagesAct: what is confirmed is what is sent, under the person's own name, and only to the object that was shown.
func TestPagesAct(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	foo := played(t, namespace, installation("foo", "", "{conditions: "+condition("True", "Installed", "well")+"}"))
	b := opened(t, env.Kubeconfig, "-n", namespace, "--actions")
	of := b.base + "o/" + installations + "/" + namespace + "/foo"
	_, text, _ := b.ask(http.MethodGet, of+"/do/suspend", "")
	version := foo.get().GetResourceVersion()
	if !strings.Contains(text, "&#34;suspend&#34;: true") || !strings.Contains(text, "suspended-by&#34;: &#34;(your name)&#34;") || !strings.Contains(text, `value="`+version+`"`) {
		t.Fatalf("the page that asks: %s", text)
	}
	foo.patch("metadata: {annotations: {note: other}}")
	if code, _, _ := b.ask(http.MethodPost, of+"/do/suspend", "version="+version+"&reason=moved"); code != http.StatusConflict || foo.get().GetAnnotations()["sluice.dev/suspended-by"] != "" {
		t.Errorf("what has changed since is suspended: %d", code)
	}
	version = foo.get().GetResourceVersion()
	if code, text, _ := b.ask(http.MethodPost, of+"/do/suspend", "version="+version+"&reason=moved"); code != http.StatusOK || !strings.Contains(text, "Suspended by ") || !strings.Contains(text, ": moved") {
		t.Errorf("suspend answers %d: %s", code, text)
	}
	if got := foo.get().GetAnnotations(); got["sluice.dev/suspended-reason"] != "moved" {
		t.Errorf("annotations: %v", got)
	}
	b.ask(http.MethodPost, of+"/do/resume", "version="+foo.get().GetResourceVersion())
	b.ask(http.MethodPost, of+"/do/reconcile", "version="+foo.get().GetResourceVersion())
	foo.asked()
	quiet := opened(t, env.Kubeconfig, "-n", namespace)
	if code, _, _ := quiet.ask(http.MethodPost, quiet.base+strings.TrimPrefix(of, b.base)+"/do/suspend", "version="+foo.get().GetResourceVersion()); code == http.StatusOK {
		t.Error("it acts without --actions")
	}
}
