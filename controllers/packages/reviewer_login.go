package packages

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/forge"
)

const (
	// endpointKey is where a Secret says which API its credential is for. Whoever owns the credential says where it may go:
	// a variant cannot.
	endpointKey = "endpoint"
	// appKey is in Secrets of GitHub Apps.
	appKey      = "githubAppID"
	maxEndpoint = 1024
)

// credential reads what the forge asks for, and where its API is.
func (w *boardWork) credential(ctx context.Context, object *packagesv1.Repository) (options forge.Options, place forge.Place, err error) {
	var source sourcev1.GitRepository
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.GitRepositoryRef.Name}
	if err := w.shared.Client.Get(ctx, name, &source); err != nil {
		return options, place, fmt.Errorf("get GitRepository %s: %w", name.Name, err)
	}
	data, err := w.shared.Credentials.Data(ctx, object.Namespace, w.key.secret, "spec.approval.review.secretRef")
	if err != nil {
		return options, place, err
	}
	if len(data[endpointKey]) > maxEndpoint {
		return options, place, fmt.Errorf("secret %s: %s has more than %d bytes", w.key.secret, endpointKey, maxEndpoint)
	}
	if place, err = forge.Locate(forge.Provider(w.key.provider), w.mirror.url, string(data[endpointKey])); err != nil {
		return options, place, fmt.Errorf("provider %s, Secret %s: %w", w.key.provider, w.key.secret, err)
	}
	request := auth.GitRequest{Namespace: object.Namespace, URL: place.Endpoint.String(), SecretName: w.key.secret}
	if len(data[appKey]) > 0 && place.Provider == forge.GitHub {
		request.Provider = sourcev1.GitProviderGitHub
	}
	if source.Spec.ProxySecretRef != nil {
		request.ProxySecretName = source.Spec.ProxySecretRef.Name
	}
	login, err := w.shared.Credentials.Git(ctx, request)
	if err != nil {
		return options, place, err
	}
	options = forge.Options{Body: w.shared.Transport.Body, Token: tokenOf(login), Secrets: login.Secrets(), Clock: w.shared.Clock, Observe: w.shared.Asked}
	if options.Token.IsZero() {
		return options, place, fmt.Errorf("secret %s has neither 'bearerToken' nor 'password'; add a token of the forge", w.key.secret)
	}
	options.HTTP, err = w.shared.Transport.HTTP(place.Endpoint, login.TLS, login.Proxy)
	return options, place, err
}

// tokenOf is what stands for whoever asks: all three forges take their tokens as a password of Git as well.
func tokenOf(login credential.Git) credential.Secret {
	if !login.BearerToken.IsZero() {
		return login.BearerToken
	}
	return login.Password
}
