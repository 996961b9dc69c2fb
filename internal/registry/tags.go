package registry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"sluice.dev/sluice/internal/transport"
)

const (
	tagsPerPage = 1000
	maxPages    = 1000
	maxETag     = 256
	// roundPage divides every usual size of a page. A page that is just full keeps its bytes, and so its ETag, when the
	// next tag opens a second page.
	roundPage = 10
)

// tagList is a complete list of tags, and the ETag that the registry knows it by.
type tagList struct {
	etag string
	tags []string
}

// Tags shows the tags of the repository in the registry's order, as often as the registry names them; the list as such
// is never in memory. When there is an error, what was seen is worth nothing. A list that came in one page with an ETag is
// asked for again only if it changed. What could not be a tag is left out. ErrTooLarge when there are too many.
func (c *Client) Tags(ctx context.Context, r Repository, see func(tag string)) error {
	e, err := c.begin(r)
	if err != nil {
		return e.conclude(ctx, "list tags of", "", err)
	}
	return e.conclude(ctx, "list tags of", "", e.tags(ctx, see))
}

// tagPage is what is left to know of a page once its tags are in the list.
type tagPage struct {
	etag      string
	unchanged bool
	// next is the query of the next page; empty when there is none.
	next string
}

func (e *exchange) tags(ctx context.Context, see func(string)) error {
	key := sessionKey(e.host, e.repository) + " " + e.name
	kept, _ := e.client.lists.Get(key)
	list := &tagReader{maxTags: e.client.options.MaxTags, maxBytes: e.client.options.MaxTagListBytes, see: see}
	page, err := e.firstTagPage(ctx, list, kept.etag)
	if err != nil {
		return err
	}
	if page.unchanged {
		for _, tag := range kept.tags {
			see(tag)
		}
		return nil
	}
	if page.next == "" {
		e.keep(key, tagList{etag: page.etag, tags: list.tags}, list.bytes)
		return nil
	}
	e.client.lists.Remove(key)
	for seen := map[string]bool{}; page.next != ""; {
		if seen[page.next] || len(seen) >= maxPages {
			return protocolErrorf("pages of tags repeat, or are more than %d", maxPages)
		}
		seen[page.next] = true
		if page, err = e.tagPage(ctx, list, page.next, ""); err != nil {
			return err
		}
	}
	return nil
}

// firstTagPage asks for large pages, or for those that the registry likes better.
func (e *exchange) firstTagPage(ctx context.Context, list *tagReader, etag string) (tagPage, error) {
	page, err := e.tagPage(ctx, list, "n="+strconv.Itoa(tagsPerPage), etag)
	if status, ok := errors.AsType[*StatusError](err); ok && refusesPages(status.Status) {
		return e.tagPage(ctx, list, "", etag)
	}
	return page, err
}

// refusesPages are the answers of registries that do not know the size of a page, or want a smaller one.
func refusesPages(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity ||
		status == http.StatusRequestedRangeNotSatisfiable || status == http.StatusNotImplemented
}

// tagPage reads one page, unless the list still has the ETag.
func (e *exchange) tagPage(ctx context.Context, list *tagReader, query, etag string) (tagPage, error) {
	header := http.Header{"Accept": {"application/json"}}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	response, err := e.send(ctx, ask{method: http.MethodGet, path: "/tags/list", query: query, header: header})
	if err != nil {
		return tagPage{}, err
	}
	defer done(response)
	switch {
	case response.StatusCode == http.StatusNotModified && etag != "":
		return tagPage{unchanged: true}, nil
	case response.StatusCode != http.StatusOK:
		return tagPage{}, e.refused(response)
	case !isJSON(mediaType(response.Header)):
		return tagPage{}, wrongType(ErrProtocol, response, "a list of tags")
	}
	if err := list.read(response.Body); err != nil {
		return tagPage{}, err
	}
	next, err := e.nextPage(response.Header, "/tags/list")
	return tagPage{etag: response.Header.Get("Etag"), next: next}, err
}

func (e *exchange) keep(key string, list tagList, bytes int64) {
	if list.etag == "" || len(list.etag) > maxETag || bytes > maxKeptTagBytes || len(list.tags)%roundPage == 0 {
		e.client.lists.Remove(key)
		return
	}
	list.tags = slices.Clone(list.tags)
	e.client.lists.Add(key, list)
}

// nextPage returns the query of the next page, or nothing. A page elsewhere is none of this list.
func (e *exchange) nextPage(header http.Header, path string) (string, error) {
	target, ok := nextLink(header)
	if !ok {
		return "", nil
	}
	here := &url.URL{Scheme: e.session.origin.Scheme, Host: e.session.origin.Host, Path: "/v2/" + e.name + path}
	next, err := here.Parse(target)
	if err != nil || transport.Origin(next) != transport.Origin(here) || next.User != nil || next.Path != here.Path || next.RawQuery == "" {
		return "", protocolErrorf("the next page is said to be in another place than %s", here.Path)
	}
	return next.RawQuery, nil
}
