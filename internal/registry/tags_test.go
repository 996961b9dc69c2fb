package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/credential"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

// tagsOf is all tags that are shown.
func tagsOf(t *testing.T, client *Client, r Repository) (tags []string, err error) {
	t.Helper()
	err = client.Tags(t.Context(), r, func(tag string) { tags = append(tags, tag) })
	if err != nil {
		return nil, err
	}
	return tags, nil
}

func TestTagsComeInPages(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.TokenAuth)
	repository := site.Repository(name)
	pushed := repository.PushORAS("v0", layer("x"))
	want := []string{"v0"}
	for i := 1; i < 7; i++ {
		tag := fmt.Sprintf("v%d", i)
		repository.Tag(tag, pushed)
		want = append(want, tag)
	}
	client, _ := newClient(t, nil)
	for size, requests := range map[int]int{2: 4, 3: 3, 7: 1, 100: 1} {
		site.SetPageSize(size)
		if _, err := tagsOf(t, client, r); err != nil {
			t.Fatal(err)
		}
		site.Reset()
		tags, err := tagsOf(t, client, r)
		if diff := cmp.Diff(want, tags); diff != "" || err != nil {
			t.Errorf("pages of %d: %v %s", size, err, diff)
		}
		if got := site.Count(fixture.Tags); got < requests || got > requests+1 {
			t.Errorf("pages of %d: %d requests, not %d", size, got, requests)
		}
	}
	if _, err := tagsOf(t, client, Repository{Host: r.Host, Name: "org/none", Credential: r.Credential}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such repository: %v", err)
	}
}

func TestUnchangedTagsAreNotSentAgain(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.Basic)
	repository := site.Repository(name)
	pushed := repository.PushORAS("v1", layer("x"))
	site.SetTagETags(true)
	client, _ := newClient(t, nil)
	other := r
	other.Credential.Username, other.Credential.Password = "other", credential.NewSecret("other-password")
	// status is that of the first page.
	status := func(as Repository, want ...string) int {
		t.Helper()
		site.Reset()
		tags, err := tagsOf(t, client, as)
		if diff := cmp.Diff(want, tags); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		requests := site.Requests()
		if requests[0].Status == http.StatusUnauthorized {
			requests = requests[1:]
		}
		return requests[0].Status
	}
	if got := status(r, "v1"); got != http.StatusOK {
		t.Errorf("first: %d", got)
	}
	for range 2 {
		if got := status(r, "v1"); got != http.StatusNotModified {
			t.Errorf("unchanged: %d", got)
		}
	}
	if got := status(other, "v1"); got != http.StatusOK {
		t.Errorf("another identity: %d", got)
	}
	repository.Tag("v2", pushed)
	if got := status(r, "v1", "v2"); got != http.StatusOK {
		t.Errorf("changed: %d", got)
	}
	site.SetPageSize(2)
	for range 2 {
		if got := status(r, "v1", "v2"); got != http.StatusNotModified {
			t.Errorf("a page that is just full: %d", got)
		}
	}
	repository.Tag("v3", pushed)
	for range 2 {
		if got := status(r, "v1", "v2", "v3"); got != http.StatusNotModified {
			t.Errorf("a tag on another page leaves the first one as it is: %d", got)
		}
	}
	site.SetPageSize(1)
	if got := status(r, "v1", "v2", "v3"); got != http.StatusOK {
		t.Errorf("in pages: %d", got)
	}
	if got := status(r, "v1", "v2", "v3"); got != http.StatusOK {
		t.Errorf("a list in pages has no ETag: %d", got)
	}
}

