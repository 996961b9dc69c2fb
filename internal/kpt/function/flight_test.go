package function

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/kpt"
)

// labelled is a package that gets the label.
func labelled(value string) kpt.Package {
	return packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: "+value+"}}"), "a.yaml", configMap)
}

// same tells whether both are the very same map.
func same(a, b kpt.Package) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// await waits until so many wait for the package.
func await(t *testing.T, r *Renderer, p kpt.Package, waiting int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		now := 0
		if f := r.flights[p.Digest()]; f != nil {
			now = f.waiting
		}
		r.mu.Unlock()
		if now == waiting {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, not %d", now, waiting)
		}
	}
}

func TestAPackageIsRenderedOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	if err := r.work.Acquire(t.Context(), r.options.WorkBytes); err != nil {
		t.Fatal(err)
	}
	p := labelled("b")
	const many = 20
	made := make([]kpt.Package, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			got, results, err := r.Render(t.Context(), labelled("b"))
			if err != nil || len(results) != 1 {
				t.Error(results, err)
				return
			}
			results[0].Function = "changed by whoever got it"
			made[i] = got
		})
	}
	await(t, r, p, many)
	r.work.Release(r.options.WorkBytes)
	all.Wait()
	for _, one := range made {
		if !same(one, made[0]) {
			t.Fatal("it was rendered more than once")
		}
	}
	again, results, err := r.Render(t.Context(), p)
	if err != nil || !same(again, made[0]) {
		t.Error("it was not kept", err)
	}
	if results[0].Function != "set-labels" {
		t.Error("results are shared:", results)
	}
	if len(r.flights) != 0 {
		t.Error("a flight is left over")
	}
}

func TestWhoLeavesHarmsNobody(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	if err := r.work.Acquire(t.Context(), r.options.WorkBytes); err != nil {
		t.Fatal(err)
	}
	p := labelled("b")
	left, leave := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() {
		_, _, err := r.Render(left, p) // It is the first, and what it began goes on.
		errs <- err
	}()
	await(t, r, p, 1)
	go func() {
		_, _, err := r.Render(t.Context(), p)
		errs <- err
	}()
	await(t, r, p, 2)
	leave()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.work.Release(r.options.WorkBytes)
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

func TestNobodyWaitsForNobody(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	if err := r.work.Acquire(t.Context(), r.options.WorkBytes); err != nil {
		t.Fatal(err)
	}
	p := labelled("b")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.Render(ctx, p)
		ended <- err
	}()
	await(t, r, p, 1)
	r.mu.Lock()
	f := r.flights[p.Digest()]
	r.mu.Unlock()
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// There is still no room, so that the flight ends because nobody waits.
	<-f.done
	if !errors.Is(f.err, context.Canceled) {
		t.Error(f.err)
	}
	r.work.Release(r.options.WorkBytes)
	if _, _, err := r.Render(t.Context(), p); err != nil {
		t.Error("who comes later has what was given up:", err)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	one, _, err := New(Options{}).Render(t.Context(), labelled("0"))
	if err != nil {
		t.Fatal(err)
	}
	each := (&rendered{pkg: one, results: make([]Result, 1)}).bytes()
	r := New(Options{CacheBytes: 3*each + 10})
	made := map[int]kpt.Package{}
	for i := range 5 {
		if made[i], _, err = r.Render(t.Context(), labelled(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if r.kept.bytes != 3*each || r.kept.lru.Len() != 3 {
		t.Errorf("%d bytes of %d packages are kept; three of %d were to be", r.kept.bytes, r.kept.lru.Len(), each)
	}
	for _, i := range []int{4, 3, 2, 0} {
		got, _, err := r.Render(t.Context(), labelled(fmt.Sprint(i)))
		if kept := i >= 2; err != nil || same(got, made[i]) != kept {
			t.Errorf("package %d: kept is %v, %v", i, same(got, made[i]), err)
		}
	}
	r = New(Options{CacheBytes: 10})
	if _, _, err := r.Render(t.Context(), labelled("0")); err != nil || r.kept.bytes != 0 {
		t.Error("something too large is kept", r.kept.bytes, err)
	}
}
