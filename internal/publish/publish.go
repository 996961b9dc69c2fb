// Package publish packs a folder as Flux does, and pushes it to a registry: the same tree has the same digest everywhere.
// It does not know who typed what, or what the folder is for.
package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/registry"
)

var (
	// ErrDirty says that what would be pushed is not what the commit has.
	ErrDirty = errors.New("not what the commit has")
	// ErrTaken says that the tag stands for something else.
	ErrTaken = errors.New("the tag stands for something else")
	// ErrEmpty says that there is nothing to push.
	ErrEmpty = errors.New("there is nothing to push")
	// ErrKey says that the key cannot sign.
	ErrKey = errors.New("the key cannot be used")
)

// Order is what to push, and where to.
type Order struct {
	Folder string
	// Repository is where to, under the tag.
	Repository registry.Repository
	Tag        string
	// Source and Revision are said of the folder, instead of what Git knows. What is secret in a URL is left out.
	Source, Revision string
	// Created is RFC 3339's, instead of the commit's time.
	Created string
	// Annotations are added, over those of the folder.
	Annotations map[string]string
	// AllowDirty takes what is no commit's, MoveTag takes the tag from what has it.
	AllowDirty, MoveTag bool
	// DryRun pushes nothing.
	DryRun bool
	// Signer signs; nil does not.
	Signer Signer
}

// Outcome is what was pushed.
type Outcome struct {
	Digest digest.Digest `json:"digest"`
	// Files and Bytes are those in the layer, Size is that of the layer itself.
	Files       int               `json:"files"`
	Bytes       int64             `json:"bytes"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	// Dirty says that it is no commit's.
	Dirty bool `json:"dirty"`
	// Was is what the tag stood for; empty for nothing.
	Was digest.Digest `json:"was,omitempty"`
	// Signed says that there is a signature by the signer, Changed that something was pushed.
	Signed  bool `json:"signed"`
	Changed bool `json:"changed"`
}

// artifact is what is going to be pushed.
type artifact struct {
	layer    *layer
	config   []byte
	manifest []byte
	described,
	configured ocispec.Descriptor
}

// Push packs the folder and pushes it. The tag is written last: what is interrupted leaves nothing that has a name. The errors
// are ErrDirty, ErrTaken and ErrEmpty, and those of the registry and of archives.
func Push(ctx context.Context, client *registry.Client, order Order) (Outcome, error) {
	packed, err := pack(ctx, order.Folder)
	if err != nil {
		return Outcome{}, err
	}
	defer packed.close()
	found, err := look(ctx, order, packed)
	if err != nil {
		return Outcome{}, err
	}
	made, err := describe(packed, annotations(order, found))
	if err != nil {
		return Outcome{}, err
	}
	done := Outcome{
		Digest: made.described.Digest, Files: packed.files, Bytes: packed.bytes, Size: packed.descriptor.Size,
		Annotations: made.described.Annotations, Dirty: found.dirty,
	}
	p := &pusher{client: client, order: order, artifact: made}
	if done.Was, err = p.tagged(ctx); err != nil {
		return Outcome{}, err
	}
	switch {
	case done.Was != "" && done.Was != done.Digest && !order.MoveTag:
		return Outcome{}, fmt.Errorf("%w: %s is %s", ErrTaken, order.Tag, done.Was)
	case order.DryRun:
		return done, nil
	}
	done.Changed, err = p.push(ctx, done.Was == done.Digest)
	done.Signed = order.Signer != nil && err == nil
	return done, err
}

// annotations are those of the manifest. What is no commit's has neither revision nor time.
func annotations(order Order, found facts) map[string]string {
	all := map[string]string{}
	add := func(name string, values ...string) {
		for _, value := range values {
			if value != "" && all[name] == "" {
				all[name] = value
			}
		}
	}
	// A pipeline's variable for the URL may have its login in it, and whoever may pull reads the annotation.
	add(ocispec.AnnotationSource, credential.CleanURL(order.Source), found.source)
	add(ocispec.AnnotationRevision, order.Revision, found.revision)
	add(ocispec.AnnotationCreated, order.Created, found.created)
	if IsVersion(order.Tag) {
		add(ocispec.AnnotationVersion, order.Tag)
	}
	maps.Copy(all, order.Annotations)
	return all
}

// pusher pushes one artifact.
type pusher struct {
	client   *registry.Client
	order    Order
	artifact artifact
}

// tagged is what the tag stands for; nothing where there is none.
func (p *pusher) tagged(ctx context.Context) (digest.Digest, error) {
	found, err := p.client.Resolve(ctx, p.order.Repository, p.order.Tag)
	if errors.Is(err, registry.ErrNotFound) {
		return "", nil
	}
	return found.Digest, err
}

// push puts everything into the registry that is not there, in the order in which one refers to the other.
func (p *pusher) push(ctx context.Context, isTagged bool) (changed bool, err error) {
	a := p.artifact
	if !isTagged {
		layer, err := os.Open(a.layer.path)
		if err != nil {
			return false, err
		}
		defer func() { _ = layer.Close() }() // It was only read.
		if _, err := p.client.Push(ctx, p.order.Repository, a.layer.descriptor, layer); err != nil {
			return false, err
		}
		if _, err := p.client.Push(ctx, p.order.Repository, a.configured, bytes.NewReader(a.config)); err != nil {
			return false, err
		}
		if _, err := p.client.Push(ctx, p.order.Repository, a.described, bytes.NewReader(a.manifest)); err != nil {
			return false, err
		}
	}
	if p.order.Signer != nil {
		if changed, err = p.sign(ctx); err != nil {
			return changed, err
		}
	}
	if isTagged {
		return changed, nil
	}
	return true, p.client.Tag(ctx, p.order.Repository, p.order.Tag, a.described, a.manifest)
}
