package local

import (
	"errors"
	"fmt"
)

// maxFailures bounds the words about a pass over all objects: a disk that fails, fails for each.
const maxFailures = 10

// failures collects what goes wrong on the way through many objects.
type failures struct {
	first []error
	more  int
}

// add takes nil for no failure.
func (f *failures) add(err error) {
	switch {
	case err == nil:
	case len(f.first) < maxFailures:
		f.first = append(f.first, err)
	default:
		f.more++
	}
}

// join is nil without failures.
func (f *failures) join() error {
	if f.more == 0 {
		return errors.Join(f.first...)
	}
	return errors.Join(errors.Join(f.first...), fmt.Errorf("and %d more errors", f.more))
}

// during says in the error, if there is one, what was being done.
func during(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}
