package helmchart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
)

// The media types of a chart's package as a layer, the older one last: https://helm.sh/docs/topics/registries/.
const (
	layerType    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	oldLayerType = "application/tar+gzip"
)

// registered is a repository of charts in a registry: each chart is a repository of its own there, and each version a tag.
type registered struct {
	opener   *Opener
	object   *sourcev1.HelmChart
	remote   registry.Repository
	verifier verify.Verifier // nil where no proof is asked for
}

func (o *Opener) registryOrigin(ctx context.Context, obj *sourcev1.HelmChart, repository *sourcev1.HelmRepository) (*registered, error) {
	host, name, err := registry.Parse(strings.TrimRight(repository.Spec.URL, "/") + "/" + obj.Spec.Chart)
	if err != nil {
		return nil, failure.Stall(sourcev1.URLInvalidReason, fmt.Errorf("invalid Helm repository URL: with chart '%s' it %w", obj.Spec.Chart, err))
	}
	r := &registered{opener: o, object: obj}
	if r.remote, err = o.remote(ctx, repository, host, name); err != nil {
		return nil, err
	}
	r.verifier, err = o.Trust.Verifier(ctx, o.Credentials, obj.Namespace, wanted(obj.Spec.Verify))
	return r, err
}

// remote is a place in the registry of a repository.
func (o *Opener) remote(ctx context.Context, repository *sourcev1.HelmRepository, host, name string) (registry.Repository, error) {
	spec := repository.Spec
	request := auth.RegistryRequest{
		Namespace: repository.Namespace, Host: host, Repository: name, Provider: spec.Provider, Insecure: spec.Insecure, PlainLogin: true,
	}
	if spec.SecretRef != nil {
		request.SecretName, request.Provider = spec.SecretRef.Name, ""
	}
	if spec.CertSecretRef != nil {
		request.CertSecretName = spec.CertSecretRef.Name
	}
	found, err := o.Credentials.Registry(ctx, request)
	return registry.Repository{Host: host, Name: name, Insecure: spec.Insecure, Credential: found}, err
}

// wanted is the proof that is asked for, as an OCIRepository would.
func wanted(v *sourcev1.HelmChartVerification) *sourcev1.OCIRepositoryVerification {
	if v == nil {
		return nil
	}
	return &sourcev1.OCIRepositoryVerification{Provider: v.Provider, SecretRef: v.SecretRef, MatchOIDCIdentity: v.MatchOIDCIdentity}
}

// trusted names what proves a package; empty where no proof is asked for.
func (r *registered) trusted() string {
	if r.verifier == nil {
		return ""
	}
	return r.verifier.Fingerprint() + " " + r.remote.Host + "/" + r.remote.Name
}

// look implements origin. Everything after it goes by the digest that it finds.
func (r *registered) look(ctx context.Context) (found, bool, error) {
	f, err := r.find(ctx)
	return f, err == nil, err
}

func (r *registered) find(ctx context.Context) (found, error) {
	version, err := r.opener.tagged(ctx, r.remote, r.object.Spec.GetVersion())
	if err != nil {
		return found{}, registryError(fmt.Errorf("failed to get chart version for remote reference: '%s' version '%s': %w",
			r.object.Spec.Chart, r.object.Spec.GetVersion(), err))
	}
	described, err := r.opener.Registry.Resolve(ctx, r.remote, tagOf(version))
	if err != nil {
		return found{}, registryError(fmt.Errorf("look up tag '%s': %w", tagOf(version), err))
	}
	identity := chart.Identity{Name: r.object.Spec.Chart, Version: version}
	return found{Identity: identity, Content: described.Digest.String()}, nil
}

