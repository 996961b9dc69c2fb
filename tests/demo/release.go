package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// The repositories in the registry: one for releases with versions, one with a tag that moves.
const (
	modules = "modules/cache"
	moving  = "modules/settings"
)

// releaseBecomesArtifact pushes a release as flux push does and signs it; the object trusts that key alone.
func (d *demo) releaseBecomesArtifact(ctx context.Context) error {
	release, err := d.release(ctx, "1.0.0", 1)
	if err != nil {
		return err
	}
	if err := d.sign(ctx, "1.0.0", release); err != nil {
		return err
	}
	key, err := d.signer.publicPEM()
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	objects := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: release-key\nstringData:\n  cosign.pub: |\n%s---\n", indented(key)) +
		d.ociManifest("module", modules, `ref:
    semver: ">=1.0.0 <2.0.0"
  verify:
    provider: cosign
    secretRef:
      name: release-key`)
	if err := d.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	obj, err := d.waitModule(ctx, "module", "1.0.0@"+release.Digest.String())
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "ocirepositories"); err != nil {
		return err
	}
	d.say("SourceVerified: %s", conditions.GetMessage(obj, sourcev1.SourceVerifiedCondition))
	return d.fetch(ctx, obj.Status.Artifact)
}

// nextRelease shows that nothing unverified is published, that what was published stays served, and that a signature
// that comes later is enough.
func (d *demo) nextRelease(ctx context.Context) error {
	before, err := d.getModule(ctx, "module")
	if err != nil {
		return err
	}
	release, err := d.release(ctx, "1.1.0", 2)
	if err != nil {
		return err
	}
	for _, tag := range []string{"2.0.0", "1.9"} {
		if err := d.registry.Repository(modules).Tag(ctx, tag, release); err != nil {
			return err
		}
	}
	d.say("1.1.0 has no signature; it is also tagged 2.0.0 (out of range) and 1.9 (no semantic version)")
	if err := eventually(ctx, "the release is refused", func(ctx context.Context) (bool, error) {
		obj, err := d.getModule(ctx, "module")
		return err == nil && conditions.GetReason(obj, meta.ReadyCondition) == sourcev1.VerificationErrorReason, err
	}); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "ocirepository", "module"); err != nil {
		return err
	}
	refused, err := d.getModule(ctx, "module")
	if err != nil {
		return err
	}
	if refused.Status.Artifact == nil || refused.Status.Artifact.Digest != before.Status.Artifact.Digest {
		return fmt.Errorf("artifact %+v became %+v", before.Status.Artifact, refused.Status.Artifact)
	}
	if _, err := d.body(ctx, refused.Status.Artifact); err != nil {
		return err
	}
	d.say("1.0.0 is still served")

	if err := d.sign(ctx, "1.1.0", release); err != nil {
		return err
	}
	if _, err := d.waitModule(ctx, "module", "1.1.0@"+release.Digest.String()); err != nil {
		return err
	}
	return errors.Join(
		d.kubectl(ctx, "", "get", "ocirepository", "module"),
		d.kubectl(ctx, "", "get", "events", "--field-selector=involvedObject.name=module", "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"),
	)
}

// release pushes a version of the module.
func (d *demo) release(ctx context.Context, version string, replicas int) (ocispec.Descriptor, error) {
	pushed, err := d.registry.Repository(modules).PushFlux(ctx, version, map[string]string{
		"module.yaml": "name: cache\nversion: " + version + "\n", "deploy/cache.yaml": manifestOf("cache", replicas),
	}, map[string]string{ocispec.AnnotationVersion: version})
	if err != nil {
		return pushed, err
	}
	d.say("pushed %s:%s, %s", d.registry.URL(modules), version, pushed.Digest)
	return pushed, nil
}

func (d *demo) sign(ctx context.Context, version string, release ocispec.Descriptor) error {
	if err := d.signer.attach(ctx, d.registry.Repository(modules), release); err != nil {
		return err
	}
	d.say("signed %s: a bundle beside the manifest", version)
	return nil
}

// ociManifest is an OCIRepository of a repository in the registry, which speaks plain HTTP.
func (d *demo) ociManifest(name, repository, spec string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata:
  name: %s
spec:
  url: %s
  insecure: true
  interval: 1s
  %s
`, name, d.registry.URL(repository), spec)
}

func (d *demo) getModule(ctx context.Context, name string) (*sourcev1.OCIRepository, error) {
	return get[sourcev1.OCIRepository](ctx, d, name)
}

func (d *demo) waitModule(ctx context.Context, name, revision string) (*sourcev1.OCIRepository, error) {
	return waitFor[sourcev1.OCIRepository](ctx, d, name, "has an artifact of "+revision,
		func(a *meta.Artifact) bool { return a.Revision == revision })
}

// indented moves lines to where a block of a Secret has them.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
