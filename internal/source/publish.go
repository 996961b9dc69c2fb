package source

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sluice.dev/sluice/storage"
)

// publish makes the staged body the object's current artifact.
func (r *run) publish(ctx context.Context, content Content, signer string, staged storage.Staged) (storage.Record, error) {
	subject, before, selected := r.subject, r.before, r.selected
	next := storage.Record{
		UID:            subject.UID,
		ConfigChecksum: selected.ConfigChecksum,
		Proof:          selected.Proof,
		ContentKey:     content.Key,
		VerifiedBy:     signer,
		Title:          content.Title,
		Memo:           content.Memo,
		BaseChecksum:   before.BaseChecksum,
		Current: storage.Artifact{
			Revision: selected.Revision,
			StoredAt: r.Clock.Now().UTC().Truncate(time.Second),
			Metadata: content.Metadata,
		},
	}
	if next.BaseChecksum == "" {
		next.BaseChecksum = baseChecksum(subject, selected, staged)
	}
	next.Current.Path = path.Join(subject.Object.Dir(), fileName(before, next, selected, staged))
	if next.Current.Path == before.Current.Path && staged.Digest == before.Current.Digest {
		// Proven by other keys, say. What is stored has been there since then.
		next.Current.StoredAt = before.Current.StoredAt
	}
	stored, err := r.Store.Publish(ctx, subject.Object, staged, next)
	if errors.Is(err, storage.ErrPathTaken) {
		next.Current.Path = path.Join(subject.Object.Dir(), contentName(selected, staged))
		stored, err = r.Store.Publish(ctx, subject.Object, staged, next)
	}
	if err != nil {
		discard := r.Store.Discard(context.WithoutCancel(ctx), staged)
		return storage.Record{}, errors.Join(fmt.Errorf("publish revision %q: %w", selected.Revision, err), discard)
	}
	return stored, nil
}

// neverPlain is the base of an object whose past is not known: no configuration has it as its checksum.
const neverPlain = "unknown"

// baseChecksum is the base of an object without a record. When status names an artifact all the same, the storage was
// lost, and with it the knowledge which plain names have been served. They may be used again only where status shows
// that the configuration, and so the bytes behind every plain name, are the same as before.
func baseChecksum(subject Subject, selected Selection, staged storage.Staged) string {
	reported := subject.Reported
	if reported == nil {
		return selected.ConfigChecksum
	}
	name := strings.TrimSuffix(path.Base(reported.Path), selected.Extension)
	plain := len(name)-strings.LastIndex(name, "-") != 1+contentLength || !strings.Contains(name, "-")
	same := subject.ReportedChecksum == selected.ConfigChecksum && reported.Revision != selected.Revision
	if plain && (same || reported.Digest == staged.Digest) {
		return selected.ConfigChecksum
	}
	return neverPlain
}

// fileName chooses the artifact's file name so that a published URL never serves other bytes: the plain name is
// used only under the configuration that the object started with, where the revision alone decides the bytes.
// Everything else carries its digest in its name.
func fileName(before, next storage.Record, selected Selection, staged storage.Staged) string {
	switch {
	case before.Current.Revision == selected.Revision && before.Current.Digest == staged.Digest:
		return path.Base(before.Current.Path)
	case next.BaseChecksum == selected.ConfigChecksum:
		return selected.Name + selected.Extension
	default:
		return contentName(selected, staged)
	}
}

// contentLength is how much of a digest is in a file name.
const contentLength = 12

// contentName is a file name that is bound to the bytes.
func contentName(selected Selection, staged storage.Staged) string {
	return selected.Name + "-" + staged.Digest.Encoded()[:contentLength] + selected.Extension
}
