package build

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec" //nolint:depguard // It starts this very program and nothing else, to do there what must not harm it here.
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/transport"
)

// delegate lets a worker do the job.
func (b *Builder) delegate(ctx context.Context, work *job, from source) (output, error) {
	share, err := b.workers.Take(ctx, fair.Wish{Namespace: work.Namespace})
	if err != nil {
		return output{}, err
	}
	defer share.Release()
	work.Limits = b.options
	content, err := json.Marshal(work)
	if err != nil {
		return output{}, err
	}
	if len(content) > maxJob {
		return output{}, fmt.Errorf("%w: variables and patches of more than %d bytes", ErrLimit, maxJob)
	}
	limited, cancel := context.WithTimeout(ctx, b.options.Wall)
	defer cancel()
	w, err := start(limited, b.options.Worker)
	if err != nil {
		return output{}, err
	}
	made, talking := w.talk(content, from, func(object []byte) error {
		if b.options.Room == nil {
			return nil
		}
		return b.options.Room(ctx, object)
	})
	ending := w.end(talking)
	switch {
	case ctx.Err() != nil:
		return output{}, ctx.Err()
	case talking == nil:
		return made, nil
	case !errors.Is(talking, errBroken):
		return output{}, talking
	}
	return output{}, b.diagnose(limited, w, talking, ending)
}

// worker is a process that does one job.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	said    *words // on its standard error
}

func start(ctx context.Context, command []string) (*worker, error) {
	process := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // The operator's own program.
	// The runtime says in one line why it ends, and starts few threads.
	process.Env = []string{"GOTRACEBACK=none", "GOMAXPROCS=2"}
	process.Dir = "/"
	process.WaitDelay = 5 * time.Second
	w := &worker{process: process, said: &words{}}
	process.Stderr = w.said
	var err error
	if w.in, err = process.StdinPipe(); err == nil {
		w.out, err = process.StdoutPipe()
	}
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start it: %w", ErrWorker, err)
	}
	return w, nil
}

// end waits for the process, which has nothing more to say.
func (w *worker) end(talking error) error {
	if talking != nil {
		_ = w.process.Process.Kill() // It may have ended already.
	}
	_ = w.in.Close() // Likewise.
	return w.process.Wait()
}

// talk gives the job, answers calls and collects objects, as long as there is room. Errors of the job are told, all others are errBroken.
func (w *worker) talk(job []byte, from source, room func(object []byte) error) (output, error) {
	if err := writeFrame(w.in, frameJob, job); err != nil {
		return output{}, err
	}
	in := bufio.NewReaderSize(w.out, 64<<10)
	var made output
	total := 0
	for {
		tag, content, err := readFrame(in, maxObject+4096)
		if err != nil {
			return output{}, err
		}
		switch tag {
		case frameKind, frameRead:
			if err := w.reply(tag, string(content), from); err != nil {
				return output{}, err
			}
		case frameObject:
			if total += len(content); total > maxText+maxDocuments*4096 || len(made.objects) == maxDocuments {
				return output{}, fmt.Errorf("%w: more than %d objects", ErrLimit, maxDocuments)
			}
			one, err := decodeObject(content, room)
			if err != nil {
				return output{}, err
			}
			made.objects = append(made.objects, one)
		case frameRefuse:
			return output{}, decodeError(content)
		case frameEnd:
			if len(content) > 0 {
				made.used = strings.Split(string(content), "\x00")
			}
			return made, nil
		default:
			return output{}, errBroken
		}
	}
}

func decodeObject(content []byte, room func(object []byte) error) (rendered, error) {
	if err := room(content); err != nil {
		return rendered{}, err
	}
	origin, raw, _ := bytes.Cut(content, []byte{0})
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return rendered{}, fmt.Errorf("%s: %w: %w", origin, ErrDocument, transport.SafeError(err))
	}
	return rendered{origin: string(origin), object: object.Object}, nil
}

// reply answers a call. What the artifact does not have is no reason to stop talking.
func (w *worker) reply(tag byte, name string, from source) error {
	content, err := from.ask(tag, name)
	if err != nil {
		return writeFrame(w.in, frameRefuse, encodeError(err))
	}
	return writeFrame(w.in, frameAnswer, content)
}
