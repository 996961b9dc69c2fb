package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// result is what a worker prints about a reconcile, as a line of JSON.
type result struct {
	Changed  bool
	Revision string
	// Artifact is the stored file, and Size its length.
	Artifact string
	Digest   digest.Digest
	Size     int64
	// Steps is how long the pipeline's steps took.
	Steps map[source.Stage]time.Duration
	// Made is what CPU it took until the parts of the artifact were there.
	Made time.Duration
}

// again is what a worker prints about more reconciles, as a line of JSON.
type again struct {
	Wall, CPU time.Duration
	// Changed counts those that stored an artifact, and Artifact is the file of the last one.
	Changed  int
	Artifact string
	// Made is what CPU it took until the parts of artifacts were there: without reading, hashing and writing them.
	Made time.Duration
}

// work reconciles once, as the manager does, with its storage in the job's folder. Then, for each number that it reads,
// it reconciles so many times more and says what that took.
func work(ctx context.Context, j job) error {
	b, err := newBench(j)
	if err != nil {
		return err
	}
	defer b.store.Close()
	if j.what == jobIdle {
		return nil
	}
	out := json.NewEncoder(os.Stdout)
	first, err := b.reconcile(ctx)
	if err != nil {
		return err
	}
	if err := out.Encode(first); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		times, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		var report again
		began, used := time.Now(), ownCPU()
		for range times {
			next, err := b.reconcile(ctx)
			if err != nil {
				return err
			}
			if next.Changed {
				report.Changed++
			}
			report.Artifact, report.Made = next.Artifact, report.Made+next.Made
		}
		report.Wall, report.CPU = time.Since(began), ownCPU()-used
		if err := out.Encode(report); err != nil {
			return err
		}
	}
	return nil
}

// bench is the pipeline as the manager wires it, for one object and without a cluster.
type bench struct {
	dir      string
	store    *local.Store
	open     func(context.Context) (source.Session, error)
	pipeline *source.Pipeline
	subject  source.Subject
	steps    *steps
}

func newBench(j job) (*bench, error) {
	object := metav1.ObjectMeta{Namespace: "bench", Name: "source", UID: "bench"}
	open, err := opener(j, object)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(j.dir, "storage")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	store, err := local.Open(root, local.Options{})
	if err != nil {
		return nil, err
	}
	b := &bench{dir: root, store: store, open: open, steps: &steps{took: map[source.Stage]time.Duration{}}}
	b.pipeline = &source.Pipeline{
		Store: metered{store, b.steps}, Limits: archive.Limits{MaxBytes: 4 << 30}, Clock: clock.RealClock{}, Observer: b.steps,
	}
	b.subject = source.Subject{
		Object:  storage.Object{Kind: "source", Namespace: object.Namespace, Name: object.Name},
		UID:     string(object.UID),
		Timeout: 10 * time.Minute,
	}
	return b, nil
}

func (b *bench) reconcile(ctx context.Context) (result, error) {
	b.steps.begin()
	outcome, err := b.pipeline.Run(ctx, b.subject, b.open, func(context.Context, source.Change) error { return nil })
	if err != nil {
		return result{}, err
	}
	if outcome.Changed {
		if _, err := b.store.Collect(ctx, b.subject.Object, ""); err != nil {
			return result{}, err
		}
	}
	current := outcome.Record.Current
	return result{
		Changed: outcome.Changed, Revision: current.Revision, Steps: b.steps.took, Made: b.steps.made,
		Artifact: filepath.Join(b.dir, ".sluice/blobs", current.Digest.Algorithm().String(), current.Digest.Encoded()), Digest: current.Digest, Size: current.Size,
	}, nil
}

// ownCPU is the CPU time that this process has used: user and system.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err)) // It has no way to fail.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
