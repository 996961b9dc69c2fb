package forge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/forges"
	"sluice.dev/sluice/tests/upstream"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// desk is a client of a forge with one repository.
type desk struct {
	*forge.Client
	*forges.Forge

	git *upstream.Edited
}

func providers() []forge.Provider { return []forge.Provider{forge.GitHub, forge.GitLab, forge.Gitea} }

func newDesk(t *testing.T, provider forge.Provider, change ...func(*forge.Options)) *desk {
	t.Helper()
	d := &desk{Forge: forges.Start(t, string(provider)), git: upstream.ForTest(t).Repository("acme/shop")}
	d.git.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	d.Add("acme/shop", d.git, func() {})
	d.Client = client(t, provider, d.Endpoint(), change...)
	return d
}

func client(t *testing.T, provider forge.Provider, endpoint string, change ...func(*forge.Options)) *forge.Client {
	t.Helper()
	place, err := forge.Locate(provider, "http://git.example/acme/shop.git", endpoint)
	if err != nil {
		t.Fatal(err)
	}
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	connection, err := factory.HTTP(place.Endpoint, credential.TLS{}, credential.Proxy{})
	if err != nil {
		t.Fatal(err)
	}
	options := forge.Options{HTTP: connection, Body: factory.Body, Token: credential.NewSecret(forges.Token), Clock: clocktesting.NewFakePassiveClock(now)}
	for _, c := range change {
		c(&options)
	}
	return forge.New(place, options)
}

