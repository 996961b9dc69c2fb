package pkgrepo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// manyRefs adds many refs at once, as git pack-refs writes them.
func (s *shop) manyRefs(lines func(yield func(ref, hash string))) {
	s.t.Helper()
	s.Raw("pack-refs", "--all")
	refs := s.refs()
	lines(func(ref, hash string) { refs[ref] = hash })
	text := strings.Builder{}
	text.WriteString("# pack-refs with: sorted\n")
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		text.WriteString(refs[ref] + " " + ref + "\n")
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "packed-refs"), []byte(text.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// TestAHostileRepositoryIsBounded: more of everything than anybody needs.
func TestAHostileRepositoryIsBounded(t *testing.T) {
	t.Parallel()
	const many = 100_000
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxRefs = many + 100 })
	head := s.Commit("main", "first", packaged("web"))
	s.manyRefs(func(yield func(string, string)) {
		for i := range many / 2 {
			yield(fmt.Sprintf("refs/tags/web/v%d", i+1), head)
			yield(fmt.Sprintf("refs/tags/web/v1.%d.%d", i/100, i%100), head)
		}
	})
	got := s.sync()
	if web := got.Package("web"); len(web.Published) != many || web.Newest().Number != many/2 || web.Newest().Facts.Name != "web" {
		t.Errorf("%d revisions", len(web.Published))
	}
	s.server.Reset()
	s.publish("other", "one")
	if fetches := s.server.Count(upstream.Fetch); fetches > 3 {
		t.Errorf("%d fetches", fetches)
	}
	if found, err := s.Resolve(t.Context(), pkgrepo.Selector{Package: "web", Range: "1.x"}); err != nil || found.Revision != "v1.499.99" {
		t.Errorf("%+v, %v", found, err)
	}
	s.manyRefs(func(yield func(string, string)) {
		for i := range 200 {
			yield(fmt.Sprintf("refs/tags/x%d/v1", i), head)
		}
	})
	got = s.sync()
	if len(got.Refs) != many+100 || got.RefsLeftOut != 102 || got.Package("other").Newest() == nil || got.Package("x199") == nil {
		t.Errorf("%d refs are known, %d are left out", len(got.Refs), got.RefsLeftOut)
	}
	if web := got.Package("web"); web.Newest().Number != many/2 || !errors.Is(got.CheckKnown("web"), pkgrepo.ErrLimit) || got.CheckKnown("other") != nil {
		t.Errorf("%+v", got.Problems)
	}
}

// TestKptfilesTakeNoMoreThanAllowed: each is small, and all together are not.
func TestKptfilesTakeNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) { s.options.MaxFactsBytes = 10_000 })
	files := upstream.Files{}
	for i := range 30 {
		files[fmt.Sprintf("p%02d/Kptfile", i)] = upstream.File{Content: kptfile(fmt.Sprintf("p%02d", i), "note", strings.Repeat("x", 1000))}
	}
	s.Commit("main", "many", files)
	readable := func(got *pkgrepo.Snapshot) (names string) {
		for i := range 30 {
			name := fmt.Sprintf("p%02d", i)
			switch branch := got.Package(name).Branch; {
			case branch.Err == nil:
				names += name
			case !errors.Is(branch.Err, pkgrepo.ErrLimit):
				t.Error(branch.Err)
			}
		}
		return names
	}
	first := readable(s.sync())
	s.Commit("main", "other", upstream.Text(map[string]string{"README.md": "x"}))
	if again := readable(s.sync()); first != "p00p01p02p03p04p05p06p07p08" || again != first {
		t.Errorf("%s, then %s", first, again)
	}
}

// TestTersePartsOfKptfilesCount: an element of a list takes two bytes of a Kptfile, and far more as a condition.
func TestTersePartsOfKptfilesCount(t *testing.T) {
	t.Parallel()
	list := strings.Repeat("0,", 2000)
	for name, part := range map[string]string{
		"conditions": "status: {conditions: [" + list + "]}", "gates": "info: {readinessGates: [" + list + list + list + list + "]}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP, func(s *shop) { s.options.MaxFactsBytes = 500_000 })
			files := upstream.Files{}
			for i := range 20 {
				files[fmt.Sprintf("p%02d/Kptfile", i)] = upstream.File{Content: kptfile(fmt.Sprintf("p%02d", i)) + part + "\n"}
			}
			s.Commit("main", "many", files)
			parts := 0
			for _, pkg := range s.sync().Packages {
				parts += 64*len(pkg.Branch.Facts.Conditions) + 16*len(pkg.Branch.Facts.Gates)
			}
			if parts == 0 || parts > 1_000_000 {
				t.Errorf("the Kptfiles take %d bytes", parts)
			}
		})
	}
}

