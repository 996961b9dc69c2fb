package pkgrepo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// model is what a repository should have after changes, told without Git.
type model struct {
	branch map[string]string // by package: the content

	open map[[2]string]opened
	last map[string]int
	// newest is the content of the newest revision.
	newest map[string]string
	marked map[string]bool
}

type opened struct {
	content  string
	proposed bool
	base     string
}

const nothing = ""

// do changes the model, and tells what the error has to be.
func (m *model) do(kind pkgrepo.Kind, pkg, text string) error {
	at := [2]string{pkg, "packagevariant-1"}
	change, isOpen := m.open[at]
	switch kind {
	case pkgrepo.Write:
		if change.proposed {
			return pkgrepo.ErrProposed
		}
		m.open[at] = opened{content: text, base: m.branch[pkg]}
	case pkgrepo.Propose, pkgrepo.Reject:
		if !isOpen {
			return pkgrepo.ErrGone
		}
		change.proposed = kind == pkgrepo.Propose
		m.open[at] = change
	case pkgrepo.Drop:
		delete(m.open, at)
	case pkgrepo.Publish:
		switch {
		case !isOpen:
			return pkgrepo.ErrGone
		case m.branch[pkg] != change.base:
			return pkgrepo.ErrOutOfDate
		}
		m.branch[pkg], m.newest[pkg], m.marked[pkg] = change.content, change.content, false
		m.last[pkg]++
		delete(m.open, at)
	case pkgrepo.ProposeDeletion, pkgrepo.RejectDeletion:
		if m.last[pkg] == 0 {
			return pkgrepo.ErrGone
		}
		m.marked[pkg] = kind == pkgrepo.ProposeDeletion
	case pkgrepo.Remove:
		switch {
		case m.last[pkg] == 0:
			return pkgrepo.ErrGone
		case m.branch[pkg] != nothing && m.branch[pkg] != m.newest[pkg]:
			return pkgrepo.ErrOutOfDate
		}
		m.branch[pkg], m.marked[pkg] = nothing, false
	}
	return nil
}

// TestRandomChangesDoWhatAModelSays: also between restarts, on servers of both kinds, and while somebody edits the branch. With
// SLUICE_TORTURE there are 20 sequences of changes.
func TestRandomChangesDoWhatAModelSays(t *testing.T) {
	t.Parallel()
	sequences := uint64(2)
	if os.Getenv("SLUICE_TORTURE") != "" {
		sequences = 20
	}
	for seed := range sequences {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 11))
			s := newShop(t, overHTTP)
			if seed%2 == 1 {
				withoutAtomic(s)
			}
			m := &model{map[string]string{}, map[[2]string]opened{}, map[string]int{}, map[string]string{}, map[string]bool{}}
			kinds := []pkgrepo.Kind{
				pkgrepo.Write, pkgrepo.Write, pkgrepo.Propose, pkgrepo.Reject, pkgrepo.Drop, pkgrepo.Publish, pkgrepo.Publish, pkgrepo.Publish,
				pkgrepo.ProposeDeletion, pkgrepo.RejectDeletion, pkgrepo.Remove,
			}
			for step := range 60 {
				var round []pkgrepo.Change
				var want []error
				for _, pkg := range []string{"a", "b/c", "d"} {
					kind := kinds[random.IntN(len(kinds))]
					round = append(round, s.bound(kind, pkg, fmt.Sprint(step)))
					want = append(want, m.do(kind, pkg, fmt.Sprint(step)))
				}
				for i, r := range s.Apply(t.Context(), round) {
					if !errors.Is(r.Err, want[i]) || want[i] == nil && r.Err != nil {
						t.Fatalf("step %d: %s %s: got %v, want %v", step, round[i].Kind, round[i].Package, r.Err, want[i])
					}
				}
				switch random.IntN(8) {
				case 0:
					s.restart()
					s.sync()
				case 1:
					s.Commit("main", "by hand", upstream.Text(map[string]string{"d/Kptfile": kptfile("d"), "d/a.yaml": fmt.Sprint("by hand ", step)}))
					m.branch["d"] = fmt.Sprint("by hand ", step)
					s.sync()
				}
				m.compare(t, s, step)
			}
			s.sound()
		})
	}
}

// bound is a change that is bound to what the snapshot has.
func (s *shop) bound(kind pkgrepo.Kind, pkg, text string) pkgrepo.Change {
	change := write(pkg, "packagevariant-1", text)
	if change.Kind = kind; kind == pkgrepo.Write {
		return change
	}
	now := s.Snapshot()
	switch open, newest := now.Package(pkg).Find("packagevariant-1"), now.Package(pkg).Newest(); kind {
	case pkgrepo.Remove, pkgrepo.ProposeDeletion, pkgrepo.RejectDeletion:
		change.Expect = "none"
		if newest != nil {
			change.Expect = newest.Commit
		}
	default:
		change.Expect = "none"
		if open != nil {
			change.Expect = open.Commit
		}
	}
	return change
}

func (m *model) compare(t *testing.T, s *shop, step int) {
	t.Helper()
	now := s.Snapshot()
	for _, path := range []string{"a", "b/c", "d"} {
		pkg := now.Package(path)
		if pkg == nil {
			if m.branch[path] != nothing || m.last[path] > 0 || len(m.open) > 0 && m.open[[2]string{path, "packagevariant-1"}].content != "" {
				t.Fatalf("step %d: %s is missing", step, path)
			}
			continue
		}
		got := ""
		if pkg.Branch != nil {
			got = s.Tree("main")[path+"/a.yaml"].Content
		}
		change, isOpen := m.open[[2]string{path, "packagevariant-1"}]
		open := pkg.Find("packagevariant-1")
		if got != m.branch[path] || pkg.Next() != m.last[path]+1 || isOpen != (open != nil) {
			t.Fatalf("step %d: %s: %q, %+v", step, path, got, pkg)
		}
		if isOpen && (len(pkg.Open) != 1 || change.proposed != (open.Lifecycle == pkgrepo.Proposed)) {
			t.Fatalf("step %d: %s: %+v", step, path, pkg.Open)
		}
		if newest := pkg.Newest(); newest != nil && m.marked[path] != (newest.Lifecycle == pkgrepo.DeletionProposed) {
			t.Fatalf("step %d: %s: %s", step, path, newest.Lifecycle)
		}
	}
}
