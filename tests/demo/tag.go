package main

import (
	"context"
	"fmt"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream/registry"
)

// oneHead shows what a poll of a tag costs: one HEAD, no write.
func (d *demo) oneHead(ctx context.Context) error {
	pushed, err := d.settings(ctx, "first")
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, d.ociManifest("settings", moving, "ref:\n    tag: stable"), "apply", "-f", "-"); err != nil {
		return err
	}
	before, err := d.waitModule(ctx, "settings", "stable@"+pushed.Digest.String())
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "ocirepositories"); err != nil {
		return err
	}
	began, asked := time.Now(), len(d.pulls())
	if err := eventually(ctx, "the registry is asked three more times", func(context.Context) (bool, error) {
		return len(d.pulls()) >= asked+3, nil
	}); err != nil {
		return err
	}
	polls := d.pulls()[asked:]
	after, err := d.getModule(ctx, "settings")
	if err != nil {
		return err
	}
	heads := count(polls, registry.ManifestHEAD)
	d.say("in %s: %d requests, %d of them HEAD, resourceVersion %s -> %s", time.Since(began).Round(100*time.Millisecond),
		len(polls), heads, before.ResourceVersion, after.ResourceVersion)
	if heads != len(polls) || before.ResourceVersion != after.ResourceVersion {
		return fmt.Errorf("a reconcile without news wrote, or asked for more: %+v", polls)
	}
	return nil
}

// sameLayer moves the tag to a manifest with other annotations and the layer that is stored.
func (d *demo) sameLayer(ctx context.Context) error {
	before, err := d.getModule(ctx, "settings")
	if err != nil {
		return err
	}
	asked := len(d.pulls())
	pushed, err := d.settings(ctx, "second")
	if err != nil {
		return err
	}
	after, err := d.waitModule(ctx, "settings", "stable@"+pushed.Digest.String())
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "ocirepository", "settings"); err != nil {
		return err
	}
	requests := d.pulls()[asked:]
	layers := count(requests, registry.Blob)
	d.say("manifests pulled: %d, layers pulled: %d", count(requests, registry.ManifestGET), layers)
	d.say("artifact's digest %s, before %s", short(after.Status.Artifact.Digest), short(before.Status.Artifact.Digest))
	if layers != 0 || after.Status.Artifact.Digest != before.Status.Artifact.Digest {
		return fmt.Errorf("the layer was pulled again: %+v", requests)
	}
	return nil
}

// settings pushes the same files under the tag that moves, as a manifest of its own for each title.
func (d *demo) settings(ctx context.Context, title string) (ocispec.Descriptor, error) {
	pushed, err := d.registry.Repository(moving).PushFlux(ctx, "stable", map[string]string{"settings.yaml": "size: 3\n"},
		map[string]string{ocispec.AnnotationTitle: title})
	if err != nil {
		return pushed, err
	}
	d.say("pushed %s:stable, %s", d.registry.URL(moving), pushed.Digest)
	return pushed, nil
}

// pulls are the requests for the repository of the tag that moves.
func (d *demo) pulls() []registry.Request {
	var found []registry.Request
	for _, request := range d.registry.Requests() {
		if request.Repository == moving && request.Kind != registry.Push {
			found = append(found, request)
		}
	}
	return found
}

func count(requests []registry.Request, kind registry.Kind) int {
	n := 0
	for _, request := range requests {
		if request.Kind == kind {
			n++
		}
	}
	return n
}
