package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// clerk answers reviews from two lists, and counts them.
type clerk struct {
	mu         sync.Mutex
	everywhere map[string]bool
	// in has the namespaces in which all kinds may be listed.
	in      map[string]bool
	asked   int
	failing error
}

func (c *clerk) Everywhere(_ context.Context, kind Kind) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.everywhere[kind.Resource], c.failing
}

func (c *clerk) In(_ context.Context, namespace string, kinds []Kind) ([]bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	may := make([]bool, len(kinds))
	for i := range may {
		may[i] = c.in[namespace]
	}
	return may, c.failing
}

// asks is how many reviews were asked for since the last time.
func (c *clerk) asks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.asked = 0 }()
	return c.asked
}

// office is an index with an object of each of two kinds in some namespaces, and somebody who looks at it.
func office(t *testing.T, namespaces int) (*index, *clerk, *login, *time.Time) {
	t.Helper()
	now := time.Unix(1_000_000, 0)
	clock := func() time.Time { return now }
	kinds := []Kind{
		{GroupVersionKind: schema.GroupVersionKind{Kind: "Source"}, Resource: "sources", Page: "sources"},
		{GroupVersionKind: schema.GroupVersionKind{Kind: "Package"}, Resource: "packages", Page: "packages"},
	}
	x := newIndex(kinds, clock)
	for i := range namespaces {
		at := types.NamespacedName{Namespace: fmt.Sprintf("n%04d", i), Name: "a"}
		for _, kind := range kinds {
			x.heard[kind.Resource].rows[at] = &Row{Kind: kind, Namespace: at.Namespace, Name: at.Name}
		}
	}
	asked := &clerk{everywhere: map[string]bool{}, in: map[string]bool{}}
	who := newLogins(&UI{Options: Options{Now: clock}}).make(&Person{Name: "ann", Rights: asked}, now.Add(longestLogin))
	return x, asked, who, &now
}

// TestWhatMayBeSeenIsAskedAnew: what may be seen is known for seconds, and what may not for minutes.
func TestWhatMayBeSeenIsAskedAnew(t *testing.T) {
	t.Parallel()
	x, asked, who, now := office(t, 10)
	asked.everywhere["sources"], asked.in["n0001"] = true, true
	found := func() (int, string) {
		may := who.scopeOf(t.Context(), x, x.kinds, "")
		return len(x.all(may, anyKind)), may.mark
	}
	all, mark := found()
	// Two kinds, and ten namespaces as one kind is not seen everywhere.
	if asks := asked.asks(); all != 11 || asks != 12 {
		t.Errorf("%d are seen after %d reviews", all, asks)
	}
	if again, same := found(); again != all || same != mark || asked.asks() != 0 {
		t.Error("what was just asked is asked again")
	}
	asked.in["n0001"], asked.in["n0002"] = false, true
	*now = now.Add(fresh)
	// What was seen is asked anew: a kind, and a namespace; the other namespace is not known yet.
	less, other := found()
	if asks := asked.asks(); less != 10 || other == mark || asks != 2 {
		t.Errorf("%d are seen after %d reviews", less, asks)
	}
	*now = now.Add(refusedFor)
	if more, _ := found(); more != 11 {
		t.Errorf("what was granted is not seen: %d", more)
	}
	if who.ctx.Err() != nil {
		t.Error("the login has ended")
	}
}

// TestWhoIsGoneIsOut: also one who may see nothing, and of whom all is known.
func TestWhoIsGoneIsOut(t *testing.T) {
	t.Parallel()
	x, asked, who, now := office(t, 3)
	who.scopeOf(t.Context(), x, x.kinds, "")
	asked.failing = &LoginError{"nobody"}
	*now = now.Add(fresh)
	if may := who.scopeOf(t.Context(), x, x.kinds, ""); may.sees(x.kinds[0], "n0001") || len(may.lacking) == 0 || who.ctx.Err() == nil {
		t.Errorf("one who is gone sees %v", may)
	}
}

