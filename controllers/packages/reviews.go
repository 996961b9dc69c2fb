package packages

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/forge"
)

// boardKey names what one list of requests tells about: a repository on a forge, seen with one credential.
type boardKey struct {
	repository types.NamespacedName
	provider   packagesv1.ReviewProvider
	secret     string
}

// board is what is known of the requests of a repository, and what variants want of them.
type board struct {
	// place is where the forge was looked at, and listing what it had there; nil as long as nobody has looked. A number says nothing
	// about another place.
	place   string
	listing *forge.Listing
	// listed is when the last look was, and isDue says that another one is wanted now.
	listed time.Time
	isDue  bool
	// pause is when the forge is to be asked again, isLimited that it says so itself, and failures how often in a row it has
	// not answered.
	pause     time.Time
	isLimited bool
	failures  int
	// err says why there is no new listing.
	err   error
	wants map[types.NamespacedName]*want
	// looked are the requests of which the forge does not tell who merged or closed them, and outlived those that were open when
	// their change went on under another name: who closes them then, forge or robot, rejects nothing.
	looked, outlived map[int]bool
	// left are branches that changes on the board had, and have no more, with the owner of each. Nobody else's requests are
	// closed: what another one asks for may be newer than what is known of the repository.
	left map[string]string
}

func newBoard() *board {
	b := &board{wants: map[types.NamespacedName]*want{}, left: map[string]string{}, isDue: true}
	b.moveTo("")
	return b
}

// moveTo has the board be about another place, of which nothing is known.
func (b *board) moveTo(place string) {
	b.place, b.listing, b.looked, b.outlived = place, nil, map[int]bool{}, map[int]bool{}
}

// leaves notes that a want is no more.
func (b *board) leaves(w *want) {
	if w == nil || w.head == "" {
		return
	}
	b.left[w.head] = w.mark.Owner
	if request := b.find(w); request != nil && request.State == forge.Open {
		b.outlived[request.Number] = true
	}
}

// want is what a variant wants to know, or to have asked.
type want struct {
	// mark names the variant and its change. Its tree is that of the open change, or of what is published.
	mark forge.Mark
	// head is the branch of the open change; empty where there is none, and the merge is sought of what is published.
	head       string
	isProposed bool
	// title and words are those of the request; empty where there is to be none as yet.
	title, words string
	// news is what a listing has to be newer than.
	news string

	// isPassed says that nothing was done, as the variant was suspended.
	isPassed bool
	// err says why there is no such request, again when to try it again, and failures how often it was tried in vain.
	err      error
	again    time.Time
	failures int
}

// isSame tells whether nothing else is wanted.
func (w *want) isSame(other *want) bool {
	return other != nil && w.mark == other.mark && w.head == other.head && w.isProposed == other.isProposed && w.title == other.title && w.words == other.words
}

// find is the request that the want is about; nil without one. Of an open change it is the open one. Else it is one that was about
// the very same commit: what was rejected at one lifecycle is so as a draft, and a request that went with its branch says nothing
// about what came in its place.
func (b *board) find(w *want) (found *forge.Request) {
	if b.listing == nil {
		return nil
	}
	for i := range b.listing.Requests {
		r := &b.listing.Requests[i]
		isOurs := r.Mark.Owner == w.mark.Owner && r.Mark.Package == w.mark.Package
		switch {
		case w.head == "":
			isOurs = isOurs && r.State == forge.Merged && r.Mark.Tree == w.mark.Tree
		case r.Head == w.head && r.State == forge.Open:
			return r
		default:
			isOurs = isOurs && r.State != forge.Open && r.Mark.Commit == w.mark.Commit && (r.Head == w.head || !w.isProposed) && !b.outlived[r.Number]
		}
		if isOurs && (found == nil || r.Number > found.Number) {
			found = r
		}
	}
	return found
}

// isChange tells whether a branch is one of an open change.
func isChange(head string) bool {
	return strings.HasPrefix(head, "drafts/") || strings.HasPrefix(head, "proposed/")
}

// reviews have the boards of all repositories. Variants say what they want, and whoever looks at the board of their repository
// carries that out: a forge that is slow holds up nobody else. All of it can be lost: the forge knows the requests.
type reviews struct {
	mu     sync.Mutex
	boards map[boardKey]*board
	// on says on which board a variant is.
	on    map[types.NamespacedName]boardKey
	waker *waker
}

func newReviews() *reviews {
	return &reviews{boards: map[boardKey]*board{}, on: map[types.NamespacedName]boardKey{}, waker: newWaker()}
}

// found is what is known of a want.
type found struct {
	// isKnown says that the forge was looked at.
	isKnown bool
	request *forge.Request
	err     error
}

// ask says what a variant wants, and returns what is known of that.
func (r *reviews) ask(variant types.NamespacedName, key boardKey, w *want) found {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on, known := r.on[variant]; known && on != key {
		r.leave(variant)
	}
	b := r.boards[key]
	if b == nil {
		b = newBoard()
		r.boards[key] = b
	}
	r.on[variant] = key
	before := b.wants[variant]
	switch {
	case !w.isSame(before):
		if before != nil && before.head != w.head {
			b.leaves(before)
		}
		b.wants[variant] = w
		b.isDue = b.isDue || before != nil && before.news != w.news
		r.waker.wake(key.repository)
	case before.news != w.news:
		before.news, b.isDue = w.news, true
		r.waker.wake(key.repository)
	case before.isPassed:
		before.isPassed, w = false, before
		r.waker.wake(key.repository)
	default:
		w = before
	}
	now := found{isKnown: b.listing != nil, err: w.err}
	if b.err != nil {
		now.err = b.err
	}
	if request := b.find(w); request != nil {
		now.request = new(*request)
	}
	return now
}

// forget takes back what a variant wants.
func (r *reviews) forget(variant types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.on[variant]; known {
		r.leave(variant)
	}
}

// leave is called with the lock held. A board that nobody is on is looked at once more, and then dropped.
func (r *reviews) leave(variant types.NamespacedName) {
	key := r.on[variant]
	delete(r.on, variant)
	if b := r.boards[key]; b != nil {
		b.leaves(b.wants[variant])
		delete(b.wants, variant)
		b.isDue = b.isDue || len(b.wants) == 0
		r.waker.wake(key.repository)
	}
}

// look has the boards of a repository looked at, once more where something has moved there or somebody asks. A forge that does not
// answer is asked before its pause ends if somebody asks, and not with each change in Git.
func (r *reviews) look(repository types.NamespacedName, hasMoved, isAsked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, b := range r.boards {
		if key.repository == repository {
			b.isDue = b.isDue || hasMoved || isAsked
			if isAsked && !b.isLimited {
				b.pause = time.Time{}
			}
			r.waker.wake(repository)
		}
	}
}

// drop forgets the boards of a repository that is gone.
func (r *reviews) drop(repository types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, b := range r.boards {
		if key.repository == repository {
			for variant := range b.wants {
				delete(r.on, variant)
			}
			delete(r.boards, key)
		}
	}
}
