package ui

import (
	"context"
	"net/http"
	"time"
)

// slots are taken by what may not be done more often at once.
type slots chan struct{}

// rooms are what is done at once: the pages that are live, the tables that are made and sent, the requests that ask the API server,
// those that make plans, and the pages that watch members.
type rooms struct{ streams, tables, works, plans, vigils slots }

// What is done at once for all, and for one person; streams are those of one login. A tenant has half of what all have, so that others
// have the rest.
const (
	maxStreams, maxTables, maxWorks, maxPlans, maxVigils                     = 500, 64, 16, 4, 100
	maxStreamsEach, maxTablesEach, maxWorksEach, maxPlansEach, maxVigilsEach = 4, 8, 4, 1, 8
	// maxStreamsHere is how many pages are live of the one person whose pages they are.
	maxStreamsHere = 64
)

func roomsOfAll() rooms {
	return rooms{make(slots, maxStreams), make(slots, maxTables), make(slots, maxWorks), make(slots, maxPlans), make(slots, maxVigils)}
}

func roomsOfTenant() rooms {
	return rooms{make(slots, maxStreams/2), make(slots, maxTables/2), make(slots, maxWorks/2), make(slots, maxPlans/2), make(slots, maxVigils/2)}
}

func roomsOfOne() rooms {
	return rooms{make(slots, maxStreamsEach), make(slots, maxTablesEach), make(slots, maxWorksEach), make(slots, maxPlansEach), make(slots, maxVigilsEach)}
}

// roomsFor are those in which the login needs a slot, its own first.
func (u *UI) roomsFor(who *login) []rooms { return []rooms{who.room, who.shared, u.rooms} }

// listing lets a few tables at once be made. Whoever is slow to read them has few others.
func (u *UI) listing(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(next, func(r rooms) slots { return r.tables })
}

// working lets a few requests at once ask the API server, each for a while.
func (u *UI) working(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(next, func(r rooms) slots { return r.works })
}

// planning lets a few plans at once be made.
func (u *UI) planning(next http.HandlerFunc) http.HandlerFunc {
	return u.waiting(next, func(r rooms) slots { return r.plans })
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
