package ui

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/validation"

	"sluice.dev/sluice/internal/printable"
)

// Rights asks the API server, in a person's name, what they may list. Its errors are fit to be shown.
type Rights interface {
	// Everywhere says whether they may list the kind's objects in all namespaces.
	Everywhere(ctx context.Context, kind Kind) (bool, error)
	// In says which of the kinds they may list in the namespace.
	In(ctx context.Context, namespace string, kinds []Kind) ([]bool, error)
}

// LoginError says that the API server does not know the person, or not any more.
type LoginError struct{ What string }

// Error is for the person.
func (e *LoginError) Error() string { return e.What }

const (
	// fresh is how long it is known that somebody may see something. Streams ask again with each heartbeat, so that what was taken
	// back is shown for less than the 30 seconds that pages promise.
	fresh = 12 * time.Second
	// refusedFor is how long it is known that somebody may not.
	refusedFor = 2 * time.Minute
	// reviewTime is how long the API server is waited for.
	reviewTime = 10 * time.Second
	// reviewsAtOnce is how many reviews are asked for at once for one look.
	reviewsAtOnce = 8
	// maxReviewed is in how many namespaces it is asked what somebody may see who may not see all.
	maxReviewed = 2000
)

// review is what was answered, and when.
type review struct {
	at    time.Time
	kinds []bool
}

// holds says that it can be taken as it is.
func (v review) holds(now time.Time) bool {
	if slices.Contains(v.kinds, true) {
		return now.Sub(v.at) < fresh
	}
	return !v.at.IsZero() && now.Sub(v.at) < refusedFor
}

// reviews are what is known of one person's rights.
type reviews struct {
	rights Rights
	now    func() time.Time
	// turn is held by whoever asks: others who look at the same time need the same answers.
	turn       chan struct{}
	everywhere map[string]review
	in         map[string]review
	// answered is when the API server knew the person.
	answered time.Time
}

func newReviews(rights Rights, now func() time.Time) reviews {
	return reviews{rights: rights, now: now, turn: make(chan struct{}, 1), everywhere: map[string]review{}, in: map[string]review{}}
}

// scope is what of some kinds somebody may see.
type scope struct {
	all        bool
	everywhere map[string]bool
	// in are the resources that may be seen in a namespace.
	in map[string]map[string]bool
	// mark is the same for those who may see the same.
	mark string
	// lacking is what has to be said to the person.
	lacking []string
}

// sees says whether the person may.
func (s *scope) sees(kind Kind, namespace string) bool {
	return s.all || s.everywhere[kind.Resource] || s.in[namespace][kind.Resource]
}

// everything is the scope of whoever may see all that was read.
func everything() *scope { return &scope{all: true} }

// scopeOf finds out what of the kinds the person may see, in the namespaces that have any. An error lets nothing be seen.
func (l *login) scopeOf(ctx context.Context, x *index, kinds []Kind, namespace string) *scope {
	found, err := l.reviews.scope(ctx, x, kinds, namespace)
	if err == nil {
		return found
	}
	if _, gone := errors.AsType[*LoginError](err); gone {
		l.end()
	}
	return nothing(err.Error())
}

// nothing is the scope of whoever may see what could not be found out.
func nothing(why string) *scope {
	told := "What you may see could not be found out, so that nothing is shown: " + printable.Line(why, maxCell)
	return &scope{mark: told, lacking: []string{told}}
}

// mayOf is the scope of somebody, of the kinds that are wanted; in one namespace if it is named.
func (u *UI) mayOf(ctx context.Context, who *login, wanted func(Kind) bool, namespace string) *scope {
	if who.Rights == nil {
		return everything()
	}
	ctx, stop := context.WithTimeout(ctx, reviewTime)
	defer stop()
	// Whoever looks at much waits for their own turn, and has no slot of others for that.
	select {
	case who.reviews.turn <- struct{}{}:
		defer func() { <-who.reviews.turn }()
	case <-ctx.Done():
		return nothing("others of your pages wait for the same")
	}
	leave, ok := u.take(ctx, who, func(r rooms) slots { return r.reviews })
	if !ok {
		return nothing("too much is asked for at once")
	}
	defer leave()
	return who.scopeOf(ctx, u.index, u.index.kindsFor(wanted), namespace)
}

