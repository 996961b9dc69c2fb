package credential_test

import (
	"testing"

	"sluice.dev/sluice/internal/credential"
)

func TestIdentityIsUnambiguous(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	checkIdentities(t, []credential.Git{
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
		{TLS: credential.TLS{SkipVerify: true}},
		{TLS: credential.TLS{SkipVerify: true}, SSH: &credential.SSH{}},
		{Principal: "abc", Username: "a", Password: secret("bc")},
		{Principal: "ab"},
	})
	morning := credential.Git{Principal: "app 1", Password: secret("of the morning")}
	evening := credential.Git{Principal: "app 1", Password: secret("of the evening")}
	if morning.Identity() != evening.Identity() {
		t.Error("who logs in anew becomes somebody else")
	}
}

func TestRegistryIdentityIsUnambiguous(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	checkIdentities(t, []credential.Registry{
		{},
		{Username: "a", Password: secret("bc")},
		{Username: "ab", Password: secret("c")},
		{Username: "abc"},
		{Password: secret("abc")},
		{IdentityToken: secret("abc")},
		{RegistryToken: secret("abc")},
		{TLS: credential.TLS{CA: []byte("abc")}},
		{TLS: credential.TLS{SkipVerify: true}},
		{Proxy: credential.Proxy{URL: "abc"}},
		{Proxy: credential.Proxy{Username: "abc"}},
		{Proxy: credential.Proxy{Password: secret("abc")}},
		{Proxy: credential.Proxy{Username: "a", Password: secret("bc")}},
	})
}

func TestBucketIdentityIsUnambiguous(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	checkIdentities(t, []credential.Bucket{
		{},
		{AccessKey: "a", SecretKey: secret("bc")},
		{AccessKey: "ab", SecretKey: secret("c")},
		{SessionToken: secret("abc")},
		{Bearer: secret("abc")},
		{Account: "a", AccountKey: secret("bc")},
		{AccountKey: secret("abc")},
		{Query: secret("abc")},
		{TLS: credential.TLS{CA: []byte("abc")}},
		{Proxy: credential.Proxy{URL: "abc"}},
		{Principal: "abc", Bearer: secret("x")},
	})
	morning := credential.Bucket{Principal: "role 1", Bearer: secret("of the morning")}
	evening := credential.Bucket{Principal: "role 1", Bearer: secret("of the evening")}
	if morning.Identity() != evening.Identity() {
		t.Error("who logs in anew becomes somebody else")
	}
	if morning.Session() == evening.Session() {
		t.Error("who logs in anew goes on with the old token")
	}
}

func TestProxyIdentityIsUnambiguous(t *testing.T) {
	t.Parallel()
	secret := credential.NewSecret[string]
	checkIdentities(t, []credential.Proxy{
		{},
		{URL: "http://a"},
		{URL: "http://a", Username: "b"},
		{URL: "http://a", Password: secret("b")},
		{URL: "http://ab"},
		{URL: "http://a", Username: "b", Password: secret("c")},
		{URL: "http://a", Username: "bc"},
	})
}

// checkIdentities wants an identity of its own for each credential, and the same one for its copy.
func checkIdentities[C interface{ Identity() string }](t *testing.T, all []C) {
	t.Helper()
	seen := map[string]int{}
	for i, c := range all {
		if other, taken := seen[c.Identity()]; taken {
			t.Errorf("credentials %d and %d have one identity", i, other)
		}
		seen[c.Identity()] = i
		copied := c
		if copied.Identity() != c.Identity() {
			t.Errorf("identity of credential %d is not stable", i)
		}
	}
}
