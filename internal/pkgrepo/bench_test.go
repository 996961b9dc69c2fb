package pkgrepo_test

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/pkgrepo"
)

// BenchmarkSync looks at 1,000 packages with 3,000 tags: with the cache on disk after a restart, and when one draft has moved.
func BenchmarkSync(b *testing.B) {
	s := manyPackages(b, 1000, 3)
	b.Run("Restarted", func(b *testing.B) {
		for b.Loop() {
			s.Repository = pkgrepo.New(s.client, s.options).Repository(s.settings)
			if _, _, err := s.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("OneMoved", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s.Commit("drafts/p1/mine", fmt.Sprint(i), packaged("p1", fmt.Sprint(i)))
			if _, moved, err := s.Sync(b.Context()); err != nil || !moved {
				b.Fatal(moved, err)
			}
		}
	})
	b.Run("Idle", func(b *testing.B) {
		for b.Loop() {
			if _, moved, err := s.Sync(b.Context()); err != nil || moved {
				b.Fatal(moved, err)
			}
		}
	})
}

// BenchmarkApply writes 50 drafts in one round, and then writes to them again.
func BenchmarkApply(b *testing.B) {
	s := manyPackages(b, 1000, 3)
	round := 0
	for b.Loop() {
		round++
		var changes []pkgrepo.Change
		for i := range 50 {
			changes = append(changes, write(fmt.Sprintf("new%d", i), "mine", fmt.Sprint(round)))
		}
		s.apply(changes...)
	}
}

// manyPackages is a repository with so many packages, each with so many revisions, each of which is a commit of its own.
func manyPackages(b *testing.B, packages, revisions int) *shop {
	b.Helper()
	s := newShop(b, overHTTP)
	for revision := range revisions {
		var round []pkgrepo.Change
		for i := range packages {
			round = append(round, write(fmt.Sprintf("p%d", i), "mine", fmt.Sprint(revision)))
		}
		results := s.apply(round...)
		for i := range round {
			round[i].Kind, round[i].Expect = pkgrepo.Publish, results[i].Commit
		}
		s.apply(round...)
	}
	s.Raw("gc", "-q")
	s.sync()
	return s
}
