package cli

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"sluice.dev/sluice/internal/printable"
)

// What a command ends with. One that did what it was asked for ends with 0.
const (
	// ExitNo is for an answer that is no: there are changes, or a fault, or the awaited object failed.
	ExitNo = 1
	// ExitUnanswered is for what could not be found out or done: the API server, a right or an object was lacking.
	ExitUnanswered = 2
	// ExitUsage is for wrong arguments and flags.
	ExitUsage = 3
	// ExitTimeout is for a command whose own time ran out before its object was as it was to be.
	ExitTimeout = 4
	// ExitInterrupted is for a command that was interrupted, as shells have it.
	ExitInterrupted = 130
)

// maxProblem is how long a problem's text may be: an API server may quote whole objects.
const maxProblem = 2048

// CommandError is why a command gives no answer: what it was at, why, and what helps. An answer that is no is one too; without
// What nothing has to be told of it, as the answer tells it.
type CommandError struct {
	Code int
	What string
	Why  string
	Help []string
	// general says that it is in the way of every other request too.
	general bool
	// forbidden says that the user lacks a right.
	forbidden bool
	// unknown says that the API server does not know the user.
	unknown bool
	// missing says that there is no object of the name.
	missing bool
	// changed says that the object is not as it was.
	changed bool
}

// Error is one line, and one for each thing that helps. Nothing in it moves a terminal's cursor.
func (p *CommandError) Error() string {
	if p.What == "" {
		return ""
	}
	lines := []string{printable.Line(p.What+": "+p.Why, maxProblem)}
	for _, help := range p.Help {
		lines = append(lines, "  "+printable.Line(help, maxProblem))
	}
	return strings.Join(lines, "\n")
}

// usage is a problem with the arguments.
func usage(why string, help ...string) *CommandError {
	return &CommandError{Code: ExitUsage, What: "usage", Why: why, Help: help}
}

// explain says why a request was in vain, and what helps.
func explain(what string, err error, role string) *CommandError {
	told := &CommandError{Code: ExitUnanswered, What: what, Why: err.Error()}
	_, unsent := errors.AsType[*url.Error](err)
	_, unanswered := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		told.Code, told.Why, told.general = ExitInterrupted, "interrupted", true
	case apierrors.IsUnauthorized(err):
		told.Why, told.Help = "the API server does not take the login", []string{"log in anew, or choose another one with --context, --user or --token"}
		told.general, told.unknown = true, true
	case apierrors.IsForbidden(err):
		told.forbidden = true
		told.Why, told.Help = "forbidden: "+reasonOf(err), []string{"ask for the ClusterRole " + role}
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err) && strings.Contains(err.Error(), "the server could not find the requested resource"):
		told.Why, told.Help = "the API server does not serve the kind", []string{"install its CustomResourceDefinition, from config/crd"}
	case unsent, unanswered:
		told.Why, told.Help = "no answer from the API server: "+err.Error(), []string{"check --kubeconfig, --context and --server, and that the API server runs"}
		told.general = true
	}
	return told
}

// isGeneral says that an error is in the way of every other request too.
func isGeneral(err error) bool {
	problem, ok := errors.AsType[*CommandError](err)
	return ok && problem.general
}

// addHelp adds what helps to a problem.
func addHelp(err error, help string) error {
	if told, ok := errors.AsType[*CommandError](err); ok {
		told.Help = append(told.Help, help)
	}
	return err
}

// reasonOf is what the API server says of a request that it refused, without the words that repeat the request.
func reasonOf(err error) string {
	_, reason, found := strings.Cut(err.Error(), " is forbidden: ")
	if !found {
		return err.Error()
	}
	return reason
}

// ExitCode is what the process ends with after a command's error, which may be nil or several in one.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		code := 0
		for _, one := range several.Unwrap() {
			code = max(code, ExitCode(one))
		}
		return code
	}
	if problem, ok := errors.AsType[*CommandError](err); ok {
		return problem.Code
	}
	return ExitUsage
}

// list names some things in a message.
func list(names []string) string { return strings.Join(names, ", ") }
