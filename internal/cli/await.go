package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// verdict is what a command makes of an object that it waits for.
type verdict int

const (
	// pending is an object that may still become what it is to be.
	pending verdict = iota
	// yes is one that is as it is to be.
	yes
	// no is one that will not become so by waiting.
	no
)

// errTimeout is why a command stops waiting by itself.
var errTimeout = errors.New("--timeout has passed")

// waiting is how a command waits for its objects.
type waiting struct {
	timeout time.Duration
	quiet   bool
}

// timeoutFlag is the name of the flag that says how long a command waits.
const timeoutFlag = "timeout"

func (w *waiting) bind(command *cobra.Command) {
	command.Flags().DurationVar(&w.timeout, timeoutFlag, 5*time.Minute, "How long to wait, for all objects together.")
	command.Flags().BoolVarP(&w.quiet, "quiet", "q", false, "Tell nothing of what is waited for.")
}

// within is the time for all that the command waits for.
func (w *waiting) within(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if w.timeout <= 0 {
		return nil, nil, usage("--timeout has to be longer than nothing")
	}
	ctx, stop := context.WithTimeoutCause(ctx, w.timeout, errTimeout)
	return ctx, stop, nil
}

// late is the error of what was done within a time, which that may be the reason of.
func late(ctx context.Context, what string, err error) error {
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	return &CommandError{Code: ExitTimeout, What: what, Why: errTimeout.Error()}
}

// on waits for what the judge judges by.
func (w *waiting) on(b *base, judge func(*target) (verdict, string)) *awaited {
	return &awaited{base: b, judge: judge, progress: newProgress(b.ErrOut, w.quiet)}
}

// awaited are objects that are waited for together.
type awaited struct {
	*base

	// judge says what is to be thought of an object as it is now, and how it is.
	judge    func(*target) (verdict, string)
	progress progress

	mu sync.Mutex
}

// await waits for the targets until it is known what becomes of each. An error says why that of some could not be known.
func (a *awaited) await(ctx context.Context, targets []*target) error {
	defer a.progress.follow(ctx, func() { a.remind(targets) })()
	var group sync.WaitGroup
	var problems []error
	for _, one := range watchesOf(targets) {
		group.Go(func() {
			err := one.run(ctx, a.session, func(t *target, obj *unstructured.Unstructured) bool { return a.see(t, obj) })
			if isTooLate(err) {
				<-ctx.Done()
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				problems = append(problems, explain(fmt.Sprintf("watch %s in namespace %s", one.resource, one.namespace), err, "sluice-view"))
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		problems = append(problems, unsettled(ctx, targets))
	}
	return errors.Join(problems...)
}

// isTooLate tells whether the client's rate limiter refused a request because its wait would end after the deadline. The deadline has not
// passed then. The error of golang.org/x/time/rate has no type, so the text decides.
func isTooLate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "would exceed context deadline")
}

// unsettled says what became of none of the targets when the time was over.
func unsettled(ctx context.Context, targets []*target) error {
	var problems []error
	for _, t := range targets {
		if t.verdict != pending {
			continue
		}
		if !errors.Is(context.Cause(ctx), errTimeout) {
			return explain("wait for "+t.String(), context.Canceled, "")
		}
		problems = append(problems, &CommandError{Code: ExitTimeout, What: "wait for " + t.String(), Why: errTimeout.Error() + ": " + cmp.Or(t.at, "nothing was heard of it")})
	}
	return errors.Join(problems...)
}

// see takes an object as it is now, and says whether it is known what becomes of it.
func (a *awaited) see(t *target, obj *unstructured.Unstructured) (settled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.verdict != pending {
		return true
	}
	t.obj = obj
	if t.verdict, t.at = a.judge(t); t.verdict == pending {
		return false
	}
	if !t.asked.IsZero() {
		t.at += fmt.Sprintf(", %.1f s", time.Since(t.asked).Seconds())
	}
	a.progress.clear()
	t.print(a.Out)
	return true
}

// remind tells of what is waited for still, and how it is.
func (a *awaited) remind(targets []*target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range targets {
		if t.verdict == pending && t.at != t.told {
			a.progress.tell(t.String() + "  " + t.at)
			t.told = t.at
		}
	}
}

// print tells what became of a target.
func (t *target) print(out io.Writer) {
	mark := marks()[view.Ready]
	if t.verdict == no {
		mark = marks()[view.Failed]
	}
	if mark += " "; isPlain(environment) {
		mark = ""
	}
	fmt.Fprintf(out, "%s%s  %s\n", mark, printable.Line(t.String(), maxProblem), printable.Line(t.at, maxProblem))
}

// answered is the error of a command whose objects were told of: nil, or that some of them are not as they were to be.
func answered(targets []*target) error {
	for _, t := range targets {
		if t.verdict == no {
			return &CommandError{Code: ExitNo}
		}
	}
	return nil
}

// described is a state in words.
func described(fact view.Fact) string {
	if told := message(fact); told != "" {
		return string(fact.State) + ": " + told
	}
	return string(fact.State)
}
