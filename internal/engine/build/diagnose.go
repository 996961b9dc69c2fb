package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/transport"
)

// diagnose says why a process ended too early.
func (b *Builder) diagnose(limited context.Context, w *worker, talking, ending error) error {
	said := w.said.why()
	state := w.process.ProcessState
	spent := state.UserTime() + state.SystemTime()
	switch {
	case limited.Err() != nil, strings.Contains(said, "build takes too long"):
		return fmt.Errorf("%w: stopped after %s", ErrWorker, b.options.Wall)
	case strings.Contains(said, "SIGXCPU"), spent >= b.options.CPU:
		return fmt.Errorf("%w: it used %s of processor time, all that a build may", ErrWorker, spent.Round(time.Second))
	case strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"), strings.Contains(said, "failed to allocate"), strings.Contains(said, "address space"), strings.Contains(said, "failed to create new OS thread"):
		return fmt.Errorf("%w: it needs more than the %d MiB of memory that a build may have", ErrWorker, b.options.Memory>>20)
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return fmt.Errorf("%w: what it builds refers to itself, or is nested too deeply", ErrWorker)
	}
	reason, _, _ := strings.Cut(said, "\n")
	if peak(state) >= b.options.Memory*3/4 && !strings.HasPrefix(reason, "panic: ") {
		// Not every refusal of memory ends in an orderly way: the runtime may stumble where it writes down that it got
		// none. A panic has another cause. The peak is a hint only, as Linux counts in it what the parent held at execve.
		return fmt.Errorf("%w: it ended early after it took %d MiB of memory, of the %d MiB that a build may have", ErrWorker, peak(state)>>20, b.options.Memory>>20)
	}
	if reason != "" {
		return fmt.Errorf("%w: it crashed: %s", ErrWorker, transport.Printable(reason))
	}
	if ending == nil {
		ending = talking
	}
	return fmt.Errorf("%w: it ended early: %w", ErrWorker, ending)
}

// words are the last that a process wrote to its standard error.
type words struct{ kept []byte }

// maxKept is how many bytes are kept at least. Libraries may have said much before the runtime says why it ends, and that
// is followed by what each goroutine did.
const maxKept = 256 << 10

// Write never fails, so that a talkative worker goes on.
func (w *words) Write(p []byte) (int, error) {
	if w.kept = append(w.kept, p...); len(w.kept) > 2*maxKept {
		w.kept = slices.Delete(w.kept, 0, len(w.kept)-maxKept)
	}
	return len(p), nil
}

// why is what was said from where the runtime begins to say why it ends, else the last line.
func (w *words) why() string {
	lines := strings.Split(strings.TrimSpace(string(w.kept)), "\n")
	begins := func(line string) bool {
		return slices.ContainsFunc([]string{"panic: ", "fatal error: ", "runtime: ", "SIG"}, func(start string) bool { return strings.HasPrefix(line, start) })
	}
	if at := slices.IndexFunc(lines, begins); at >= 0 {
		return strings.Join(lines[at:], "\n")
	}
	return lines[len(lines)-1]
}
