package function

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

// labelled is a package that gets the label.
func labelled(value string) kpt.Package {
	return packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: "+value+"}}"), "a.yaml", configMap)
}

// gated is a Renderer that renders nothing before the gate is closed.
func gated() (r *Renderer, gate chan struct{}) {
	r, gate = New(Options{}), make(chan struct{})
	r.shared.render = func(ctx context.Context, p kpt.Package) (*rendered, error) {
		select {
		case <-gate:
			return r.render(ctx, p)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return r, gate
}

// same tells whether both are the very same map.
func same(a, b kpt.Package) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// await waits until so many wait for the package.
func await(t *testing.T, r *Renderer, p kpt.Package, waiting int) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Millisecond) {
		r.shared.mu.Lock()
		now := 0
		if f := r.shared.flights[p.Digest()]; f != nil {
			now = f.waiting
		}
		r.shared.mu.Unlock()
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
	r, gate := gated()
	p := labelled("b")
	const many = 20
	made := make([]kpt.Package, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			got, results, err := r.Render(t.Context(), p)
			if err != nil || len(results) != 1 {
				t.Error(results, err)
				return
			}
			results[0].Function = "changed by whoever got it"
			made[i] = got
		})
	}
	await(t, r, p, many)
	close(gate)
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
	if len(r.shared.flights) != 0 {
		t.Error("a flight is left over")
	}
}

func TestWhoLeavesHarmsNobody(t *testing.T) {
	t.Parallel()
	r, gate := gated()
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
	close(gate)
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

func TestNobodyWaitsForNobody(t *testing.T) {
	t.Parallel()
	r, gate := gated()
	p := labelled("b")
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.Render(ctx, p)
		ended <- err
	}()
	await(t, r, p, 1)
	r.shared.mu.Lock()
	f := r.shared.flights[p.Digest()]
	r.shared.mu.Unlock()
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-f.done
	if !errors.Is(f.err, context.Canceled) {
		t.Error(f.err)
	}
	close(gate)
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
	if r.shared.kept.bytes != 3*each || r.shared.kept.lru.Len() != 3 {
		t.Errorf("%d bytes of %d packages are kept; three of %d were to be", r.shared.kept.bytes, r.shared.kept.lru.Len(), each)
	}
	for _, i := range []int{4, 3, 2, 0} {
		got, _, err := r.Render(t.Context(), labelled(fmt.Sprint(i)))
		if kept := i >= 2; err != nil || same(got, made[i]) != kept {
			t.Errorf("package %d: kept is %v, %v", i, same(got, made[i]), err)
		}
	}
	r = New(Options{CacheBytes: 10})
	if _, _, err := r.Render(t.Context(), labelled("0")); err != nil || r.shared.kept.bytes != 0 {
		t.Error("something too large is kept", r.shared.kept.bytes, err)
	}
}

func TestRenderingThatBreaksEndsNothingElse(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	r.shared.render = func(context.Context, kpt.Package) (*rendered, error) { panic("oh") }
	for range 2 {
		if _, _, err := r.Render(t.Context(), labelled("b")); !errors.Is(err, ErrPanic) {
			t.Error(err)
		}
	}
	if len(r.shared.flights) != 0 {
		t.Error("a flight is left over")
	}
}

func TestMemoryIsDrawnFromTheBudget(t *testing.T) {
	t.Parallel()
	budget := memory.New(3<<20, "--flag=3")
	r := New(Options{})
	render := func(p kpt.Package) error {
		return budget.Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
			_, _, err := r.Render(ctx, p)
			return err
		})
	}
	if err := render(labelled("b")); err != nil {
		t.Error(err)
	}
	many := labelled("b")
	many["values.yaml"] = kpt.File{Content: []byte(configMap + "data: {x: [" + strings.Repeat(",", 20_000) + "]}\n"), Mode: 0o644}
	if err := render(many); !errors.Is(err, memory.ErrBudget) {
		t.Error(err)
	}
}

func TestEachRenderingIsTold(t *testing.T) {
	t.Parallel()
	var told []string
	r := New(Options{Observe: func(isKnown bool, err error) { told = append(told, fmt.Sprintf("%t/%t", isKnown, err == nil)) }})
	bad := packageOf("Kptfile", kptfileOf("{image: no-such-function}"))
	for _, p := range []kpt.Package{labelled("b"), labelled("b"), labelled("c"), bad} {
		_, _, _ = r.Render(t.Context(), p)
	}
	want := []string{"false/true", "true/true", "false/true", "false/false"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("renderings that were told (-want +got):\n%s", diff)
	}
}
