package pkgrepo

import (
	"errors"
	"slices"
)

var (
	// ErrName says that a package, a workspace, a branch or a directory has a name that is not safe in git.
	ErrName = errors.New("name is not usable")
	// ErrLimit says that a repository, or what is left out of it, exceeds one of the limits in Options. The text names it.
	ErrLimit = errors.New("limit exceeded")
	// ErrNotFound says that the repository has nothing of what was selected.
	ErrNotFound = errors.New("not found")
	// ErrSelector says that a selector cannot be read.
	ErrSelector = errors.New("selector is not usable")
	// ErrInTheWay says that a branch or tag has the name of a folder that a change needs for its own.
	ErrInTheWay = errors.New("a ref is in the way")
	// ErrTimeout says that a change was not made in its time.
	ErrTimeout = errors.New("making the package took too long")
	// ErrPostponed says that a change was not begun, as others took the time of the round. It is to be asked for again.
	ErrPostponed = errors.New("the round has no time left for it")
	// ErrReadOnly says that the repository has no remote to push to.
	ErrReadOnly = errors.New("repository is read only")

	// ErrOutOfDate says that the branch has another state of the package than the one that the change was begun on.
	ErrOutOfDate = errors.New("the package has moved on since the change was begun")
	// ErrMoved says that what a change is bound to is not what the repository has: somebody has been there.
	ErrMoved = errors.New("another commit than expected")
	// ErrExists says that the name is taken by something else.
	ErrExists = errors.New("it exists already")
	// ErrGone says that there is no such open change, revision or package.
	ErrGone = errors.New("it is not there")
	// ErrNotOwn says that an open change has commits that this program did not make.
	ErrNotOwn = errors.New("the change has commits that people made")
	// ErrOutside says that an open change also changes files outside of its package's folder. The text names them.
	ErrOutside = errors.New("the change has files outside of its package")
	// ErrOtherBranch says that an open change was made on another branch of the Git repository.
	ErrOtherBranch = errors.New("the change belongs to another branch")
	// ErrProposed says that a change is proposed and therefore frozen.
	ErrProposed = errors.New("the change is proposed and cannot be written to")
)

func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}
