package registry

import (
	"context"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream"
)

// Fixture is a Registry of a test: what fails ends the test, and it is closed with it.
type Fixture struct {
	*Registry
	t upstream.TB
}

// ForTest starts a registry for a test.
func ForTest(t upstream.TB, options Options) *Fixture {
	t.Helper()
	// It outlives the test's context, which ends before what is cleaned up.
	registry, err := New(context.WithoutCancel(t.Context()), options)
	need(t, registry, err)
	t.Cleanup(func() { registry.Close() })
	return &Fixture{Registry: registry, t: t}
}

// BlobStore is Registry.BlobStore.
func (f *Fixture) BlobStore(ca *upstream.CA) *BlobStore {
	f.t.Helper()
	store, err := f.Registry.BlobStore(context.WithoutCancel(f.t.Context()), ca)
	return need(f.t, store, err)
}

// SetUsers is Registry.SetUsers.
func (f *Fixture) SetUsers(users map[string]string) {
	f.t.Helper()
	need(f.t, users, f.Registry.SetUsers(users))
}

// SetRealm is Registry.SetRealm.
func (f *Fixture) SetRealm(realm string) {
	f.t.Helper()
	need(f.t, realm, f.Registry.SetRealm(realm))
}

// RevokeTokens is Registry.RevokeTokens.
func (f *Fixture) RevokeTokens() {
	f.t.Helper()
	need(f.t, f, f.Registry.RevokeTokens())
}

// Repository is Registry.Repository.
func (f *Fixture) Repository(name string) *Edited {
	return &Edited{Repository: f.Registry.Repository(name), t: f.t}
}

// Edited is a Repository whose edits end the test when they fail.
type Edited struct {
	*Repository
	t upstream.TB
}

// Push is Repository.Push.
func (e *Edited) Push(tag string, manifest Manifest) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.Push(e.t.Context(), tag, manifest)
	return need(e.t, d, err)
}

// PushBlob is Repository.PushBlob.
func (e *Edited) PushBlob(mediaType string, content []byte) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushBlob(e.t.Context(), mediaType, content)
	return need(e.t, d, err)
}

// PushList is Repository.PushList.
func (e *Edited) PushList(tag string, index Index) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushList(e.t.Context(), tag, index)
	return need(e.t, d, err)
}

// PutManifest is Repository.PutManifest.
func (e *Edited) PutManifest(tag, mediaType string, raw []byte) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PutManifest(e.t.Context(), tag, mediaType, raw)
	return need(e.t, d, err)
}

// PushFlux is Repository.PushFlux.
func (e *Edited) PushFlux(tag string, files, annotations map[string]string) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushFlux(e.t.Context(), tag, files, annotations)
	return need(e.t, d, err)
}

// PushORAS is Repository.PushORAS.
func (e *Edited) PushORAS(tag string, layers ...Layer) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushORAS(e.t.Context(), tag, layers...)
	return need(e.t, d, err)
}

// PushHelm is Repository.PushHelm.
func (e *Edited) PushHelm(tag string, chart []byte) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushHelm(e.t.Context(), tag, chart)
	return need(e.t, d, err)
}

// PushDocker is Repository.PushDocker.
func (e *Edited) PushDocker(tag string, layers ...Layer) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushDocker(e.t.Context(), tag, layers...)
	return need(e.t, d, err)
}

// PushIndex is Repository.PushIndex.
func (e *Edited) PushIndex(tag string, manifests ...ocispec.Descriptor) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushIndex(e.t.Context(), tag, manifests...)
	return need(e.t, d, err)
}

// PushDockerList is Repository.PushDockerList.
func (e *Edited) PushDockerList(tag string, manifests ...ocispec.Descriptor) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushDockerList(e.t.Context(), tag, manifests...)
	return need(e.t, d, err)
}

// PushWithSubject is Repository.PushWithSubject.
func (e *Edited) PushWithSubject(tag string, subject ocispec.Descriptor, manifest Manifest) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.PushWithSubject(e.t.Context(), tag, subject, manifest)
	return need(e.t, d, err)
}

// Attach is Repository.Attach.
func (e *Edited) Attach(subject ocispec.Descriptor, a Attachment) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.Attach(e.t.Context(), subject, a)
	return need(e.t, d, err)
}

// AttachReferrersTag is Repository.AttachReferrersTag.
func (e *Edited) AttachReferrersTag(subject ocispec.Descriptor, a Attachment) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.AttachReferrersTag(e.t.Context(), subject, a)
	return need(e.t, d, err)
}

// AttachCosignTag is Repository.AttachCosignTag.
func (e *Edited) AttachCosignTag(subject ocispec.Descriptor, layers ...Layer) ocispec.Descriptor {
	e.t.Helper()
	d, err := e.Repository.AttachCosignTag(e.t.Context(), subject, layers...)
	return need(e.t, d, err)
}

// Tag is Repository.Tag.
func (e *Edited) Tag(tag string, d ocispec.Descriptor) {
	e.t.Helper()
	need(e.t, d, e.Repository.Tag(e.t.Context(), tag, d))
}

// Untag is Repository.Untag.
func (e *Edited) Untag(tag string) {
	e.t.Helper()
	need(e.t, tag, e.Repository.Untag(e.t.Context(), tag))
}

// Delete is Repository.Delete.
func (e *Edited) Delete(manifest ocispec.Descriptor) {
	e.t.Helper()
	need(e.t, manifest, e.Repository.Delete(e.t.Context(), manifest))
}

// DeleteBlob is Repository.DeleteBlob.
func (e *Edited) DeleteBlob(blob ocispec.Descriptor) {
	e.t.Helper()
	need(e.t, blob, e.Repository.DeleteBlob(e.t.Context(), blob))
}

func need[T any](t upstream.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("registry: %v", err)
	}
	return value
}