// draft makes a branch, and opens a request for it.
func (d *desk) draft(t *testing.T, name string) forge.Request {
	t.Helper()
	d.git.SetRef("refs/heads/drafts/"+name, d.git.Raw("rev-parse", "main"))
	d.git.Commit("drafts/"+name, name, upstream.Text(map[string]string{name: "text"}))
	text, err := forge.Text(forge.Mark{Owner: "ns/" + name, Package: name, Commit: "c1"}, "words")
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Begin(t.Context(), forge.Draft{Head: "drafts/" + name, Base: "main", Title: "Add " + name, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func all(string) bool { return true }

// TestARequestIsMadeChangedAndFound in the same way on each forge.
func TestARequestIsMadeChangedAndFound(t *testing.T) {
	t.Parallel()
	for _, provider := range providers() {
		t.Run(string(provider), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, provider)
			made := d.draft(t, "web")
			if made.State != forge.Open || made.Head != "drafts/web" || made.Base != "main" || made.URL == "" || made.Mark.Commit != "c1" {
				t.Errorf("made %+v", made)
			}
			if _, err := d.Begin(t.Context(), forge.Draft{Head: "drafts/web", Base: "main", Title: "again", Text: "again"}); !errors.Is(err, forge.ErrExists) {
				t.Errorf("a second one: %v", err)
			}
			d.Change(1, func(p *forges.Pull) { p.Body = "Before.\n" + p.Body + "\nAfter." })
			text, err := forge.Text(forge.Mark{Owner: "ns/web", Package: "web", Commit: "c2"}, "other words")
			if err != nil {
				t.Fatal(err)
			}
			edited, err := d.Edit(t.Context(), 1, forge.Edit{Title: "Update web", Text: text})
			if err != nil || edited.Mark.Commit != "c2" {
				t.Errorf("edited %+v: %v", edited, err)
			}
			got := d.Pulls()[0]
			if !strings.HasPrefix(got.Body, "Before.\n<!--") || !strings.HasSuffix(got.Body, "-->\nAfter.") || strings.Contains(got.Body, "c1") || got.Title != "Update web" {
				t.Errorf("it is %+v", got)
			}
			if closed, err := d.Edit(t.Context(), 1, forge.Edit{State: forge.Closed}); err != nil || closed.State != forge.Closed {
				t.Errorf("closed %+v: %v", closed, err)
			}
			if open, err := d.Edit(t.Context(), 1, forge.Edit{State: forge.Open}); err != nil || open.State != forge.Open {
				t.Errorf("opened again %+v: %v", open, err)
			}
			d.Merge(1, forges.Squash, "alice", true)
			listed, err := d.List(t.Context(), "main", nil, all)
			if err != nil || len(listed.Requests) != 1 || listed.Requests[0].State != forge.Merged {
				t.Fatalf("listed %+v: %v", listed, err)
			}
			if seen, err := d.Look(t.Context(), 1); err != nil || seen.By != "alice" || seen.State != forge.Merged {
				t.Errorf("looked at %+v: %v", seen, err)
			}
		})
	}
}

// TestAListIsReadUpToWhatIsKnown: the first look reads all pages, the next one as many as it has to.
func TestAListIsReadUpToWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, provider := range providers() {
		t.Run(string(provider), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, provider, func(o *forge.Options) { o.PageSize = 2 })
			for i := range 5 {
				d.draft(t, fmt.Sprint("web", i))
			}
			d.Foreign("acme/shop", "drafts/web9", "main", "")
			before := len(d.Asked())
			first, err := d.List(t.Context(), "main", nil, all)
			if err != nil || len(first.Requests) != 5 {
				t.Fatalf("listed %+v: %v", first, err)
			}
			if asked := len(d.Asked()) - before; asked != 3 {
				t.Errorf("the first look took %d requests", asked)
			}
			before = len(d.Asked())
			same, err := d.List(t.Context(), "main", first, all)
			if err != nil || len(same.Requests) != 5 || provider != forge.Gitea && (same != first || !strings.HasSuffix(d.Asked()[before], " 304")) {
				t.Errorf("the second look: %+v %v %v", same, err, d.Asked()[before:])
			}
			d.Close(1, "bob")
			before = len(d.Asked())
			second, err := d.List(t.Context(), "main", first, all)
			if err != nil {
				t.Fatal(err)
			}
			if len(second.Requests) != 5 || second.Requests[0].Number != 1 || second.Requests[0].State != forge.Closed {
				t.Errorf("after a change: %+v", second.Requests)
			}
			if asked := len(d.Asked()) - before; asked > 2 {
				t.Errorf("a change of one took %d requests", asked)
			}
			// What is on no page that was read is still known.
			none, err := d.List(t.Context(), "main", nil, func(string) bool { return false })
			if err != nil || len(none.Requests) != 0 {
				t.Errorf("what nobody wants: %+v %v", none, err)
			}
		})
	}
}

