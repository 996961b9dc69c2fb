package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/view"
)

// still is somebody who reads objects that are always the same.
type still struct{ Reader }

func (still) Objects(context.Context, Kind) (cache.ListerWatcherWithContext, error) {
	return nil, errors.New("you may not list sources in all namespaces")
}

func (still) Object(_ context.Context, kind Kind, namespace, name string) (*Object, error) {
	return &Object{Kind: kind, Namespace: namespace, Name: name, Version: "1"}, nil
}

func (still) Tree(context.Context, Kind, string, string) (*view.Node, error) {
	return &view.Node{Kind: "Source", Name: "a", State: view.Ready}, nil
}

func (still) Module(_ context.Context, namespace, name string, _ []string) (*Module, error) {
	return &Module{Namespace: namespace, Name: name, Read: true}, nil
}

func (still) Running(context.Context) *Running { return &Running{} }

const host = "127.0.0.1:9191"

// pagesOf are the pages of sources.
func pagesOf(t *testing.T) *UI {
	t.Helper()
	return pagesOfKind(t, "Source", "sources")
}

func pagesOfKind(t *testing.T, name, page string) *UI {
	t.Helper()
	kind := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Kind: name}, Resource: page, Page: page}
	u, err := New(Options{Lister: still{}, Person: &Person{Reader: still{}}, Kinds: []Kind{kind}, Hosts: []string{host}, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// connection is one that notes what it is told of its time.
type connection struct {
	*httptest.ResponseRecorder

	until time.Time
}

func (c *connection) SetWriteDeadline(at time.Time) error {
	c.until = at
	return nil
}

// asked is a request of somebody who has been let in.
func (u *UI) asked(t *testing.T, method, path string) *connection {
	t.Helper()
	made := &connection{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host = host
	r.AddCookie(&http.Cookie{Name: cookieName, Value: u.key.cookie})
	u.Handler().ServeHTTP(made, r)
	return made
}

// TestEachAnswerHasItsOwnTime: a connection that is used again has the deadline of the last answer, which may be over.
func TestEachAnswerHasItsOwnTime(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	for path, method := range map[string]string{
		"/": http.MethodGet, "/else": http.MethodGet, u.base: http.MethodGet, u.base + "theme": http.MethodPost, u.base + "o/g/Source/n/a": http.MethodGet,
		u.base + "assets/" + u.assets.names["ui.js"]: http.MethodGet, u.base + "live?page=nothing": http.MethodGet, u.base + "nothing": http.MethodGet,
	} {
		if got := u.asked(t, method, path); got.until.Before(time.Now()) {
			t.Errorf("%s, which answers %d, has until %v", path, got.Code, got.until)
		}
	}
}

// TestAPageSaysWhenNothingIsHeard: that of an object too, of which nothing would come any more.
func TestAPageSaysWhenNothingIsHeard(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{"Source": "sources", "Module": "modules"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saysWhenNothingIsHeard(t, pagesOfKind(t, name, page))
		})
	}
}

func saysWhenNothingIsHeard(t *testing.T, u *UI) {
	t.Helper()
	kind := u.Kinds[0]
	u.index.review(t.Context(), t.Context(), u.Lister, kind)
	path := "o/g/" + kind.Kind + "/n/a"
	pages := []string{"", kind.Page, path, path + "/graph", path + "/graph?as=list"}
	if kind.Page == "modules" {
		pages = append(pages, "modules/n/a")
	}
	look, err := u.lookOf(u.key.login, pages[len(pages)-1])
	if err != nil {
		t.Fatal(err)
	}
	before := look.now(t.Context())
	for _, page := range pages {
		if got := u.asked(t, http.MethodGet, u.base+page).Body.String(); !strings.Contains(got, "you may not list") {
			t.Errorf("%s does not say that its objects are not followed", page)
		}
	}
	u.index.change(kind, func(h *heard) { h.broken, h.why = u.Now(), "it is down" })
	for _, page := range pages {
		if got := u.asked(t, http.MethodGet, u.base+page).Body.String(); !strings.Contains(got, "nothing was heard for") {
			t.Errorf("%s does not say that nothing is heard", page)
		}
	}
	if look.now(t.Context()).Whole == before.Whole {
		t.Error("the page is not read anew when nothing is heard any more")
	}
	row := &Row{Kind: kind, Namespace: "n", Name: "a"}
	if err := (&rows{u.index, kind}).Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	u.index.change(kind, func(h *heard) { h.rows[types.NamespacedName{Namespace: "n", Name: "a"}], h.broken = row, time.Time{} })
	if got := u.asked(t, http.MethodGet, u.base+path).Body.String(); strings.Contains(got, "What is missing here") {
		t.Error("something is missing of an object that is followed")
	}
}

// TestTheEndOfLongTextIsShown: a plan's sum and digest stand there.
func TestTheEndOfLongTextIsShown(t *testing.T) {
	t.Parallel()
	short := strings.Repeat("a line\n", 10) + "the end"
	if got := lines(short); got != short {
		t.Errorf("short text is %q", got)
	}
	for name, text := range map[string]string{
		"Lines": strings.Repeat("a line\n", 1<<16), "Long": strings.Repeat(strings.Repeat("x", maxText)+"\n", 1<<7), "Hostile": strings.Repeat("\u202e\n", 1<<17),
	} {
		got := lines("the beginning\n" + text + "the end")
		if len(got) > maxLines+maxText || !strings.HasPrefix(got, "the beginning\n") || !strings.HasSuffix(got, "the end") || !strings.Contains(got, "lines are left out") {
			t.Errorf("%s: %d bytes, from %.40q to %q", name, len(got), got, got[len(got)-40:])
		}
	}
}

// TestAStreamLooksAgainInTime: however long its last look took.
func TestAStreamLooksAgainInTime(t *testing.T) {
	t.Parallel()
	for _, work := range []time.Duration{0, time.Millisecond, time.Second, reviewTime} {
		if got := restAfter(work); got < pace || got+fresh > 30*time.Second {
			t.Errorf("after a look of %s it rests for %s", work, got)
		}
	}
}

// TestThePageOfAnObjectRests: what takes from it is listed each time, and whoever may change it may do so all the time.
func TestThePageOfAnObjectRests(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	for _, page := range []string{"o/g/Source/n/a", "o/g/Source/n/a/graph"} {
		look, err := u.lookOf(u.key.login, page)
		if err != nil || look.rest < time.Second || look.rest > heartbeat {
			t.Errorf("%s rests for %s: %v", page, look.rest, err)
		}
	}
}

// TestManyLoginsAreOnePerson: who holds no more of what all share than with one.
func TestManyLoginsAreOnePerson(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	u.Login = func(_ context.Context, token string) (*Person, error) { return &Person{Name: token[:1]}, nil }
	for _, token := range []string{"a1", "a2", "b1", "a3"} {
		known, err := u.logins.begin(t.Context(), token, token)
		if err != nil {
			t.Fatal(err)
		}
		for range cap(known.room.works) {
			select {
			case known.room.works <- struct{}{}:
			default:
				if token == "a1" || token == "b1" {
					t.Errorf("%s may not work", token)
				}
				continue
			}
			if token == "a2" || token == "a3" {
				t.Errorf("%s works beside the others of the same person", token)
			}
		}
	}
}

// watcher is one of those who have members watched, which are counted.
type watcher struct {
	still

	watched *atomic.Int64
}

func (w watcher) Members(ctx context.Context, _ Kind, _, _ string, _ func()) {
	w.watched.Add(1)
	defer w.watched.Add(-1)
	<-ctx.Done()
}

// TestWatchesOfAllPagesAreBounded: of one person, of one tenant and of all together; whoever waits is next.
func TestWatchesOfAllPagesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := pagesOfKind(t, installationKind, "installations")
		counts := map[string]*atomic.Int64{}
		u.Login = func(_ context.Context, token string) (*Person, error) {
			name, _, _ := strings.Cut(token, "#")
			if counts[name] == nil {
				counts[name] = &atomic.Int64{}
			}
			return &Person{Name: name, Reader: watcher{watched: counts[name]}}, nil
		}
		var leaves []context.CancelFunc
		opens := func(name string, logins int) {
			for i := range logins {
				known, err := u.logins.begin(t.Context(), fmt.Sprint(name, i), fmt.Sprint(name, "#", i))
				if err != nil {
					t.Fatal(err)
				}
				for range maxStreamsEach {
					ctx, leave := context.WithCancel(t.Context())
					leaves = append(leaves, leave)
					go u.live(&connection{ResponseRecorder: httptest.NewRecorder()}, known.with(httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page=o/g/"+installationKind+"/n/a", nil)))
				}
			}
			time.Sleep(2 * objectRest)
			synctest.Wait()
		}
		opens("eve", 20)
		if got := counts["eve"].Load(); got != maxVigilsEach {
			t.Errorf("one person has %d pages watch", got)
		}
		for i := range 20 {
			opens(fmt.Sprint("system:serviceaccount:evil:a", i), 2)
		}
		of := func(prefix string) (sum int64) {
			for name, count := range counts {
				if strings.HasPrefix(name, prefix) {
					sum += count.Load()
				}
			}
			return sum
		}
		if got := of("system:"); got != maxVigils/2 {
			t.Errorf("one tenant has %d pages watch", got)
		}
		opens("ann", 1)
		if got := counts["ann"].Load(); got != maxStreamsEach {
			t.Errorf("beside them, another person has %d pages watch", got)
		}
		for _, leave := range leaves[:maxStreamsEach*20] {
			leave()
		}
		synctest.Wait()
		opens("eve", 1)
		if got := counts["eve"].Load(); got != maxStreamsEach {
			t.Errorf("after pages were left, %d of the same person watch", got)
		}
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		if got := of(""); got != 0 || len(u.rooms.vigils) != 0 {
			t.Errorf("%d pages watch that are left", got)
		}
	})
}
