package forges

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// dialect is what the forges do in different ways.
type dialect interface { //nolint:interfacebloat // There is nothing to hide: it is a table of differences.
	version() string
	// route takes a path below the version apart. What is empty where there is no such thing.
	route(path string) (repo string, number int, what string)
	field(name string) string
	baseParameter() string
	isNewestFirst(query url.Values) bool
	size(query url.Values) (wanted, most int)
	show(p *Pull, whole bool) any
	exists(w http.ResponseWriter, p *Pull)
	invalid() int
	editMethod() string
	edited() int
	state(fields map[string]string) string
	keepsOrphans() bool
}

var dialects = map[string]dialect{
	"github": github{pullsOf{"/api/v3"}}, "gitea": gitea{pullsOf{"/api/v1"}}, "gitlab": gitlab{},
}

var (
	pullPath  = regexp.MustCompile(`^/repos/([^/]+/[^/]+)/(pulls|issues)(?:/([0-9]+))?$`)
	mergePath = regexp.MustCompile(`^/projects/([^/]+)/merge_requests(?:/([0-9]+))?$`)
)

// pullsOf is what GitHub and Gitea have in common.
type pullsOf struct{ at string }

func (d pullsOf) version() string { return d.at }

func (pullsOf) route(path string) (string, int, string) {
	found := pullPath.FindStringSubmatch(path)
	if found == nil {
		return "", 0, ""
	}
	number, _ := strconv.Atoi(found[3])
	if found[2] == "issues" {
		return found[1], number, "issue"
	}
	return found[1], number, "pull"
}

func (pullsOf) field(name string) string              { return name }
func (pullsOf) editMethod() string                    { return http.MethodPatch }
func (pullsOf) state(fields map[string]string) string { return fields["state"] }
func (pullsOf) keepsOrphans() bool                    { return false }

func (pullsOf) show(p *Pull, _ bool) map[string]any {
	state := p.State
	shown := map[string]any{
		"number": p.Number, "html_url": fmt.Sprintf("https://forge.example/%s/pull/%d", p.repo, p.Number), "title": p.Title, "body": p.Body,
		"updated_at": p.updated.Format(time.RFC3339), "merged_at": nil,
		"head": map[string]any{"ref": p.Head, "sha": p.tip, "repo": map[string]any{"full_name": p.from}},
		"base": map[string]any{"ref": p.Base, "repo": map[string]any{"full_name": p.repo}},
	}
	if state == "merged" {
		state, shown["merged_at"] = "closed", p.updated.Format(time.RFC3339)
	}
	shown["state"] = state
	return shown
}

type github struct{ pullsOf }

func (github) baseParameter() string { return "base" }
func (github) isNewestFirst(q url.Values) bool {
	return q.Get("sort") == "updated" && q.Get("direction") == "desc"
}
func (github) invalid() int { return http.StatusUnprocessableEntity }
func (github) edited() int  { return http.StatusOK }

func (github) size(q url.Values) (int, int) {
	wanted, _ := strconv.Atoi(q.Get("per_page"))
	return wanted, 100
}

// show has who merged it in one request, and not in a list.
func (d github) show(p *Pull, whole bool) any {
	shown := d.pullsOf.show(p, whole)
	if whole {
		shown["merged"] = p.State == "merged"
		if p.State == "merged" {
			shown["merged_by"] = user("login", p.By)
		}
	}
	return shown
}

func (github) exists(w http.ResponseWriter, p *Pull) {
	write(w, http.StatusUnprocessableEntity, map[string]any{
		"message": "Validation Failed",
		"errors":  []any{map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:" + p.Head + "."}},
	})
}

type gitea struct{ pullsOf }

func (gitea) baseParameter() string           { return "base_branch" }
func (gitea) isNewestFirst(q url.Values) bool { return q.Get("sort") == "recentupdate" }
func (gitea) invalid() int                    { return http.StatusNotFound }
func (gitea) edited() int                     { return http.StatusCreated }

func (gitea) size(q url.Values) (int, int) {
	wanted, _ := strconv.Atoi(q.Get("limit"))
	return wanted, 50
}

func (d gitea) show(p *Pull, whole bool) any {
	shown := d.pullsOf.show(p, whole)
	shown["merged"], shown["merged_by"] = p.State == "merged", nil
	if p.State == "merged" {
		shown["merged_by"] = user("login", p.By)
	}
	return shown
}

func (gitea) exists(w http.ResponseWriter, p *Pull) {
	refuse(w, http.StatusConflict, fmt.Sprintf("pull request already exists for these targets [id: %d]", p.Number))
}

type gitlab struct{}

func (gitlab) version() string    { return "/api/v4" }
func (gitlab) editMethod() string { return http.MethodPut }
func (gitlab) edited() int        { return http.StatusOK }
func (gitlab) invalid() int       { return http.StatusBadRequest }
func (gitlab) keepsOrphans() bool { return true }

func (gitlab) baseParameter() string { return "target_branch" }

func (gitlab) route(path string) (string, int, string) {
	found := mergePath.FindStringSubmatch(path)
	if found == nil {
		return "", 0, ""
	}
	repo, _ := url.PathUnescape(found[1])
	number, _ := strconv.Atoi(found[2])
	return repo, number, "merge request"
}

func (gitlab) field(name string) string {
	return map[string]string{"head": "source_branch", "base": "target_branch", "body": "description"}[name]
}

func (gitlab) isNewestFirst(q url.Values) bool {
	return q.Get("order_by") == "updated_at" && q.Get("sort") == "desc"
}

func (gitlab) size(q url.Values) (int, int) {
	wanted, _ := strconv.Atoi(q.Get("per_page"))
	return wanted, 100
}

func (gitlab) state(fields map[string]string) string {
	return map[string]string{"close": "closed", "reopen": "open"}[fields["state_event"]]
}

func (gitlab) show(p *Pull, _ bool) any {
	shown := map[string]any{
		"iid": p.Number, "web_url": fmt.Sprintf("https://forge.example/%s/-/merge_requests/%d", p.repo, p.Number), "title": p.Title, "description": p.Body,
		"source_branch": p.Head, "target_branch": p.Base, "sha": p.tip, "source_project_id": 7, "target_project_id": 7,
		"updated_at": p.updated.Format("2006-01-02T15:04:05.000Z"), "state": p.State, "merge_user": nil, "merged_by": nil, "closed_by": nil,
	}
	switch p.State {
	case "open":
		shown["state"] = "opened"
	case "merged":
		shown["merge_user"] = user("username", p.By)
	default:
		shown["closed_by"] = user("username", p.By)
	}
	if p.from != p.repo {
		shown["source_project_id"] = 8
	}
	return shown
}

func (gitlab) exists(w http.ResponseWriter, p *Pull) {
	write(w, http.StatusConflict, map[string]any{"message": []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", p.Number)}})
}

func user(key, name string) any {
	if name == "" {
		return nil
	}
	return map[string]any{"id": 1, key: name}
}
