package ui

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Person is who looks at the pages.
type Person struct {
	// Name is as the API server has it.
	Name   string
	Reader Reader
	// Rights are what is shown of all objects that were read; nil for all of them.
	Rights Rights
}

const (
	// maxLogins is how many there are at once, and maxLoginsEach how many of one person.
	maxLogins, maxLoginsEach = 1000, 20
	// idleLogin and longestLogin are when a login ends that nobody uses, and any.
	idleLogin, longestLogin = 30 * time.Minute, 8 * time.Hour
	// swept is how often logins are looked through.
	swept = 15 * time.Second
	// maxToken is how long a token may be.
	maxToken = 16 << 10
)

// What one login may ask for in a second.
const (
	perSecond, burst = 20, 60
	// triesPerSecond and tries bound the tokens that the API server is asked about for one address, the others those for all.
	triesPerSecond, tries           = 10, 50
	triesPerSecondOfAll, triesOfAll = 100, 500
)

// login is a person who is known for a while.
type login struct {
	*Person

	// ctx ends with it.
	ctx context.Context //nolint:containedctx // It is the login's own life, which ends streams.
	end context.CancelFunc
	// until is its end at the latest; used is guarded by the logins' mutex.
	until, used time.Time
	reviews     reviews
	rate        *rate.Limiter
	// room is its own, but for what it has together with other logins of the person, and shared what others of its tenant have too.
	room, shared rooms
}

type logins struct {
	ui   *UI
	mu   sync.Mutex
	byID map[[sha256.Size]byte]*login
	// people and tenants have what is shared by logins of one person, and of one tenant, as long as there are any, or they do something yet.
	people, tenants map[string]rooms
	// rate bounds the tries of all, and tried those of each address that has tried just now.
	rate  *rate.Limiter
	tried map[string]*rate.Limiter
}

func newLogins(u *UI) *logins {
	return &logins{
		ui: u, byID: map[[sha256.Size]byte]*login{}, people: map[string]rooms{}, tenants: map[string]rooms{},
		rate: rate.NewLimiter(triesPerSecondOfAll, triesOfAll), tried: map[string]*rate.Limiter{},
	}
}

func (l *logins) make(person *Person, until time.Time) *login {
	made := &login{
		Person: person, until: until, used: l.ui.Now(), reviews: newReviews(person.Rights, l.ui.Now), rate: rate.NewLimiter(perSecond, burst),
		room: roomsOfOne(), shared: roomsOf(2),
	}
	made.ctx, made.end = context.WithCancel(context.Background())
	return made
}

// only is the login of the one person whose pages they are. It has no end.
func (l *logins) only(person *Person) *login {
	made := l.make(person, time.Time{})
	made.rate.SetLimit(rate.Inf)
	made.room.streams, made.room.vigils = make(slots, maxStreamsHere), make(slots, maxStreamsHere)
	return made
}

// errFull says that there is no room for a login.
var errFull = errors.New("too many people are logged in; try again later")

// errTries says that too many tokens were tried.
var errTries = errors.New("too many tokens were tried; try again in a few seconds")

// mayTry says that the API server may be asked about a token for the address, as whoever tries many tokens is to keep nobody else out.
func (l *logins) mayTry(address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tried[address] == nil {
		l.tried[address] = rate.NewLimiter(triesPerSecond, tries)
	}
	now := l.ui.Now()
	return l.tried[address].AllowN(now, 1) && l.rate.AllowN(now, 1)
}

