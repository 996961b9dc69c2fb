package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// slots are taken by what may not be done more often at once.
type slots chan struct{}

// rooms are what is done at once: the pages that are live, the tables that are made and sent, the requests that ask the API server,
// those that make plans, the pages that watch members, and the looks at what somebody may see. Answers are the lists that the API server has answered with, in bytes.
type rooms struct {
	streams, tables, works, plans, vigils, reviews slots
	answers                                        *share
}

// What is done at once for all, and for one person; streams are those of one login. A tenant has half of what all have, so that others
// have the rest.
const (
	maxStreams, maxTables, maxWorks, maxPlans, maxVigils, maxReviews                         = 500, 64, 16, 4, 100, 64
	maxStreamsEach, maxTablesEach, maxWorksEach, maxPlansEach, maxVigilsEach, maxReviewsEach = 4, 8, 4, 1, 8, 8
	// maxAnswers and maxAnswersEach are in bytes.
	maxAnswers, maxAnswersEach = 160 << 20, 80 << 20
	// maxStreamsHere is how many pages are live of the one person whose pages they are.
	maxStreamsHere = 64
)

// roomsOf are those of whoever has that part of what all have.
func roomsOf(part int) rooms {
	return rooms{make(slots, maxStreams/part), make(slots, maxTables/part), make(slots, maxWorks/part), make(slots, maxPlans/part), make(slots, maxVigils/part), make(slots, maxReviews/part), &share{most: maxAnswers / int64(part)}}
}

func roomsOfOne() rooms {
	return rooms{make(slots, maxStreamsEach), make(slots, maxTablesEach), make(slots, maxWorksEach), make(slots, maxPlansEach), make(slots, maxVigilsEach), make(slots, maxReviewsEach), &share{most: maxAnswersEach}}
}

// empty says that nothing is done in them.
func (r rooms) empty() bool {
	return len(r.streams)+len(r.tables)+len(r.works)+len(r.plans)+len(r.vigils)+len(r.reviews) == 0
}

// roomsFor are those in which the login needs a slot, its own first.
func (u *UI) roomsFor(who *login) []rooms { return []rooms{who.room, who.shared, u.rooms} }

// listing lets a few tables at once be made. Whoever is slow to read them has few others.
func (u *UI) listing(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(next, func(r rooms) slots { return r.tables })
}

// working lets a few requests at once ask the API server, each for a while.
func (u *UI) working(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(u.reading(next), func(r rooms) slots { return r.works })
}

// planning lets a few plans at once be made.
func (u *UI) planning(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(u.reading(next), func(r rooms) slots { return r.plans })
}

// waiting lets a request wait for its slots.
func (u *UI) waiting(next http.HandlerFunc, of func(rooms) slots) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), patience-time.Second)
		defer stop()
		leave, ok := u.take(ctx, loginOf(r), of)
		if !ok {
			u.fail(w, r, http.StatusServiceUnavailable, "Too much is asked for at once. Try again.")
			return
		}
		defer leave()
		next(w, r.WithContext(ctx))
	}
}

// take waits for the login's slots, until it leaves. It is false if the context ends before.
func (u *UI) take(ctx context.Context, who *login, of func(rooms) slots) (leave func(), ok bool) {
	var taken []slots
	leave = func() {
		for _, one := range taken {
			<-one
		}
	}
	for _, room := range u.roomsFor(who) {
		select {
		case of(room) <- struct{}{}:
			taken = append(taken, of(room))
		case <-ctx.Done():
			leave()
			return nil, false
		}
	}
	return leave, true
}

// share is of what all may have, in bytes.
type share struct {
	most int64
	now  atomic.Int64
}

// answers are those to one request, which are in memory until it ends.
type answers struct {
	of   []rooms
	mu   sync.Mutex
	size int64
	over bool
}

// answersKey is where a request has its answers.
type answersKey struct{}

// reading notes how large the lists are that a request asks the API server for.
func (u *UI) reading(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		read := &answers{of: u.roomsFor(loginOf(r))}
		defer read.leave()
		next(w, r.WithContext(context.WithValue(r.Context(), answersKey{}, read)))
	}
}

// errMuch is for people.
var errMuch = errors.New("what the API server answers takes more memory than pages may have at once; try again, or ask the command line")

// Answered says that the API server has answered with so many bytes of a list, to the request of the context. The error says that they are
// too many: whoever may make objects may make any number, of any size. A size below zero gives back.
func Answered(ctx context.Context, size int) error {
	read, _ := ctx.Value(answersKey{}).(*answers)
	if read == nil {
		return nil
	}
	read.mu.Lock()
	defer read.mu.Unlock()
	if read.over {
		return errMuch
	}
	read.size += int64(size)
	for _, room := range read.of {
		if room.answers.now.Add(int64(size)) > room.answers.most {
			read.over = true
		}
	}
	if read.over {
		return errMuch
	}
	return nil
}

// leave gives back what was taken.
func (a *answers) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, room := range a.of {
		room.answers.now.Add(-a.size)
	}
}
