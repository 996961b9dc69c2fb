package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	// pace is how long a stream is quiet after it has told something, and heartbeat how long it is ever quiet.
	pace, heartbeat = 250 * time.Millisecond, 15 * time.Second
	// idle is how many times as long a stream rests as it has worked, so that many of them leave time for others.
	idle = 20
	// objectRest is how long the page of an object rests between two times that it reads anew what it comes from, and what is made of it.
	objectRest = 5 * time.Second
)

// live tells a page what has changed of what it shows, for as long as it is open.
func (u *UI) live(w http.ResponseWriter, r *http.Request) {
	who := loginOf(r)
	for _, room := range u.roomsFor(who) {
		select {
		case room.streams <- struct{}{}:
			defer func() { <-room.streams }()
		default:
			http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
			return
		}
	}
	look, err := u.lookOf(who, r.URL.Query().Get("page"))
	if err != nil {
		http.Error(w, "There is no such page.", http.StatusNotFound)
		return
	}
	news, leave := u.index.subscribe(look.wanted)
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	s := stream{UI: u, w: w, look: look, ctx: ctx}
	stirs := make(chan struct{}, 1)
	if look.watch != nil {
		go u.watch(ctx, who, look, func() { offer(stirs) })
	}
	err = s.first(r.URL.Query().Get("seen"))
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-who.ctx.Done():
			return
		case <-beat.C:
			// What may be seen can be less than it was, without any news.
			if err = s.write(":\n\n"); err != nil || who.Rights == nil {
				continue
			}
		case <-news.news:
		case <-stirs:
			s.stirred = true
		}
		begun := u.Now()
		err = s.tell()
		select {
		case <-r.Context().Done():
			return
		case <-who.ctx.Done():
			return
		case <-time.After(max(look.rest, restAfter(u.Now().Sub(begun)))):
		}
	}
}

// watch watches for a page, until the context ends. A page that was read just now rests like one that was read anew, and waits while many
// others have something watched.
func (u *UI) watch(ctx context.Context, who *login, look look, stir func()) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(look.rest):
	}
	if leave, ok := u.take(ctx, who, func(r rooms) slots { return r.vigils }); ok {
		defer leave()
		look.watch(ctx, stir)
	}
}

// restAfter is how long a stream rests that has worked so long. It is no longer than that without any news: what somebody may not see any
// more would be shown for as long, where the API server or they themselves are slow.
func restAfter(work time.Duration) time.Duration { return min(heartbeat, max(pace, idle*work)) }

// look is how a page looks: the marks of its parts by their ids, and a part as it is to be shown.
type look struct {
	// wanted says what kinds the page shows objects of.
	wanted func(Kind) bool
	now    func(context.Context) seen
	html   func(id string) (string, error)
	// watch has the page read anew whenever it says so; nil where objects of our kinds are all that it shows.
	watch func(ctx context.Context, stir func())
	// rest is how long it is not looked again, where the page asks the API server for a lot.
	rest time.Duration
}

// seen is what a page shows. Parts are replaced one by one; where Whole differs, all of it is read anew.
type seen struct {
	Whole string
	Parts map[string]string
}

// mark is the look in short.
func (s seen) mark() string {
	parts := []string{s.Whole}
	for _, id := range slices.Sorted(maps.Keys(s.Parts)) {
		parts = append(parts, id, s.Parts[id])
	}
	return digest.FromString(digestOf(parts)).Encoded()
}

// markKey is where a request has the mark of its page.
type markKey struct{}

// noted notes how a page looks before it is read, so that its stream knows what has changed since.
func (u *UI) noted(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if look, err := u.lookOf(loginOf(r), pathOf(r)); err == nil {
			r = r.WithContext(context.WithValue(r.Context(), markKey{}, look.now(r.Context()).mark()))
		}
		page(w, r)
	}
}

// pathOf is the page's path below the base, with its query.
func pathOf(r *http.Request) string { return strings.TrimPrefix(r.URL.RequestURI(), "/") }

// liveOf is where the page's stream is.
func (u *UI) liveOf(r *http.Request) string {
	mark, _ := r.Context().Value(markKey{}).(string)
	return u.base + "live?" + url.Values{"page": {pathOf(r)}, "seen": {mark}}.Encode()
}

