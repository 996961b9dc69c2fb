package script

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"sluice.dev/sluice/internal/memory"
)

const (
	// stride is after how many steps the machine looks after itself.
	stride = 100
	// drawn is how much is drawn from the account of memory at a time.
	drawn = 1 << 20
	// perWork is how many bytes that an operation looks at are one step.
	perWork = 64
	// maxLook bounds what one operation looks at.
	maxLook = 8 << 20
)

// What values take in memory, about.
const (
	perSource = 100
	perValue  = 16
	perList   = 64
	perDict   = 600
	perEntry  = 120
	perNode   = 200
)

// machine counts what one run of a script takes.
type machine struct {
	ctx    context.Context //nolint:containedctx // The interpreter calls back without one, and a machine lives for one call.
	thread *starlark.Thread
	// left is what the script may still make, and drawn what was drawn of the account of memory so far.
	left, taken, drawn int64
	printed            []string
	// failed is the first limit that the script came upon: a script cannot go on behind it.
	failed error
}

// take counts bytes before they are made.
func (m *machine) take(bytes int64) error {
	if bytes > m.left {
		return m.fail(fmt.Errorf("%w: it makes more than %d bytes", ErrLimit, maxBytes))
	}
	m.left -= bytes
	m.taken += bytes
	if m.taken > m.drawn {
		more := (m.taken - m.drawn + drawn - 1) / drawn * drawn
		if err := memory.Draw(m.ctx, more); err != nil {
			return m.fail(err)
		}
		m.drawn += more
	}
	return nil
}

// times is take for several of a size, neither of which needs to be small.
func (m *machine) times(count, size int64) error {
	if count > 0 && size > maxBytes/count {
		return m.take(maxBytes + 1)
	}
	return m.take(max(count, 0) * size)
}

// giveBack returns what was drawn.
func (m *machine) giveBack() { memory.Return(m.ctx, m.drawn) }

// fail ends the script.
func (m *machine) fail(err error) error {
	if m.failed != nil {
		return m.failed
	}
	m.failed = err
	if m.thread != nil {
		m.failed = m.at(err)
		m.thread.Cancel("over")
	}
	return m.failed
}

// work counts what an operation looks at as steps.
func (m *machine) work(bytes int64) {
	if m.thread != nil {
		m.thread.Steps += uint64(bytes / perWork) //nolint:gosec // It is no more than maxLook, and not negative.
	}
}

// tick is called every few steps.
func (m *machine) tick() {
	switch steps := m.thread.ExecutionSteps(); {
	case m.failed != nil:
	case steps > maxSteps:
		_ = m.fail(fmt.Errorf("%w: more than %d steps", ErrLimit, maxSteps)) // It ends the thread.
	case m.thread.CallStackDepth() > maxCalls:
		_ = m.fail(fmt.Errorf("%w: its functions call each other more than %d deep", ErrLimit, maxCalls))
	case m.ctx.Err() != nil:
		_ = m.fail(context.Cause(m.ctx))
	default:
		m.thread.SetMaxExecutionSteps(steps + stride)
	}
}

// at says where the script is.
func (m *machine) at(err error) error {
	for depth := range m.thread.CallStackDepth() {
		if position := m.thread.CallFrame(depth).Pos; position.Filename() == "source" {
			return fmt.Errorf("line %d: %w", position.Line, err)
		}
	}
	return err
}

var errDeep = errors.New("values are too deep in each other, or in themselves")

// look measures all of the values, as often as whoever goes through them comes upon each.
func (m *machine) look(values ...starlark.Value) (int64, error) {
	e := eye{left: maxLook}
	for _, value := range values {
		if err := e.look(value, maxDepth); err != nil {
			return 0, m.fail(fmt.Errorf("%w: %w", ErrLimit, err))
		}
	}
	m.work(maxLook - e.left)
	return maxLook - e.left, nil
}

// eye goes through values.
type eye struct{ left int64 }

func (e *eye) look(value starlark.Value, depth int) error {
	e.left -= perValue
	if text, ok := value.(starlark.String); ok {
		e.left -= int64(len(text))
	}
	if e.left < 0 {
		return fmt.Errorf("an operation looks at more than %d bytes", maxLook)
	}
	if depth == 0 {
		return errDeep
	}
	return each(value, func(below starlark.Value) error { return e.look(below, depth-1) })
}

// each calls do for what is in the value.
func each(value starlark.Value, do func(starlark.Value) error) (err error) {
	visit := func(below starlark.Value) bool {
		err = do(below)
		return err == nil
	}
	switch value := value.(type) {
	case *starlark.List:
		value.Elements()(visit)
	case starlark.Tuple:
		value.Elements()(visit)
	case *starlark.Set:
		value.Elements()(visit)
	case *starlark.Dict:
		value.Entries()(func(key, below starlark.Value) bool { return visit(key) && visit(below) })
	}
	return err
}
