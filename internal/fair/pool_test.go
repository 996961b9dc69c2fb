package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/fair"
)

// wish reads "a", "a!" (not ready), "a^" (urgent), "a*3" (of three units) and "a+3" (beside three units of its own).
func wish(t *testing.T, text string) fair.Wish {
	t.Helper()
	var made fair.Wish
	made.Namespace, made.Unready = strings.TrimRight(text[:1], "-"), strings.Contains(text, "!")
	made.Urgent = strings.Contains(text, "^")
	if at := strings.Index(text, "*"); at > 0 {
		if _, err := fmt.Sscan(text[at+1:], &made.Weight); err != nil {
			t.Fatal(err)
		}
	}
	if at := strings.Index(text, "+"); at > 0 {
		if _, err := fmt.Sscan(text[at+1:], &made.Own); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func TestWhoHasTheNextTurn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		total  int64
		queue  int
		// steps are wishes, "name: wish"; "-name" is a release, and "name=weight" another size.
		steps []string
		want  []string // who is granted in the end, released or not, in the order of the grants
	}{
		"Half": {
			"a namespace has half, and who asked first of those that fit has the rest", 5, 0,
			[]string{"a1: a", "a2: a", "a3: a", "a4: a", "b1: b", "b2: b", "c1: c"},
			[]string{"a1", "a2", "a3", "b1", "b2"},
		},
		"Turns": {
			"a namespace that has had something comes after one that waits", 4, 0,
			[]string{"a1: a", "a2: a", "a3: a", "a4: a", "b1: b", "b2: b", "b3: b", "c1: c", "-a1", "-a2", "-b1"},
			[]string{"a1", "a2", "b1", "b2", "a3", "c1", "b3"},
		},
		"First come": {
			"in a namespace it is first come, first served", 2, 0,
			[]string{"a1: a", "a2: a", "a3: a", "-a1", "-a2"},
			[]string{"a1", "a2", "a3"},
		},
		"One": {
			"of a single unit everybody has it in their turn", 1, 0,
			[]string{"a1: a!", "a2: a!", "a3: a!", "b1: b", "-a1", "-a2"},
			[]string{"a1", "a2", "b1"},
		},
		"Nobody's": {
			"what has no namespace is bounded in all", 3, 0,
			[]string{"x1: -", "x2: -", "x3: -", "x4: -"},
			[]string{"x1", "x2", "x3"},
		},
		"Unready": {
			"what is not ready has half in all, and half of that in one namespace", 8, 0,
			[]string{"a1: a!", "a2: a!", "a3: a!", "b1: b!", "b2: b!", "c1: c!", "a4: a", "a5: a", "a6: a", "b3: b", "b4: b"},
			[]string{"a1", "a2", "b1", "b2", "a4", "a5", "b3", "b4"},
		},
		"Unready first": {
			"what is not ready holds up nothing that is", 4, 0,
			[]string{"a1: a!", "a2: a!", "b1: b!", "c1: c!", "a3: a", "c2: c"},
			[]string{"a1", "b1", "a3", "c2"},
		},
		"Urgent": {
			"what somebody waits for has a turn beside all else of its namespace, and in its half", 2, 0,
			[]string{"a1: a", "b1: b", "a2: a", "a3: a", "a4: a^", "a5: a^", "-a1", "-a2", "-a4"},
			[]string{"a1", "b1", "a2", "a4", "a3"},
		},
		"Heavy": {
			"light wishes do not overtake a heavy one for ever", 10, 0,
			[]string{"a1: a*4", "b1: b*4", "c1: c*5", "d1: d*2", "e1: e*1", "-a1", "-b1"},
			[]string{"a1", "b1", "c1", "d1", "e1"},
		},
		"Heavy in its namespace": {
			"a namespace that waits for its own half holds up nobody else", 10, 0,
			[]string{"a1: a*4", "a2: a*4", "b1: b*4", "c1: c*2", "-a1"},
			[]string{"a1", "b1", "c1", "a2"},
		},
		"Larger than all": {
			"a share that is larger than everything is granted alone", 4, 0,
			[]string{"a1: a", "b1: b*9", "c1: c", "-a1", "-b1"},
			[]string{"a1", "b1", "c1"},
		},
		"Larger than half": {
			"a share that is larger than half is granted once its namespace has nothing else", 4, 0,
			[]string{"a1: a", "a2: a*3", "b1: b", "-a1"},
			[]string{"a1", "b1", "a2"},
		},
		"Smaller": {
			"what a share turns out not to need is others'", 4, 0,
			[]string{"a1: a*2", "b1: b*2", "c1: c", "c2: c", "a1=1", "b1=1"},
			[]string{"a1", "b1", "c1", "c2"},
		},
		"Larger": {
			"a share may grow beyond what there is, and the others wait the longer", 4, 0,
			[]string{"a1: a", "a1=9", "b1: b", "a1=3", "-a1"},
			[]string{"a1", "b1"},
		},
		"Own": {
			"nobody waits for what they hold themselves", 4, 0,
			[]string{"a1: a", "a1=4", "b1: b", "a2: a*2+4"},
			[]string{"a1"},
		},
		"Own alone": {
			"who is the next has it beside what they hold", 4, 0,
			[]string{"a1: a", "a1=4", "a2: a*2+4", "b1: b"},
			[]string{"a1", "a2"},
		},
		"Twice": {
			"a second release gives nothing back", 2, 0,
			[]string{"a1: a", "b1: b", "c1: c", "d1: d", "-a1", "-a1", "a1=0"},
			[]string{"a1", "b1", "c1"},
		},
		"Gone": {
			"who gives up is not in the way", 2, 0,
			[]string{"a1: a", "b1: b", "c1: c*2", "d1: d", "-c1", "-a1"},
			[]string{"a1", "b1", "d1"},
		},
		"Full": {
			"the queue of a namespace has an end, and others' queues are not full", 2, 2,
			[]string{"a1: a", "a2: a", "a3: a", "a4: a", "b1: b", "b2: b", "-a1", "-a2", "-a3"},
			[]string{"a1", "b1", "a2", "a3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fair.New(tc.total, tc.queue)
			shares := map[string]*fair.Share{}
			var granted []string
			for _, step := range tc.steps {
				if name, text, asks := strings.Cut(step, ": "); asks {
					called := func() { granted = append(granted, name) }
					if shares[name] = pool.Ask(wish(t, text), called); shares[name] != nil && shares[name].Granted() {
						called()
					}
				} else if name, text, resized := strings.Cut(step, "="); resized {
					shares[name].Resize(wish(t, "x*"+text).Weight)
				} else {
					shares[step[1:]].Release()
				}
			}
			if diff := cmp.Diff(tc.want, granted); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTakingEnds(t *testing.T) {
	t.Parallel()
	pool := fair.New(1, 1)
	late, giveUp := context.WithCancel(t.Context())
	giveUp()
	for range 20 {
		free, err := pool.Take(late, fair.Wish{Namespace: "a"})
		if free.Release(); err != nil {
			t.Fatalf("nobody has anything, and %v", err)
		}
	}
	first, err := pool.Take(t.Context(), fair.Wish{Namespace: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		// Each leaves the queue, so that the next one finds room in it.
		if _, err := pool.Take(ended, fair.Wish{Namespace: "a"}); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	waiting := pool.Ask(fair.Wish{Namespace: "a"}, func() {})
	if _, err := pool.Take(t.Context(), fair.Wish{Namespace: "a"}); !errors.Is(err, fair.ErrFull) {
		t.Errorf("got %v", err)
	}
	first.Release()
	if !waiting.Granted() {
		t.Error("the turn was lost")
	}
	var boundless *fair.Pool
	share, err := boundless.Take(t.Context(), fair.Wish{})
	share.Release()
	if err != nil {
		t.Errorf("no pool, and still %v", err)
	}
}

// A turn that comes while its waiter gives up is the next one's.
func TestTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	const rounds, waiters = 200, 8
	pool := fair.New(3, 0)
	var group sync.WaitGroup
	var held, most atomic.Int64
	for i := range waiters {
		group.Go(func() {
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+round)%3 == 0 {
					go cancel()
				}
				share, err := pool.Take(ctx, fair.Wish{Namespace: string(rune('a' + i%3)), Unready: i%2 == 0})
				if err == nil {
					now := held.Add(1)
					for before := most.Load(); now > before; before = most.Load() {
						if most.CompareAndSwap(before, now) {
							break
						}
					}
					held.Add(-1)
					share.Release()
				}
				cancel()
			}
		})
	}
	group.Wait()
	if most.Load() > 3 {
		t.Errorf("%d had a share at once", most.Load())
	}
	if share := pool.Ask(fair.Wish{Namespace: "a", Weight: 3, Unready: true}, func() {}); !share.Granted() {
		t.Error("something was not given back")
	}
}

// In an outage nothing is ready, and objects of all namespaces wait. Each of them costs little, as those that are ready do.
func TestWaitingInAnOutageIsCheap(t *testing.T) {
	quickest := func(unready bool) time.Duration {
		pool := fair.New(100, 0)
		ask := func(i int) *fair.Share {
			return pool.Ask(fair.Wish{Namespace: strconv.Itoa(i), Unready: unready}, func() {})
		}
		for i := range 1000 {
			ask(i)
		}
		least := time.Hour
		for i := range 50 {
			began := time.Now()
			ask(1000 + i).Release()
			least = min(least, time.Since(began))
		}
		return least
	}
	if ready, unready := quickest(false), quickest(true); unready > 100*ready {
		t.Errorf("a place in the queue took %s, and %s where all are ready", unready, ready)
	}
}

// holder is one that has asked.
type holder struct {
	fair.Wish
	share *fair.Share
	asked int
}

// crowd is a pool, and what its rules say of those who use it.
type crowd struct {
	pool    *fair.Pool
	total   int64
	holders []*holder
}

func (c *crowd) used(of func(*holder) bool) (sum int64, count int) {
	for _, h := range c.holders {
		if h.share.Granted() && h.Weight > 0 && of(h) {
			sum, count = sum+h.Weight, count+1
		}
	}
	return sum, count
}

// part is a rule: how much those have together whom it is about.
type part struct {
	limit int64
	of    func(*holder) bool
}

func (c *crowd) parts(h *holder) []part {
	namesake := func(o *holder) bool { return o.Namespace == h.Namespace }
	all := []part{{c.total, func(*holder) bool { return true }}, {(c.total + 1) / 2, namesake}}
	if h.Unready {
		all = append(all, part{c.total / 2, func(o *holder) bool { return o.Unready }},
			part{(c.total/2 + 1) / 2, func(o *holder) bool { return o.Unready && namesake(o) }})
	}
	return all
}

// check says which rule is broken.
func (c *crowd) check(t *testing.T) {
	t.Helper()
	for _, h := range c.holders {
		fits := true
		for _, rule := range c.parts(h) {
			sum, count := c.used(rule.of)
			if h.share.Granted() && sum > rule.limit && count > 1 {
				t.Fatalf("%+v: %d of %d used by %d", h.Wish, sum, rule.limit, count)
			}
			fits = fits && (count == 0 || sum+h.Weight <= rule.limit)
		}
		ahead := slices.ContainsFunc(c.holders, func(o *holder) bool { return !o.share.Granted() && o != h })
		if !h.share.Granted() && fits && !ahead {
			t.Fatalf("%+v is the only one that waits, and there is room", h.Wish)
		}
		for _, other := range c.holders {
			same := other.Namespace == h.Namespace && other.Unready == h.Unready
			if same && other.asked < h.asked && !other.share.Granted() && h.share.Granted() {
				t.Fatalf("%+v was overtaken by %+v", other.Wish, h.Wish)
			}
		}
	}
}

// Whatever happens in whatever order, the bounds hold, nobody is overtaken in their queue, and everybody has their turn.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := &crowd{total: 1 + random.Int64N(12)}
		c.pool = fair.New(c.total, 0)
		for step := range 200 {
			switch at := random.IntN(max(len(c.holders), 1)); {
			case random.IntN(5) < 2 || len(c.holders) == 0:
				one := &holder{asked: step, Wish: fair.Wish{
					Namespace: string(rune('a' + random.IntN(4))), Unready: random.IntN(3) == 0, Weight: 1 + random.Int64N(random.Int64N(c.total+3)+1),
				}}
				one.share = c.pool.Ask(one.Wish, func() {})
				c.holders = append(c.holders, one)
			case random.IntN(4) == 0 && c.holders[at].share.Granted():
				// A share that grows may break the bounds; one that shrinks does not.
				c.holders[at].Weight = random.Int64N(c.holders[at].Weight + 1)
				c.holders[at].share.Resize(c.holders[at].Weight)
			default:
				c.holders[at].share.Release()
				c.holders = slices.Delete(c.holders, at, at+1)
			}
			c.check(t)
		}
		for left := len(c.holders); left > 0; left-- {
			at := slices.IndexFunc(c.holders, func(h *holder) bool { return h.share.Granted() })
			if at < 0 {
				t.Fatalf("seed %d: %d wait, and nobody has anything", seed, left)
			}
			c.holders[at].share.Release()
			c.holders = slices.Delete(c.holders, at, at+1)
		}
	}
}
