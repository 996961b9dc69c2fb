package function

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// room is how much a package may still grow.
type room struct {
	left, most int64
	// values are how many more values it may have; two bytes can be one, which takes a hundred times that in memory. Draw is
	// given what they take, and drawn is for how many of those that were made since the beginning.
	values, made, drawn int64
	draw                func(bytes int64) error
}

// take counts bytes before they are written. Negative ones are given back.
func (r *room) take(bytes int64) error {
	if bytes > r.left {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.most)
	}
	r.left -= bytes
	return nil
}

// put counts what is wanted before it stands in the place of what there is, which may be nil.
func (r *room) put(have, want *yaml.Node) error {
	bytes, values := size(want), count(want)
	if have != nil {
		bytes, values = bytes-size(have), values-count(have)
	}
	return r.hold(bytes, values)
}

// hold counts bytes and values.
func (r *room) hold(bytes, values int64) error {
	if values > r.values {
		return fmt.Errorf("%w: %d values more, and there is room for %d", ErrTooLarge, values, r.values)
	}
	if err := r.take(bytes); err != nil {
		return err
	}
	if more := r.made + values - r.drawn; more > 0 && r.draw != nil {
		if err := r.draw(perNode * more); err != nil {
			return err
		}
		r.drawn += more
	}
	r.made += values
	r.values -= values
	return nil
}

// count is how many values the node is.
func count(n *yaml.Node) int64 {
	total := int64(1)
	for _, below := range n.Content {
		total += count(below)
	}
	return total
}
