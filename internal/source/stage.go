package source

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/storage"
)

// stageTree archives a tree. What the current artifact has of it is taken from there.
func (p *Pipeline) stageTree(ctx context.Context, content Content, current storage.Artifact) (storage.Staged, error) {
	rules, err := p.rules(ctx, content)
	if err != nil {
		return storage.Staged{}, failure.Retry("SourceIgnoreError", fmt.Errorf("read ignore rules: %w", err))
	}
	stored, release := p.stored(ctx, content, current)
	defer release()
	staged, index, err := p.write(ctx, content, rules, stored)
	if errors.Is(err, archive.ErrStored) {
		staged, index, err = p.write(ctx, content, rules, archive.Stored{})
	}
	if err == nil && content.Parts != nil {
		content.Parts.Save(staged.Digest, index)
	}
	return staged, err
}

func (p *Pipeline) rules(ctx context.Context, content Content) (*archive.Rules, error) {
	switch {
	case content.Whole:
		return archive.Everything(), nil
	case content.Plain:
		return nil, nil //nolint:nilnil // No rules are the usual exclusions.
	}
	return archive.ReadRules(ctx, content.Tree, content.Ignore, p.Limits)
}

func (p *Pipeline) write(ctx context.Context, content Content, rules *archive.Rules, stored archive.Stored) (staged storage.Staged, index []byte, err error) {
	staged, err = p.Store.Stage(ctx, p.MaxArtifactBytes, func(w io.Writer) error {
		index, err = archive.WriteFrom(ctx, w, content.Tree, rules, p.Limits, stored)
		return err
	})
	return staged, index, err
}

// stored opens the current artifact, if it is there and known what it is made of.
func (p *Pipeline) stored(ctx context.Context, content Content, current storage.Artifact) (archive.Stored, func()) {
	if content.Parts == nil || current.Path == "" {
		return archive.Stored{}, func() {}
	}
	index := content.Parts.Load(current.Digest)
	if index == nil {
		return archive.Stored{}, func() {}
	}
	body, err := p.Store.Open(ctx, current.Path)
	if err != nil {
		return archive.Stored{}, func() {} // The archive can be made without it.
	}
	return archive.Stored{Body: body, Index: index}, func() { _ = body.Close() } // It was only read.
}

// stageMade stores a blob that is made meanwhile, and its companion.
func (p *Pipeline) stageMade(ctx context.Context, content Content) (staged storage.Staged, err error) {
	var companion []byte
	staged, err = p.Store.Stage(ctx, p.MaxArtifactBytes, func(w io.Writer) error {
		companion, err = content.Make(ctx, w)
		return err
	})
	if err != nil || companion == nil {
		return staged, err
	}
	beside, err := p.Store.Stage(ctx, p.MaxArtifactBytes, func(w io.Writer) error {
		_, err := w.Write(companion)
		return err
	})
	if err != nil {
		return storage.Staged{}, errors.Join(err, p.Store.Discard(context.WithoutCancel(ctx), staged))
	}
	staged.Companion = storage.Companion{Digest: beside.Digest, Size: beside.Size}
	return staged, nil
}