// TestWithoutAnAnswerNothingIsSeen: and it is said why; what was known before does not count.
func TestWithoutAnAnswerNothingIsSeen(t *testing.T) {
	t.Parallel()
	x, asked, who, now := office(t, 3)
	asked.everywhere["sources"], asked.everywhere["packages"] = true, true
	who.scopeOf(t.Context(), x, x.kinds, "")
	asked.failing = errors.New("no answer")
	*now = now.Add(fresh)
	may := who.scopeOf(t.Context(), x, x.kinds, "")
	if len(x.all(may, anyKind)) != 0 || len(may.lacking) != 1 || who.ctx.Err() != nil {
		t.Errorf("without an answer: %v", may)
	}
	asked.failing = nil
	if may := who.scopeOf(t.Context(), x, x.kinds, ""); len(x.all(may, anyKind)) != 6 {
		t.Error("after that, not all is seen")
	}
}

// TestManyNamespacesAreBounded: beyond some, only the one that is named is looked at.
func TestManyNamespacesAreBounded(t *testing.T) {
	t.Parallel()
	x, asked, who, _ := office(t, maxReviewed+5)
	last := fmt.Sprintf("n%04d", maxReviewed+4)
	asked.in[last] = true
	may := who.scopeOf(t.Context(), x, x.kinds, "")
	if asks := asked.asks(); asks != maxReviewed+2 || len(may.lacking) != 2 || may.sees(x.kinds[0], last) {
		t.Errorf("%d reviews; it is said %q", asks, may.lacking)
	}
	if may := who.scopeOf(t.Context(), x, x.kinds, last); !may.sees(x.kinds[0], last) || asked.asks() != 1 {
		t.Error("the one that is named is not seen")
	}
}

// TestWhatOthersHaveDoesNotShowInReviews: else the time of an answer would tell which namespaces have objects.
func TestWhatOthersHaveDoesNotShowInReviews(t *testing.T) {
	t.Parallel()
	x, asked, who, _ := office(t, 3)
	who.scopeOf(t.Context(), x, x.kinds[:1], "none")
	asked.asks()
	for _, namespace := range []string{"n0001", "nobodys"} {
		if may := who.scopeOf(t.Context(), x, x.kinds[:1], namespace); may.sees(x.kinds[0], namespace) || asked.asks() != 1 {
			t.Errorf("%s is reviewed in another way", namespace)
		}
	}
	for _, never := range []string{"a/b", strings.Repeat("a", 64), "A"} {
		if who.scopeOf(t.Context(), x, x.kinds[:1], never); asked.asks() != 0 {
			t.Errorf("%.10s, which cannot be, is asked about", never)
		}
	}
}

