package pkgrepo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/memory"
)

// maxRefusals is how often a server may refuse changes that are pushed one by one, because it refused them together. After that
// the others have what it said before: mostly it is the branch that is refused, whoever asks.
const maxRefusals = 50

// publisher makes one attempt at what is left to do.
type publisher struct {
	work

	snapshot *Snapshot
	pruning  *pruning
	// share is the time for making packages.
	share *share
	// settled counts the tasks that were ended or singled out: without any, somebody else was first everywhere.
	settled  int
	refusals int
}

// attempt plans and pushes those tasks that are moved together, or the others.
func (p *publisher) attempt(ctx context.Context, tasks []*task, together bool) error {
	var batch []*task
	var alone [][]*task
	for _, t := range tasks {
		switch {
		case t.done || t.isTogether() != together:
		case t.alone:
			alone = append(alone, []*task{t})
		default:
			batch = append(batch, t)
		}
	}
	inTurn(batch)
	for queue := append([][]*task{batch}, alone...); len(queue) > 0; queue = queue[1:] {
		tasks := queue[0]
		if len(tasks) == 0 {
			continue
		}
		if tasks[0].alone && p.refusals >= maxRefusals {
			tasks[0].fail(tasks[0].lost)
			p.settled++
			continue
		}
		left, err := p.batch(ctx, tasks, together)
		if err != nil {
			return err
		}
		queue = append(queue, left...)
	}
	return nil
}

// batch plans tasks and pushes them at once. It returns those that were left for others, which belong together.
func (p *publisher) batch(ctx context.Context, tasks []*task, together bool) (left [][]*task, err error) {
	made, err := p.open(ctx, p.snapshot, tasks)
	switch {
	case isAny(err, git.ErrLimit, memory.ErrBudget) && len(tasks) > 1:
		half := len(tasks) / 2 // One may have more than there is room for.
		return [][]*task{tasks[:half], tasks[half:]}, nil
	case isAny(err, git.ErrLimit, memory.ErrBudget):
		tasks[0].fail(err)
		p.settled++
		return nil, nil
	case err != nil:
		return nil, err
	}
	made.share = p.share
	defer func() { err = errors.Join(err, made.close()) }()
	began := p.depot.options.Clock.Now()
	var planned []*task
	for i, t := range tasks {
		if len(planned) > 0 && p.isFull(began, t) {
			left = [][]*task{tasks[i:]}
			break
		}
		if err := made.add(ctx, t); err != nil {
			return nil, err
		}
		if len(planned) > 0 && t.isCrowded() {
			t.done, t.result = false, Result{}
			left = [][]*task{tasks[i:]}
			break
		}
		switch {
		case t.done:
			p.settled++
		case t.lost == nil:
			planned = append(planned, t)
		}
	}
	if len(planned) == 0 {
		return left, nil
	}
	moved, err := p.push(ctx, made, planned, together)
	if len(moved) > 0 {
		err = errors.Join(err, p.absorb(ctx, moved))
		p.snapshot = p.Snapshot()
	}
	return left, err
}

// push pushes what is planned, and returns what was moved.
func (p *publisher) push(ctx context.Context, made *plan, tasks []*task, together bool) ([]git.Update, error) {
	var branch []git.Update
	if made.head != made.snapshot.Head {
		branch = []git.Update{{Ref: p.branch, Old: made.snapshot.Head, New: made.head}}
	}
	updates := slices.Clone(branch)
	for _, t := range tasks {
		updates = append(updates, t.updates...)
	}
	v, err := p.sendWith(ctx, made, updates, together && len(updates) > 1)
	if errors.Is(err, git.ErrNotAtomic) {
		return p.pushInSteps(ctx, made, tasks, branch)
	}
	if err != nil {
		return nil, err
	}
	p.judge(tasks, v)
	return v.moved, nil
}

// pushInSteps is for servers that cannot move several refs at once: first the branch, then what is new, at last what goes.
// Whatever is interrupted is completed by Sync: a commit on the branch names the open change that it published, which is
// there until all is done.
func (p *publisher) pushInSteps(ctx context.Context, made *plan, tasks []*task, branch []git.Update) ([]git.Update, error) {
	all := verdicts{wrong: map[string]error{}}
	steps := []func(git.Update) bool{
		func(u git.Update) bool { return u.New != "" }, func(u git.Update) bool { return u.New == "" },
	}
	if len(branch) > 0 {
		v, err := p.send(ctx, made, branch, false)
		if err != nil {
			return nil, err
		}
		all.add(v)
	}
	for _, isNow := range steps {
		var updates []git.Update
		for _, t := range tasks {
			if p.blame(t, all) != nil {
				continue
			}
			for _, u := range t.updates {
				if isNow(u) {
					updates = append(updates, u)
				}
			}
		}
		if len(updates) == 0 {
			continue
		}
		v, err := p.send(ctx, made, updates, false)
		if err != nil {
			return all.moved, err
		}
		all.add(v)
	}
	p.judge(tasks, all)
	return all.moved, nil
}

// verdicts are what became of updates, by the name of the ref.
type verdicts struct {
	wrong map[string]error
	moved []git.Update
}

func (v *verdicts) add(other verdicts) {
	v.moved = append(v.moved, other.moved...)
	maps.Copy(v.wrong, other.wrong)
}

func (p *publisher) send(ctx context.Context, made *plan, updates []git.Update, atomic bool) (verdicts, error) {
	v := verdicts{wrong: map[string]error{}}
	results, err := p.depot.client.Push(ctx, p.settings.Push, git.PushRequest{
		Objects: made.objects, Updates: updates, Atomic: atomic, For: p.settings.Fetch,
	})
	for i, result := range results {
		if result.Err == nil {
			v.moved = append(v.moved, updates[i])
		} else {
			v.wrong[result.Ref] = result.Err
		}
	}
	return v, err
}

// blame is what went wrong with a task: a refusal, which is final, before a lost race, and that before what follows from others.
func (p *publisher) blame(t *task, v verdicts) (wrong error) {
	refs := make([]string, 0, len(t.updates)+1)
	for _, u := range t.updates {
		refs = append(refs, u.Ref)
	}
	if t.onBranch {
		refs = append(refs, p.branch)
	}
	for _, ref := range refs {
		if err := v.wrong[ref]; gravity(err) > gravity(wrong) {
			wrong = err
		}
	}
	return wrong
}

func gravity(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, git.ErrRejected):
		return 4
	case errors.Is(err, git.ErrRefMoved):
		return 3
	case errors.Is(err, git.ErrNotMoved):
		return 1
	}
	return 2
}

// judge ends the tasks that are done, and those that are refused. A refusal of several at once may be meant for one of
// them: they are tried one by one. All others are tried again.
func (p *publisher) judge(tasks []*task, v verdicts) {
	for _, t := range tasks {
		wrong := p.blame(t, v)
		switch {
		case wrong == nil:
			t.done = true
		case !errors.Is(wrong, git.ErrRejected):
			t.lost = wrong
			continue
		case len(tasks) == 1:
			t.fail(wrong)
			p.refusals++
		default:
			t.alone, t.lost = true, wrong
		}
		p.settled++
	}
}
