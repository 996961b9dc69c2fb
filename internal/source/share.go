package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/storage"
)

// maxShared is how many bodies are remembered that other objects may ask for.
const maxShared = 4096

// errWaited says that somebody else should have brought what is selected.
var errWaited = errors.New("wait for another object that fetches the same")

// Sharer is what a session is beside, when other objects may select the very same content.
type Sharer interface {
	// Share names the selected content, how it is archived, where it comes from and to whom it is shown there: whoever
	// comes upon an equal name may have the artifact. Empty where upstream has not been asked just now.
	Share(ctx context.Context, selected Selection) string
}

// sharing makes each body once that several objects ask for at the same time, or one after the other.
type sharing struct {
	mu   sync.Mutex
	busy map[string]*making
	made *lru.Cache[string, shared]
}

// making is somebody's making the body of a name.
type making struct {
	fetched chan struct{} // closed when upstream is not needed any more
	ended   chan struct{} // closed at the end
}

// shared is a body that was made, with what a record says of its content.
type shared struct {
	content Content
	staged  storage.Staged
}

// share is the name under which a session's content is shared; empty when it is not.
func share(ctx context.Context, session Session, selected Selection) string {
	if sharer, ok := session.(Sharer); ok {
		return sharer.Share(ctx, selected)
	}
	return ""
}

// once stages the body of the name, which is made if it is not stored. Who waits for another one to fetch it has no longer for
// that than for upstream. When that one fails, all go on by themselves: each has a time of its own, and a line of those that
// fail would use up that of whoever comes last.
func (s *sharing) once(
	ctx, upstream context.Context, store storage.Writer, name string, bring func(fetched func()) (Content, storage.Staged, error),
) (content Content, staged storage.Staged, err error) {
	fetched := func() {}
	if name == "" {
		return bring(fetched)
	}
	now, first := s.enter(name)
	if first {
		fetched = func() { close(now.fetched) }
		defer s.leave(name)
	} else if err := now.wait(ctx, upstream); err != nil {
		return content, staged, failure.At(StageFetch, fmt.Errorf("%w: %w", errWaited, err))
	}
	if known, ok := s.made.Get(name); ok {
		err := store.Restage(ctx, known.staged)
		if err == nil {
			return known.content, known.staged, nil
		}
		if !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
			return content, staged, failure.At(StageStore, err)
		}
	}
	if content, staged, err = bring(fetched); err == nil {
		// Of the content only its words are kept; rules may be long.
		content = Content{
			Key: content.Key, Revision: content.Revision, Name: content.Name,
			Title: content.Title, Memo: content.Memo, SkippedLinks: content.SkippedLinks, Metadata: content.Metadata,
		}
		s.made.Add(name, shared{content, staged})
	}
	return content, staged, err
}

// has tells whether the body of the name was made; it may have gone from the store since then.
func (s *sharing) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return name != "" && s.made != nil && s.made.Contains(name)
}

// wait waits for the end. To archive what has come takes no time of upstream's, whoever does it.
func (m *making) wait(ctx, upstream context.Context) error {
	select {
	case <-m.ended:
		return nil
	case <-m.fetched:
	case <-upstream.Done():
		return context.Cause(upstream)
	}
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter tells whether nobody else makes the body now, and how far who does has come.
func (s *sharing) enter(name string) (now *making, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made, _ = lru.New[string, shared](maxShared) // It fails for a size below one alone.
		s.busy = map[string]*making{}
	}
	now, others := s.busy[name]
	if !others {
		now = &making{fetched: make(chan struct{}), ended: make(chan struct{})}
		s.busy[name] = now
	}
	return now, !others
}

func (s *sharing) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.busy[name].ended)
	delete(s.busy, name)
}
