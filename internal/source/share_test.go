package source_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
	"weak"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// common is content that many objects select, each by its own session.
type common struct {
	name string

	mu      sync.Mutex
	fetches int
	fail    error
	rules   weak.Pointer[string] // of the last fetch
}

func (c *common) open(context.Context) (source.Session, error) {
	return commonSession{session{&shelf{}}, c}, nil
}

type commonSession struct {
	session
	of *common
}

func (c commonSession) Share(context.Context, source.Selection) string { return c.of.name }

func (c commonSession) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.fetches++
	if err := c.of.fail; err != nil {
		c.of.fail = nil
		return source.Content{}, err
	}
	rules := strings.Repeat("x", 1000)
	c.of.rules = weak.Make(&rules)
	return source.Content{Tree: fstest.MapFS{"file": {Data: []byte("content")}}, Ignore: &rules, Title: "title"}, nil
}

func runAs(t *testing.T, p *source.Pipeline, name string, c *common) (source.Outcome, error) {
	t.Helper()
	return runAnnounced(t, p, name, c, func(context.Context, source.Change) error { return nil })
}

func runAnnounced(t *testing.T, p *source.Pipeline, name string, c *common, announce func(context.Context, source.Change) error) (source.Outcome, error) {
	t.Helper()
	subject := source.Subject{Object: storage.Object{Kind: "thing", Namespace: "tenant", Name: name}, UID: "uid-" + name, Timeout: time.Minute}
	return p.Run(t.Context(), subject, c.open, announce)
}

// TestManyObjectsShareOneArtifact: what several select under one name is fetched and archived once, and each has it as its own.
func TestManyObjectsShareOneArtifact(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	shared := &common{name: "repository"}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			got, err := runAs(t, p, strconv.Itoa(i), shared)
			if err != nil || !got.Changed || got.Record.Title != "title" || got.Record.Current.Path != "thing/tenant/"+strconv.Itoa(i)+"/v0.0.tar.gz" {
				t.Errorf("object %d: %+v, %v", i, got.Record, err)
			}
		})
	}
	all.Wait()
	if shared.fetches != 1 {
		t.Errorf("20 objects made %d fetches", shared.fetches)
	}
	for i := range 20 {
		if err := p.Store.Delete(t.Context(), storage.Object{Kind: "thing", Namespace: "tenant", Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := runAs(t, p, "late", shared); err != nil || !got.Changed || shared.fetches != 2 {
		t.Errorf("what is not stored any more: %+v, %v after %d fetches", got.Record, err, shared.fetches)
	}
	other := &common{name: "other"}
	if _, err := runAs(t, p, "other", other); err != nil || other.fetches != 1 {
		t.Errorf("another name: %v after %d fetches", err, other.fetches)
	}
	failing := &common{name: "failing", fail: errors.New("upstream is away")}
	if _, err := runAs(t, p, "first", failing); err == nil {
		t.Error("a failure was not told")
	}
	if _, err := runAs(t, p, "second", failing); err != nil || failing.fetches != 2 {
		t.Errorf("after another's failure: %v after %d fetches", err, failing.fetches)
	}
}

// TestRulesAreNotRemembered: thousands of bodies are, and rules may have a megabyte.
func TestRulesAreNotRemembered(t *testing.T) {
	t.Parallel()
	p := newPipeline(t)
	shared := &common{name: "repository"}
	if _, err := runAs(t, p, "one", shared); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if shared.rules.Value() != nil {
		t.Error("they are")
	}
	if _, err := runAs(t, p, "other", shared); err != nil || shared.fetches != 1 {
		t.Errorf("%v after %d fetches", err, shared.fetches)
	}
}

// hanging is common content for which upstream lets those wait that have little time.
type hanging struct{ commonSession }

func (h hanging) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	if deadline, _ := ctx.Deadline(); time.Until(deadline) < time.Second+time.Millisecond {
		<-ctx.Done()
		return source.Content{}, ctx.Err()
	}
	time.Sleep(time.Second) // Nobody of those is left who could take what this one brings.
	return h.commonSession.Fetch(ctx, selected, have)
}

// TestNobodyWaitsBehindThoseWhoFail: others may select the same, and give upstream too little time for it.
func TestNobodyWaitsBehindThoseWhoFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t)
		shared := &common{name: "repository"}
		run := func(name string, timeout time.Duration) error {
			subject := source.Subject{Object: storage.Object{Kind: "thing", Namespace: "tenant", Name: name}, UID: "uid-" + name, Timeout: timeout}
			_, err := p.Run(t.Context(), subject,
				func(context.Context) (source.Session, error) {
					return hanging{commonSession{session{&shelf{}}, shared}}, nil
				},
				func(context.Context, source.Change) error { return nil })
			return err
		}
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				if err := run(strconv.Itoa(i), time.Second); err == nil {
					t.Error("it had too little time")
				}
			})
		}
		synctest.Wait()
		if err := run("patient", 3*time.Second); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// TestWhatIsThereIsNotAnnounced: who only takes what another object has brought writes his report once.
