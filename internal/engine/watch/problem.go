package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"sluice.dev/sluice/internal/transport"
)

// Reason is a class of problems.
type Reason string

const (
	// Forbidden is a subject that the identity may not list or watch.
	Forbidden Reason = "Forbidden"
	// Absent is a kind that the API server does not know, or not yet.
	Absent Reason = "Absent"
	// Unsupported is a kind that cannot be watched, or not in that scope.
	Unsupported Reason = "Unsupported"
	// Beyond is a subject that is one too many for its owner.
	Beyond Reason = "Beyond"
	// Unreachable is anything else, such as an API server that does not answer.
	Unreachable Reason = "Unreachable"
)

// Problem is a subject that cannot be watched. It is tried again by itself.
type Problem struct {
	Subject Subject
	Reason  Reason
	// Message is one printable, bounded line. It says what helps where something does.
	Message string
}

// Problems are the subjects that the owner wants and cannot be watched, in a stable order. A watch that is interrupted
// for a while is none, and State goes on telling what was last seen; nor is one that cannot be opened for some seconds.
func (w *Watcher) Problems(owner string) []Problem {
	var problems []Problem
	watches, beyond := w.wants(owner)
	for _, watch := range watches {
		if problem := watch.trouble(); problem != nil {
			problems = append(problems, *problem)
		}
	}
	message := fmt.Sprintf("at most %d watches are kept for one owner, one for each kind in each namespace", w.subjects)
	for _, subject := range beyond {
		problems = append(problems, Problem{Subject: subject, Reason: Beyond, Message: message})
	}
	slices.SortFunc(problems, func(a, b Problem) int { return a.Subject.Compare(b.Subject) })
	return problems
}

// errScope is a namespace for a kind that has none, or none for a kind that has.
var errScope = errors.New("wrong scope")

// reasonOf classifies the error of an attempt to list or watch.
func reasonOf(err error) Reason {
	switch {
	case apierrors.IsForbidden(err):
		return Forbidden
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return Absent
	case apierrors.IsMethodNotSupported(err), errors.Is(err, errScope):
		return Unsupported
	default:
		return Unreachable
	}
}

// expired says that the API server no longer knows what happened since the version that was asked for.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func problemOf(subject Subject, err error) *Problem {
	problem := &Problem{Subject: subject, Reason: reasonOf(err), Message: transport.Printable(err.Error())}
	switch problem.Reason {
	case Forbidden:
		problem.Message = fmt.Sprintf("%s; allow %s to list and watch them", problem.Message, subject.Identity)
	case Absent:
		problem.Message = fmt.Sprintf("kind %q is not there: %s", subject.GVK.GroupKind(), problem.Message)
	case Unsupported, Beyond, Unreachable:
	}
	return problem
}

// delay is how long to wait after so many failures in a row.
func (r Reason) delay(failures int) time.Duration {
	first, most := 500*time.Millisecond, 30*time.Second
	switch r {
	case Absent:
		first, most = time.Second, time.Minute
	case Forbidden, Unsupported:
		first, most = 5*time.Second, 5*time.Minute
	case Beyond, Unreachable:
	}
	return min(most, first<<min(max(failures-1, 0), 16))
}