// TestManyBadCommitsAreLookedForOverSeveralRounds: finding them out takes fetches, of which there is a bound for each look.
func TestManyBadCommitsAreLookedForOverSeveralRounds(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	blob := s.Object("blob", []byte("no commit"))
	for i := range 20 {
		name := fmt.Sprintf("p%02d", i)
		s.Tag(name+"/v1", s.Commit("main", name, packaged(name)), false)
		s.Tag(name+"/v2", s.Object("blob", fmt.Appendf(nil, "no commit %d", i)), false)
	}
	s.Tag("p00/v3", blob, false)
	for range 10 {
		s.server.Reset()
		got := s.sync()
		if n := s.server.Count(upstream.Fetch); n > 70 {
			t.Errorf("%d fetches", n)
		}
		good, bad := 0, 0
		for _, pkg := range got.Packages {
			for _, r := range pkg.Published {
				switch {
				case r.Err == nil && r.Number == 1:
					good++
				case r.Err != nil && r.Number > 1:
					bad++
				}
			}
		}
		if good == 20 && bad == 21 {
			s.server.Reset()
			if _, moved, err := s.Sync(t.Context()); moved || err != nil || s.server.Count(upstream.Fetch) != 0 {
				t.Errorf("it goes on looking: moved %t, %v", moved, err)
			}
			return
		}
	}
	t.Error("it is not found out which are bad")
}

func TestADeadServerEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	draft := s.publish("web", "one")
	for name, kind := range map[string]upstream.Kind{"Listing": upstream.LsRefs, "Push": upstream.Push} {
		s.server.Always(upstream.Hang().On(kind))
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		for _, r := range s.Apply(ctx, []pkgrepo.Change{write("web", "", name), {Kind: pkgrepo.ProposeDeletion, Package: "web", Expect: draft.Commit}}) {
			if !errors.Is(r.Err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, r.Err)
			}
		}
		stop()
		s.server.Heal()
	}
	ctx, stop := context.WithCancel(t.Context())
	hung := make(chan struct{})
	change := write("web", "", "x")
	change.Make = func(ctx context.Context, _ pkgrepo.Current) (pkgrepo.Made, error) {
		close(hung)
		<-ctx.Done()
		return pkgrepo.Made{}, context.Cause(ctx)
	}
	done := make(chan []pkgrepo.Result)
	go func() { done <- s.Apply(ctx, []pkgrepo.Change{change}) }()
	<-hung
	waiting, stopWaiting := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stopWaiting()
	if _, _, err := s.Sync(waiting); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if s.Snapshot().Package("web") == nil {
		t.Error("the snapshot waits for who is busy")
	}
	stop()
	if r := <-done; !errors.Is(r[0].Err, context.Canceled) {
		t.Error(r[0].Err)
	}
	s.sync()
}

// TestWritingReplacesNobodysFolder: what is in the way of a new package is shown to who makes it, or refused.
func TestWritingReplacesNobodysFolder(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.Commit("main", "first", together(packaged("team/web"), upstream.Text(map[string]string{"plain": "a file", "loose/x": "a file"})))
	change := write("loose", "mine", "x")
	change.Make = func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		if now.Branch == nil || now.Branch.Err == nil || now.Local["x"].Mode == 0 {
			t.Errorf("%+v", now)
		}
		return pkgrepo.Made{Unchanged: true}, nil
	}
	if r := s.one(change); r.Changed {
		t.Errorf("%+v", r)
	}
	for path, want := range map[string]error{"plain": pkgrepo.ErrExists, "plain/web": pkgrepo.ErrExists, "team": pkgrepo.ErrNested} {
		if r := s.Apply(t.Context(), []pkgrepo.Change{write(path, "", "x")})[0]; !errors.Is(r.Err, want) {
			t.Errorf("%s: %v", path, r.Err)
		}
	}
}