// TestAForgeThatRefusesIsUnderstood: its words are shown, and not what it was sent.
func TestAForgeThatRefusesIsUnderstood(t *testing.T) {
	t.Parallel()
	reset := fmt.Sprint(now.Add(7 * time.Minute).Unix())
	for name, test := range map[string]struct {
		reason string
		answer http.HandlerFunc
		want   error
		until  time.Time
		words  string
	}{
		"Login":     {"A token is wrong.", forges.Status(401, "Bad credentials Bearer "+forges.Token), forge.ErrLogin, time.Time{}, "Bad credentials Bearer [redacted]"},
		"Right":     {"A token may not.", forges.Status(403, "Resource not accessible"), forge.ErrForbidden, time.Time{}, "Resource not accessible"},
		"Missing":   {"There is no such repository.", forges.Status(404, "Not Found"), forge.ErrNotFound, time.Time{}, "Not Found"},
		"After":     {"It says for how long.", forges.Limited(429, map[string]string{"Retry-After": "90"}), forge.ErrLimited, now.Add(90 * time.Second), "rate limit"},
		"Date":      {"It says until when.", forges.Limited(429, map[string]string{"Retry-After": now.Add(time.Minute).Format(http.TimeFormat)}), forge.ErrLimited, now.Add(time.Minute), ""},
		"Secondary": {"A limit may be a 403.", forges.Limited(403, map[string]string{"Retry-After": "60"}), forge.ErrLimited, now.Add(time.Minute), ""},
		"Reset":     {"The count begins anew.", forges.Limited(403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}), forge.ErrLimited, now.Add(7 * time.Minute), ""},
		"GitLab":    {"GitLab spells it otherwise.", forges.Limited(429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": reset}), forge.ErrLimited, now.Add(7 * time.Minute), ""},
		"Forever":   {"Nobody waits for ever.", forges.Limited(429, map[string]string{"Retry-After": "99999999999999"}), forge.ErrLimited, now.Add(time.Hour), ""},
		"Long":      {"Nobody waits for a day.", forges.Limited(429, map[string]string{"Retry-After": "86400"}), forge.ErrLimited, now.Add(time.Hour), ""},
		"Broken":    {"It has its own troubles.", forges.Status(502, "oops"), forge.ErrUnavailable, time.Time{}, "oops"},
		"Refused":   {"It does not want to.", forges.Status(422, "Validation Failed"), forge.ErrRefused, time.Time{}, "Validation Failed"},
		"Garbage":   {"It is a page to log in at.", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in</html>") }, forge.ErrAnswer, time.Time{}, "not the JSON"},
		"Object":    {"It is no list.", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, forge.ErrAnswer, time.Time{}, "no list"},
		"Empty":     {"It is a list of nothing.", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[{}]") }, forge.ErrAnswer, time.Time{}, "no number"},
		"Short":     {"It breaks off.", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"number":1`) }, forge.ErrAnswer, time.Time{}, "too early"},
		"Endless":   {"It does not end.", forges.Endless, forge.ErrAnswer, time.Time{}, "longer than"},
		"Escape":    {"Its words are no lines of ours.", forges.Status(500, "a\nb\x1b[31m"), forge.ErrUnavailable, time.Time{}, `a\nb\x1b[31m`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, forge.GitHub, func(o *forge.Options) { o.MaxBytes = 1 << 20 })
			d.Always(test.answer)
			_, err := d.List(t.Context(), "main", nil, all)
			var said *forge.Error
			if !errors.Is(err, test.want) || !errors.As(err, &said) {
				t.Fatalf("%s: got %v, want %v", test.reason, err, test.want)
			}
			if !said.Until.Equal(test.until) {
				t.Errorf("%s: until %s, want %s", test.reason, said.Until, test.until)
			}
			if text := err.Error(); !strings.Contains(text, test.words) || !strings.Contains(text, "acme/shop") || strings.Contains(text, forges.Token) || strings.Contains(text, "\n") {
				t.Errorf("%s: %s", test.reason, text)
			}
		})
	}
}

// TestALongListIsBounded: strangers who open many requests do not make it too long to be read, and what is kept of it has an end
// whatever a forge says.
func TestALongListIsBounded(t *testing.T) {
	t.Parallel()
	const most, size, pages = 64 << 10, 50, 4
	text := func(length int) string { return strings.Repeat("x", length) }
	for name, test := range map[string]struct {
		reason string
		size   int
		// head and body are those of the request of a number.
		head, body func(number int) string
		want       int
		err        error
	}{
		"Texts":    {"Many long texts are no long request.", size, nil, func(int) string { return text(most / 2) }, size * pages, nil},
		"Text":     {"One that is too long is.", size, nil, func(int) string { return text(most) }, 0, forge.ErrAnswer},
		"Requests": {"A page has as many as were asked for.", 1000, nil, nil, 0, forge.ErrAnswer},
		"Branches": {"What no branch is called is nobody's.", size, func(n int) string { return fmt.Sprint("drafts/", n, text(most/2)) }, nil, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, forge.GitHub, func(o *forge.Options) { o.MaxBytes, o.MaxPages = most, pages })
			d.Always(endless(test.size, test.head, test.body))
			listed, err := d.List(t.Context(), "main", nil, all)
			if !errors.Is(err, test.err) {
				t.Fatalf("%s: got %v, want %v", test.reason, err, test.err)
			}
			if err == nil && len(listed.Requests) != test.want {
				t.Errorf("%s: got %d requests, want %d", test.reason, len(listed.Requests), test.want)
			}
		})
	}
	t.Run("Marks", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, forge.GitHub)
		d.Always(endless(size, nil, func(int) string { return `<!-- sluice: {"owner":"` + text(4000) + `"} -->` }))
		listed, err := d.List(t.Context(), "main", nil, all)
		if err != nil || len(listed.Requests) == 0 {
			t.Fatalf("%+v %v", listed, err)
		}
		kept := 0
		for _, r := range listed.Requests {
			kept += len(r.Mark.Owner)
		}
		if kept > 2<<20 {
			t.Errorf("%d bytes are kept of marks alone", kept)
		}
	})
}

// endless answers with page after page of so many requests.
func endless(size int, head, body func(number int) string) http.HandlerFunc {
	of := func(text func(int) string, number int, otherwise string) string {
		if text == nil {
			return otherwise
		}
		return text(number)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page")) // It is a number.
		repo := map[string]string{"full_name": "acme/shop"}
		var all []any
		for i := range size {
			number := page*size + i
			all = append(all, map[string]any{
				"number": number, "state": "open", "body": of(body, number, ""), "updated_at": now.Add(-time.Duration(number) * time.Second).Format(time.RFC3339),
				"head": map[string]any{"ref": of(head, number, fmt.Sprint("drafts/", number)), "repo": repo}, "base": map[string]any{"ref": "main", "repo": repo},
			})
		}
		w.Header().Set("Link", `<http://elsewhere.example/>; rel="next"`)
		_ = json.NewEncoder(w).Encode(all) // Whoever asked may have gone.
	}
}

// TestNothingGoesToAnotherHost, and nothing but a read follows a redirect at all.
func TestNothingGoesToAnotherHost(t *testing.T) {
	t.Parallel()
	sink := upstream.ForTest(t).Sink(upstream.SinkOptions{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, sink.URL()+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	c := client(t, forge.GitHub, server.URL+"/api/v3")
	if _, err := c.List(t.Context(), "main", nil, all); !errors.Is(err, forge.ErrRefused) {
		t.Error(err)
	}
	if _, err := c.Begin(t.Context(), forge.Draft{Head: "a", Base: "main"}); !errors.Is(err, forge.ErrRefused) {
		t.Error(err)
	}
	if got := sink.Requests(); len(got) != 0 {
		t.Errorf("the other host saw %+v", got)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	type want struct{ Endpoint, Repository string }
	for name, test := range map[string]struct {
		reason        string
		provider      forge.Provider
		git, endpoint string
		want          want
		isBad         bool
	}{
		"GitHub":     {"github.com has its API elsewhere.", forge.GitHub, "https://github.com/acme/shop.git", "", want{"https://api.github.com", "acme/shop"}, false},
		"SSH":        {"What is read over SSH has its API over https.", forge.GitHub, "ssh://git@GitHub.com:22/acme/shop", "", want{"https://api.github.com", "acme/shop"}, false},
		"Enterprise": {"A server of one's own has it below a path.", forge.GitHub, "https://ghe.example:8443/acme/shop.git", "", want{"https://ghe.example:8443/api/v3", "acme/shop"}, false},
		"Groups":     {"GitLab has groups of groups.", forge.GitLab, "ssh://git@gitlab.example:2222/a/b/c.git", "", want{"https://gitlab.example/api/v4", "a/b/c"}, false},
		"Below":      {"A forge may be below a path.", forge.GitLab, "https://example.com/gitlab/a/b.git", "https://example.com/gitlab/api/v4/", want{"https://example.com/gitlab/api/v4", "a/b"}, false},
		"Gitea":      {"Gitea has it on the same host.", forge.Gitea, "http://gitea.example:3000/acme/shop/", "", want{"http://gitea.example:3000/api/v1", "acme/shop"}, false},
		"Address":    {"An IPv6 address is one.", forge.Gitea, "ssh://git@[2001:db8::1]:22/acme/shop", "", want{"https://[2001:db8::1]/api/v1", "acme/shop"}, false},
		"Deep":       {"GitHub has an owner and a name.", forge.GitHub, "https://github.com/a/b/c", "", want{}, true},
		"Shallow":    {"A name alone is none.", forge.GitLab, "https://gitlab.com/a", "", want{}, true},
		"Dots":       {"A path does not lead elsewhere.", forge.Gitea, "https://gitea.example/../x", "", want{}, true},
		"Clear":      {"A credential does not go over http where Git does not.", forge.Gitea, "https://gitea.example/a/b", "http://gitea.example/api/v1", want{}, true},
		"User":       {"An endpoint has no user.", forge.Gitea, "https://gitea.example/a/b", "https://me@gitea.example/api/v1", want{}, true},
		"Other":      {"There are three forges.", "sourceforge", "https://example.com/a/b", "", want{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, err := forge.Locate(test.provider, test.git, test.endpoint)
			if (err != nil) != test.isBad {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if err == nil {
				if diff := cmp.Diff(test.want, want{place.Endpoint.String(), place.Repository}); diff != "" {
					t.Errorf("%s: -want +got:\n%s", test.reason, diff)
				}
			}
		})
	}
}

// TestCodeMeansNothingToAForge: no command, mention, link, image or end of a table or mark comes of it.
func TestCodeMeansNothingToAForge(t *testing.T) {
	t.Parallel()
	got := forge.Code("/merge @all #1 !2 --> `x` | <b>&amp; [a](b) https://evil.example\nä")
	inner := strings.TrimSuffix(strings.TrimPrefix(got, "<code>"), "</code>")
	for _, c := range []string{"/", "@", "!", "-", "`", "|", "<", ">", "[", "(", ":", "\n"} {
		if strings.Contains(inner, c) {
			t.Errorf("%q is in %s", c, inner)
		}
	}
	if !strings.Contains(inner, "ä") || strings.Count(inner, "&") != strings.Count(inner, "&#") {
		t.Error(inner)
	}
}

// FuzzAnswer: whatever a server says, it is a listing or an error.
func FuzzAnswer(f *testing.F) {
	f.Add(`[{"number":1,"html_url":"https://a/1","state":"open","head":{"ref":"drafts/a","repo":{"full_name":"a/b"}},"base":{"ref":"main","repo":{"full_name":"a/b"}},"body":"<!-- sluice: {} -->"}]`)
	f.Add(`[{"iid":1,"state":"merged","source_branch":"drafts/a","target_branch":"main","description":"<!-- sluice: "}]`)
	f.Add(`{"message":{"a":["b"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, provider := range providers() {
			answer := roundTrip(func(*http.Request) *http.Response {
				recorder := httptest.NewRecorder()
				_, _ = recorder.WriteString(text) // It is in memory.
				return recorder.Result()
			})
			place := forge.Place{Provider: provider, Endpoint: &url.URL{Scheme: "https", Host: "forge.example"}, Repository: "a/b"}
			c := forge.New(place, forge.Options{HTTP: &http.Client{Transport: answer}, MaxBytes: 1 << 16, MaxPages: 2})
			listed, err := c.List(t.Context(), "main", nil, all)
			if err != nil {
				continue
			}
			for _, r := range listed.Requests {
				again, err := forge.Text(r.Mark, "words")
				if r.Number <= 0 || r.Head == "" || r.Base != "main" || len(r.URL) > 1024 || len(r.By) > 110 || err == nil && strings.Count(again, "-->") != 2 {
					t.Errorf("%+v", r)
				}
			}
			if diff := cmp.Diff(listed.Requests, listed.With(forge.Request{Number: -1}).Requests[1:], cmpopts.IgnoreUnexported(forge.Request{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
	})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