func TestWhatIsThereIsNotAnnounced(t *testing.T) {
	t.Parallel()
	p, shared, announced := newPipeline(t), &common{name: "repository"}, 0
	for _, name := range []string{"first", "second", "third"} {
		got, err := runAnnounced(t, p, name, shared, func(context.Context, source.Change) error { announced++; return nil })
		if err != nil || !got.Changed {
			t.Errorf("%s: %+v, %v", name, got.Record, err)
		}
	}
	if announced != 1 {
		t.Errorf("announced %d times, want once, before the fetch", announced)
	}
	for _, name := range []string{"first", "second", "third"} {
		if err := p.Store.Delete(t.Context(), storage.Object{Kind: "thing", Namespace: "tenant", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := runAnnounced(t, p, "late", shared, func(context.Context, source.Change) error {
		if announced++; shared.fetches != 1 {
			t.Errorf("announced after %d fetches", shared.fetches)
		}
		return nil
	})
	if err != nil || announced != 2 || shared.fetches != 2 {
		t.Errorf("what is not stored any more: %v, announced %d times for %d fetches", err, announced, shared.fetches)
	}
}

// late is a tree that takes long to archive.
type late struct{ fstest.MapFS }

func (l late) Open(name string) (fs.File, error) {
	time.Sleep(10 * time.Second)
	return l.MapFS.Open(name)
}

// slowly is common content that is soon there.
type slowly struct{ commonSession }

func (s slowly) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	content, err := s.commonSession.Fetch(ctx, selected, have)
	time.Sleep(time.Second)
	content.Tree = late{fstest.MapFS{"file": {Data: []byte("content")}}}
	return content, err
}

// runSlowly runs an object that shares slow content.
func runSlowly(t *testing.T, p *source.Pipeline, name string, timeout time.Duration, c *common) error {
	t.Helper()
	subject := source.Subject{Object: storage.Object{Kind: "thing", Namespace: "tenant", Name: name}, UID: "uid-" + name, Timeout: timeout}
	_, err := p.Run(t.Context(), subject,
		func(context.Context) (source.Session, error) { return slowly{commonSession{session{&shelf{}}, c}}, nil },
		func(context.Context, source.Change) error { return nil })
	return err
}

// TestWhoWaitsForAnArchiveTakesNoTimeOfUpstreams: nobody gets less time for it than by himself.
func TestWhoWaitsForAnArchiveTakesNoTimeOfUpstreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t)
		shared := &common{name: "repository"}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if err := runSlowly(t, p, strconv.Itoa(i), 3*time.Second, shared); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if shared.fetches != 1 {
			t.Errorf("fetched %d times", shared.fetches)
		}
	})
}

// TestWhoWaitedInVainIsToldWhy, as if he had fetched by himself.
func TestWhoWaitedInVainIsToldWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t)
		shared := &common{name: "repository"}
		var first sync.WaitGroup
		first.Go(func() {
			if err := runSlowly(t, p, "first", 3*time.Second, shared); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		err := runSlowly(t, p, "impatient", time.Second/2, shared)
		if err == nil || !strings.Contains(err.Error(), "another object") || !strings.Contains(err.Error(), "spec.timeout of 500ms was not enough") {
			t.Errorf("got %v", err)
		}
		first.Wait()
	})
}