// lookOf is the look of the page at a path below the base, for somebody.
func (u *UI) lookOf(who *login, page string) (look, error) {
	parsed, err := url.Parse(page)
	if err != nil {
		return look{}, fmt.Errorf("read the page's address: %w", err)
	}
	steps := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	const moduleSteps, objectSteps = 3, 5
	switch {
	case parsed.Path == "":
		return look{wanted: anyKind, now: func(ctx context.Context) seen {
			may := u.mayOf(ctx, who, anyKind, "")
			return seen{Whole: digestOf(u.index.summarize(may).marks(), u.index.troubles(may, anyKind))}
		}}, nil
	case slices.Contains(listPages(), steps[0]) && len(steps) == 1:
		return u.lookOfList(who, queryOf(steps[0], parsed.Query())), nil
	case steps[0] == "modules" && len(steps) == moduleSteps:
		return u.lookOfModule(who, steps[1], steps[2]), nil
	case steps[0] == "o" && len(steps) >= objectSteps:
		kind, known := u.kindOf(steps[1], steps[2])
		if !known {
			break
		}
		var watch func(context.Context, func())
		if kind.Kind == installationKind {
			watch = func(ctx context.Context, stir func()) { who.Reader.Members(ctx, kind, steps[3], steps[4], stir) }
		}
		return look{wanted: kind.is, rest: objectRest, watch: watch, now: func(ctx context.Context) seen {
			// Whoever may read the object, but not list those of its namespace, is not told of its changes.
			if !u.mayOf(ctx, who, kind.is, steps[3]).sees(kind, steps[3]) {
				return seen{}
			}
			version := "gone"
			if row := u.index.one(kind, steps[3], steps[4]); row != nil {
				version = row.version
			}
			return seen{Whole: digestOf([]string{version}, u.index.unheard(kind, steps[3], steps[4]))}
		}}, nil
	}
	return look{}, &NotFoundError{page}
}

// lookOfList patches rows where the same ones are shown in the same order.
func (u *UI) lookOfList(who *login, q query) look {
	var last table
	return look{
		wanted: q.wants,
		now: func(ctx context.Context) seen {
			may := u.mayOf(ctx, who, q.wants, q.Namespace)
			last = u.table(u.index.ask(q, may))
			made := seen{Parts: map[string]string{}}
			order := []string{fmt.Sprint(last.Found)}
			for _, row := range last.Rows {
				made.Parts[row.anchor()] = row.version
				order = append(order, string(row.UID))
			}
			made.Whole = digestOf(order, u.index.troubles(may, q.wants))
			return made
		},
		html: func(id string) (string, error) {
			at := slices.IndexFunc(last.Rows, func(r *Row) bool { return r.anchor() == id })
			var body bytes.Buffer
			err := u.pages["list"].ExecuteTemplate(&body, "row", rowOf{last.Rows[at], last.Several})
			return body.String(), err
		},
	}
}

// rowOf is a row, and whether those around it are of other kinds.
type rowOf struct {
	*Row

	Several bool
}

// Row is the i-th row for the page.
func (t table) Row(row *Row) rowOf { return rowOf{row, t.Several} }

// marks are what an overview shows, in short.
func (s summary) marks() []string {
	var all []string
	for _, t := range s.Totals {
		all = append(all, fmt.Sprint(t.Resource, t.Counts))
	}
	for _, row := range slices.Concat(s.Attention, s.Changed) {
		all = append(all, string(row.UID), row.version)
	}
	return all
}

func digestOf(parts ...[]string) string { return strings.Join(slices.Concat(parts...), "\x00") }

// stream is one page that is open.
type stream struct {
	*UI

	ctx  context.Context //nolint:containedctx // It is the request's.
	w    http.ResponseWriter
	look look
	seen seen
	// stirred says that there may be something new which the look does not show.
	stirred bool
}

// first looks once. A page that was seen to look otherwise is read anew.
func (s *stream) first(mark string) error {
	s.seen = s.look.now(s.ctx)
	if mark != "" && mark != s.seen.mark() {
		return s.write("event: reload\ndata:\n\n")
	}
	return s.write(":\n\n")
}

// tell writes what has changed since the last time.
func (s *stream) tell() error {
	before, stirred := s.seen, s.stirred
	s.seen, s.stirred = s.look.now(s.ctx), false
	if s.seen.Whole != before.Whole || stirred && s.seen.Whole != "" {
		return s.write("event: reload\ndata:\n\n")
	}
	for id, version := range s.seen.Parts {
		if before.Parts[id] == version {
			continue
		}
		html, err := s.look.html(id)
		if err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
		data, err := json.Marshal(map[string]string{"id": id, "html": html})
		if err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
		if err := s.write("event: patch\ndata: " + string(data) + "\n\n"); err != nil {
			return err
		}
	}
	return nil
}

// write sends at once. Whoever does not read within the time of a heartbeat is left.
func (s *stream) write(text string) error {
	s.within(s.w, heartbeat)
	if _, err := s.w.Write([]byte(text)); err != nil {
		return fmt.Errorf("write to a page: %w", err)
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		return fmt.Errorf("write to a page: %w", err)
	}
	// HTTP/2 ends a stream whose time is over, even if nothing is written just then.
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Time{})
	return nil
}
