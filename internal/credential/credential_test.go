package credential_test

import (
	"testing"

	"sluice.dev/sluice/internal/credential"
)

func TestIdentityIsUnambiguous(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	all := []credential.Git{
		{},
		{Username: "ab", Password: secret("c")},
		{Username: "a", Password: secret("bc")},
		{Username: "a", BearerToken: secret("bc")},
		{BearerToken: secret("abc")},
		{Password: secret("abc")},
		{TLS: credential.TLS{CA: []byte("abc")}},
		{TLS: credential.TLS{Certificate: []byte("abc")}},
		{TLS: credential.TLS{Key: secret("abc")}},
		{TLS: credential.TLS{CA: []byte("a"), Certificate: []byte("bc")}},
		{SSH: &credential.SSH{}},
		{SSH: &credential.SSH{User: "abc"}},
		{SSH: &credential.SSH{PrivateKey: secret("abc")}},
		{SSH: &credential.SSH{Passphrase: secret("abc")}},
		{SSH: &credential.SSH{KnownHosts: []byte("abc")}},
	}
	seen := map[string]int{}
	for i, g := range all {
		if other, taken := seen[g.Identity()]; taken {
			t.Errorf("credentials %d and %d have one identity", i, other)
		}
		seen[g.Identity()] = i
		copied := g
		if copied.Identity() != g.Identity() {
			t.Errorf("identity of credential %d is not stable", i)
		}
	}
}