// TestLoginsEnd: when nobody uses them, at their time, with their token, and where somebody has too many.
func TestLoginsEnd(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	u := &UI{Options: Options{Now: func() time.Time { return now }, Login: func(_ context.Context, token string) (*Person, error) {
		return &Person{Name: token[:3]}, nil
	}}}
	logins := newLogins(u)
	in := func(id, token string) *login {
		t.Helper()
		now = now.Add(time.Second)
		made, err := logins.begin(t.Context(), id, token)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	idle := in("idle", "ann")
	now = now.Add(idleLogin)
	if logins.find("idle", true) != nil || idle.ctx.Err() == nil {
		t.Error("a login that nobody uses is still there")
	}
	in("long", "ann")
	for range 16 {
		now = now.Add(29 * time.Minute)
		logins.find("long", true)
	}
	if now = now.Add(17 * time.Minute); logins.find("long", true) != nil {
		t.Error("a login has no end")
	}
	// {"alg":"RS256"} and {"exp":1100000}
	now = time.Unix(1_099_000, 0)
	in("token", "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjExMDAwMDB9.x")
	if now = time.Unix(1_100_000, 0); logins.find("token", true) != nil {
		t.Error("a login outlives its token")
	}
	first := in("0", "ann")
	for i := 1; i <= maxLoginsEach; i++ {
		in(fmt.Sprint(i), "ann")
	}
	if first.ctx.Err() == nil || logins.find("0", true) != nil || logins.find("1", true) == nil {
		t.Error("the login that was used the longest ago does not make room")
	}
	for i := range maxLogins - maxLoginsEach {
		in("b"+fmt.Sprint(i), fmt.Sprintf("%03d", i))
	}
	for i := range maxLoginsEach - 1 {
		in(fmt.Sprint("more", i), fmt.Sprintf("x%02d", i))
	}
	now = now.Add(time.Second)
	if _, err := logins.begin(t.Context(), "more", "zed"); !errors.Is(err, errFull) {
		t.Errorf("there is room for more than all: %v", err)
	}
	if again := in("b1", "001"); again != logins.find("b1", true) || again.ctx.Err() != nil {
		t.Error("a login of the same id takes the place of the other")
	}
}

// TestOneTenantDoesNotTakeAll: whoever makes any number of ServiceAccounts leaves room for others.
func TestOneTenantDoesNotTakeAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &UI{rooms: roomsOf(1), Options: Options{Now: time.Now, Login: func(_ context.Context, token string) (*Person, error) {
			return &Person{Name: token}, nil
		}}}
		logins := newLogins(u)
		var all []*login
		for i := range maxLogins {
			time.Sleep(time.Second)
			made, err := logins.begin(t.Context(), fmt.Sprint(i), fmt.Sprint("system:serviceaccount:evil:a", i))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, made)
		}
		ann, err := logins.begin(t.Context(), "ann", "ann")
		if err != nil || all[0].ctx.Err() == nil || all[1].ctx.Err() != nil {
			t.Fatalf("with %d logins of one namespace, another person is told %v", len(logins.byID), err)
		}
		released, asked := make(chan struct{}), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		for name, limit := range map[string]func(http.HandlerFunc) http.HandlerFunc{"Tables": u.listing, "Requests": u.working, "Plans": u.planning} {
			for _, one := range all[1:] {
				go limit(func(http.ResponseWriter, *http.Request) { <-released })(httptest.NewRecorder(), one.with(asked))
			}
			synctest.Wait()
			comes, ctx := false, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			go limit(func(http.ResponseWriter, *http.Request) { comes = true })(httptest.NewRecorder(), ann.with(ctx))
			synctest.Wait()
			if !comes {
				t.Errorf("%s: another person has to wait", name)
			}
		}
		close(released)
		synctest.Wait()
		logins.sweep(time.Now().Add(idleLogin))
		if len(logins.tenants) != 0 {
			t.Errorf("%d tenants are left where nobody is logged in", len(logins.tenants))
		}
	})
}

// TestLoggingInAnewGivesNoMore: what was begun before is still counted for the person, and for their tenant.
func TestLoggingInAnewGivesNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := pagesOf(t)
		u.Login = func(_ context.Context, token string) (*Person, error) { return &Person{Name: token}, nil }
		var plans atomic.Int64
		released := make(chan struct{})
		begins := func(name string) {
			known, err := u.logins.begin(t.Context(), name, name)
			if err != nil {
				t.Fatal(err)
			}
			go u.planning(func(http.ResponseWriter, *http.Request) {
				plans.Add(1)
				<-released
			})(httptest.NewRecorder(), known.with(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)))
			synctest.Wait()
			known.end()
		}
		for range maxPlans {
			begins("eve")
		}
		if got := plans.Swap(0); got != maxPlansEach {
			t.Errorf("one person has %d plans made at once", got)
		}
		for i := range maxPlans {
			begins(fmt.Sprint("system:serviceaccount:evil:a", i))
		}
		if got := plans.Load(); got != maxPlans/2 {
			t.Errorf("one tenant has %d plans made at once", got)
		}
		close(released)
		synctest.Wait()
		u.logins.sweep(time.Now())
		if len(u.logins.people)+len(u.logins.tenants) != 0 {
			t.Error("somebody is remembered who is gone")
		}
	})
}

