package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"sluice.dev/sluice/internal/memory"
)

// run runs a compiled module, and hands on what it has written.
func (e *Engine) run(ctx context.Context, of *held, job Job) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := fmt.Errorf("%w: more than %v", ErrTimeout, e.options.Timeout)
	running, cancel := context.WithTimeoutCause(running, e.options.Timeout, late)
	defer cancel()

	drawn := &drawn{ctx: ctx, stop: stop, most: e.options.MaxMemory}
	defer drawn.giveBack()
	if err := drawn.begin(of.least); err != nil {
		return err
	}
	output := &limited{drawn: drawn, most: e.options.MaxOutput, stop: stop}
	words := &tail{stop: stop}
	instance, err := e.runtime.InstantiateModule(experimental.WithMemoryAllocator(running, drawn), of.module,
		world().WithStdin(bytes.NewReader(job.Input)).WithStdout(output).WithStderr(words))
	if instance != nil {
		_ = instance.Close(context.WithoutCancel(ctx)) // It has ended, and gives its memory back.
	}
	drawn.free()
	if running.Err() != nil {
		return context.Cause(running)
	}
	if err == nil {
		return job.Output(ctx, output.Bytes())
	}
	if drawn.refused > 0 {
		return fmt.Errorf("%w: %d bytes of memory, and %d are allowed", ErrTooMuch, drawn.refused, drawn.most)
	}
	return failed(err, output.Bytes(), words.String())
}

// failed tells modules that exit from those that break.
func failed(err error, output []byte, words string) error {
	failed := &ExitError{Output: output, Words: words}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		failed.Code = exit.ExitCode()
		return failed
	}
	// The rest is the stack, with names that the module gave its functions.
	failed.Trap, _, _ = strings.Cut(err.Error(), "\n")
	failed.Trap = strings.TrimSuffix(strings.TrimPrefix(failed.Trap, "module[] function[_start] failed: "), " (recovered by wazero)")
	return failed
}

// drawn is the memory of a run: the module's own, and what it writes.
type drawn struct {
	ctx   context.Context //nolint:containedctx // It is that of the one run whose memory this is; the library passes none.
	stop  context.CancelCauseFunc
	most  int64
	total int64

	buffer []byte
	// refused is how much the module wanted when it was too much.
	refused uint64
}

// begin draws what the module has before it runs: there, nothing can be refused any more.
func (d *drawn) begin(least int64) error {
	if err := d.draw(least); err != nil {
		return err
	}
	d.buffer = make([]byte, 0, least)
	return nil
}

func (d *drawn) draw(bytes int64) error {
	if err := memory.Draw(d.ctx, bytes); err != nil {
		return err
	}
	d.total += bytes
	return nil
}

func (d *drawn) giveBack() { memory.Return(d.ctx, d.total) }

// free gives the module's own memory back.
func (d *drawn) free() {
	memory.Return(d.ctx, int64(cap(d.buffer)))
	d.total -= int64(cap(d.buffer))
	d.buffer = nil
}

// Allocate implements experimental.MemoryAllocator.
func (d *drawn) Allocate(uint64, uint64) experimental.LinearMemory { return d }

// Free implements experimental.LinearMemory; free does it.
func (*drawn) Free() {}

// Reallocate implements experimental.LinearMemory. A module that gets no more may go on with what it has.
func (d *drawn) Reallocate(size uint64) []byte {
	if size <= uint64(cap(d.buffer)) {
		d.buffer = d.buffer[:size]
		return d.buffer
	}
	wanted := int64(size) //nolint:gosec // 32 bits address it.
	if wanted > d.most {
		d.refused = size
		return nil
	}
	room := min(max(wanted, 2*int64(cap(d.buffer))), d.most)
	if err := d.draw(room); err != nil {
		d.stop(err)
		return nil
	}
	grown := make([]byte, size, room)
	copy(grown, d.buffer)
	memory.Return(d.ctx, int64(cap(d.buffer)))
	d.total -= int64(cap(d.buffer))
	d.buffer = grown
	return d.buffer
}

// limited keeps what a module writes, as far as it may write.
type limited struct {
	bytes.Buffer
	drawn *drawn
	most  int64
	stop  context.CancelCauseFunc
}

// Write implements io.Writer. Who has written too much is stopped.
func (l *limited) Write(content []byte) (int, error) {
	length := int64(l.Len() + len(content))
	if length > l.most {
		err := fmt.Errorf("%w: it wrote more than %d bytes", ErrTooMuch, l.most)
		l.stop(err)
		return 0, err
	}
	if room := int64(l.Cap()); length > room {
		// A buffer that grows is twice as large then, and the one of before is still there.
		if err := l.drawn.draw(2*room + int64(len(content))); err != nil {
			l.stop(err)
			return 0, err
		}
	}
	return l.Buffer.Write(content)
}

const (
	// maxTail is how much of what a module writes for people is kept, and maxNoise how much it may write.
	maxTail  = maxWords
	maxNoise = 16 << 20
)

// tail keeps the end of what is written.
type tail struct {
	end     []byte
	written int64
	stop    context.CancelCauseFunc
}

// Write implements io.Writer.
func (t *tail) Write(content []byte) (int, error) {
	if t.written += int64(len(content)); t.written > maxNoise {
		err := fmt.Errorf("%w: it wrote more than %d bytes for people", ErrTooMuch, int64(maxNoise))
		t.stop(err)
		return 0, err
	}
	t.end = append(t.end, content[max(0, len(content)-maxTail):]...)
	t.end = t.end[max(0, len(t.end)-maxTail):]
	return len(content), nil
}

// String is what is kept, as one line.
func (t *tail) String() string {
	return strings.Join(strings.FieldsFunc(string(t.end), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
