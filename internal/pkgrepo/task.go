package pkgrepo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/git"
)

// task is a change on its way.
type task struct {
	Change

	result Result
	done   bool
	// workspace is that of the change, also when it was chosen here.
	workspace string
	// tried is what was pushed before without an answer, or without success.
	tried []Result
	// updates are what is pushed for it now. The branch's is not among them: publications share it.
	updates []git.Update
	// onBranch says that it also needs the branch's update.
	onBranch bool
	// alone says that it is pushed by itself: a server refused it together with others.
	alone bool
	// took is how long its Make took.
	took time.Duration
	// lost is why it was not done the last time.
	lost error
}

// newTasks checks changes by themselves.
func (w work) newTasks(changes []Change) []*task {
	taken := map[[2]string]bool{}
	tasks := make([]*task, len(changes))
	for i, change := range changes {
		t := &task{Change: change, workspace: change.Workspace}
		tasks[i] = t
		if err := w.check(change); err != nil {
			t.fail(err)
			continue
		}
		if change.Kind == Preview || change.Kind == Prune {
			continue // It is in the way of nothing.
		}
		of := [2]string{change.Package, "workspace " + change.Workspace}
		if change.isOfRelease() {
			of[1] = "release"
		}
		if taken[of] {
			t.fail(fmt.Errorf("%w: another change of the round is about the same", ErrExists))
		}
		taken[of] = true
	}
	return tasks
}

// isOfRelease tells whether a change is about published revisions.
func (c Change) isOfRelease() bool {
	return c.Kind == ProposeDeletion || c.Kind == RejectDeletion || c.Kind == Remove
}

func (w work) check(change Change) error {
	if change.Kind == Prune {
		return w.checkLeftovers(change.Leftovers)
	}
	if err := CheckPath(w.path(change.Package)); err != nil {
		return err
	}
	switch change.Kind {
	case Write, Preview:
		if change.Make == nil {
			return errors.New("a write without what makes it")
		}
		if change.Workspace == "" {
			return nil
		}
	case Publish, Remove:
		if change.Expect == "" {
			return fmt.Errorf("%w: a commit has to be expected", ErrMoved)
		}
	case Propose, Reject, Record, Drop, ProposeDeletion, RejectDeletion:
	default:
		return fmt.Errorf("change of unknown kind %s", shown(string(change.Kind)))
	}
	if change.isOfRelease() {
		return nil
	}
	return CheckWorkspace(change.Workspace)
}

// checkLeftovers keeps whoever makes a mistake from removing what is none of the packages'.
func (w work) checkLeftovers(all []Leftover) error {
	if len(all) > MaxLeftovers {
		return fmt.Errorf("%w: %d leftovers at once, more than %d", ErrLimit, len(all), MaxLeftovers)
	}
	for _, one := range all {
		if _, ok := w.parse(one.Ref); !ok || one.Commit == "" {
			return fmt.Errorf("%w: %s is no leftover of a package", ErrName, shown(one.Ref))
		}
	}
	return nil
}

// isTogether tells whether what the change moves is moved in one step or not at all.
func (t *task) isTogether() bool {
	return t.Kind == Publish || t.Kind == Record || t.Kind == Remove || t.Kind == Propose || t.Kind == Reject
}

func (t *task) fail(err error) { t.done, t.result = true, Result{Err: err} }

// settle ends a task for which nothing has to be pushed.
func (t *task) settle(r Result) { t.done, t.result = true, r }

// push says what has to be pushed, and the result if it is.
func (t *task) push(r Result, updates ...git.Update) {
	r.Changed = true
	t.result, t.updates = r, updates
	t.tried = append(t.tried, r)
}

// hasTried tells whether a commit was pushed before.
func (t *task) hasTried(commit string) bool {
	return slices.ContainsFunc(t.tried, func(r Result) bool { return r.Commit == commit })
}
