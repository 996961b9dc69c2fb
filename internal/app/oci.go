package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify"
)

// revocationTimeout bounds one question whether a certificate is revoked: a policy may go on without an answer, but not
// if the question has taken all of spec.timeout.
const revocationTimeout = 10 * time.Second

// newTrust makes what finds out who vouches for what lies in registries.
func newTrust(options Options, p parts, roots *verify.TUFRoots) trust.Trust {
	revocation := *p.connections.Anonymous()
	revocation.Timeout = revocationTimeout
	return trust.Trust{
		Roots: roots, Revocation: &revocation, AnyRepository: options.OCIVerifyAnyRepository, MaxSignatures: options.Limits.OCISignatures,
	}
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
