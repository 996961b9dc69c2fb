package packages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// SetDir is the folder of the artifacts of previews, as paths and URLs spell it.
const SetDir = "packagevariantset"

// maxPreviewBytes bounds what the artifact of a preview tells of files, objects and conflicts.
const maxPreviewBytes = 8 << 20

// previewLine is a line of the artifact of a preview.
type previewLine struct {
	packagesv1.TargetPreview

	// Cut says that the names of files and objects, and the conflicts, are left out.
	Cut bool `json:"cut,omitempty"`
}

// report is the preview as the status shows it, and as the artifact does.
func (f *foresight) report(revision string) (*packagesv1.SetPreview, []byte) {
	p := &packagesv1.SetPreview{Revision: revision, Pending: capped(f.pending)}
	slices.SortFunc(f.targets, func(a, b foreseen) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Package, b.Package), cmp.Compare(a.content, b.content))
	})
	digests := []string{f.edit}
	var text bytes.Buffer
	for _, t := range f.targets {
		countIn(p, t.TargetPreview)
		digests = append(digests, digestOf([]string{t.Target, t.Repo, t.Package, string(t.Change), t.Reason, t.content}))
		line := previewLine{t.TargetPreview, t.isCut}
		encoded, _ := json.Marshal(line) // It is texts and numbers.
		if text.Len()+len(encoded) > maxPreviewBytes {
			line.Files, line.Objects = countsOf(line.Files, line.Objects)
			line.Conflicts, line.Cut = nil, true
			encoded, _ = json.Marshal(line)
		}
		if line.Cut {
			p.Cut++
		}
		text.Write(encoded)
		text.WriteByte('\n')
	}
	p.Targets = listed(f.targets)
	if f.pending == 0 {
		p.Digest = "sha256:" + digestOf(digests)
	}
	return p, text.Bytes()
}

// countIn counts a target in.
func countIn(p *packagesv1.SetPreview, t packagesv1.TargetPreview) {
	switch t.Change {
	case packagesv1.PreviewCreated:
		p.Created++
	case packagesv1.PreviewChanged:
		p.Changed++
	case packagesv1.PreviewUnchanged:
		p.Unchanged++
	case packagesv1.PreviewDeleted:
		p.Deleted++
	case packagesv1.PreviewFailed:
		p.Failed++
	}
	if t.ConflictCount > 0 {
		p.Conflicted++
	}
}

// listed are the first targets of which something is to be said, and of each as much as the status has room for.
func listed(targets []foreseen) (few []packagesv1.TargetPreview) {
	rank := func(t *foreseen) int {
		if t.ConflictCount > 0 {
			return 0
		}
		return slices.Index([]packagesv1.PreviewChange{
			"", packagesv1.PreviewFailed, packagesv1.PreviewDeleted, packagesv1.PreviewChanged, packagesv1.PreviewCreated, packagesv1.PreviewUnchanged,
		}, t.Change)
	}
	order := make([]*foreseen, len(targets))
	for i := range targets {
		order[i] = &targets[i]
	}
	slices.SortStableFunc(order, func(a, b *foreseen) int { return cmp.Compare(rank(a), rank(b)) })
	for _, t := range order {
		if len(few) == packagesv1.MaxPreviewed || t.Change == packagesv1.PreviewUnchanged && t.ConflictCount == 0 {
			break
		}
		is := t.TargetPreview
		is.Target, is.Message = fit(is.Target, maxProblemText), fit(is.Message, maxProblemText)
		is.Files, is.Objects = countsOf(is.Files, is.Objects)
		is.Conflicts = nil
		for _, c := range t.Conflicts[:min(len(t.Conflicts), packagesv1.MaxPreviewedConflicts)] {
			is.Conflicts = append(is.Conflicts, packagesv1.Conflict{File: c.File, Resource: c.Resource, Path: c.Path})
		}
		few = append(few, is)
	}
	return few
}

// storedPreview names the set to the storage.
func storedPreview(obj *packagesv1.PackageVariantSet) storage.Object {
	return storage.Object{Kind: SetDir, Namespace: obj.Namespace, Name: obj.Name}
}

// publish has the whole preview as an artifact, once it is whole, and none where there is no preview.
func (k *sets) publish(ctx context.Context, obj *packagesv1.PackageVariantSet, s *spread) error {
	switch {
	case s.preview == nil:
		return k.shared.Pipeline.Store.Delete(ctx, storedPreview(obj))
	case s.preview.Digest == "":
		s.artifact = obj.Status.Artifact
		return nil
	}
	var err error
	s.artifact, err = k.shared.store(ctx, source.Subject{Object: storedPreview(obj), UID: string(obj.UID)}, obj.Status.Artifact, previewed{s.preview, s.previewText})
	return err
}

// previewed is a preview as a source.
type previewed struct {
	preview *packagesv1.SetPreview
	text    []byte
}

// Resolve implements source.Session.
func (p previewed) Resolve(context.Context) (source.Selection, error) {
	checksum, err := source.ConfigChecksum(packagesv1.PackageVariantSetKind, struct{ Cut int32 }{p.preview.Cut})
	return source.Selection{
		Revision: "preview@" + p.preview.Digest, Name: strings.TrimPrefix(p.preview.Digest, "sha256:"), Extension: ".jsonl", ConfigChecksum: checksum,
	}, err
}

// Fetch implements source.Session.
func (p previewed) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	return source.Content{Blob: bytes.NewReader(p.text), Title: previewSaid(p.preview)}, nil
}

// previewSaid is the preview in a line.
func previewSaid(p *packagesv1.SetPreview) string {
	return fmt.Sprintf("%d packages are created, %d changed, %d unchanged, %d have conflicts, %d fail, and %d variants go",
		p.Created, p.Changed, p.Unchanged, p.Conflicted, p.Failed, p.Deleted)
}

// collectPreviews drops stored previews that the status does not name.
func (k *sets) collectPreviews(ctx context.Context, obj *packagesv1.PackageVariantSet) error {
	named := ""
	if artifact := obj.Status.Artifact; artifact != nil {
		named = artifact.Path
	}
	_, err := k.shared.Pipeline.Store.Collect(ctx, storedPreview(obj), named)
	return err
}

// Finalize implements kernel.Owner. A set has no finalizer: what is stored of one that is gone goes when the storage is swept.
func (*sets) Finalize(context.Context, *packagesv1.PackageVariantSet) error { return nil }
