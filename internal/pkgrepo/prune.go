package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/git"
)

// Prune removes leftovers. It goes in the push of other changes, if there is one, and never stands in their way: where a server
// refuses it together with them, they are pushed without it.
const Prune Kind = "Prune"

// refusalLasts is how long a leftover is not tried again that a server refused to remove, as it does with protected tags.
const refusalLasts = time.Hour

// Refusal is a leftover that the server did not let go.
type Refusal struct {
	Leftover

	Err error
}

type refusal struct {
	Refusal

	at time.Time
}

// Refused are the leftovers that the server refused to remove not long ago, and still has.
func (r *Repository) Refused() []Refusal {
	s := r.Snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.refused, func(name string, one refusal) bool {
		return s != nil && s.Refs[name].Target() != one.Commit || r.depot.options.Clock.Since(one.at) >= refusalLasts
	})
	refused := make([]Refusal, 0, len(r.refused))
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		refused = append(refused, r.refused[name].Refusal)
	}
	return refused
}

// isRefused tells whether the server refused to remove it not long ago.
func (r *Repository) isRefused(one Leftover) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.refused[one.Ref]
	return ok && last.Commit == one.Commit && r.depot.options.Clock.Since(last.at) < refusalLasts
}

// pruning are the leftovers that are still to go.
type pruning struct {
	work

	task *task
	left []Leftover
	// alone says that they go in a push of their own: a server refused them together with something else.
	alone bool
	// pushes counts those in which they went alone.
	pushes int
}

// newPruning takes the removal of leftovers out of the tasks.
func (w work) newPruning(tasks []*task) *pruning {
	p := &pruning{work: w}
	for _, t := range tasks {
		if t.Kind == Prune && !t.done {
			p.task, p.left = t, slices.Clone(t.Leftovers)
			t.done = true
		}
	}
	return p
}

// updates are what is pushed for the leftovers that are where they were seen, beside updates of other refs.
func (p *pruning) updates(s *Snapshot, beside []git.Update) []git.Update {
	taken := map[string]bool{}
	for _, u := range beside {
		taken[u.Ref] = true
	}
	p.left = slices.DeleteFunc(p.left, func(one Leftover) bool {
		// Somebody has moved it, or uses it anew.
		return s.Refs[one.Ref] != git.Ref{Name: one.Ref, Hash: one.Commit} || taken[one.Ref]
	})
	updates := make([]git.Update, 0, len(p.left))
	for _, one := range p.left {
		updates = append(updates, git.Update{Ref: one.Ref, Old: one.Commit})
	}
	return updates
}

// judge takes in what became of the updates.
func (p *pruning) judge(updates []git.Update, v verdicts, isAlone bool) {
	for _, u := range updates {
		one, wrong := Leftover{u.Ref, u.Old}, v.wrong[u.Ref]
		switch {
		case wrong == nil:
			p.task.result.Changed = true
			p.task.result.Gone = append(p.task.result.Gone, one)
		case errors.Is(wrong, git.ErrRejected) && isAlone:
			p.refuse(one, wrong)
		case errors.Is(wrong, git.ErrRejected), errors.Is(wrong, git.ErrNotMoved):
			continue // It may be another one that is not wanted.
		}
		p.left = slices.DeleteFunc(p.left, func(other Leftover) bool { return other == one })
	}
}

func (p *pruning) refuse(one Leftover, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = map[string]refusal{}
	}
	p.refused[one.Ref] = refusal{Refusal{one, why}, p.depot.options.Clock.Now()}
}

// sendWith sends updates, with the leftovers among them as long as nobody refuses that.
func (p *publisher) sendWith(ctx context.Context, made *plan, updates []git.Update, atomic bool) (verdicts, error) {
	var gone []git.Update
	if !p.pruning.alone {
		gone = p.pruning.updates(made.snapshot, updates)
	}
	v, err := p.send(ctx, made, append(slices.Clone(updates), gone...), atomic)
	if err != nil || len(gone) == 0 {
		return v, err
	}
	p.pruning.judge(gone, v, false)
	isWrong := func(u git.Update) bool { return v.wrong[u.Ref] != nil }
	p.pruning.alone = slices.ContainsFunc(gone, func(u git.Update) bool { return isAny(v.wrong[u.Ref], git.ErrRejected, git.ErrRefMoved) })
	if !p.pruning.alone || !slices.ContainsFunc(updates, isWrong) {
		return v, nil
	}
	again, err := p.send(ctx, made, updates, atomic)
	for _, u := range gone {
		if v.wrong[u.Ref] == nil {
			again.moved = append(again.moved, u)
		}
	}
	return again, err
}

// finish removes the leftovers that went with nothing else.
func (p *pruning) finish(ctx context.Context) {
	if p.task == nil {
		return
	}
	s := p.Snapshot()
	if s == nil {
		p.task.result.Err = fmt.Errorf("%w: nobody has looked into the repository yet", ErrNotFound)
		return
	}
	updates := p.updates(s, nil)
	moved, err := p.sendAlone(ctx, updates)
	if len(moved) > 0 {
		err = errors.Join(err, p.absorb(ctx, moved))
	}
	p.task.result.Err = err
	slices.SortFunc(p.task.result.Gone, func(a, b Leftover) int { return strings.Compare(a.Ref, b.Ref) })
}

// maxHalvings is how often leftovers are pushed in smaller parts that were refused all together. Some servers refuse a whole push
// because of one ref.
const maxHalvings = 8

// sendAlone pushes the removal of leftovers and nothing else. Each stands for itself.
func (p *pruning) sendAlone(ctx context.Context, updates []git.Update) (moved []git.Update, err error) {
	alone := &publisher{work: p.work}
	for parts := [][]git.Update{updates}; len(parts) > 0 && len(updates) > 0; parts = parts[1:] {
		part := parts[0]
		v, err := alone.send(ctx, &plan{}, part, false)
		if err != nil {
			return moved, err
		}
		p.pushes++
		moved = append(moved, v.moved...)
		isLeft := func(u git.Update) bool { return !errors.Is(v.wrong[u.Ref], git.ErrRejected) }
		if half := len(part) / 2; half > 0 && p.pushes <= maxHalvings && !slices.ContainsFunc(part, isLeft) {
			parts = append(parts, part[:half], part[half:])
			continue
		}
		p.judge(part, v, true)
	}
	return moved, nil
}
