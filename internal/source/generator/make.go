package generator

import (
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/compose"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// originRevision is the key of an artifact's metadata under which it says where it came from.
const originRevision = ocispec.AnnotationRevision

// make makes every output that is not stored as it should be. All sources are read once for all of them.
func (r *round) make(ctx context.Context, wish fair.Wish) (err error) {
	downloaded, err := r.download(ctx, r.obj.Spec, r.inputs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, downloaded.Close()) }()
	return r.Pipeline.Within(ctx, wish, func(ctx context.Context) (err error) {
		r.failed = nil // It may be begun anew.
		sources, err := r.open(ctx, r.obj.Spec, r.inputs, downloaded)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sources.Close()) }()
		if r.planned = plain(r.obj.Spec); r.obj.Spec.PathPattern != "" {
			if r.planned, err = expand(ctx, r.obj.Spec, sources.trees); err != nil {
				return err
			}
		}
		for _, made := range r.planned {
			if err := r.each(ctx, made, sources.trees); err != nil && r.isNotOurs(ctx, err) {
				return err
			} else if err != nil {
				r.fail(made.Name, err)
			}
		}
		return nil
	})
}

// each makes one output, unless what is stored is the same.
func (r *round) each(ctx context.Context, made output, sources map[string]*tree.Tree) error {
	record, err := r.Pipeline.Store.Record(ctx, r.object(made.Name))
	if err == nil && r.isShaped(record, made) && record.Proof == r.proof(made) {
		return nil
	}
	return memory.Part(ctx, func(ctx context.Context) (err error) {
		composer := &compose.Composer{Sources: sources, Limits: r.Limits, TempDir: r.TempDir}
		defer func() { err = errors.Join(err, composer.Close()) }()
		operations := make([]compose.Operation, len(made.Copy))
		for i, o := range made.Copy {
			operations[i] = compose.Operation{From: o.From, To: o.To, Exclude: o.Exclude, Strategy: o.Strategy}
		}
		composed, err := composer.Compose(ctx, operations)
		if err != nil {
			return failure.Retry(extensionsv1.BuildFailedReason, err)
		}
		return r.put(ctx, made, record, composed)
	})
}

// put stores what was composed, unless nothing about it is new.
func (r *round) put(ctx context.Context, made output, record storage.Record, composed *tree.Tree) error {
	key, err := source.ConfigChecksum("composed", composed.Root.ID)
	if err != nil {
		return err
	}
	revision, metadata := r.revision(made), r.metadata(made)
	if r.isShaped(record, made) && record.ContentKey == key && (revision == "" || revision == record.Current.Revision) &&
		record.Current.Metadata[originRevision] == metadata[originRevision] {
		return nil
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	claimed, err := r.outputs.Claim(ctx, made.Name, made.labels)
	if err != nil {
		return err
	}
	if record.UID != "" && record.UID != claimed.UID && record.Memo == string(r.obj.UID) {
		// Its last artifact stays, whatever becomes of the next one.
		if record, err = r.adopt(ctx, claimed, record); err != nil {
			return err
		}
	}
	subject := source.Subject{Object: r.object(made.Name), UID: claimed.UID, Reported: claimed.Reported}
	content := source.Content{Tree: composed, Plain: true, Key: key, Metadata: metadata, Memo: string(r.obj.UID)}
	if revision == "" {
		content.RevisionOf = func(sum digest.Digest) string { return "latest@" + sum.String() }
	}
	selected := source.Selection{
		Revision: revision, Name: digest.Digest(key).Encoded(), Extension: ".tar.gz", ConfigChecksum: made.shape, Proof: r.proof(made),
	}
	if _, err := r.Pipeline.Put(ctx, subject, selected, content); err != nil {
		return r.explain(err)
	}
	return nil
}

// explain tells what the content is to blame for from what the storage is.
func (r *round) explain(err error) error {
	for _, verdict := range []error{archive.ErrLimit, archive.ErrUnsafe, storage.ErrTooLarge} {
		if errors.Is(err, verdict) {
			return failure.Retry(extensionsv1.BuildFailedReason, err)
		}
	}
	return failure.Retry(extensionsv1.ReconciliationFailedReason, err)
}

// adopt stores for an ExternalArtifact that was made anew what was stored for the one before it.
func (r *round) adopt(ctx context.Context, claimed Claimed, record storage.Record) (storage.Record, error) {
	next := record
	next.UID, next.Superseded = claimed.UID, nil
	staged := storage.Staged{Digest: record.Current.Digest, Size: record.Current.Size}
	if err := r.Pipeline.Store.Restage(ctx, staged); err != nil {
		return record, failure.Retry(extensionsv1.ReconciliationFailedReason, fmt.Errorf("take over what is stored: %w", err))
	}
	stored, err := r.Pipeline.Store.Publish(ctx, r.object(claimed.Name), staged, next)
	if err != nil {
		return record, failure.Retry(extensionsv1.ReconciliationFailedReason, errors.Join(err, r.Pipeline.Store.Discard(context.WithoutCancel(ctx), staged)))
	}
	return stored, nil
}
