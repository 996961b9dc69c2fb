package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/registry"
	ocisource "sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
)

// revocationTimeout bounds one question whether a certificate is revoked: a policy may go on without an answer, but not
// if the question has taken all of spec.timeout.
const revocationTimeout = 10 * time.Second

// newOCIOpener makes what turns OCIRepository objects into sessions with registries.
func newOCIOpener(options Options, limits archive.Limits, p parts) (*ocisource.Opener, error) {
	registries, roots, err := newRegistries(options, p)
	if err != nil {
		return nil, err
	}
	revocation := *p.connections.Anonymous()
	revocation.Timeout = revocationTimeout
	return ocisource.NewOpener(ocisource.Options{
		Client:      registries,
		Credentials: p.credentials,
		Trust: ocisource.Trust{
			Roots:         roots,
			Revocation:    &revocation,
			AnyRepository: options.OCIVerifyAnyRepository,
		},
		Limits:        limits,
		MaxSignatures: options.Limits.OCISignatures,
	}), nil
}

// newRegistries makes what speaks to registries, and the roots of what is signed in them.
func newRegistries(options Options, p parts) (*registry.Client, *verify.TUFRoots, error) {
	registries, err := registry.New(registry.Options{
		Transport:        p.connections,
		MaxManifestBytes: options.Limits.OCIManifestBytes,
		MaxBlobBytes:     options.Limits.OCILayerBytes,
		MaxTags:          options.Limits.OCITags,
		MaxReferrers:     options.Limits.OCISignatures,
		RealmHosts:       options.OCITokenHosts,
		Observe:          func(bytes int64) { p.metrics.received.WithLabelValues("oci").Add(float64(bytes)) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make the registry client: %w", err)
	}
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: p.connections.Anonymous(),
		Way:    func(ctx context.Context) string { return transport.ProxyOf(ctx).Identity() },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make the trust roots: %w", err)
	}
	return registries, roots, nil
}

// newCredentials makes the reader of Secrets and of the clouds' identities.
func newCredentials(reader client.Client, connections *transport.Factory, options Options) auth.Secrets {
	return auth.New(reader, auth.Options{
		ObjectLevelWorkloadIdentity: options.enabled(gateObjectLevelWorkloadIdentity),
		Tokens:                      reader,
		MaxTokens:                   cmp.Or(options.TokenCacheSize, -1), // There, zero is the default and less keeps nothing.
		MaxTokenDuration:            options.TokenCacheDuration,
		GoogleTokenHosts:            options.GCPTokenHosts,
		AzureAuthorityHosts:         options.AzureAuthorityHosts,
		Transport:                   connections,
	})
}
