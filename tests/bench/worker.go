package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// result is what a worker prints about a reconcile, as a line of JSON.
type result struct {
	Changed  bool
	Revision string
	// Artifact is the stored file, and Size its length.
	Artifact string
	Size     int64
	// Steps is how long the pipeline's steps took.
	Steps map[source.Stage]time.Duration
}

// polled is what a worker prints about many no-ops, as a line of JSON.
type polled struct{ Wall, CPU time.Duration }

// work reconciles the repository's branch main once, as the manager does, with its storage in dir. Then, for each
// line that it reads, it reconciles so many times more and says what that took.
func work(ctx context.Context, dir, url string, polls int) error {
	b, err := newBench(dir, url)
	if err != nil {
		return err
	}
	defer b.store.Close()
	out := json.NewEncoder(os.Stdout)
	first, err := b.reconcile(ctx)
	if err != nil {
		return err
	}
	if err := out.Encode(first); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began, used := time.Now(), ownCPU()
		for range polls {
			again, err := b.reconcile(ctx)
			if err != nil {
				return err
			}
			if again.Changed {
				return errors.New("a no-op has stored an artifact")
			}
		}
		if err := out.Encode(polled{Wall: time.Since(began), CPU: ownCPU() - used}); err != nil {
			return err
		}
	}
	return nil
}

// bench is the pipeline as the manager wires it, for one object and without a cluster.
type bench struct {
	dir      string
	store    *local.Store
	opener   *gitsource.Opener
	pipeline *source.Pipeline
	object   *sourcev1.GitRepository
	steps    steps
}

func newBench(dir, url string) (*bench, error) {
	client, err := git.New(git.Options{Transport: transport.New(transport.Options{}), TempDir: dir})
	if err != nil {
		return nil, err
	}
	opener, err := gitsource.NewOpener(gitsource.Options{Client: client, Credentials: anonymous{}, Artifacts: alone{}})
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "storage")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	store, err := local.Open(root, local.Options{})
	if err != nil {
		return nil, err
	}
	b := &bench{dir: root, store: store, opener: opener, steps: steps{}}
	b.pipeline = &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: b.steps}
	b.object = &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: "source", UID: "bench"},
		Spec:       sourcev1.GitRepositorySpec{URL: url, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}},
	}
	return b, nil
}

func (b *bench) reconcile(ctx context.Context) (result, error) {
	clear(b.steps)
	subject := source.Subject{
		Object:  storage.Object{Kind: "gitrepository", Namespace: b.object.Namespace, Name: b.object.Name},
		UID:     string(b.object.UID),
		Timeout: time.Minute,
	}
	outcome, err := b.pipeline.Run(ctx, subject,
		func(ctx context.Context) (source.Session, error) { return b.opener.Open(ctx, b.object) },
		func(context.Context, source.Change) error { return nil })
	if err != nil {
		return result{}, err
	}
	if outcome.Changed {
		if _, err := b.store.Collect(ctx, subject.Object); err != nil {
			return result{}, err
		}
	}
	current := outcome.Record.Current
	return result{
		Changed: outcome.Changed, Revision: current.Revision, Steps: b.steps,
		Artifact: filepath.Join(b.dir, filepath.FromSlash(current.Path)), Size: current.Size,
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

// steps notes how long each step took.
type steps map[source.Stage]time.Duration

func (s steps) Step(_ string, stage source.Stage, took time.Duration) { s[stage] += took }
func (s steps) Stored(storage.Object, int64)                          {}
func (s steps) Run(string, bool)                                      {}

// anonymous needs no credentials.
type anonymous struct{}

func (anonymous) Git(context.Context, string, string, string) (credential.Git, error) {
	return credential.Git{}, nil
}

// alone is a cluster without other objects.
type alone struct{}

func (alone) Included(context.Context, *sourcev1.GitRepository, string) (storage.Artifact, error) {
	return storage.Artifact{}, storage.ErrNotFound
}

func (alone) Body(context.Context, storage.Artifact) (io.ReadCloser, error) {
	return nil, storage.ErrNotFound
}
