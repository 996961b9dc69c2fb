package auth

import (
	"context"
	"net/url"
	"strings"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
)

const (
	schemeSOCKS5 = "socks5"
	// maxAddress is the longest address of a proxy, in bytes, as in Flux.
	maxAddress = 2048
	// maxSOCKS is the longest user and the longest password of socks5, in bytes (RFC 1929).
	maxSOCKS = 255

	remedyAddress = "store scheme://host:port with scheme http, https or socks5"
)

// proxy reads the Secret with a proxy's address, username and password. User and password may stand in the address;
// those of their own keys win.
func (s Secrets) proxy(ctx context.Context, namespace, name string) (credential.Proxy, error) {
	if name == "" {
		return credential.Proxy{}, nil
	}
	found, err := s.read(ctx, namespace, name, fieldProxy, sourcev1.AuthenticationFailedReason)
	if err != nil {
		return credential.Proxy{}, err
	}
	address, err := proxyAddress(found)
	if err != nil {
		return credential.Proxy{}, err
	}
	username, err := found.line(keyUsername, maxName)
	if err != nil {
		return credential.Proxy{}, err
	}
	password, err := found.line(keyPassword, maxPassword)
	if err != nil {
		return credential.Proxy{}, err
	}
	if !found.has(keyUsername, keyPassword) {
		username = address.User.Username()
		password, _ = address.User.Password()
	}
	if err := checkProxyLogin(found, address.Scheme, username, password); err != nil {
		return credential.Proxy{}, err
	}
	return credential.Proxy{
		URL:      address.Scheme + "://" + address.Host,
		Username: username,
		Password: credential.NewSecret(password),
	}, nil
}

// proxyAddress does not pass on the parser's error, which quotes what it stumbles over.
func proxyAddress(s secret) (*url.URL, error) {
	if !s.has(keyAddress) {
		return nil, s.errorf("has no '%s'; %s in it, or remove %s", keyAddress, remedyAddress, s.field)
	}
	raw, err := s.line(keyAddress, maxAddress)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(raw)
	if err != nil {
		return nil, s.bad(keyAddress, "is not a URL", remedyAddress)
	}
	switch address.Scheme {
	case schemeHTTP, schemeHTTPS, schemeSOCKS5:
	default:
		return nil, s.bad(keyAddress, "has a scheme other than http, https and socks5", remedyAddress)
	}
	if address.Hostname() == "" {
		return nil, s.bad(keyAddress, "names no host", remedyAddress)
	}
	return address, nil
}

// checkProxyLogin refuses what the proxy's protocol cannot send.
func checkProxyLogin(s secret, scheme, username, password string) error {
	key := keyAddress
	if s.has(keyUsername) {
		key = keyUsername
	}
	switch {
	case username == "" && password != "":
		return s.errorf("has a password for the proxy but no user; add '%s'", keyUsername)
	case hasControl(username) || hasControl(password):
		return s.bad(key, "contains a line break or control character", "store it without")
	case scheme != schemeSOCKS5 && strings.Contains(username, ":"):
		return s.bad(key, "has a colon in the user, which basic authentication cannot send", "store the user name alone")
	case scheme == schemeSOCKS5 && max(len(username), len(password)) > maxSOCKS:
		return s.errorf("has a user or password of more than %d bytes, which socks5 cannot send; use a shorter one", maxSOCKS)
	}
	return nil
}
