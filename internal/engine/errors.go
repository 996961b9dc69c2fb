package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// The stages that errors come from, in their order.
const (
	StageRecord failure.Stage = "record"
	StageDepend failure.Stage = "depend"
	StageFetch  failure.Stage = "fetch"
	StageBuild  failure.Stage = "build"
	StageApply  failure.Stage = "apply"
	StageHealth failure.Stage = "health"
	StagePrune  failure.Stage = "prune"
	StageDelete failure.Stage = "delete"
)

// maxNamed is how many members an error or a note names, and maxText how long it gets.
const (
	maxNamed = 5
	maxText  = 900
)

// memberError is what went wrong with one member.
type memberError struct {
	ref cluster.Ref
	err error
}

// joined is the failure for what went wrong with members: the most telling reason, and a text that names the first few.
func joined(stage failure.Stage, otherwise string, all []memberError) error {
	asked := len(all)
	all = slices.DeleteFunc(all, func(one memberError) bool { return errors.Is(one.err, errLate) })
	switch {
	case len(all) == 0 && asked > 0:
		return late(stage)
	case len(all) == 0:
		return nil
	}
	slices.SortStableFunc(all, func(a, b memberError) int {
		return strings.Compare(describe(a.ref), describe(b.ref))
	})
	var after time.Duration
	lines, errs := make([]string, 0, maxNamed), make([]error, 0, len(all))
	for i, one := range all {
		if answer, ok := errors.AsType[*cluster.AnswerError](one.err); ok {
			after = max(after, answer.After)
		}
		if i < maxNamed {
			lines = append(lines, one.err.Error())
		}
		errs = append(errs, one.err)
	}
	text := strings.Join(lines, "; ")
	if more := len(all) - len(lines); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return failure.At(stage, failure.RetryAfter(reasonOf(all, otherwise), after, &severalError{text: text, errs: errs, of: all, otherwise: otherwise}))
}

// severalError is several errors with one text, which is bounded where it is an error's.
type severalError struct {
	text string
	errs []error
	// of are the members, and otherwise the reason of those that have none of their own.
	of        []memberError
	otherwise string
}

func (e *severalError) Error() string   { return bounded(e.text) }
func (e *severalError) Unwrap() []error { return e.errs }

// Failed are the members that the error of a round is about, each with its own reason and text.
func Failed(err error) []Problem {
	several, ok := errors.AsType[*severalError](err)
	if !ok {
		return nil
	}
	problems := make([]Problem, 0, len(several.of))
	for _, one := range several.of {
		problems = append(problems, Problem{
			Ref: one.ref, Reason: reasonOf([]memberError{one}, several.otherwise), Message: one.err.Error(),
		})
	}
	return problems
}

var (
	// errOwned says that an object belongs to another installation.
	errOwned = errors.New("belongs to another installation")
	// errManaged says that an object is somebody else's, and that spec.adopt leaves it to them.
	errManaged = errors.New("is not taken over")
)

// reasonOf is the condition's reason for what went wrong: that which says the most about what has to be done.
func reasonOf(all []memberError, otherwise string) string {
	for _, known := range []struct {
		err    error
		reason string
	}{
		{errOwned, modulesv1.OwnershipConflictReason},
		{errManaged, modulesv1.OwnershipConflictReason},
		{cluster.ErrForbidden, modulesv1.ForbiddenReason},
		{cluster.ErrImmutable, modulesv1.ImmutableFieldReason},
	} {
		if slices.ContainsFunc(all, func(one memberError) bool { return errors.Is(one.err, known.err) }) {
			return known.reason
		}
	}
	return otherwise
}

func bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
