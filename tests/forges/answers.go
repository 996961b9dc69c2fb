package forges

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
)

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // Whoever asked has gone, or reads it.
}

func refuse(w http.ResponseWriter, status int, words string) {
	write(w, status, map[string]any{"message": words})
}

// list answers a page, and tells whether it was the one that the client knew.
func (f *Forge) list(w http.ResponseWriter, r *http.Request, repo string) bool {
	query := r.URL.Query()
	var fitting []*Pull
	for _, p := range f.pulls {
		if base := query.Get(f.dialect.baseParameter()); p.repo == repo && (base == "" || p.Base == base) {
			fitting = append(fitting, p)
		}
	}
	slices.SortFunc(fitting, func(a, b *Pull) int { return b.updated.Compare(a.updated) })
	if !f.dialect.isNewestFirst(query) {
		slices.Reverse(fitting)
	}
	size, most := f.dialect.size(query)
	size = min(max(size, 1), most)
	number, _ := strconv.Atoi(query.Get("page"))
	from := min((max(number, 1)-1)*size, len(fitting))
	to := min(from+size, len(fitting))
	shown := []any{}
	for _, p := range fitting[from:to] {
		shown = append(shown, f.dialect.show(p, false))
	}
	if to < len(fitting) {
		w.Header().Set("Link", fmt.Sprintf(`<http://elsewhere.example/?page=%d>; rel="next", <http://elsewhere.example/>; rel="first"`, number+1))
	}
	if f.tags {
		text, _ := json.Marshal(shown) // It is made of texts and numbers.
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(text))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	write(w, http.StatusOK, shown)
	return false
}

func (f *Forge) create(w http.ResponseWriter, r *http.Request, repo string) {
	fields, ok := f.read(w, r)
	if !ok {
		return
	}
	head, base := fields[f.dialect.field("head")], fields[f.dialect.field("base")]
	repository := f.repos[repo]
	for _, p := range f.pulls {
		if p.State == "open" && p.repo == repo && p.from == repo && p.Head == head && p.Base == base {
			f.dialect.exists(w, p)
			return
		}
	}
	tip, err := repository.Resolve("refs/heads/" + head)
	if _, missing := repository.Resolve("refs/heads/" + base); err != nil || missing != nil {
		refuse(w, f.dialect.invalid(), "Validation Failed: head or base is invalid")
		return
	}
	if ahead, err := repository.Repository.Raw("rev-list", "--count", base+".."+head); err != nil || ahead == "0" {
		refuse(w, f.dialect.invalid(), "No commits between "+base+" and "+head)
		return
	}
	p := f.add(repo, head, base)
	p.Title, p.Body, p.tip = fields["title"], fields[f.dialect.field("body")], tip
	write(w, http.StatusCreated, f.dialect.show(p, true))
}

func (f *Forge) edit(w http.ResponseWriter, r *http.Request, p *Pull) {
	fields, ok := f.read(w, r)
	if !ok {
		return
	}
	state := f.dialect.state(fields)
	if state != "" && p.State == "merged" {
		refuse(w, f.dialect.invalid(), "state cannot be changed: it was merged")
		return
	}
	if title, ok := fields["title"]; ok {
		p.Title = title
	}
	if body, ok := fields[f.dialect.field("body")]; ok {
		p.Body = body
	}
	if state != "" && state != p.State {
		p.State, p.By = state, "the-robot"
	}
	f.touch(p)
	write(w, f.dialect.edited(), f.dialect.show(p, true))
}

// comment is one of HTML.
var comment = regexp.MustCompile(`(?s)<!--.*?-->`)

// read reads a body of texts.
func (f *Forge) read(w http.ResponseWriter, r *http.Request) (fields map[string]string, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil || r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return nil, false
	}
	if body, ok := fields[f.dialect.field("body")]; ok && f.plain {
		fields[f.dialect.field("body")] = comment.ReplaceAllString(body, "")
	}
	return fields, true
}
