package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/internal/transport"
)

// clientID names this program to registries, and to token servers that ask for one, see OAuth 2.0.
const clientID = "sluice"

// session is what one identity shares at one registry: connections, tokens, and how the registry authenticates.
type session struct {
	key    string
	origin *url.URL
	auth   *auth.Client
}

// session returns the one of the repository's registry and identity.
func (c *Client) session(scheme, host string, r Repository) (*session, error) {
	key := sessionKey(host, r) + " " + scheme
	if kept, ok := c.sessions.Get(key); ok {
		return kept, nil
	}
	made, err := c.newSession(key, &url.URL{Scheme: scheme, Host: host}, r)
	if err != nil {
		return nil, err
	}
	if earlier, found, _ := c.sessions.PeekOrAdd(key, made); found {
		return earlier, nil
	}
	return made, nil
}

func sessionKey(host string, r Repository) string {
	return fmt.Sprintf("%s %s insecure=%t", host, r.Credential.Identity(), r.Insecure)
}

func (c *Client) newSession(key string, origin *url.URL, r Repository) (*session, error) {
	client, err := c.options.Transport.HTTP(origin, r.Credential.TLS, r.Credential.Proxy)
	if err != nil {
		return nil, err
	}
	gate := &gate{
		origin:    origin,
		registry:  client.Transport,
		transport: c.options.Transport,
		tls:       r.Credential.TLS,
		proxy:     r.Credential.Proxy,
		rule:      realmRule{registry: origin, hosts: c.options.RealmHosts},
		clock:     c.options.Clock,
		remedies:  c.options.Remedies,
	}
	return &session{key: key, origin: origin, auth: &auth.Client{
		Client: &http.Client{Transport: gate, CheckRedirect: client.CheckRedirect},
		Header: http.Header{"User-Agent": {clientID}},
		Credential: auth.StaticCredential(origin.Host, auth.Credential{
			Username:     r.Credential.Username,
			Password:     r.Credential.Password.Reveal(),
			RefreshToken: r.Credential.IdentityToken.Reveal(),
			AccessToken:  r.Credential.RegistryToken.Reveal(),
		}),
		Cache:    newTokens(),
		ClientID: clientID,
	}}, nil
}

// schemesFor are those that the registry may be spoken to with, the likely one first: TLS, unless plain http worked before
// or the port is its own.
func (c *Client) schemesFor(host string, r Repository) []string {
	if !r.Insecure {
		return []string{"https"}
	}
	if known, ok := c.schemes.Get(sessionKey(host, r)); ok && known == "http" || !ok && strings.HasSuffix(host, ":80") {
		return []string{"http", "https"}
	}
	return []string{"https", "http"}
}

// speaksPlainly tells whether the failure of a TLS handshake shows a server that does not speak TLS. Without a port in
// the host, one that does not listen for TLS at all counts too: plain http has a port of its own. So does a proxy that
// makes no tunnel there: for plain http none is needed.
func speaksPlainly(err error, host string) bool {
	if answersPlainly(err) || errors.Is(err, transport.ErrProxy) {
		return true
	}
	_, _, noPort := net.SplitHostPort(host)
	return noPort != nil && errors.Is(err, syscall.ECONNREFUSED)
}

// answersPlainly says whether a server was there, and TLS was not what it answered with.
func answersPlainly(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}
