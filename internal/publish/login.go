package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry/remote/credentials"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/registry"
)

// dockerHub is the name under which Docker keeps the login for its own registry.
const dockerHub = "https://index.docker.io/v1/"

// Login is what Docker keeps for the registry, in its file or by the helper that the file names. Nothing is no error.
func Login(ctx context.Context, host string) (credential.Registry, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return credential.Registry{}, fmt.Errorf("read Docker's configuration: %w", err)
	}
	switch host {
	case "docker.io", "index.docker.io", "registry-1.docker.io":
		host = dockerHub
	}
	found, err := store.Get(ctx, host)
	if err != nil {
		// What a helper says of it may be anything.
		return credential.Registry{}, errors.New("Docker's credential helper fails for " + host)
	}
	return credential.Registry{
		Username: found.Username, Password: credential.NewSecret(found.Password),
		IdentityToken: credential.NewSecret(found.RefreshToken), RegistryToken: credential.NewSecret(found.AccessToken),
	}, nil
}

// ParseTarget splits oci://HOST/NAME:TAG, or with a digest instead of the tag.
func ParseTarget(text string) (host, name, reference string, err error) {
	repository, reference, digested := strings.Cut(text, "@")
	if !digested {
		// The last colon may be that before a port.
		if at := strings.LastIndexByte(text, ':'); at > strings.LastIndexByte(text, '/') {
			repository, reference = text[:at], text[at+1:]
		}
	}
	host, name, err = registry.Parse(repository)
	if err == nil && !digested && reference != "" && !registry.IsTag(reference) {
		err = fmt.Errorf("%w: %q is no tag", registry.ErrURL, reference)
	}
	return host, name, reference, err
}

// Remedies are what a registry's errors tell to do.
func Remedies(host string) *registry.Remedies {
	return &registry.Remedies{
		Refused:    "log in anew with docker login " + host + ", or ask for the right to push",
		Anonymous:  "log in with docker login " + host,
		Repository: "check its name", Reference: "check the tag or digest", Place: "check the name of the repository",
		Plain: "add --insecure-registry if plain HTTP is meant",
	}
}
