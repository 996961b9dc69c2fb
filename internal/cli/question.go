package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"sluice.dev/sluice/internal/printable"
)

// agreed asks whoever types, and returns an error unless they say yes.
func (b *base) agreed(ctx context.Context, what, question string) error {
	fmt.Fprintf(b.ErrOut, "%s? [y/N] ", printable.Line(question, maxProblem))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(b.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		if word := strings.ToLower(strings.TrimSpace(line)); word == "y" || word == "yes" {
			return nil
		}
		return &CommandError{Code: ExitNo, What: what, Why: "the answer was not yes"}
	case <-ctx.Done():
		fmt.Fprintln(b.ErrOut) // What follows is no answer.
		return explain(what, ctx.Err(), "")
	}
}

// unasked says that a question would have nobody to answer it, and what to type instead.
func unasked(help string) *CommandError {
	return usage("nobody can be asked, as stdin is no terminal", help)
}

// isTerminal says that somebody sits at the other end.
func isTerminal(in any) bool {
	file, isFile := in.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