// tagOf is the tag of a version, which has no plus sign in it.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// tagged chooses a version. One that is named needs no list of tags, which not everybody may read.
func (o *Opener) tagged(ctx context.Context, remote registry.Repository, wanted string) (string, error) {
	if _, ok := revision.ParseLoose(wanted); ok {
		return wanted, nil
	}
	best, err := helm.NewBest(wanted)
	if err != nil {
		return "", err
	}
	if err := o.Registry.Tags(ctx, remote, func(tag string) { best.See(strings.ReplaceAll(tag, "_", "+")) }); err != nil {
		return "", fmt.Errorf("list tags: %w", err)
	}
	return best.Version()
}

// prove finds out who vouches for the package.
func (r *registered) prove(ctx context.Context, f found) (string, error) {
	if r.verifier == nil {
		return "", nil
	}
	isNotation := r.object.Spec.Verify.Provider == sourcev1.NotationOCIVerification
	signer, err := r.opener.Trust.Signer(ctx, r.opener.Registry, r.remote, r.verifier, isNotation, func(ctx context.Context) (ocispec.Descriptor, error) {
		document, err := r.opener.Registry.Manifest(ctx, r.remote, digest.Digest(f.Content))
		defer registry.Release(ctx, document.Raw)
		return document.Descriptor, err
	})
	if err != nil {
		return "", failure.Retry(sourcev1.VerificationErrorReason, fmt.Errorf("chart verification error: failed to verify oci://%s/%s:%s: %w",
			r.remote.Host, r.remote.Name, tagOf(f.Version), err))
	}
	return signer, nil
}

// build implements origin.
func (r *registered) build(ctx context.Context, f found, metadata string) (*chart.Built, error) {
	body, err := r.opener.layer(ctx, r.remote, digest.Digest(f.Content))
	if err != nil {
		return nil, registryError(err)
	}
	defer func() { _ = body.Close() }() // It was only read.
	f.Name = f.Name[strings.LastIndex(f.Name, "/")+1:]
	built, err := r.opener.rebuild(ctx, body, f, r.object.Spec, metadata)
	if built != nil {
		built.Name = r.object.Spec.Chart
	}
	return built, err
}

// share implements origin: who has just been shown a manifest may have what it names.
func (r *registered) share(f found) string {
	return strings.Join([]string{r.remote.Credential.Identity(), r.remote.Host, r.remote.Name, f.Content, r.trusted()}, " ")
}

// layer opens the package that a manifest names.
func (o *Opener) layer(ctx context.Context, remote registry.Repository, manifest digest.Digest) (io.ReadCloser, error) {
	document, err := o.Registry.Manifest(ctx, remote, manifest)
	defer registry.Release(ctx, document.Raw)
	if err != nil {
		return nil, fmt.Errorf("get manifest %s: %w", manifest, err)
	}
	if document.Manifest == nil {
		return nil, fmt.Errorf("manifest %s is an index: push the chart with 'helm push'", manifest)
	}
	for _, wanted := range []string{layerType, oldLayerType} {
		for _, layer := range document.Manifest.Layers {
			if layer.MediaType != wanted {
				continue
			}
			if most := o.maxPackage(); layer.Size > most {
				return nil, fmt.Errorf("the package has %d bytes, more than %d (--helm-chart-max-size)", layer.Size, most)
			}
			return o.Registry.Blob(ctx, remote, layer)
		}
	}
	return nil, fmt.Errorf("manifest %s has no layer of type %s: push the chart with 'helm push'", manifest, layerType)
}

// registryError gives an error of a registry its reason.
func registryError(err error) error {
	if _, known := errors.AsType[*failure.Error](err); known {
		return err
	}
	wrapped := fmt.Errorf("chart pull error: %w", err)
	if errors.Is(err, registry.ErrAuthentication) || transport.IsTLS(err) {
		return failure.Retry(sourcev1.AuthenticationFailedReason, wrapped)
	}
	if status, ok := errors.AsType[*registry.StatusError](err); ok && status.RetryAfter > 0 {
		return failure.RetryAfter(sourcev1.ChartPullErrorReason, status.RetryAfter, wrapped)
	}
	return failure.Retry(sourcev1.ChartPullErrorReason, wrapped)
}
