package registry

import (
	"context"
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
)

// tagList is a complete list of tags, and the ETag that the registry knows it by.
type tagList struct {
	etag string
	tags []string
}

// Tags shows the tags of the repository in the registry's order, as often as the registry names them; the list as such
// is never in memory. When there is an error, what was seen is worth nothing. A list that came in one page with an ETag is
// asked for again only if it changed, and else for what follows it. What could not be a tag is left out. ErrTooLarge when
// there are too many.
func (c *Client) Tags(ctx context.Context, r Repository, see func(tag string)) error {
	_, err := call(ctx, c, r, "list tags of", "", func(e *exchange) (any, error) { return nil, e.tags(ctx, see) })
	return err
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
	page, err := e.firstTagPage(ctx, list, "", kept.etag)
	switch {
	case err != nil:
		return err
	case page.unchanged:
		for _, tag := range kept.tags {
			see(tag)
		}
		// The ETag is that of the page alone: a page that was full keeps it when the next tag begins another one. What
		// follows is counted by itself: a registry that cannot say what follows names all once more.
		page, err = e.firstTagPage(ctx, list, kept.tags[len(kept.tags)-1], "")
	default:
		e.keep(key, page, list)
	}
	for seen := map[string]bool{}; err == nil && page.next != ""; {
		if seen[page.next] || len(seen) >= maxPages {
			return protocolErrorf("pages of tags repeat, or are more than %d", maxPages)
		}
		seen[page.next] = true
		page, err = e.tagPage(ctx, list, page.next, "")
	}
	return err
}

// firstTagPage asks for a large page of what follows a tag, or for a page that the registry likes better.
func (e *exchange) firstTagPage(ctx context.Context, list *tagReader, last, etag string) (tagPage, error) {
	query := url.Values{"n": {strconv.Itoa(tagsPerPage)}}
	if last != "" {
		query.Set("last", last)
	}
	page, err := e.tagPage(ctx, list, query.Encode(), etag)
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestedRangeNotSatisfiable, http.StatusNotImplemented:
		// It does not know the size of a page, or wants a smaller one.
		return e.tagPage(ctx, list, "", etag)
	}
	return page, err
}

// tagPage reads one page, unless the list still has the ETag.
func (e *exchange) tagPage(ctx context.Context, list *tagReader, query, etag string) (tagPage, error) {
	header := http.Header{"Accept": {"application/json"}}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	response, err := e.ask(ctx, http.MethodGet, "/tags/list", query, header)
	if err != nil {
		return tagPage{}, err
	}
	defer done(response)
	switch {
	case response.StatusCode == http.StatusNotModified:
		return tagPage{unchanged: true}, nil
	case !isJSON(mediaType(response.Header)):
		return tagPage{}, wrongType(ErrProtocol, response, "a list of tags")
	}
	if err := list.read(response.Body); err != nil {
		return tagPage{}, err
	}
	next, err := e.nextPage(response.Header, "/tags/list")
	return tagPage{etag: response.Header.Get("Etag"), next: next}, err
}

// keep remembers a list of one page by its ETag.
func (e *exchange) keep(key string, page tagPage, list *tagReader) {
	if page.next != "" || page.etag == "" || len(page.etag) > maxETag || list.bytes > maxKeptTagBytes || len(list.tags) == 0 {
		e.client.lists.Remove(key)
		return
	}
	e.client.lists.Add(key, tagList{etag: page.etag, tags: slices.Clone(list.tags)})
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
