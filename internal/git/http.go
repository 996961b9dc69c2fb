package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const maxErrorBody = 16 << 10

// httpPeer speaks smart HTTP, see gitprotocol-http(5): one request for the advertisement, one for each question.
type httpPeer struct {
	service   service
	client    *http.Client
	transport *transport.Factory
	base      *url.URL
	sign      func(*http.Request)
	meter     *meter
	advertise *advert
	recalled  bool
	answer    io.ReadCloser
	sending   context.CancelCauseFunc // ends the request whose answer it is
}

func (c *Client) openHTTP(ctx context.Context, to endpoint, as credential.Git, s service, m *meter) (peer, error) {
	sign, err := authorization(to, as)
	if err != nil {
		return nil, err
	}
	client, err := c.options.Transport.HTTP(to.url, as.TLS, as.Proxy)
	if errors.Is(err, transport.ErrTLSConfig) {
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	if err != nil {
		return nil, err
	}
	p := &httpPeer{service: s, client: client, transport: c.options.Transport, base: to.url, sign: sign, meter: m}
	key := cacheKey(to, as)
	if s == uploadPack { // That of a push lists refs, and is as new as the push.
		p.advertise, p.recalled = c.adverts.Get(key)
	}
	if p.recalled {
		return p, nil
	}
	if err := p.readAdvert(ctx, c.options.MaxRefs); err != nil {
		return nil, err
	}
	if s == uploadPack && p.advertise.version == 2 && p.base == to.url {
		// A redirect is not remembered: only asking again shows that it leads elsewhere now.
		c.adverts.Add(key, p.advertise)
	}
	return p, nil
}

// authorization prepares the Authorization header. The transport sees to it that no other origin gets it.
func authorization(to endpoint, as credential.Git) (func(*http.Request), error) {
	username, password := as.Username, as.Password.Reveal()
	bearer := as.BearerToken.Reveal()
	switch {
	case bearer != "" && (username != "" || password != ""):
		return nil, fmt.Errorf("%w: bearerToken cannot be combined with username and password", ErrCredential)
	case strings.ContainsAny(bearer, "\r\n\x00"):
		return nil, fmt.Errorf("%w: bearerToken contains a line break", ErrCredential)
	case bearer != "":
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+bearer) }, nil
	case strings.Contains(username, ":"):
		return nil, fmt.Errorf("%w: username contains a colon", ErrCredential)
	case username == "" && password == "":
		username, password = to.username, to.password
	}
	if username == "" && password == "" {
		return func(*http.Request) {}, nil
	}
	return func(r *http.Request) { r.SetBasicAuth(username, password) }, nil
}

func (p *httpPeer) advert() *advert { return p.advertise }

func (p *httpPeer) remembered() bool { return p.recalled }

func (p *httpPeer) close(complete bool) {
	if p.answer == nil {
		return
	}
	if complete {
		// The connection can be used again once the very end of the answer has been seen.
		_, _ = io.CopyN(io.Discard, p.answer, maxErrorBody)
	}
	_ = p.answer.Close() // The answer has been read, or nobody wants the rest of it.
	p.answer = nil
	p.sending(nil)
}

func (p *httpPeer) readAdvert(ctx context.Context, maxRefs int) (err error) {
	location := join(p.base, "info/refs")
	location.RawQuery = "service=" + string(p.service)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return err
	}
	final, err := p.do(request, p.service.mediaType("advertisement"))
	if err != nil {
		return err
	}
	defer func() { p.close(err == nil) }()
	if final.String() != location.String() {
		if p.base, err = redirectedBase(final); err != nil {
			return err
		}
	}
	body := newBounded(p.answer, maxAdvertBytes, p.meter)
	p.advertise, err = readAdvert(ctx, newPacketReader(body), p.service, maxRefs)
	return err
}