// TestAnswersOfAllPagesAreBounded: of one person, of one tenant and of all together, for as long as the requests last.
func TestAnswersOfAllPagesAreBounded(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	u.Login = func(_ context.Context, token string) (*Person, error) {
		return &Person{Name: strings.TrimRight(token, "#")}, nil
	}
	var reads func(tokens ...string) error
	reads = func(tokens ...string) (err error) {
		known, _ := u.logins.begin(t.Context(), tokens[0], tokens[0])
		u.reading(func(_ http.ResponseWriter, r *http.Request) {
			if err = Answered(r.Context(), maxAnswersEach/2+1); err == nil && len(tokens) > 1 {
				err = reads(tokens[1:]...)
			}
		})(httptest.NewRecorder(), known.with(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)))
		return err
	}
	const account = "system:serviceaccount:evil:"
	for _, c := range []struct {
		tokens []string
		much   bool
	}{
		{[]string{"eve"}, false},
		{[]string{"eve", "eve#"}, true},
		{[]string{"eve", "ann"}, false},
		{[]string{account + "a", account + "b"}, true},
		{[]string{account + "a", "ann"}, false},
		{[]string{"a", "b", "c"}, false},
		{[]string{"a", "b", "c", "d"}, true},
	} {
		if err := reads(c.tokens...); errors.Is(err, errMuch) != c.much {
			t.Errorf("%v: %v", c.tokens, err)
		}
	}
	for name, limit := range map[string]func(http.HandlerFunc) http.HandlerFunc{"Requests": u.working, "Plans": u.planning} {
		limit(func(_ http.ResponseWriter, r *http.Request) {
			if err := Answered(r.Context(), maxAnswersEach+1); !errors.Is(err, errMuch) || !errors.Is(Answered(r.Context(), 0), errMuch) {
				t.Errorf("%s: %v", name, err)
			}
		})(httptest.NewRecorder(), u.key.login.with(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)))
	}
	if left := u.rooms.answers.now.Load(); left != 0 {
		t.Errorf("%d bytes are left of requests that have ended", left)
	}
}

// slow is an API server that takes its time over reviews of one tenant, which are counted.
type slow struct {
	*clerk

	asking *atomic.Int64
	takes  time.Duration
}

func (s slow) Everywhere(ctx context.Context, kind Kind) (bool, error) {
	s.asking.Add(1)
	defer s.asking.Add(-1)
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(s.takes):
	}
	return s.clerk.Everywhere(ctx, kind)
}

// TestReviewsOfAllLoginsAreBounded: of one person, of one tenant and of all together. Whoever waits too long is shown nothing.
func TestReviewsOfAllLoginsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := pagesOf(t)
		var asking, nothings atomic.Int64
		u.Login = func(_ context.Context, token string) (*Person, error) {
			made := slow{clerk: &clerk{everywhere: map[string]bool{"sources": true}}, asking: &asking}
			if token != "ann" {
				made.takes = time.Hour
			}
			return &Person{Name: strings.TrimRight(token, "#"), Rights: made}, nil
		}
		looks := func(token string) *scope {
			known, err := u.logins.begin(t.Context(), token, token)
			if err != nil {
				t.Fatal(err)
			}
			return u.mayOf(t.Context(), known, anyKind, "")
		}
		begun := time.Now()
		for i := range maxReviews {
			for j := range 2 {
				go func() {
					if may := looks(fmt.Sprint("system:serviceaccount:evil:a", i, strings.Repeat("#", j))); len(may.lacking) == 1 && !may.sees(u.index.kinds[0], "n") {
						nothings.Add(1)
					}
				}()
			}
		}
		synctest.Wait()
		if got := asking.Load(); got != maxReviews/2 {
			t.Errorf("one tenant has %d looks at once", got)
		}
		if may := looks("ann"); !may.sees(u.index.kinds[0], "n") || !time.Now().Equal(begun) {
			t.Errorf("beside them, another person sees nothing: %v", may.lacking)
		}
		time.Sleep(reviewTime)
		synctest.Wait()
		if got := nothings.Load(); got != 2*maxReviews {
			t.Errorf("%d of those who wait are told", got)
		}
	})
}

