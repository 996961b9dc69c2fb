package storagetest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// manyMayWorkAtOnce lets objects that share bytes come and go while readers look at all of them.
func manyMayWorkAtOnce(t *testing.T, b *bench) {
	const objects, rounds = 8, 12
	done := make(chan struct{})
	var writers, readers sync.WaitGroup
	for i := range objects {
		object := storage.Object{Kind: "gitrepository", Namespace: "default", Name: fmt.Sprintf("object-%d", i)}
		writers.Go(func() {
			for round := range rounds {
				if err := oneRound(t, b, object, round); err != nil {
					t.Errorf("%s, round %d: %v", object, round, err)
					return
				}
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					b.readAll(t, object, rounds)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// oneRound publishes bytes that all objects share in a round, and sometimes collects and deletes.
func oneRound(t *testing.T, b *bench, object storage.Object, round int) error {
	file, body := fmt.Sprintf("%d.tar.gz", round), strings.Repeat(fmt.Sprint(round), 100)
	staged, err := b.Stage(t.Context(), 0, func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	})
	if err != nil {
		return err
	}
	published, err := b.Publish(t.Context(), object, staged, recordOf(object, file))
	if err != nil {
		return err
	}
	record, err := b.Record(t.Context(), object)
	if err != nil {
		return err
	}
	if record.Current.Digest != published.Current.Digest {
		return fmt.Errorf("record names %s, published was %s", record.Current.Digest, published.Current.Digest)
	}
	if content, _, err := b.read(t.Context(), published.Current.Path); err != nil || content != body {
		return fmt.Errorf("read back %d bytes: %w", len(content), err)
	}
	if _, err := b.Collect(t.Context(), object, ""); err != nil {
		return err
	}
	if round%4 == 3 {
		return b.Delete(t.Context(), object)
	}
	return nil
}

// readAll reads whatever is there: each body is whole, or it is not there.
func (b *bench) readAll(t *testing.T, object storage.Object, files int) {
	t.Helper()
	for i := range files {
		content, artifact, err := b.read(t.Context(), object.File(fmt.Sprintf("%d.tar.gz", i)))
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Errorf("Open: %v", err)
			return
		}
		if digest.FromString(content) != artifact.Digest {
			t.Errorf("Open: the body does not match %s", artifact.Digest)
		}
	}
	if _, err := b.Objects(t.Context()); err != nil {
		t.Errorf("Objects: %v", err)
	}
}

// manyMayWorkOnOneObject lets publishers race for one object: afterwards one of them is current and whole.
func manyMayWorkOnOneObject(t *testing.T, b *bench) {
	const publishers = 8
	var group sync.WaitGroup
	for i := range publishers {
		group.Go(func() {
			body := fmt.Sprint("body ", i/2) // Two publishers share each body.
			staged, err := b.Stage(t.Context(), 0, func(w io.Writer) error {
				_, err := io.WriteString(w, body)
				return err
			})
			if err != nil {
				t.Errorf("Stage: %v", err)
				return
			}
			if _, err := b.Publish(t.Context(), podinfo, staged, recordOf(podinfo, fmt.Sprintf("%d.tar.gz", i/2))); err != nil {
				t.Errorf("Publish: %v", err)
			}
			if _, err := b.Collect(t.Context(), podinfo, ""); err != nil {
				t.Errorf("Collect: %v", err)
			}
		})
	}
	group.Wait()
	record := b.record(t, podinfo)
	content, _, err := b.read(t.Context(), record.Current.Path)
	if err != nil || digest.FromString(content) != record.Current.Digest {
		t.Errorf("The current body: %q, %v", content, err)
	}
	if len(record.Superseded) > 1 {
		t.Errorf("More is kept than the policy allows: %+v", record.Superseded)
	}
}