// redirectedBase is where the repository moved to. Like Git itself, follow only to the same resource elsewhere.
func redirectedBase(final *url.URL) (*url.URL, error) {
	base := *final
	var ok bool
	if base.Path, ok = strings.CutSuffix(final.Path, "/info/refs"); !ok {
		return nil, protocolErrorf("redirected to %s, which is no repository", credential.CleanURL(final.String()))
	}
	base.RawPath = strings.TrimSuffix(final.RawPath, "/info/refs")
	base.User, base.RawQuery, base.Fragment = nil, "", ""
	return &base, nil
}

func (p *httpPeer) ask(ctx context.Context, question []byte, limit int64) (*packetReader, error) {
	return p.send(ctx, plain(question), limit)
}

func (p *httpPeer) send(ctx context.Context, m message, limit int64) (*packetReader, error) {
	p.close(true)
	ctx, stop := context.WithCancelCause(ctx)
	open := func() (io.ReadCloser, error) {
		return p.transport.Upload(m.open(), func() { stop(transport.ErrStalled) }), nil
	}
	location := join(p.base, string(p.service))
	body, _ := open() // It never fails.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, location.String(), body)
	if err != nil {
		stop(nil)
		return nil, err
	}
	request.ContentLength, request.GetBody = m.size, open
	request.Header.Set("Content-Type", p.service.mediaType("request"))
	if _, err := p.do(request, p.service.mediaType("result")); err != nil {
		if stalled := context.Cause(ctx); errors.Is(stalled, transport.ErrStalled) {
			err = stalled
		}
		stop(nil)
		return nil, err
	}
	p.sending = stop
	return newPacketReader(newBounded(p.answer, limit, p.meter)), nil
}

// do leaves a response with status 200 and the content type in p.answer, and returns where it came from.
func (p *httpPeer) do(request *http.Request, want string) (*url.URL, error) {
	request.Header.Set("User-Agent", agent)
	request.Header.Set("Accept", want)
	if p.service == uploadPack {
		request.Header.Set("Git-Protocol", "version=2")
	}
	p.sign(request)
	response, err := p.client.Do(request) //nolint:bodyclose // The body becomes p.answer, which p.close closes.
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // The text around it repeats method and URL.
		}
		return nil, err
	}
	response.Body = p.transport.Body(response.Body)
	p.answer, p.sending = response.Body, func(error) {}
	if err := cmp.Or(checkStatus(response), checkType(response, want)); err != nil {
		p.close(false)
		return nil, err
	}
	return response.Request.URL, nil
}

func checkStatus(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	err := fmt.Errorf("server answers %d %s%s", response.StatusCode, http.StatusText(response.StatusCode), words(response))
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: %w", ErrAuthentication, err)
	case code == http.StatusNotFound || code == http.StatusGone:
		return unexpected(fmt.Errorf("%w: %w", ErrNotFound, err))
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return err
	case code >= 300 && code < 400:
		err = fmt.Errorf("%w, which is not followed here", err)
	}
	return unexpected(fmt.Errorf("%w: %w", ErrProtocol, err))
}

// words is the beginning of an error page, if it is plain text.
func words(response *http.Response) string {
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || media != "text/plain" {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if said := strings.TrimSpace(string(text)); err == nil && said != "" {
		return ": " + transport.PrintableQuoted(said)
	}
	return ""
}

func checkType(response *http.Response, want string) error {
	got := response.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(got)
	if err == nil && media == want {
		return nil
	}
	return unexpected(protocolErrorf("server answers with content type %s: this is no Git repository over smart HTTP",
		transport.PrintableQuoted(got)))
}

// join appends a fixed relative path to the URL, and keeps escapes in it as they are.
func join(base *url.URL, name string) *url.URL {
	joined := *base
	joined.Path = strings.TrimRight(base.Path, "/") + "/" + name
	if base.RawPath != "" {
		joined.RawPath = strings.TrimRight(base.RawPath, "/") + "/" + name
	}
	return &joined
}
