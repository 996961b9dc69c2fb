package verify_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// rooted is a keyless verifier whose roots come from a mirror, and a signature that they prove.
type rooted struct {
	mirror    *verifytest.Mirror
	clock     *clocktesting.FakePassiveClock
	verifier  *verify.CosignKeyless
	sigstore  *verifytest.Sigstore
	artifact  verify.Artifact
	signature verify.Signature
	origins   []string
}

// week is how long the mirror's first version is good for.
const week = 7 * 24 * time.Hour

func newRooted(t *testing.T) *rooted {
	t.Helper()
	r := &rooted{sigstore: verifytest.NewSigstore(t), artifact: verifytest.Artifact(repository, manifest)}
	r.clock = clocktesting.NewFakePassiveClock(verifytest.Noon())
	r.signature = r.sigstore.Bundle(t, r.artifact, by())
	r.mirror = verifytest.NewMirror(t, r.sigstore.TrustedRoot(t), verifytest.Noon().Add(week))
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
			r.origins = append(r.origins, request.URL.Scheme+"://"+request.URL.Host)
			return http.DefaultTransport.RoundTrip(request)
		})},
		Mirror: r.mirror.URL, InitialRoot: r.mirror.InitialRoot, Clock: r.clock,
	})
	if err != nil {
		t.Fatalf("NewTUFRoots: %v", err)
	}
	r.verifier, err = verify.NewCosignKeyless(verify.KeylessOptions{Identities: identities(), Roots: roots})
	if err != nil {
		t.Fatalf("NewCosignKeyless: %v", err)
	}
	return r
}

func (r *rooted) verify(t *testing.T) error {
	t.Helper()
	_, err := r.verifier.Verify(t.Context(), r.artifact, r.signature)
	return err
}

func (r *rooted) later(by time.Duration) { r.clock.SetTime(r.clock.Now().Add(by)) }

func TestRootsAreFetchedOnceAndKept(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := r.verify(t); err != nil {
				t.Errorf("Verify: %v", err)
			}
		})
	}
	group.Wait()
	alone := newRooted(t)
	if err := alone.verify(t); err != nil {
		t.Errorf("Verify: %v", err)
	}
	first := r.mirror.Requests()
	if len(r.origins) != first || first != alone.mirror.Requests() {
		t.Errorf("the client sent %v, and the mirror had %d requests; one caller alone makes %d", r.origins, first, alone.mirror.Requests())
	}
	for _, origin := range r.origins {
		if origin != r.mirror.URL {
			t.Errorf("the client asked %s, want %s alone", origin, r.mirror.URL)
		}
	}
	r.later(23 * time.Hour)
	if err := r.verify(t); err != nil {
		t.Errorf("Verify within the day: %v", err)
	}
	if r.mirror.Requests() != first {
		t.Error("fresh roots were fetched again")
	}
	r.later(2 * time.Hour)
	if err := r.verify(t); err != nil {
		t.Errorf("Verify after a day: %v", err)
	}
	if r.mirror.Requests() == first {
		t.Error("old roots were not fetched again")
	}
}

func TestRootsThatRotateAreFollowed(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	if err := r.verify(t); err != nil {
		t.Fatalf("Verify: %v", err)
	}
	r.mirror.Publish(t, 2, verifytest.NewSigstore(t).TrustedRoot(t), verifytest.Noon().Add(week))
	r.later(25 * time.Hour)
	if err := r.verify(t); !errors.Is(err, verify.ErrSignature) {
		t.Errorf("Verify under roots that do not know the signer: %v, want ErrSignature", err)
	}
}

