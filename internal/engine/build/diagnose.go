package build

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/transport"
)

// diagnose says why a process ended too early.
func (b *Builder) diagnose(limited context.Context, w *worker, talking, ending error) error {
	said := w.said.String()
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
	reason := w.said.reason()
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

// words keep what a process writes to its standard error: from where the runtime begins to say why it ends, else the last
// line. Libraries may have said much before, and the runtime says much after.
type words struct {
	line []byte // that is not ended yet
	last string
	kept strings.Builder
}

// What is kept, in bytes.
const (
	maxLine = 512
	maxKept = 4096
)

// Write never fails, so that a talkative worker goes on.
func (w *words) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		w.line = append(w.line, line[:min(len(line), maxLine-len(w.line))]...)
		if line[len(line)-1] == '\n' {
			w.end()
		}
	}
	return len(p), nil
}

func (w *words) end() {
	text := strings.TrimSpace(string(w.line))
	w.line = w.line[:0]
	if text == "" {
		return
	}
	w.last = text
	begins := w.kept.Len() > 0
	for _, start := range []string{"panic: ", "fatal error: ", "runtime: ", "SIG"} {
		begins = begins || strings.HasPrefix(text, start)
	}
	if begins && w.kept.Len() < maxKept {
		w.kept.WriteString(text + "\n")
	}
}

// String is what was kept.
func (w *words) String() string { return w.kept.String() + w.last }

// reason is one line of it.
func (w *words) reason() string {
	if first, _, _ := strings.Cut(w.kept.String(), "\n"); first != "" {
		return first
	}
	return w.last
}
