package forge

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/printable"
)

// dialect is how one kind of forge wants to be asked.
type dialect interface {
	// all is the path of all requests, and at of one; closed is where it says who closed a request, or nothing.
	all() string
	at(number int) string
	closed(number int) string
	// page asks for requests, those first that changed last.
	page(base string, number, size int) url.Values
	begin(d Draft) any
	edit(e Edit) any
	editMethod() string
	// wire is what a request is read into.
	wire() wire
}

// wire is a request as a forge spells it.
type wire interface {
	// request is the request; its state is empty where it comes from another repository.
	request() Request
}

func dialects() map[Provider]func(Place) dialect {
	return map[Provider]func(Place) dialect{
		GitHub: func(p Place) dialect {
			return pulls{repo: "/repos/" + p.Repository, base: "base", size: "per_page", sort: "updated", knowsCloser: true}
		},
		Gitea: func(p Place) dialect {
			return pulls{repo: "/repos/" + p.Repository, base: "base_branch", size: "limit", sort: "recentupdate"}
		},
		GitLab: func(p Place) dialect { return merges{project: "/projects/" + url.PathEscape(p.Repository)} },
	}
}

// pulls are the pull requests of GitHub, see docs.github.com/en/rest/pulls, and of Gitea, which took over most of it, see
// /api/swagger of any of its servers.
type pulls struct {
	repo, base, size, sort string
	// knowsCloser says that the issue of a request tells who closed it.
	knowsCloser bool
}

func (d pulls) all() string          { return d.repo + "/pulls" }
func (d pulls) at(number int) string { return fmt.Sprintf("%s/pulls/%d", d.repo, number) }

func (d pulls) closed(number int) string {
	if !d.knowsCloser {
		return ""
	}
	return fmt.Sprintf("%s/issues/%d", d.repo, number)
}

func (d pulls) page(base string, number, size int) url.Values {
	return url.Values{
		"state": {"all"}, "sort": {d.sort}, "direction": {"desc"}, d.base: {base}, "page": {strconv.Itoa(number)}, d.size: {strconv.Itoa(size)},
	}
}

func (pulls) begin(d Draft) any {
	return map[string]string{"head": d.Head, "base": d.Base, "title": d.Title, "body": d.Text}
}

func (pulls) edit(e Edit) any {
	return given(map[string]string{"title": e.Title, "body": e.Text, "state": strings.ToLower(string(e.State))})
}

func (pulls) editMethod() string { return http.MethodPatch }
func (pulls) wire() wire         { return &wirePull{} }

// merges are the merge requests of GitLab, see docs.gitlab.com/api/merge_requests.
type merges struct{ project string }

func (d merges) all() string          { return d.project + "/merge_requests" }
func (d merges) at(number int) string { return fmt.Sprintf("%s/merge_requests/%d", d.project, number) }
func (merges) closed(int) string      { return "" }

func (merges) page(base string, number, size int) url.Values {
	return url.Values{
		"state": {"all"}, "scope": {"all"}, "order_by": {"updated_at"}, "sort": {"desc"}, "target_branch": {base},
		"page": {strconv.Itoa(number)}, "per_page": {strconv.Itoa(size)},
	}
}

func (merges) begin(d Draft) any {
	return map[string]string{"source_branch": d.Head, "target_branch": d.Base, "title": d.Title, "description": d.Text}
}

func (merges) edit(e Edit) any {
	event := map[State]string{Open: "reopen", Closed: "close"}[e.State]
	return given(map[string]string{"title": e.Title, "description": e.Text, "state_event": event})
}

func (merges) editMethod() string { return http.MethodPut }
func (merges) wire() wire         { return &wireMerge{} }

// given are the fields that have a value.
func given(fields map[string]string) map[string]string {
	for name, value := range fields {
		if value == "" {
			delete(fields, name)
		}
	}
	return fields
}

type wireUser struct {
	Login    string `json:"login"`
	Username string `json:"username"`
}

// name is what people know the user by.
func (u *wireUser) name() string {
	if u == nil {
		return ""
	}
	name := u.Login
	if name == "" {
		name = u.Username
	}
	return printable.Line(name, maxName)
}

// maxName bounds what is taken over of the name of a user.
const maxName = 100

type wireClosed struct {
	ClosedBy *wireUser `json:"closed_by"`
}

type wirePull struct {
	Number   int        `json:"number"`
	URL      string     `json:"html_url"`
	State    string     `json:"state"`
	Merged   bool       `json:"merged"`
	MergedAt *time.Time `json:"merged_at"`
	MergedBy *wireUser  `json:"merged_by"`
	Updated  time.Time  `json:"updated_at"`
	Body     string     `json:"body"`
	Head     wireEnd    `json:"head"`
	Base     wireEnd    `json:"base"`
}

// wireEnd is a branch of a repository. A repository that was deleted has no name.
type wireEnd struct {
	Ref  string `json:"ref"`
	Repo *struct {
		Name string `json:"full_name"`
	} `json:"repo"`
}

func (e wireEnd) repo() string {
	if e.Repo == nil {
		return ""
	}
	return e.Repo.Name
}

func (w *wirePull) request() Request {
	r := Request{Number: w.Number, URL: w.URL, Head: w.Head.Ref, Base: w.Base.Ref, By: w.MergedBy.name(), Updated: w.Updated, body: w.Body}
	switch {
	case w.Head.repo() == "" || !strings.EqualFold(w.Head.repo(), w.Base.repo()):
	case w.Merged || w.MergedAt != nil:
		r.State = Merged
	case w.State == "open":
		r.State = Open
	case w.State == "closed":
		r.State = Closed
	}
	return r
}

type wireMerge struct {
	Number    int       `json:"iid"`
	URL       string    `json:"web_url"`
	State     string    `json:"state"`
	MergeUser *wireUser `json:"merge_user"`
	MergedBy  *wireUser `json:"merged_by"`
	ClosedBy  *wireUser `json:"closed_by"`
	Updated   time.Time `json:"updated_at"`
	Body      string    `json:"description"`
	Head      string    `json:"source_branch"`
	Base      string    `json:"target_branch"`
	From      int       `json:"source_project_id"`
	To        int       `json:"target_project_id"`
}

func (w *wireMerge) request() Request {
	r := Request{Number: w.Number, URL: w.URL, Head: w.Head, Base: w.Base, Updated: w.Updated, body: w.Body}
	for _, user := range []*wireUser{w.MergeUser, w.MergedBy, w.ClosedBy} {
		if r.By == "" {
			r.By = user.name()
		}
	}
	if w.From == w.To {
		// A request is locked while it is merged.
		r.State = map[string]State{"opened": Open, "locked": Open, "merged": Merged, "closed": Closed}[w.State]
	}
	return r
}

// request is what a forge says of a request. What has no number or branch is none.
func request(w wire) (Request, error) {
	r := w.request()
	if r.Number <= 0 || r.Head == "" || r.Base == "" {
		return r, &Error{Err: ErrAnswer, Words: "a request has no number, or no branches"}
	}
	if len(r.Head) > maxBranch || len(r.Base) > maxBranch {
		r.Head, r.Base, r.State = "", "", "" // Git has no such branch, and whoever keeps it would keep all of it.
	}
	if at, err := url.Parse(r.URL); err != nil || at.Scheme != schemeHTTP && at.Scheme != schemeHTTPS || len(r.URL) > maxURL || printable.Line(r.URL, maxURL) != r.URL {
		r.URL = ""
	}
	r.Mark = readMark(r.body)
	return r, nil
}

// maxURL bounds the address of a request, and maxBranch the name of a branch.
const maxURL, maxBranch = 1024, 1024
