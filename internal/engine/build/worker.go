package build

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// maxJob bounds a job as JSON, in bytes: what an API server stores of an installation, its variables, and ten thousand names.
const maxJob = 48 << 20

// serve does one job that a Builder writes to stdin. The error says that the conversation broke; errors of the job are told
// to the Builder.
func serve(stdin io.Reader, stdout io.Writer) error {
	tag, content, err := readFrame(stdin, maxJob)
	if err != nil {
		return err
	}
	var work job
	if err := json.Unmarshal(content, &work); tag != frameJob || err != nil {
		return errors.Join(errBroken, err)
	}
	prepareProcess(&work)
	if err := confine(work.Limits.Memory, int64(math.Ceil(work.Limits.CPU.Seconds()))); err != nil {
		return writeFrame(stdout, frameRefuse, encodeError(fmt.Errorf("confine the build process: %w", err)))
	}
	out := bufio.NewWriterSize(stdout, 64<<10)
	from := &callSource{in: bufio.NewReaderSize(stdin, 64<<10), out: out}
	if err := answer(&work, from, out); err != nil {
		return err
	}
	return out.Flush()
}

// prepareProcess makes it end early rather than late.
func prepareProcess(work *job) {
	const maxStack = 64 << 20
	debug.SetMaxStack(maxStack)
	// Collect hard before the limit is hit.
	debug.SetMemoryLimit(work.Limits.Memory * 3 / 4)
	// Whatever library finds a way to fetch something finds this.
	http.DefaultTransport = noTransport{}
	// A worker whose builder is gone must not go on for long.
	time.AfterFunc(work.Limits.Wall, func() { panic("build takes too long") })
}

type noTransport struct{}

func (noTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, fmt.Errorf("%w: nothing is loaded from elsewhere", ErrForbidden)
}

func answer(work *job, from source, out io.Writer) error {
	made, err := work.render(from)
	if err != nil {
		return writeFrame(out, frameRefuse, encodeError(err))
	}
	total := 0
	for _, one := range made.objects {
		raw, err := json.Marshal(one.object)
		if err == nil && len(raw) > maxObject {
			err = fmt.Errorf("%w: %s: more than %d bytes", ErrLimit, one.origin, maxObject)
		}
		if total += len(raw); err == nil && total > maxText {
			err = fmt.Errorf("%w: the objects have more than %d bytes", ErrLimit, maxText)
		}
		if err != nil {
			return writeFrame(out, frameRefuse, encodeError(err))
		}
		content := append(append([]byte(one.origin), 0), raw...)
		if err := writeFrame(out, frameObject, content); err != nil {
			return err
		}
	}
	return writeFrame(out, frameEnd, []byte(strings.Join(made.used, "\x00")))
}

// callSource asks the builder for what is in the artifact.
type callSource struct {
	in  io.Reader
	out *bufio.Writer
}

func (s *callSource) ask(question byte, name string) ([]byte, error) {
	if err := writeFrame(s.out, question, []byte(name)); err != nil {
		return nil, err
	}
	if err := s.out.Flush(); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	tag, content, err := readFrame(s.in, maxInput)
	switch {
	case err != nil:
		return nil, err
	case tag == frameAnswer:
		return content, nil
	case tag == frameRefuse:
		return nil, decodeError(content)
	}
	return nil, errBroken
}

// Main is what a program does when it is started as a worker, and is to be the only thing that its process does: it takes
// from it the right to open files, to connect and to start programs, and limits its memory and its processor time. It gives
// the exit status.
func Main() int {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // There is nobody else to tell.
		return 1
	}
	return 0
}
