package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/view"
)

// colorFlag is the name of the flag that chooses whether states have colours.
const colorFlag = "color"

// bindColor adds the flag to a command that shows states.
func bindColor(command *cobra.Command) {
	command.Flags().String(colorFlag, "auto", "Colour of states: auto, on a terminal without NO_COLOR in the environment; always; or never.")
	cobra.CheckErr(command.RegisterFlagCompletionFunc(colorFlag, cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
}

// colored is an output on which states have colours.
type colored struct{ io.Writer }

// inColor is the output as the command's flag has it, if there is one.
func inColor(command *cobra.Command, out io.Writer, lookup func(string) (string, bool)) (io.Writer, error) {
	flag := command.Flags().Lookup(colorFlag)
	if flag == nil {
		return out, nil
	}
	switch flag.Value.String() {
	case "always":
		return colored{out}, nil
	case "never":
		return out, nil
	case "auto":
	default:
		return nil, usage("--color " + flag.Value.String() + " is none of auto, always, never")
	}
	forbidden, _ := lookup("NO_COLOR") // By no-color.org, whatever it says.
	kind, _ := lookup("TERM")
	if isTerminal(out) && forbidden == "" && kind != "dumb" {
		return colored{out}, nil
	}
	return out, nil
}

// colors are the codes of ECMA-48's SGR for what is well, on its way, held and wrong. States without one are left as they are.
func colors() map[view.State]string {
	const green, yellow, red, cyan = "32", "33", "31", "36"
	return map[view.State]string{
		view.Ready: green, view.Progressing: cyan, view.New: cyan, view.Waiting: yellow, view.Held: yellow, view.Conflicted: yellow,
		view.Suspended: yellow, view.Paused: yellow, view.Deleting: yellow, view.Blocked: red, view.Failed: red, view.Stalled: red,
	}
}

// paint colours the state that a text begins with, where the output has colours.
func (t table) paint(text string) string {
	if _, isColored := t.out.(colored); !isColored {
		return text
	}
	for state, code := range colors() {
		word := t.state(state)
		if rest, begins := strings.CutPrefix(text, word); begins && (rest == "" || rest[0] == ',') {
			return "\x1b[" + code + "m" + word + "\x1b[0m" + rest
		}
	}
	return text
}

// withoutColor is the text as it is seen.
func withoutColor(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	var seen strings.Builder
	for before, rest := "", text; rest != ""; {
		var found bool
		before, rest, found = strings.Cut(rest, "\x1b[")
		if seen.WriteString(before); found {
			_, rest, _ = strings.Cut(rest, "m")
		}
	}
	return seen.String()
}
