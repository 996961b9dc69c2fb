package function

import "fmt"

// room is how much a package may still grow.
type room struct {
	left, most int64
}

// take counts bytes before they are written. Negative ones are given back.
func (r *room) take(bytes int64) error {
	if bytes > r.left {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.most)
	}
	r.left -= bytes
	return nil
}
