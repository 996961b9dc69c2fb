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

// Sharer is what a session is beside, when other objects may select the very same content.
type Sharer interface {
	// Share names the selected content, how it is archived, where it comes from and to whom it is shown there: whoever
	// comes upon an equal name may have the artifact. Empty where upstream has not been asked just now.
	Share(ctx context.Context, selected Selection) string
}

// sharing makes each body once that several objects ask for at the same time, or one after the other.
type sharing struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when who makes the body of the name has ended
	made *lru.Cache[string, shared]
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

// once stages the body of the name, which is made if it is not stored. Who waits for another one to make it has no longer for
// that than for upstream. When that one fails, all go on by themselves: each has a time of its own, and a line of those that
// fail would use up that of whoever comes last.
func (s *sharing) once(
	ctx, upstream context.Context, store storage.Writer, name string, bring func() (Content, storage.Staged, error),
) (content Content, staged storage.Staged, err error) {
	if name == "" {
		return bring()
	}
	ended, first := s.enter(name)
	if first {
		defer s.leave(name)
	} else {
		select {
		case <-ended:
		case <-upstream.Done():
			return content, staged, failure.At(StageFetch, fmt.Errorf("wait for another object that fetches the same: %w", context.Cause(upstream)))
		}
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
	if content, staged, err = bring(); err == nil {
		// Of the content only its words are kept; rules may be long.
		content = Content{Key: content.Key, Title: content.Title, SkippedLinks: content.SkippedLinks, Metadata: content.Metadata}
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

// enter tells whether nobody else makes the body now, and when who does has ended.
func (s *sharing) enter(name string) (ended chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made, _ = lru.New[string, shared](maxShared) // It fails for a size below one alone.
		s.busy = map[string]chan struct{}{}
	}
	ended, others := s.busy[name]
	if !others {
		ended = make(chan struct{})
		s.busy[name] = ended
	}
	return ended, !others
}

func (s *sharing) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.busy[name])
	delete(s.busy, name)
}
