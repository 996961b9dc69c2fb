package main

import (
	"context"
	"io"
	"time"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// steps notes how long each step of a run took, and what CPU was used until the parts of its artifact were there.
type steps struct {
	took map[source.Stage]time.Duration
	// began is what CPU the process had used before, and moved what it used since then to read, hash and write bodies.
	began, moved, made time.Duration
}

func (s *steps) begin() {
	clear(s.took)
	s.began, s.moved, s.made = ownCPU(), 0, 0
}

// Step implements source.Observer. After the archive nothing is made any more.
func (s *steps) Step(_ string, stage source.Stage, took time.Duration) {
	s.took[stage] += took
	if stage == source.StageArchive {
		s.made = ownCPU() - s.began - s.moved
	}
}

func (s *steps) Stored(storage.Object, int64) {}
func (s *steps) Run(string, bool)             {}

// metered is a store that tells what CPU it takes to read, hash and write bodies.
type metered struct {
	*local.Store
	steps *steps
}

func (m metered) Stage(ctx context.Context, limit int64, write func(io.Writer) error) (storage.Staged, error) {
	before, moved := ownCPU(), m.steps.moved
	making := time.Duration(0)
	staged, err := m.Store.Stage(ctx, limit, func(w io.Writer) error {
		entered, inside := ownCPU(), m.steps.moved
		err := write(meteredWriter{w, m.steps})
		making = ownCPU() - entered - (m.steps.moved - inside)
		return err
	})
	m.steps.moved = moved + ownCPU() - before - making
	return staged, err
}

func (m metered) Open(ctx context.Context, path string) (storage.Body, error) {
	body, err := m.Store.Open(ctx, path)
	return meteredBody{body, m.steps}, err
}

type meteredWriter struct {
	io.Writer
	steps *steps
}

func (w meteredWriter) Write(p []byte) (int, error) {
	defer w.steps.move(ownCPU())
	return w.Writer.Write(p)
}

type meteredBody struct {
	storage.Body
	steps *steps
}

func (b meteredBody) Read(p []byte) (int, error) {
	defer b.steps.move(ownCPU())
	return b.Body.Read(p)
}

func (s *steps) move(since time.Duration) { s.moved += ownCPU() - since }
