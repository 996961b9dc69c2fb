package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// shelf is the smallest source: a map of files with a version.
type shelf struct {
	mu      sync.Mutex
	version int
	// edition counts the times the same version was published.
	edition int
	ignore  *string
	// signed is the version that is signed, keys the version of the trusted keys; zero asks for no proof.
	signed, keys int
	distrusted   bool
	broken       bool
	fetches      int
}

func (s *shelf) Open(context.Context) (source.Session, error) { return session{s}, nil }

func (s *shelf) Advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
}

func (s *shelf) Republish() { s.edition++ }

func (s *shelf) Demand() { s.keys, s.signed = 1, s.version }

func (s *shelf) Rotate() { s.keys++ }

func (s *shelf) Distrust() { s.keys, s.distrusted = s.keys+1, true }

func (s *shelf) Reconfigure() {
	rule := "b.txt"
	s.ignore = &rule
}

func (s *shelf) Break() func() {
	s.broken = true
	return func() { s.broken = false }
}

func (s *shelf) Fetches() int { return s.fetches }

func (s *shelf) Files() map[string]string {
	files := map[string]string{"a.txt": fmt.Sprint("version ", s.version), "b.txt": "b"}
	if s.ignore != nil {
		delete(files, *s.ignore)
	}
	return files
}

type session struct{ shelf *shelf }

func (s session) Resolve(context.Context) (source.Selection, error) {
	if s.shelf.broken {
		return source.Selection{}, errors.New("the shelf is away")
	}
	checksum, err := source.ConfigChecksum("shelf", []any{s.shelf.ignore, s.shelf.keys})
	name := fmt.Sprint("v", s.shelf.version, ".", s.shelf.edition)
	return source.Selection{Revision: name, Name: name, Extension: ".tar.gz", ConfigChecksum: checksum}, err
}

func (s session) Verify(context.Context, source.Selection) (string, error) {
	switch {
	case s.shelf.keys == 0:
		return "", nil
	case s.shelf.distrusted || s.shelf.signed != s.shelf.version:
		return "", errors.New("nobody signed this")
	default:
		return "the librarian", nil
	}
}

