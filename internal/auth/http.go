package auth

import (
	"net/url"
	"strings"

	"sluice.dev/sluice/internal/credential"
)

// httpCredential takes from the Secret what HTTP uses: at most one of basic authentication and a token, and TLS.
func httpCredential(s secret, scheme string, user *url.Userinfo) (credential.Git, error) {
	if !s.has(keyUsername, keyBearerToken, keyCA, keyOldCA, keyCertificate, keyKey) {
		return credential.Git{}, unusable(s, scheme)
	}
	tls, err := tlsCredential(s)
	if err != nil {
		return credential.Git{}, err
	}
	basic := s.has(keyUsername, keyPassword)
	switch {
	case basic && s.has(keyBearerToken):
		return credential.Git{}, s.errorf("has both '%s' and '%s' or '%s'; remove one of the two ways to log in",
			keyBearerToken, keyUsername, keyPassword)
	case s.has(keyBearerToken):
		token, err := s.line(keyBearerToken, maxPassword)
		if err != nil {
			return credential.Git{}, err
		}
		return credential.Git{BearerToken: credential.NewSecret(token), TLS: tls}, nil
	case basic:
		return basicCredential(s, tls)
	}
	git, err := fromURL(scheme, user)
	git.TLS = tls
	return git, err
}

// basicCredential wants both keys: where one is missing, it is more often misspelt than meant. A host that wants a
// token for a user and no password gets an empty password.
func basicCredential(s secret, tls credential.TLS) (credential.Git, error) {
	if !s.has(keyUsername) {
		return credential.Git{}, s.errorf("has '%s' but no '%s'; add it", keyPassword, keyUsername)
	}
	if _, ok := s.data[keyPassword]; !ok {
		return credential.Git{}, s.errorf("has '%s' but no '%s'; add it, empty if the server wants none",
			keyUsername, keyPassword)
	}
	username, err := s.line(keyUsername, maxName)
	if err != nil {
		return credential.Git{}, err
	}
	if strings.Contains(username, ":") {
		return credential.Git{}, s.bad(keyUsername, "contains a colon, which basic authentication cannot send",
			"store the user name alone")
	}
	password, err := s.line(keyPassword, maxPassword)
	if err != nil {
		return credential.Git{}, err
	}
	return credential.Git{Username: username, Password: credential.NewSecret(password), TLS: tls}, nil
}

// unusable says why a Secret has nothing for HTTP.
func unusable(s secret, scheme string) error {
	switch {
	case s.has(keyIdentity, keyKnownHosts):
		return s.errorf("has keys for ssh, but spec.url is %s; use an ssh URL, or store '%s' and '%s', or '%s'",
			scheme, keyUsername, keyPassword, keyBearerToken)
	case s.has(keyPassword):
		return s.errorf("has '%s' but no '%s'; add it", keyPassword, keyUsername)
	}
	return s.errorf("has no value under '%s', '%s', '%s', '%s' or '%s'; add what the server asks for, or remove spec.secretRef",
		keyUsername, keyBearerToken, keyCA, keyCertificate, keyKey)
}