func TestBrokenMirrorIsBridgedUntilTheRootsExpire(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	if err := r.verify(t); err != nil {
		t.Fatalf("Verify: %v", err)
	}
	r.mirror.Break(true)
	r.later(25 * time.Hour)
	before := r.mirror.Requests()
	for range 5 {
		if err := r.verify(t); err != nil {
			t.Errorf("Verify by the last good roots: %v", err)
		}
	}
	// A client asks for the next version of the root first, and once.
	if asked := r.mirror.Requests() - before; asked != 1 {
		t.Errorf("the broken mirror was asked %d times, want 1", asked)
	}
	r.later(week)
	if err := r.verify(t); !errors.Is(err, verify.ErrRoots) {
		t.Errorf("Verify by expired roots: %v, want ErrRoots", err)
	}
	r.mirror.Break(false)
	r.mirror.Publish(t, 3, r.sigstore.TrustedRoot(t), r.clock.Now().Add(week))
	r.later(2 * time.Minute)
	if err := r.verify(t); !errors.Is(err, verify.ErrRoots) {
		t.Errorf("Verify by a repository whose own root expired: %v, want ErrRoots", err)
	}
}

func TestRepositoryThatIsRolledBackIsNotFollowed(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	r.mirror.Publish(t, 5, r.sigstore.TrustedRoot(t), verifytest.Noon().Add(week))
	if err := r.verify(t); err != nil {
		t.Fatalf("Verify: %v", err)
	}
	r.mirror.Publish(t, 4, verifytest.NewSigstore(t).TrustedRoot(t), verifytest.Noon().Add(week))
	r.later(25 * time.Hour)
	if err := r.verify(t); err != nil {
		t.Errorf("Verify by the last good roots: %v", err)
	}
}

func TestUnfitRepositoriesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		spoil  func(*testing.T, *rooted)
	}{
		"Broken":  {reason: "the mirror does not answer", spoil: func(_ *testing.T, r *rooted) { r.mirror.Break(true) }},
		"Expired": {reason: "metadata of last week could hide a revocation", spoil: func(_ *testing.T, r *rooted) { r.later(week + time.Hour) }},
		"NoRoot": {reason: "the target must be a trusted root", spoil: func(t *testing.T, r *rooted) {
			t.Helper()
			r.mirror.Publish(t, 2, []byte("words"), verifytest.Noon().Add(week))
		}},
		"EmptyRoot": {reason: "a root without authorities proves nothing", spoil: func(t *testing.T, r *rooted) {
			t.Helper()
			empty := []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`)
			r.mirror.Publish(t, 2, empty, verifytest.Noon().Add(week))
		}},
		"OtherKeys": {reason: "metadata must be signed by the initial root's keys", spoil: func(t *testing.T, r *rooted) {
			t.Helper()
			theirs := verifytest.NewMirror(t, r.sigstore.TrustedRoot(t), verifytest.Noon().Add(week))
			r.mirror.Serve(theirs)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRooted(t)
			test.spoil(t, r)
			if err := r.verify(t); !errors.Is(err, verify.ErrRoots) {
				t.Errorf("Verify (%s): %v, want ErrRoots", test.reason, err)
			}
			if err := r.verify(t); !errors.Is(err, verify.ErrRoots) {
				t.Errorf("Verify again (%s): %v, want ErrRoots", test.reason, err)
			}
		})
	}
}

func TestRootsKeepTheCallersDeadline(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	release := make(chan struct{})
	hanging := &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		select {
		case <-release:
			return http.DefaultTransport.RoundTrip(request)
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	})}
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: hanging, Mirror: r.mirror.URL, InitialRoot: r.mirror.InitialRoot, Clock: r.clock,
	})
	if err != nil {
		t.Fatalf("NewTUFRoots: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := roots.Root(ctx)
		first <- err
	}()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("Root of a caller that gave up: %v, want its context's error", err)
	}
	close(release)
	if _, err := roots.Root(t.Context()); err != nil {
		t.Errorf("Root of the next caller: %v", err)
	}
}

// wayKey is the context's key of the way to the mirror.
type wayKey struct{}

// TestWaysToTheMirrorAreKeptApart: what a way does to those who go by it is no matter of others.
func TestWaysToTheMirrorAreKeptApart(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	reached := make(chan struct{})
	var asked atomic.Int32
	client := &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		switch request.Context().Value(wayKey{}) {
		case "broken":
			asked.Add(1)
			return nil, errors.New("no way")
		case "hangs":
			close(reached)
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		return http.DefaultTransport.RoundTrip(request)
	})}
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: client, Mirror: r.mirror.URL, InitialRoot: r.mirror.InitialRoot, Clock: r.clock,
		Way: func(ctx context.Context) string { way, _ := ctx.Value(wayKey{}).(string); return way },
	})
	if err != nil {
		t.Fatalf("NewTUFRoots: %v", err)
	}
	by := func(way string) context.Context { return context.WithValue(t.Context(), wayKey{}, way) }
	hanging, cancel := context.WithCancel(by("hangs"))
	hung := make(chan error, 1)
	go func() {
		_, err := roots.Root(hanging)
		hung <- err
	}()
	<-reached
	for range 2 {
		if _, err := roots.Root(by("broken")); !errors.Is(err, verify.ErrRoots) {
			t.Errorf("by the broken way: %v, want ErrRoots", err)
		}
		if _, err := roots.Root(by("good")); err != nil {
			t.Errorf("by the good way: %v", err)
		}
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the broken way was tried %d times within its pause, want 1", got)
	}
	cancel()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("by the way that hangs: %v", err)
	}
}

// TestHangingMirrorIsBridged: as long as there are good roots, a mirror that takes the request and says nothing costs a
// bounded time once, and not all that the caller has.
func TestHangingMirrorIsBridged(t *testing.T) {
	t.Parallel()
	r := newRooted(t)
	var hang atomic.Bool
	var asked atomic.Int32
	client := &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		if !hang.Load() {
			return http.DefaultTransport.RoundTrip(request)
		}
		asked.Add(1)
		<-request.Context().Done()
		return nil, request.Context().Err()
	})}
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: client, Mirror: r.mirror.URL, InitialRoot: r.mirror.InitialRoot, Clock: r.clock, RefreshTimeout: time.Millisecond,
	})
	if err != nil {
		t.Fatalf("NewTUFRoots: %v", err)
	}
	if _, err := roots.Root(t.Context()); err != nil {
		t.Fatalf("Root: %v", err)
	}
	hang.Store(true)
	r.later(25 * time.Hour)
	for range 3 {
		if _, err := roots.Root(t.Context()); err != nil {
			t.Errorf("Root by the last good roots: %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the hanging mirror was asked %d times, want 1", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestUnusableRootOptionsAreRefused(t *testing.T) {
	t.Parallel()
	client := offline(t)
	for name, options := range map[string]verify.TUFOptions{
		"no client":             {},
		"mirror without a root": {Client: client, Mirror: "https://mirror.example"},
		"mirror with a user":    {Client: client, Mirror: "https://a:b@mirror.example", InitialRoot: []byte("{}")},
		"mirror without scheme": {Client: client, Mirror: "mirror.example", InitialRoot: []byte("{}")},
		"mirror in a file":      {Client: client, Mirror: "file:///mirror", InitialRoot: []byte("{}")},
	} {
		if _, err := verify.NewTUFRoots(options); !errors.Is(err, verify.ErrPolicy) {
			t.Errorf("%s: %v, want ErrPolicy", name, err)
		}
	}
	if _, err := verify.NewTUFRoots(verify.TUFOptions{Client: client}); err != nil {
		t.Errorf("the public sigstore: %v", err)
	}
}

// endless is a body without an end that counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(into []byte) (int, error) {
	e.read += len(into)
	return len(into), nil
}

func (*endless) Close() error { return nil }

func TestEndlessMetadataIsCut(t *testing.T) {
	t.Parallel()
	r, body := newRooted(t), &endless{}
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body, Request: request}, nil
		})},
		Mirror: r.mirror.URL, InitialRoot: r.mirror.InitialRoot, Clock: r.clock,
	})
	if err != nil {
		t.Fatalf("NewTUFRoots: %v", err)
	}
	if _, err := roots.Root(t.Context()); !errors.Is(err, verify.ErrRoots) {
		t.Errorf("Root: %v, want ErrRoots", err)
	}
	if body.read == 0 || body.read > 9<<20 {
		t.Errorf("%d bytes were read of an endless file", body.read)
	}
}
