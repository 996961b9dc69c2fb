package auth

import (
	"context"
	"fmt"
	"maps"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
)

// The keys of a client certificate, as Secrets of Helm repositories spelt them once.
const (
	keyOldCertificate = "certFile"
	keyOldKey         = "keyFile"
)

// HelmRequest says whose credential for a Helm repository is wanted. All names are of the object's own namespace; empty ones
// are not looked at.
type HelmRequest struct {
	Namespace string
	// URL is spec.url. A user and password in it count where the Secret has none.
	URL string
	// SecretName is spec.secretRef's: username and password. The keys for TLS that it may have count only without a
	// CertSecretName.
	SecretName string
	// CertSecretName is spec.certSecretRef's: tls.crt and tls.key, ca.crt.
	CertSecretName string
}

// Helm returns the credential for a Helm repository that is a server of files, and its URL without user and password.
// Errors carry a disposition, and name the Secret and its key. A Secret for something else, such as a docker config, is as
// good as none.
func (s Secrets) Helm(ctx context.Context, r HelmRequest) (found credential.Login, clean string, err error) {
	clean, user, err := SplitURL(r.URL)
	if err != nil {
		return found, "", err
	}
	if user != nil {
		password, _ := user.Password()
		found.Username, found.Password = user.Username(), credential.NewSecret(password)
	}
	if r.SecretName != "" {
		if err := s.helmSecret(ctx, r, &found); err != nil {
			return credential.Login{}, "", fmt.Errorf("failed to get authentication secret '%s/%s': %w", r.Namespace, r.SecretName, err)
		}
	}
	if r.CertSecretName == "" {
		return found, clean, nil
	}
	found.TLS, err = s.certificate(ctx, RegistryRequest{Namespace: r.Namespace, CertSecretName: r.CertSecretName})
	if err != nil {
		return credential.Login{}, "", fmt.Errorf("failed to get TLS authentication secret '%s/%s': %w", r.Namespace, r.CertSecretName, err)
	}
	return found, clean, nil
}

func (s Secrets) helmSecret(ctx context.Context, r HelmRequest, into *credential.Login) error {
	secret, err := s.read(ctx, r.Namespace, r.SecretName, fieldSecret, sourcev1.AuthenticationFailedReason)
	if err != nil {
		return err
	}
	if secret.has(keyUsername, keyPassword) {
		login, err := basicCredential(secret, credential.TLS{})
		if err != nil {
			return err
		}
		into.Username, into.Password = login.Username, login.Password
	}
	if r.CertSecretName == "" {
		into.TLS, err = tlsCredential(secret.renamed(map[string]string{keyOldCertificate: keyCertificate, keyOldKey: keyKey}))
	}
	return err
}

// renamed is the Secret with the values of old keys under their new ones, where these have none.
func (s secret) renamed(keys map[string]string) secret {
	s.data = maps.Clone(s.data)
	for old, key := range keys {
		if !s.has(key) && s.has(old) {
			s.data[key] = s.data[old]
		}
	}
	return s
}
