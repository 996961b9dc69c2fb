// Package forges runs a forge for tests: the part of the REST APIs of GitHub, GitLab and Gitea that reviews take, in front of real
// Git repositories. Its merge button makes real merges, squashes and rebases, and like theirs asks no hook.
// It does not know who asks for reviews, nor why.
package forges

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/tests/upstream"
)

// Token is what the API wants to see.
const Token = "forge-token-0123456789"

// begins is the time of the forge's clock at first. It goes on by a second with each change.
const begins = 1767225600

// Pull is a pull or merge request.
type Pull struct {
	Number      int
	Title, Body string
	Head, Base  string
	// State is open, closed or merged.
	State string
	// By is who merged or closed it.
	By string

	updated time.Time
	tip     string
	repo    string
	// from is the repository that the head is in.
	from string
}

// Forge is one that runs.
type Forge struct {
	t       upstream.TB
	dialect dialect
	server  *httptest.Server

	mu    sync.Mutex
	repos map[string]*upstream.Edited
	pulls []*Pull
	clock time.Time
	next  []http.HandlerFunc
	every http.HandlerFunc
	asked []string
	tags  bool
	plain bool
	moved func()
}

// Start runs a forge of the provider: github, gitlab or gitea.
func Start(t upstream.TB, provider string) *Forge {
	t.Helper()
	f := &Forge{t: t, dialect: dialects[provider], repos: map[string]*upstream.Edited{}, clock: time.Unix(begins, 0).UTC(), moved: func() {}}
	f.tags = provider != "gitea" // Gitea has no conditional requests.
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.server.Close)
	return f
}

// Endpoint is where the API is.
func (f *Forge) Endpoint() string { return f.server.URL + f.dialect.version() }

// Add puts a repository on the forge, as owner/name. Moved is called when somebody has pressed a button.
func (f *Forge) Add(name string, repository *upstream.Edited, moved func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos[name], f.moved = repository, moved
}

// Plain has the forge take comments out of all texts from now on, or leave them.
func (f *Forge) Plain(plain bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plain = plain
}

// FailNext has the next n requests answered by the handler.
func (f *Forge) FailNext(n int, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, slices.Repeat([]http.HandlerFunc{answer}, n)...)
}

// Always has all requests answered by the handler; nil for none.
func (f *Forge) Always(answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.every = answer
}

// Asked are the requests to the API so far, as method and path, with 304 behind those that had nothing new.
func (f *Forge) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// Pulls are all requests, the oldest first.
func (f *Forge) Pulls() []Pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	all := make([]Pull, len(f.pulls))
	for i, p := range f.pulls {
		all[i] = *p
	}
	return all
}

// Foreign opens a request from a branch of the same name in somebody's copy of the repository.
func (f *Forge) Foreign(repo, head, base, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.add(repo, head, base)
	p.Body, p.from = body, "stranger/"+repo
}

func (f *Forge) add(repo, head, base string) *Pull {
	p := &Pull{Number: len(f.pulls) + 1, Head: head, Base: base, State: "open", repo: repo, from: repo}
	f.pulls = append(f.pulls, p)
	f.touch(p)
	return p
}

func (f *Forge) touch(p *Pull) {
	f.clock = f.clock.Add(time.Second)
	p.updated = f.clock
}

// Change has somebody change a request in the forge's own pages.
func (f *Forge) Change(number int, change func(*Pull)) {
	f.mu.Lock()
	change(f.pulls[number-1])
	f.touch(f.pulls[number-1])
	moved := f.moved
	f.mu.Unlock()
	moved()
}

// refresh does what a forge does when branches have moved: the requests of one that is gone are closed, but by GitLab.
func (f *Forge) refresh() {
	for _, p := range f.pulls {
		if p.State != "open" || p.from != p.repo {
			continue
		}
		tip, err := f.repos[p.repo].Resolve("refs/heads/" + p.Head)
		switch {
		case err != nil && !f.dialect.keepsOrphans():
			p.State = "closed"
			f.touch(p)
		case err == nil && tip != p.tip:
			p.tip = tip
			f.touch(p)
		}
	}
}

func (f *Forge) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	said := r.Method + " " + r.URL.Path
	f.asked = append(f.asked, said)
	at := len(f.asked) - 1
	answer := f.every
	if len(f.next) > 0 {
		answer, f.next = f.next[0], f.next[1:]
	}
	if answer != nil {
		f.mu.Unlock()
		answer(w, r)
		return
	}
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+Token {
		refuse(w, http.StatusUnauthorized, "Bad credentials "+r.Header.Get("Authorization"))
		return
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), f.dialect.version())
	repo, number, what := f.dialect.route(path)
	if !ok || f.repos[repo] == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	f.refresh()
	switch {
	case what == "":
		refuse(w, http.StatusNotFound, "Not Found")
	case number > len(f.pulls):
		refuse(w, http.StatusNotFound, "Not Found")
	case number == 0 && r.Method == http.MethodGet:
		if f.list(w, r, repo) {
			f.asked[at] += " 304"
		}
	case number == 0 && r.Method == http.MethodPost:
		f.create(w, r, repo)
	case what == "issue" && r.Method == http.MethodGet:
		write(w, http.StatusOK, map[string]any{"closed_by": user("login", f.pulls[number-1].By)})
	case r.Method == http.MethodGet:
		write(w, http.StatusOK, f.dialect.show(f.pulls[number-1], true))
	case r.Method == f.dialect.editMethod():
		f.edit(w, r, f.pulls[number-1])
	default:
		refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// Status is an answer with a status and some words.
func Status(code int, words string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, words) }
}

// Limited is an answer that wants to be left alone for a while.
func Limited(code int, header map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		refuse(w, code, "API rate limit exceeded")
	}
}

// Endless answers with a list that does not end.
func Endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text := `[{"number":1,"iid":1,"body":"` + strings.Repeat("x", 1<<16)
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		text = strings.Repeat("x", 1<<16)
	}
}

// Hang answers nothing.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
