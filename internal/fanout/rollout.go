package fanout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// Others is what the wave of targets is called that no wave selects.
const Others = "(others)"

// Rollout decides which variants take a new revision. It is immutable.
type Rollout struct {
	waves []wave
	stops bool
}

type wave struct {
	packagesv1.Wave

	selects labels.Selector
}

// NewRollout reads a rollout. Only an edit helps against the error, which names the field.
func NewRollout(spec *packagesv1.Rollout) (*Rollout, error) {
	r := &Rollout{stops: spec.GetOnFailure() == packagesv1.FailureStops}
	for i, w := range spec.Waves {
		selects := labels.Everything()
		if w.Selector != nil {
			var err error
			if selects, err = metav1.LabelSelectorAsSelector(w.Selector); err != nil {
				return nil, fmt.Errorf("spec.rollout.waves[%d].selector: %w", i, err)
			}
		}
		r.waves = append(r.waves, wave{w, selects})
	}
	r.waves = append(r.waves, wave{packagesv1.Wave{Name: Others}, labels.Everything()})
	return r, nil
}

// Wave is the place of the wave that a target with the labels is of.
func (r *Rollout) Wave(of map[string]string) int {
	return slices.IndexFunc(r.waves, func(w wave) bool { return w.selects.Matches(labels.Set(of)) })
}

// Member is a target with its variant, as a rollout sees them.
type Member struct {
	// Name tells it from all others.
	Name string
	// Wave that it is of.
	Wave int
	// IsNew says that there is no variant yet, and IsFree that no revision has held it so far: it follows upstream by itself.
	IsNew, IsFree bool
	// IsCurrent says that the variant is what the newest revision wants, and HasJoined that it was made as that.
	IsCurrent, HasJoined bool
	// IsOpen says that the package has an open change, and IsDone that a current one is published as it should be.
	IsOpen, IsDone bool
	// Failure says why the newest revision cannot be what the variant is; empty where it can, or where nobody has tried.
	Failure string
	// At is the number of the revision that the variant is at; 0 where nobody knows.
	At int64
}

// Moment is what a decision depends on.
type Moment struct {
	Members []Member
	// Done are the times since when waves are done with the newest revision, by name, as far as they are known.
	Done map[string]time.Time
	// Gate says why a gate does not hold for a wave that is done; empty where all do. It is asked only where that matters.
	Gate func(wave int) string
	Now  time.Time
}

// Plan is what was decided.
type Plan struct {
	// Newest says of each member whether its variant is to be what the newest revision wants. The others stay what they are;
	// new ones among them begin At the revision of the number.
	Newest []bool
	At     []int64
	// Waves are how far the waves are, without their times. The one of others is there only if it has members.
	Waves []packagesv1.WaveStatus
	// Done are Moment's times, with those of waves that are done by now.
	Done map[string]time.Time
	// Again is when the time alone changes something; 0 for never.
	Again time.Duration
	// Waits says what is waited for; empty if all waves are done. IsStopped says that it is a variant that fails.
	Waits     string
	IsStopped bool
}

// crew are the members of a wave, by their places.
type crew struct {
	all, behind, flying, failing []int
	// proven counts those that had another revision before, and fresh those that are new.
	proven, fresh      int
	updated, published int
}

// crews sorts members into their waves.
func (r *Rollout) crews(members []Member) []crew {
	crews := make([]crew, len(r.waves))
	order := make([]int, len(members))
	for i := range members {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(members[a].Name, members[b].Name) })
	for _, i := range order {
		m, c := &members[i], &crews[members[i].Wave]
		c.all = append(c.all, i)
		if m.IsCurrent {
			c.updated++
		}
		if m.IsCurrent && m.IsDone {
			c.published++
		}
		if m.IsNew {
			c.fresh++
		}
		if m.IsNew || m.IsFree || m.IsCurrent && m.HasJoined {
			continue // It came by itself: nobody waits for it.
		}
		c.proven++
		switch {
		case m.Failure != "":
			c.failing = append(c.failing, i)
		case !m.IsCurrent:
			c.behind = append(c.behind, i)
		case !m.IsDone:
			c.flying = append(c.flying, i)
		}
	}
	return crews
}

// Plan decides. The order of the members does not matter.
func (r *Rollout) Plan(m Moment) Plan {
	d := &decision{Rollout: r, Moment: m, crews: r.crews(m.Members)}
	d.Plan = Plan{Newest: make([]bool, len(m.Members)), At: make([]int64, len(m.Members)), Done: map[string]time.Time{}}
	for i := range d.crews {
		if c := &d.crews[i]; len(c.all) > 0 || d.waves[i].Name != Others {
			d.wave(i, c)
		}
	}
	return d.Plan
}
