package auth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
)

// The fields of an object that name a Secret or ServiceAccount.
const (
	fieldSecret         = "spec.secretRef" //nolint:gosec // The name of a field.
	fieldCert           = "spec.certSecretRef"
	fieldProxy          = "spec.proxySecretRef"
	fieldServiceAccount = "spec.serviceAccountName"
)

// The keys of a Secret, as Flux spells them.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyCA          = "ca.crt"
	keyOldCA       = "caFile"
	keyCertificate = "tls.crt"
	keyKey         = "tls.key"
	keyIdentity    = "identity"
	keyKnownHosts  = "known_hosts"
	keyAddress     = "address"
	prefixApp      = "githubApp"
)

// Limits of a value, in bytes. What is larger is a mistake, and parsers take longer the more they are given.
const (
	maxName        = 1 << 10
	maxPassword    = 16 << 10
	maxPrivateKey  = 16 << 10
	maxCertificate = 128 << 10
	maxCA          = 512 << 10
	maxKnownHosts  = 256 << 10
)

// secret is a Secret that was read. Its errors name the Secret, the key and the remedy, and never a value.
type secret struct {
	name   string // namespace/name
	field  string // of the object, that names it
	reason string // of its errors
	data   map[string][]byte
}

// read reads the Secret that the object's field names. The reason is that of errors about it.
func (s Secrets) read(ctx context.Context, namespace, name, field, reason string) (secret, error) {
	found := secret{name: namespace + "/" + name, field: field, reason: reason}
	var object corev1.Secret
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return secret{}, found.errorf("not found; create it, or name another one in %s", found.field)
	}
	if err != nil {
		// An outage of the API server must not push the object's own retries out.
		return secret{}, failure.Wait(reason, 0, fmt.Errorf("read secret '%s': %w", found.name, err))
	}
	found.data = object.Data
	return found, nil
}

// has tells whether a key has a value; an empty one is as good as none.
func (s secret) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return len(s.data[key]) > 0 })
}

// take returns a key's value, which may be empty but no larger than limit.
func (s secret) take(key string, limit int) ([]byte, error) {
	value := s.data[key]
	if len(value) > limit {
		return nil, s.bad(key, fmt.Sprintf("is larger than %d bytes", limit), "store the right content in it")
	}
	return value, nil
}

// line returns a value that is sent as one line.
func (s secret) line(key string, limit int) (string, error) {
	value, err := s.take(key, limit)
	if err != nil {
		return "", err
	}
	if hasControl(string(value)) {
		return "", s.bad(key, "contains a line break or control character",
			"store the value without it, for example with printf instead of echo")
	}
	return string(value), nil
}

// refuseApp refuses GitHub App keys: a Secret made for an App would otherwise be taken for an anonymous one.
func (s secret) refuseApp() error {
	for _, key := range slices.Sorted(maps.Keys(s.data)) {
		if strings.HasPrefix(key, prefixApp) {
			return failure.Retry(sourcev1.InvalidProviderConfigurationReason, fmt.Errorf(
				"secret '%s' has '%s' for a GitHub App, which spec.provider generic does not use; "+
					"store username and password, bearerToken, or identity and known_hosts instead", s.name, key))
		}
	}
	return nil
}

// bad reports what is wrong with a key's value and how to mend it.
func (s secret) bad(key, problem, remedy string) error {
	return s.errorf("has a bad '%s': it %s; %s", key, problem, remedy)
}

// errorf finishes the sentence that begins with the Secret.
func (s secret) errorf(format string, args ...any) error {
	return failure.Retry(s.reason, fmt.Errorf("secret '%s' %s", s.name, fmt.Sprintf(format, args...)))
}
