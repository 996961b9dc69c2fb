package registry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// maxTokenAnswer bounds what a token server answers. Tokens have to fit into a header, which is far less.
const maxTokenAnswer = 128 << 10

// gate sends requests to the registry, and requests for tokens to the token server that the registry named. It sees
// each challenge before anybody acts on it.
type gate struct {
	origin    *url.URL
	registry  http.RoundTripper
	transport *transport.Factory
	tls       credential.TLS
	proxy     credential.Proxy
	rule      realmRule
	clock     clock.PassiveClock
	remedies  *Remedies
}

// RoundTrip sends the request. Its errors are ErrRealm when a challenge is not to be answered, and *StatusError when
// the token server refuses.
func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if isTokenRequest(request.Context()) {
		return g.askForToken(request)
	}
	response, err := g.registry.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = g.transport.Body(response.Body)
	if response.StatusCode != http.StatusUnauthorized || transport.Origin(request.URL) != transport.Origin(g.origin) {
		return response, nil
	}
	if err := settle(response, maxErrorBody); err != nil {
		return nil, err
	}
	if err := g.judge(response.Header, attemptOf(request.Context())); err != nil {
		return nil, err
	}
	return response, nil
}

// settle reads a small body to its end, so that the connection can be used again whatever becomes of the answer.
func settle(response *http.Response, limit int64) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// judge leaves the one challenge in the header that may be answered, and only what is answered of it: the scope is
// ours to choose. The realm stays in the attempt, and the one in the header stands under the registry's own host,
// because the library would look the host's name up by itself.
func (g *gate) judge(header http.Header, current *attempt) error {
	chosen, ok := choose(header)
	header.Del("Www-Authenticate")
	if !ok {
		return nil
	}
	if chosen.scheme == "basic" {
		header.Set("Www-Authenticate", "Basic")
		return nil
	}
	if chosen.twice {
		return g.rule.refuse(chosen.params["realm"], "the challenge says so twice")
	}
	realm, err := g.rule.parse(chosen.params["realm"])
	if err != nil {
		return err
	}
	current.realm = realm.String()
	stand := *realm
	stand.Scheme, stand.Host = g.origin.Scheme, g.origin.Host
	header.Set("Www-Authenticate", "Bearer realm="+strconv.Quote(stand.String())+
		",service="+strconv.Quote(chosen.params["service"]))
	return nil
}

func (g *gate) askForToken(request *http.Request) (*http.Response, error) {
	realm, err := g.rule.parse(attemptOf(request.Context()).realm)
	if err != nil {
		return nil, closeBody(request, err)
	}
	client, err := g.transport.HTTP(realm, g.tls, g.proxy)
	if err != nil {
		return nil, closeBody(request, err)
	}
	follow := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if err := g.rule.check(next.URL); err != nil {
			return err
		}
		return follow(next, via)
	}
	sent := request.Clone(request.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = realm.Scheme, realm.Host, realm.Host
	response, err := client.Do(sent)
	if err != nil {
		return nil, err
	}
	response.Body = g.transport.Body(response.Body)
	if err := settle(response, maxTokenAnswer); err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, tokenError(g.clock, response, realm.Host, g.remedies)
	case mediaType(response.Header) == "text/html":
		return nil, ownError{protocolErrorf("token server %s answers with a web page", realm.Host)}
	}
	return response, nil
}

func closeBody(request *http.Request, err error) error {
	if request.Body != nil {
		_ = request.Body.Close() // Nothing was read from it.
	}
	return fmt.Errorf("ask for a token: %w", err)
}