func TestTagAnswers(t *testing.T) {
	t.Parallel()
	const list = "/v2/" + name + "/tags/list"
	for reason, test := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, page int)
		want   []string
		is     error
		says   string
	}{
		"pages are refused": {func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.URL.Query().Has("n") {
				respond(w, http.StatusBadRequest, "application/json", `{"errors":[{"code":"PAGINATION_NUMBER_INVALID"}]}`)
				return
			}
			respond(w, http.StatusOK, "application/json", `{"name":"a","tags":["v1"]}`)
		}, []string{"v1"}, nil, ""},
		"no tags":        {says200(`{"name":"a","tags":null}`), nil, nil, ""},
		"an empty list":  {says200(`{"name":"a","tags":[]}`), nil, nil, ""},
		"what is no tag": {says200(`{"tags":["v1","-x","a/b","","v1","\u0000","` + strings.Repeat("a", 129) + `","v2"]}`), []string{"v1", "v1", "v2"}, nil, ""},
		"other keys":     {says200(`{"a":{"tags":["x"]},"b":[[1]],"tags":["v1"],"c":null}`), []string{"v1"}, nil, ""},
		"another media type": {func(w http.ResponseWriter, _ *http.Request, _ int) {
			respond(w, 200, "application/vnd.example.v1+json; charset=utf-8", `{"tags":["v1"]}`)
		}, []string{"v1"}, nil, ""},
		"a relative link": {linked(`<tags/list?n=2&last=a>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link to the path": {func(w http.ResponseWriter, _ *http.Request, page int) {
			if page == 1 {
				w.Header().Set("Link", `<`+list+`?last=v1>; rel=next`)
			}
			respond(w, 200, "application/json", fmt.Sprintf(`{"tags":["v%d"]}`, page))
		}, []string{"v1", "v2"}, nil, ""},
		"a link elsewhere":       {linked(`<https://evil.example` + list + `?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link to another port": {linked(`<https://127.0.0.1:1` + list + `?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link to another path": {linked(`</v2/other/app/tags/list?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link up":              {linked(`</v2/` + name + `/tags/../../x?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link with a user":     {linked(`<//u:p@HOST` + list + `?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link to plain http":   {linked(`<http://HOST` + list + `?n=1>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link in a circle":     {linked(`<` + list + `?last=a>; rel="next"`), nil, ErrProtocol, "repeat"},
		"a link without a query": {linked(`<` + list + `>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link that is none":    {linked(`<:%zz>; rel="next"`), nil, ErrProtocol, "another place"},
		"a link back":            {linked(`<https://evil.example/>; rel="prev"`), []string{"v1"}, nil, ""},
		"endless pages": {func(w http.ResponseWriter, _ *http.Request, page int) {
			w.Header().Set("Link", fmt.Sprintf(`<%s?last=%d>; rel="next"`, list, page))
			respond(w, 200, "application/json", `{"tags":[]}`)
		}, nil, ErrProtocol, "more than 1000"},
		"too many tags":       {says200(`{"tags":["a","b","c","d","e","f"]}`), nil, ErrTooLarge, "MaxTags"},
		"too many bytes":      {says200(`{"x":"` + strings.Repeat("a", 5000) + `"}`), nil, ErrTooLarge, "MaxTagListBytes"},
		"a value too long":    {says200(`{"x":"` + strings.Repeat("a", 40_000) + `"}`), nil, ErrTooLarge, "a value of more than 16384 bytes"},
		"many short values":   {says200(`{"x":[` + strings.Repeat(`"a",`, 10_000) + `"a"],"tags":["v1"]}`), []string{"v1"}, nil, ""},
		"a web page":          {func(w http.ResponseWriter, _ *http.Request, _ int) { respond(w, 200, "text/html", "<html>") }, nil, ErrProtocol, "web page"},
		"no JSON":             {says200(`tags`), nil, ErrProtocol, "list of tags"},
		"a list":              {says200(`["v1"]`), nil, ErrProtocol, "not a JSON object"},
		"half":                {says200(`{"tags":["v1"`), nil, ErrProtocol, "unexpected EOF"},
		"numbers":             {says200(`{"tags":[1]}`), nil, ErrProtocol, "not a string"},
		"an object":           {says200(`{"tags":{}}`), nil, ErrProtocol, "not a list"},
		"304 out of the blue": {func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusNotModified) }, nil, nil, "304"},
		"an error on page 2": {func(w http.ResponseWriter, _ *http.Request, page int) {
			if page == 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Link", `<`+list+`?last=v1>; rel=next`)
			respond(w, 200, "application/json", `{"tags":["v1"]}`)
		}, nil, nil, "503"},
	} {
		page := 0
		r := serve(t, func(w http.ResponseWriter, request *http.Request) {
			page++
			test.answer(w, request, page)
		})
		client, _ := newClient(t, func(o *Options) { o.MaxTags, o.MaxTagListBytes = 5, 50_000 })
		if reason == "too many bytes" {
			client, _ = newClient(t, func(o *Options) { o.MaxTagListBytes = 4096 })
		}
		tags, err := tagsOf(t, client, r)
		if diff := cmp.Diff(test.want, tags); diff != "" || (err != nil) != (test.says != "") {
			t.Errorf("%s: %v %s", reason, err, diff)
		}
		if err != nil && (!strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is)) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func says200(body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) { respond(w, 200, "application/json", body) }
}

// linked answers each page with one tag and the link.
func linked(link string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Link", strings.ReplaceAll(link, "HOST", r.Host))
		respond(w, 200, "application/json", `{"tags":["v1"]}`)
	}
}

// TestFullPageIsNotKept: a page that is just full keeps its bytes, and so its ETag, when a second page begins.
func TestFullPageIsNotKept(t *testing.T) {
	t.Parallel()
	const full = 50
	first := make([]string, 0, full+1)
	for i := range full {
		first = append(first, fmt.Sprintf("1.0.%d", i))
	}
	body := `{"tags":["` + strings.Join(first, `","`) + `"]}`
	more := false
	r := serve(t, func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.URL.Query().Has("last"):
			respond(w, http.StatusOK, "application/json", `{"tags":["1.0.50"]}`)
			return
		case request.Header.Get("If-None-Match") == `"page-1"`:
			w.WriteHeader(http.StatusNotModified)
			return
		case more:
			w.Header().Set("Link", `</v2/`+name+`/tags/list?last=1.0.49>; rel="next"`)
		}
		w.Header().Set("Etag", `"page-1"`)
		respond(w, http.StatusOK, "application/json", body)
	})
	client, _ := newClient(t, nil)
	if tags, err := tagsOf(t, client, r); err != nil || !cmp.Equal(first, tags) {
		t.Fatalf("%v %s", err, cmp.Diff(first, tags))
	}
	more = true
	want := append(first, "1.0.50")
	if tags, err := tagsOf(t, client, r); err != nil || !cmp.Equal(want, tags) {
		t.Errorf("%v %s", err, cmp.Diff(want, tags))
	}
}

// TestTagsAreNotCountedTwice: not every registry knows how to name what follows a tag.
func TestTagsAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	r := serve(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("If-None-Match") == `"all"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Etag", `"all"`)
		respond(w, http.StatusOK, "application/json", `{"tags":["v1","v2","v3"]}`)
	})
	client, _ := newClient(t, func(o *Options) { o.MaxTags = 5 })
	for range 3 {
		if tags, err := tagsOf(t, client, r); err != nil {
			t.Errorf("three tags where five may be: %v, %q", err, tags)
		}
	}
}
