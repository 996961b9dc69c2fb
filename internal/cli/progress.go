package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/wait"

	"sluice.dev/sluice/internal/printable"
)

// pulse is how often people are told what is waited for, if it is something new. What takes less is not told.
const pulse = time.Second

// progress tells people that a command still waits, and for what: a line for each change, and on a terminal one line that
// is written anew.
type progress struct {
	to       io.Writer
	quiet    bool
	terminal bool
}

func newProgress(to io.Writer, quiet bool) progress {
	return progress{to: to, quiet: quiet, terminal: isTerminal(to)}
}

// follow has somebody remind people at each pulse, until what it returns is called.
func (p progress) follow(ctx context.Context, remind func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, pulse, false, func(context.Context) (bool, error) {
			remind()
			return false, nil
		})
	})
	return func() {
		cancel()
		group.Wait()
		p.clear()
	}
}

// tell writes a line.
func (p progress) tell(text string) {
	switch {
	case p.quiet:
	case p.terminal:
		fmt.Fprint(p.to, anew+printable.Line(text, p.width()))
	default:
		fmt.Fprintln(p.to, printable.Line(text, maxProblem))
	}
}

// anew moves to the start of a terminal's line, and empties it.
const anew = "\r\x1b[K"

// clear takes the line away before another one is written.
func (p progress) clear() {
	if p.terminal && !p.quiet {
		fmt.Fprint(p.to, anew)
	}
}

// width is how many bytes fit into a terminal's line, so that it can be emptied again.
func (p progress) width() int {
	const usual = 80
	if file, isFile := p.to.(*os.File); isFile {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 1 {
			return width - 1
		}
	}
	return usual - 1
}