// TestManyLooksOfOneLoginHaveOneSlot: those of a few people leave room for others of their tenant.
func TestManyLooksOfOneLoginHaveOneSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := pagesOf(t)
		var asking atomic.Int64
		u.Login = func(_ context.Context, token string) (*Person, error) {
			made := slow{clerk: &clerk{everywhere: map[string]bool{"sources": true}}, asking: &asking}
			if !strings.HasSuffix(token, ":quick") {
				made.takes = reviewTime / 2
			}
			return &Person{Name: token, Rights: made}, nil
		}
		in := func(name string) *login {
			known, err := u.logins.begin(t.Context(), name, "system:serviceaccount:team:"+name)
			if err != nil {
				t.Fatal(err)
			}
			return known
		}
		var sees atomic.Int64
		const people = maxReviews / 2 / maxReviewsEach
		for i := range people {
			busy := in(fmt.Sprint(i))
			for range maxReviewsEach {
				go func() {
					if u.mayOf(t.Context(), busy, anyKind, "").sees(u.index.kinds[0], "n") {
						sees.Add(1)
					}
				}()
			}
		}
		synctest.Wait()
		begun, quick := time.Now(), in("quick")
		if may := u.mayOf(t.Context(), quick, anyKind, ""); !may.sees(u.index.kinds[0], "n") || !time.Now().Equal(begun) {
			t.Errorf("beside them, another one waits %s, and is told %q", time.Since(begun), may.lacking)
		}
		time.Sleep(reviewTime)
		synctest.Wait()
		if got := sees.Load(); got != people*maxReviewsEach {
			t.Errorf("%d of their looks see something", got)
		}
	})
}

// TestTriesAreBounded: the API server is not asked about any number of tokens, and whoever tries many keeps nobody else out.
func TestTriesAreBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	u := doorOf(t, func(context.Context, string) (*Person, error) {
		asked++
		return nil, &LoginError{"nobody"}
	})
	u.Now = func() time.Time { return time.Unix(1, 0) }
	from := func(address string) int {
		return u.brings(t, http.Header{"Authorization": {"Bearer x"}}, address).Code
	}
	for i := range 2 * tries {
		from(fmt.Sprint("10.0.0.1:", i))
	}
	if asked != tries || from("10.0.0.1:1") != http.StatusTooManyRequests {
		t.Errorf("one address has it asked about %d tokens", asked)
	}
	if code := from("10.0.0.2:1"); code != http.StatusUnauthorized {
		t.Errorf("another address is told %d", code)
	}
	by := func(chain ...string) int {
		return u.brings(t, http.Header{"Authorization": {"Bearer x"}, "X-Forwarded-For": chain}, "10.0.0.1:1").Code
	}
	if one, other, forged := by("10.0.0.3"), by("10.0.0.3, 10.0.0.4"), by("10.0.0.3", "10.0.0.1"); one != http.StatusUnauthorized || other != http.StatusUnauthorized || forged != http.StatusTooManyRequests {
		t.Errorf("behind a proxy, two addresses are told %d and %d, and the one that had its tries %d", one, other, forged)
	}
	if u.Encrypted = true; by("10.0.0.5") != http.StatusTooManyRequests {
		t.Error("without a proxy, it is taken for another address that says so")
	}
	for i := range 2 * triesOfAll {
		from(fmt.Sprintf("[fd00::%x]:1", i))
	}
	if asked != triesOfAll {
		t.Errorf("many addresses have it asked about %d tokens", asked)
	}
	u.logins.sweep(time.Unix(60, 0))
	if len(u.logins.tried) != 0 {
		t.Errorf("%d addresses are remembered", len(u.logins.tried))
	}
}