// scope is for whoever has the turn.
func (r *reviews) scope(ctx context.Context, x *index, kinds []Kind, namespace string) (*scope, error) {
	made := &scope{everywhere: map[string]bool{}, in: map[string]map[string]bool{}}
	partly, err := r.cluster(ctx, kinds, made)
	if err != nil || len(partly) == 0 {
		made.mark = made.marked()
		return made, err
	}
	var namespaces []string
	switch {
	case namespace == "":
		namespaces = x.namespaces(partly)
	case len(validation.ValidateNamespaceName(namespace, false)) == 0:
		// It is asked about whether it has objects or not, which is not for everyone to know.
		namespaces = []string{namespace}
	}
	if len(namespaces) > maxReviewed {
		made.lacking = append(made.lacking, fmt.Sprintf("Only %d namespaces were looked at: name one to see what it has.", maxReviewed))
		namespaces = namespaces[:maxReviewed]
	}
	if err := r.inside(ctx, namespaces, x.kinds); err != nil {
		return nil, err
	}
	for _, n := range namespaces {
		for i, k := range x.kinds {
			if r.in[n].kinds[i] && slices.ContainsFunc(partly, func(p Kind) bool { return p.Resource == k.Resource }) {
				if made.in[n] == nil {
					made.in[n] = map[string]bool{}
				}
				made.in[n][k.Resource] = true
			}
		}
	}
	made.mark = made.marked()
	made.lacking = append(made.lacking, missing(partly))
	return made, nil
}

// cluster asks which of the kinds may be seen everywhere, and gives the others.
func (r *reviews) cluster(ctx context.Context, kinds []Kind, made *scope) (partly []Kind, err error) {
	var asked []Kind
	for _, k := range kinds {
		if !r.everywhere[k.Resource].holds(r.now()) {
			asked = append(asked, k)
		}
	}
	begun := r.now()
	if len(asked) == 0 && len(kinds) > 0 && begun.Sub(r.answered) >= fresh {
		// Whoever may see nothing may be nobody by now.
		asked = kinds[:1]
	}
	err = each(ctx, len(asked), func(ctx context.Context, i int) (review, error) {
		at := r.now()
		may, err := r.rights.Everywhere(ctx, asked[i])
		return review{at, []bool{may}}, err
	}, func(i int, found review) { r.everywhere[asked[i].Resource] = found })
	if err == nil && len(asked) > 0 {
		r.answered = begun
	}
	for _, k := range kinds {
		if known := r.everywhere[k.Resource]; len(known.kinds) > 0 && known.kinds[0] {
			made.everywhere[k.Resource] = true
		} else {
			partly = append(partly, k)
		}
	}
	return partly, err
}

// inside asks what may be seen in the namespaces. What is known of namespaces that were not asked about for long is forgotten.
func (r *reviews) inside(ctx context.Context, namespaces []string, kinds []Kind) error {
	maps.DeleteFunc(r.in, func(_ string, known review) bool { return !known.holds(r.now()) })
	asked := slices.DeleteFunc(slices.Clone(namespaces), func(n string) bool {
		_, known := r.in[n]
		return known
	})
	return each(ctx, len(asked), func(ctx context.Context, i int) (review, error) {
		at := r.now()
		may, err := r.rights.In(ctx, asked[i], kinds)
		return review{at, may}, err
	}, func(i int, found review) { r.in[asked[i]] = found })
}

// forget leaves what is not known any more, if nobody asks just now.
func (r *reviews) forget() {
	select {
	case r.turn <- struct{}{}:
		maps.DeleteFunc(r.in, func(_ string, known review) bool { return !known.holds(r.now()) })
		<-r.turn
	default:
	}
}

// each asks for some reviews at once, and takes them one by one.
func each(ctx context.Context, n int, ask func(ctx context.Context, i int) (review, error), take func(i int, found review)) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i := range n {
		group.Go(func() error {
			found, err := ask(ctx, i)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			take(i, found)
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // It is fit to be shown as it is.
}

// missing says what is not seen of kinds that are not seen everywhere.
func missing(partly []Kind) string {
	var names []string
	for _, k := range partly {
		names = append(names, k.Resource)
	}
	return "Of " + strings.Join(names, ", ") + " you see those of the namespaces in which you may list them. All of them are seen with the ClusterRole sluice-view, bound in the cluster."
}

func (s *scope) marked() string {
	hash := sha256.New()
	write := func(resources map[string]bool) {
		fmt.Fprintf(hash, "%q\n", slices.Sorted(maps.Keys(resources)))
	}
	write(s.everywhere)
	for _, n := range slices.Sorted(maps.Keys(s.in)) {
		fmt.Fprintf(hash, "%q ", n)
		write(s.in[n])
	}
	return string(hash.Sum(nil))
}