func (s session) Fetch(_ context.Context, _ source.Selection, have string) (source.Content, error) {
	content := source.Content{Key: fmt.Sprint(s.shelf.version, s.shelf.ignore != nil)}
	if have == content.Key {
		return content, nil
	}
	s.shelf.fetches++
	tree := fstest.MapFS{}
	for name, content := range (&shelf{version: s.shelf.version}).Files() {
		tree[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	content.Tree, content.Ignore = tree, s.shelf.ignore
	return content, nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(*testing.T) sourcetest.Upstream { return &shelf{} })
}

// stuck hangs until its context ends.
type stuck struct{ session }

func (stuck) Resolve(ctx context.Context) (source.Selection, error) {
	<-ctx.Done()
	return source.Selection{}, ctx.Err()
}

func TestTimeoutBoundsUpstreamAndSaysSo(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	_, err := pipeline.Run(t.Context(), source.Subject{Timeout: time.Millisecond}, func(context.Context) (source.Session, error) {
		return stuck{}, nil
	}, nil)
	var staged *source.StageError
	if !errors.As(err, &staged) || staged.Stage != source.StageResolve {
		t.Fatalf("got %v", err)
	}
	if want := "context deadline exceeded: spec.timeout of 1ms was not enough"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestACutTimeoutSaysSo: raising spec.timeout, which the message would ask for else, does not help.
func TestACutTimeoutSaysSo(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	_, err := pipeline.Run(t.Context(), source.Subject{Timeout: time.Millisecond, Asked: time.Hour}, func(context.Context) (source.Session, error) {
		return stuck{}, nil
	}, nil)
	if want := "context deadline exceeded: spec.timeout of 1h0m0s, cut to 1ms by --max-timeout, was not enough"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// letter is a source of one blob.
type letter struct{ session }

func (letter) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	return source.Content{Blob: strings.NewReader("dear reader"), Metadata: map[string]string{"from": "writer"}}, nil
}

func TestBlobIsStoredByteForByte(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	pipeline := newPipeline(t)
	pipeline.Store = store
	subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
	outcome, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) {
		return letter{session{&shelf{}}}, nil
	}, func(context.Context, source.Change) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	body, err := store.Open(t.Context(), outcome.Record.Current.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil || string(content) != "dear reader" || outcome.Record.Current.Metadata["from"] != "writer" {
		t.Errorf("got %q, %v, %+v", content, err, outcome.Record.Current)
	}
}

// inner brings an error that has a stage of its own.
type inner struct{ session }

func (inner) Resolve(context.Context) (source.Selection, error) {
	return source.Selection{}, fmt.Errorf("look: %w", &source.StageError{Stage: source.StageInclude, Err: fs.ErrNotExist})
}

func TestErrorKeepsTheStageItHas(t *testing.T) {
	t.Parallel()
	_, err := newPipeline(t).Run(t.Context(), source.Subject{Timeout: time.Minute}, func(context.Context) (source.Session, error) {
		return inner{}, nil
	}, nil)
	var staged *source.StageError
	if !errors.As(err, &staged) || staged.Stage != source.StageInclude {
		t.Errorf("got %v", err)
	}
}

// slow fetches once it may.
type slow struct {
	letter
	begun, gate chan struct{}
}

func (s slow) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	s.begun <- struct{}{}
	<-s.gate
	return s.letter.Fetch(ctx, selected, have)
}

func TestFetchesTakeTurns(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	pipeline.Slots = fair.New(4, 0)
	run := func(namespace, name string, unready bool, session source.Session) {
		subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: namespace, Name: name}, UID: name, Timeout: time.Minute, Unready: unready}
		_, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return session, nil },
			func(context.Context, source.Change) error { return nil })
		if err != nil {
			t.Errorf("%s in %s: %v", name, namespace, err)
		}
	}
	begun, gate := make(chan struct{}, 8), make(chan struct{})
	quick := letter{session{&shelf{}}}
	hanging := slow{quick, begun, gate}
	var group sync.WaitGroup
	for _, name := range []string{"1", "2", "3"} {
		// Those that are not ready have two slots, and one for each namespace.
		group.Go(func() { run("new-"+name, name, true, hanging) })
		group.Go(func() { run("new-1", name+"-too", true, hanging) })
	}
	<-begun
	<-begun
	run("other", "ready", false, quick)
	group.Go(func() { run("large", "1", false, hanging) })
	<-begun
	run("other", "ready-too", false, quick)
	if len(begun) != 0 {
		t.Errorf("%d more fetches have begun", len(begun))
	}
	close(gate)
	group.Wait()
}

// unclear is a session whose revision is known only after a download.
type unclear struct {
	letter
	begun, gate chan struct{}
}

func (unclear) Resolve(context.Context) (source.Selection, error) { return source.Selection{}, nil }

func (u unclear) Confirm(ctx context.Context, _ source.Selection) (source.Selection, error) {
	u.begun <- struct{}{}
	<-u.gate
	return u.letter.Resolve(ctx)
}

func TestConfirmingTakesASlot(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	pipeline.Slots = fair.New(1, 0)
	begun, gate := make(chan struct{}, 8), make(chan struct{})
	run := func(session source.Session) source.Outcome {
		subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
		outcome, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return session, nil },
			func(context.Context, source.Change) error { return nil })
		if err != nil {
			t.Error(err)
		}
		return outcome
	}
	hanging := unclear{letter{session{&shelf{}}}, begun, gate}
	var group sync.WaitGroup
	group.Go(func() { run(hanging) })
	<-begun
	if share := pipeline.Slots.Ask(fair.Wish{Namespace: "other"}, func() {}); share.Granted() {
		t.Error("nothing is taken")
	} else {
		share.Release()
	}
	close(gate)
	group.Wait()
	if outcome := run(hanging); outcome.Changed || outcome.Selected.Revision == "" {
		t.Errorf("the same again: got %+v", outcome)
	}
}

// large is unclear until there is memory for a download.
type large struct{ letter }

func (large) Resolve(context.Context) (source.Selection, error) { return source.Selection{}, nil }

func (l large) Confirm(ctx context.Context, _ source.Selection) (source.Selection, error) {
	if err := memory.Draw(ctx, 3<<20); err != nil {
		return source.Selection{}, err
	}
	return l.letter.Resolve(ctx)
}

