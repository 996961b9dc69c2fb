package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxKept bounds how many requests of a repository are remembered, and maxKeptBytes what they say. Beyond that, those go that changed
// longest ago.
const maxKept, maxKeptBytes = 2_000, 2 << 20

// Listing is what requests a repository has, those first that changed last.
type Listing struct {
	Requests []Request

	etag string
	// until is when the last change was that is known.
	until time.Time
}

// List looks what requests to the branch there are of whose head the caller wants to know. Where nothing has changed since the
// listing before, it is that one, and it costs one request whose answer has no body where the forge takes part in that. Otherwise
// it reads what has changed since; without a listing before, the newest pages. Texts are not kept.
func (c *Client) List(ctx context.Context, base string, before *Listing, wanted func(head string) bool) (*Listing, error) {
	n := &news{base: base, wanted: wanted, known: map[int]Request{}}
	if before != nil {
		n.since, n.made.until = before.until, before.until
		for _, r := range before.Requests {
			n.known[r.Number] = r
		}
	}
	for number := 1; number <= c.options.MaxPages; number++ {
		p := page1(number, before)
		if err := c.page(ctx, base, number, &p); err != nil {
			return before, err
		}
		if p.isUnchanged {
			return before, nil
		}
		if number == 1 {
			n.made.etag = p.etag
		}
		if isOver := n.take(p.requests); isOver || !p.hasNext {
			break
		}
	}
	return n.listing(), nil
}

// news is what a look at a list finds out.
type news struct {
	base   string
	wanted func(head string) bool
	known  map[int]Request
	since  time.Time
	made   Listing
}

// take takes in a page, and tells whether all that is behind it is known.
func (n *news) take(requests []Request) (isOver bool) {
	for _, r := range requests {
		if r.Updated.After(n.made.until) {
			n.made.until = r.Updated
		}
		isOver = isOver || r.Updated.Before(n.since)
		if r.State == "" || r.Base != n.base || !n.wanted(r.Head) {
			delete(n.known, r.Number)
			continue
		}
		r.By = orKnown(r, n.known)
		n.known[r.Number] = r
	}
	return isOver
}

func (n *news) listing() *Listing {
	now := &n.made
	for _, r := range n.known {
		now.Requests = append(now.Requests, r)
	}
	slices.SortFunc(now.Requests, func(a, b Request) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.Number, a.Number))
	})
	now.Requests = now.Requests[:min(len(now.Requests), maxKept)]
	left := maxKeptBytes
	for i, r := range now.Requests {
		if left -= r.length(); left < 0 {
			now.Requests = slices.Clone(now.Requests[:i]) // What is behind them goes as well.
			break
		}
	}
	return now
}

// length is how much it says, about.
func (r Request) length() int {
	m := r.Mark
	return len(r.URL) + len(r.Head) + len(r.Base) + len(r.By) + len(m.Owner) + len(m.Package) + len(m.Workspace) + len(m.Commit) + len(m.Tree) + len(m.Digest)
}

// With is the listing with what was made or changed since.
func (l *Listing) With(r Request) *Listing {
	r.body = ""
	now := &Listing{Requests: []Request{r}, etag: l.etag, until: l.until}
	for _, other := range l.Requests {
		if other.Number != r.Number {
			now.Requests = append(now.Requests, other)
		}
	}
	return now
}

// orKnown is who merged or closed a request: not all lists say so.
func orKnown(r Request, known map[int]Request) string {
	if before := known[r.Number]; r.By == "" && before.State == r.State {
		return before.By
	}
	return r.By
}

// page is a page of a list.
type page struct {
	requests    []Request
	etag        string
	isUnchanged bool
	hasNext     bool
}

// page1 is a page that is to be read: of the first one, it may be known what it says.
func page1(number int, before *Listing) page {
	if number > 1 || before == nil {
		return page{}
	}
	return page{etag: before.etag}
}

func (c *Client) page(ctx context.Context, base string, number int, p *page) error {
	what := call{
		what: "list the requests", method: http.MethodGet, path: c.dialect.all(), query: c.dialect.page(base, number, c.options.PageSize), etag: p.etag,
	}
	return c.call(ctx, what, func(a *answer) error {
		if p.isUnchanged = a.isUnchanged; p.isUnchanged {
			return nil
		}
		p.etag = a.header.Get("ETag")
		if err := c.requests(a, p); err != nil {
			return err
		}
		// Where the next page is, is worked out here: no address of a server is followed.
		p.hasNext = len(p.requests) > 0 && strings.Contains(a.header.Get("Link"), `rel="next"`)
		return nil
	})
}

// requests reads a page one by one, so that no more than one text is in memory.
func (c *Client) requests(a *answer, p *page) error {
	opening, err := a.body.Token()
	if err != nil {
		return &Error{Err: ErrAnswer, Words: why(err)}
	}
	if opening != json.Delim('[') {
		return &Error{Err: ErrAnswer, Words: "it is no list"}
	}
	for a.body.More() {
		if len(p.requests) >= maxPage {
			return &Error{Err: ErrAnswer, Words: "it has more requests than a page may have"}
		}
		found := c.dialect.wire()
		if err := a.decode(found); err != nil {
			return err
		}
		r, err := request(found)
		if err != nil {
			return err
		}
		r.body = ""
		p.requests = append(p.requests, r)
	}
	if _, err := a.body.Token(); err != nil {
		return &Error{Err: ErrAnswer, Words: why(err)}
	}
	return nil
}

// maxPage bounds a page, whatever size was asked for: no forge gives more.
const maxPage = 100