// begin asks whose the token is, and knows them by the id from then on.
func (l *logins) begin(ctx context.Context, id, token string) (*login, error) {
	person, err := l.ui.Login(ctx, token)
	if err != nil {
		return nil, err
	}
	now := l.ui.Now()
	made := l.make(person, now.Add(longestLogin))
	if end := expiry(token); !end.IsZero() && end.Before(made.until) {
		made.until = end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	hash := sha256.Sum256([]byte(id))
	if other := l.byID[hash]; other != nil {
		made.end()
		return other, nil
	}
	if !l.makeRoom(made) {
		made.end()
		return nil, errFull
	}
	streams := made.room.streams
	made.room, made.shared = orKnown(l.people, made.Name, made.room), orKnown(l.tenants, made.tenant(), made.shared)
	made.room.streams = streams
	l.byID[hash] = made
	return made, nil
}

// orKnown are the rooms that are known by the name already, or else these from now on.
func orKnown(all map[string]rooms, name string, these rooms) rooms {
	if _, known := all[name]; !known {
		all[name] = these
	}
	return all[name]
}

// tenant is whom the person is counted for: themselves, or the namespace of a ServiceAccount, as whoever makes one there can make any number.
func (p *Person) tenant() string {
	const accounts = "system:serviceaccount:"
	if account, is := strings.CutPrefix(p.Name, accounts); is {
		namespace, _, _ := strings.Cut(account, ":")
		return accounts + namespace
	}
	return p.Name
}

// makeRoom ends a login of the person if there are too many of theirs, and if there are too many of all, one of the tenant that has the
// most: the one that was used the longest ago. It is false if there is no room, as no tenant has several.
func (l *logins) makeRoom(next *login) bool {
	counts, theirs := map[string]int{}, 0
	for _, one := range l.byID {
		counts[one.tenant()]++
		if one.Name == next.Name {
			theirs++
		}
	}
	most := next.tenant()
	for tenant, n := range counts {
		if n > counts[most] {
			most = tenant
		}
	}
	switch {
	case theirs >= maxLoginsEach:
		l.endOldest(func(one *login) bool { return one.Name == next.Name })
	case len(l.byID) < maxLogins:
	case counts[most] > 1:
		l.endOldest(func(one *login) bool { return one.tenant() == most })
	default:
		return false
	}
	return true
}

// endOldest ends the one of the logins that was used the longest ago.
func (l *logins) endOldest(of func(*login) bool) {
	var oldest [sha256.Size]byte
	for id, one := range l.byID {
		if of(one) && (l.byID[oldest] == nil || one.used.Before(l.byID[oldest].used)) {
			oldest = id
		}
	}
	l.byID[oldest].end()
	delete(l.byID, oldest)
}

// find is the login of the id, which somebody uses or not; nil for none.
func (l *logins) find(id string, uses bool) *login {
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := sha256.Sum256([]byte(id))
	found := l.byID[hash]
	now := l.ui.Now()
	switch {
	case found == nil:
		return nil
	case found.ended(now):
		found.end()
		delete(l.byID, hash)
		return nil
	}
	if uses {
		found.used = now
	}
	return found
}

// drop ends the login of an id, if there is one.
func (l *logins) drop(id string) {
	if found := l.find(id, false); found != nil {
		found.end()
	}
}

// ended says that the login is not taken any more. An open page is no use of it, with what its script reads: nobody may
// be there.
func (l *login) ended(now time.Time) bool {
	return l.ctx.Err() != nil || !now.Before(l.until) || now.Sub(l.used) >= idleLogin
}

// sweep ends what is over. The mutex is held.
func (l *logins) sweep(now time.Time) {
	people, tenants := map[string]bool{}, map[string]bool{}
	for id, one := range l.byID {
		if one.ended(now) {
			one.end()
			delete(l.byID, id)
			continue
		}
		one.reviews.forget()
		people[one.Name], tenants[one.tenant()] = true, true
	}
	maps.DeleteFunc(l.tried, func(_ string, one *rate.Limiter) bool { return one.TokensAt(now) >= tries })
	maps.DeleteFunc(l.people, func(name string, left rooms) bool { return !people[name] && left.empty() })
	maps.DeleteFunc(l.tenants, func(name string, left rooms) bool { return !tenants[name] && left.empty() })
}

// run ends logins in time, until the context ends.
func (l *logins) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sweep(l.ui.Now())
	}, swept)
}

// expiry is when a JWT says that it ends (RFC 7519, section 4.1.4); zero for one that does not say. It is not proven: it can but
// shorten a login, and the API server is asked whose the token is.
func expiry(token string) time.Time {
	claims := jwt.MapClaims{}
	_, _, _ = jwt.NewParser().ParseUnverified(token, claims) // What is no JWT has no claims.
	end, err := claims.GetExpirationTime()
	if err != nil || end == nil {
		return time.Time{}
	}
	return end.Time
}

// loginKey is the login of a request, in its context.
type loginKey struct{}

func (l *login) with(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), loginKey{}, l))
}

// loginOf is who makes the request; nil on a page for those who are not known.
func loginOf(r *http.Request) *login {
	found, _ := r.Context().Value(loginKey{}).(*login)
	return found
}