func (l large) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	if err := ctx.Err(); err != nil {
		return source.Content{}, err
	}
	return l.letter.Fetch(ctx, selected, have)
}

func TestWaitingForMemoryTakesNoTime(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	pipeline.Clock, pipeline.Memory = clock, memory.New(8<<20, "")
	synctest.Test(t, func(t *testing.T) {
		err := pipeline.Memory.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			if err := memory.Draw(ctx, 8<<20); err != nil {
				return err
			}
			go func() {
				subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
				_, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return large{letter{session{&shelf{}}}}, nil },
					func(context.Context, source.Change) error { return nil })
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			clock.SetTime(clock.Now().Add(time.Hour))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// tardy takes 40 seconds to find that it needs more memory than there is at first.
type tardy struct{ letter }

func (l tardy) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	select {
	case <-ctx.Done():
		return source.Content{}, ctx.Err()
	case <-time.After(40 * time.Second):
	}
	if err := memory.Draw(ctx, 3<<20); err != nil {
		return source.Content{}, err
	}
	return l.letter.Fetch(ctx, selected, have)
}

func TestBeginningAnewGivesNoTimeBack(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	pipeline.Clock, pipeline.Memory = clock.RealClock{}, memory.New(8<<20, "")
	synctest.Test(t, func(t *testing.T) {
		err := pipeline.Memory.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			if err := memory.Draw(ctx, 6<<20); err != nil {
				return err
			}
			go func() {
				subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
				_, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return tardy{letter{session{&shelf{}}}}, nil },
					func(context.Context, source.Change) error { return nil })
				if err == nil || !strings.HasSuffix(err.Error(), "spec.timeout of 1m0s was not enough") {
					t.Errorf("got %v", err)
				}
			}()
			time.Sleep(5 * time.Minute)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

// endless is a tree that is never read to its end.
type endless struct{ letter }

func (endless) Fetch(_ context.Context, _ source.Selection, _ string) (source.Content, error) {
	return source.Content{Tree: sleepy{fstest.MapFS{"a": &fstest.MapFile{}}}}, nil
}

type sleepy struct{ fs.FS }

func (s sleepy) Open(name string) (fs.File, error) {
	time.Sleep(6 * time.Minute)
	return s.FS.Open(name)
}

func TestArchivingHasItsOwnTime(t *testing.T) {
	t.Parallel()
	pipeline := newPipeline(t)
	synctest.Test(t, func(t *testing.T) {
		subject := source.Subject{Object: storage.Object{Kind: "letter", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
		_, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) { return endless{letter{session{&shelf{}}}}, nil },
			func(context.Context, source.Change) error { return nil })
		if err == nil || !strings.HasSuffix(err.Error(), "archiving took longer than 5m0s") {
			t.Errorf("got %v", err)
		}
	})
}

func TestConfigChecksumIsUnambiguous(t *testing.T) {
	t.Parallel()
	type include struct{ Name, From string }
	seen := map[string]any{}
	for _, config := range []any{
		include{"a", "bc"}, include{"ab", "c"}, []include{{"a", "bc"}}, []string{"a", "bc"}, []string{"abc"}, []string{"a\",\"bc"}, nil, "", []string{},
	} {
		sum, err := source.ConfigChecksum("thing", config)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[sum]; taken {
			t.Errorf("%#v and %#v have the same checksum", config, other)
		}
		seen[sum] = config
	}
	a, _ := source.ConfigChecksum("a", nil)
	b, _ := source.ConfigChecksum("b", nil)
	if a == b {
		t.Error("two kinds share a checksum")
	}
}

// TestConfigChecksumIsPinned guards against a change that would rebuild every artifact of every user.
func TestConfigChecksumIsPinned(t *testing.T) {
	t.Parallel()
	sum, err := source.ConfigChecksum("gitrepository", struct {
		Ignore *string `json:"ignore"`
	}{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:d09e4b1693002cca5b014c216d4041a9fe2e452d949de0589cdd1d17bd6d1609"; sum != want {
		t.Errorf("got %s, want %s", sum, want)
	}
}

func newPipeline(t *testing.T) *source.Pipeline {
	t.Helper()
	return &source.Pipeline{
		Store: localtest.Open(t, local.Options{}), Clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0)), Observer: sourcetest.Silent{},
	}
}
