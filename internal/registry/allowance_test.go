package registry

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
)

// documents serves manifests by digest, and says how often one was asked for.
func documents(t *testing.T, all ...string) (r Repository, asked *atomic.Int64, digests []digest.Digest) {
	t.Helper()
	asked = &atomic.Int64{}
	bodies := map[string]string{}
	for _, body := range all {
		d := digest.FromString(body)
		bodies["/v2/"+name+"/manifests/"+d.String()] = body
		digests = append(digests, d)
	}
	r = serve(t, func(w http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		respond(w, http.StatusOK, ociImage, bodies[request.URL.Path])
	})
	return r, asked, digests
}

// large is a manifest that takes more than is free.
func large(letter string) string {
	return manifestWith(`,"annotations":{"x":"` + strings.Repeat(letter, 200<<10) + `"},"artifactType":"` +
		strings.Repeat(letter, 100) + `","x":"` + strings.Repeat(letter, 100<<10) + `"`)
}

func TestLargeDocumentsWaitForOneAnother(t *testing.T) {
	t.Parallel()
	first, second, small := large("a"), large("b"), manifestWith("")
	r, asked, digests := documents(t, first, second, small)
	client, _ := newClient(t, func(o *Options) { o.MaxHeldBytes = 1 }) // Room for two callers, which is the least, and for one of a namespace.
	holder, other, third, elsewhere := r, r, r, r
	for _, of := range []*Repository{&holder, &other, &third} {
		of.Allowance = client.Allowance("a")
	}
	elsewhere.Allowance = client.Allowance("b")
	get := func(ctx context.Context, r Repository, d digest.Digest) error {
		_, err := client.Manifest(ctx, r, d)
		return err
	}
	if err := get(t.Context(), holder, digests[0]); err != nil {
		t.Fatal(err)
	}
	// Who holds has room for all it needs, and what is small needs none.
	if err := get(t.Context(), holder, digests[1]); err != nil {
		t.Errorf("the second document of the same caller: %v", err)
	}
	if err := errors.Join(get(t.Context(), other, digests[2]), get(t.Context(), r, digests[2])); err != nil {
		t.Errorf("a small document: %v", err)
	}

	before := asked.Load()
	ctx, cancel := context.WithCancel(t.Context())
	givesUp := make(chan error, 1)
	go func() { givesUp <- get(ctx, third, digests[0]) }()
	waits := make(chan error, 1)
	go func() { waits <- get(t.Context(), other, digests[1]) }()
	for asked.Load() < before+2 {
		select {
		case err := <-givesUp:
			t.Fatalf("a call did not wait: %v", err)
		case err := <-waits:
			t.Fatalf("a call did not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := get(t.Context(), elsewhere, digests[0]); err != nil || !elsewhere.Allowance.Release() {
		t.Errorf("in another namespace: %v", err)
	}
	cancel()
	if err := <-givesUp; !errors.Is(err, context.Canceled) {
		t.Errorf("who stops waiting gets %v", err)
	}
	select {
	case err := <-waits:
		t.Fatalf("a call did not wait: %v", err)
	default:
	}
	if !holder.Allowance.Release() || holder.Allowance.Release() {
		t.Error("what was taken is not given back once")
	}
	if err := <-waits; err != nil {
		t.Errorf("after the release: %v", err)
	}
	if !other.Allowance.Release() {
		t.Error("the other caller took nothing")
	}
	// A call without an allowance gives back what it took.
	for range 3 {
		if err := get(t.Context(), r, digests[0]); err != nil {
			t.Error(err)
		}
	}
}

func TestManySmallDocumentsAreALargeOne(t *testing.T) {
	t.Parallel()
	body := manifestWith(`,"annotations":{"x":"` + strings.Repeat("a", 100<<10) + `"}`)
	r, _, digests := documents(t, body)
	client, _ := newClient(t, nil)
	r.Allowance = client.Allowance("a")
	for want, calls := range map[bool]int{false: 2, true: 3} {
		for range calls {
			if _, err := client.Manifest(t.Context(), r, digests[0]); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.Allowance.Release(); got != want {
			t.Errorf("%d documents of 100 KiB took an allowance: %t", calls, got)
		}
	}
}
