package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"sluice.dev/sluice/internal/memory"
)

// exchange is the requests of one call: to one repository, with one credential.
type exchange struct {
	client     *Client
	repository Repository
	// host and name are where the repository is asked for.
	host, name string
	attempt    *attempt
	// writes lets the library see the answers that pushing goes by.
	writes bool
	// session is the one that answered the last time.
	session *session
}

func (c *Client) begin(r Repository) (*exchange, error) {
	host := strings.ToLower(r.Host)
	e := &exchange{client: c, repository: r, attempt: &attempt{}}
	if err := checkHost(host); err != nil {
		return e, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if err := checkName(r.Name); err != nil {
		return e, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if r.Credential.TLS.SkipVerify && !r.Insecure {
		return e, fmt.Errorf("%w: certificates go unverified only where spec.insecure is set", ErrURL)
	}
	if strings.Contains(r.Credential.Username, ":") {
		return e, fmt.Errorf("%w: user name contains a colon", ErrAuthentication)
	}
	e.host, e.name = endpoint(host, r.Name)
	return e, nil
}

// call gets one thing of the repository. Errors say what it was for, and what they are about behind the repository's name.
func call[T any](ctx context.Context, c *Client, r Repository, verb, what string, get func(*exchange) (T, error)) (found T, err error) {
	e, err := c.begin(r)
	if err == nil {
		found, err = get(e)
	}
	if err != nil {
		var none T
		return none, e.conclude(ctx, verb, what, err)
	}
	return found, nil
}

// ask sends a request that has to be answered 200. The answer's body is guarded and counted, and has to be closed.
func (e *exchange) ask(ctx context.Context, method, path, query string, header http.Header) (*http.Response, error) {
	location := &url.URL{Scheme: "https", Host: e.host, Path: "/v2/" + e.name + path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, location.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return e.Do(request)
}

// Do sends a request by the scheme that the registry speaks, whatever the request says, and as the repository's identity.
// What comes back is what was asked for; any other status is a *StatusError.
func (e *exchange) Do(request *http.Request) (*http.Response, error) {
	schemes := e.client.schemesFor(e.host, e.repository)
	var plainly error // what went wrong over plain http, where that worked before
	for i, scheme := range schemes {
		response, err := e.send(scheme, request)
		last := i == len(schemes)-1
		switch {
		case err == nil:
			e.remember(scheme, response.StatusCode)
			return e.expected(request, response)
		case last || request.Context().Err() != nil || scheme == "https" && !speaksPlainly(err, e.host):
			e.forget()
			if !e.repository.Insecure && answersPlainly(err) {
				return nil, fmt.Errorf("%w: %s", plain(err), e.client.options.Remedies.Plain)
			}
			if plainly != nil && speaksPlainly(err, e.host) {
				// The server speaks plain http still; what it said there counts.
				err = plainly
			}
			return nil, plain(err)
		case scheme == "http":
			// What worked the last time does not any more; the server may speak TLS by now.
			e.forget()
			if isAnswer(err) {
				return nil, plain(err)
			}
			plainly = err
		}
	}
	return nil, protocolErrorf("no scheme to speak")
}

func (e *exchange) send(scheme string, request *http.Request) (*http.Response, error) {
	s, err := e.client.session(scheme, e.host, e.repository)
	if err != nil {
		return nil, err
	}
	e.session = s
	e.attempt.token = ""
	ctx := context.WithValue(request.Context(), attemptKey{}, e.attempt)
	actions := []string{auth.ActionPull}
	if e.repository.Push {
		actions = append(actions, auth.ActionPush)
	}
	request = request.Clone(auth.WithScopesForHost(ctx, e.host, auth.ScopeRepository(e.name, actions...)))
	request.URL.Scheme = scheme
	if request.GetBody != nil {
		// The other scheme may have been tried before.
		if request.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
	response, err := s.auth.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body = &meter{ReadCloser: response.Body, observe: e.client.options.Observe}
	return response, nil
}

// expected returns the answer, or the error that it stands for.
func (e *exchange) expected(request *http.Request, response *http.Response) (*http.Response, error) {
	switch status := response.StatusCode; {
	case status == http.StatusOK,
		status == http.StatusPartialContent && request.Header.Get("Range") != "",
		status == http.StatusNotModified && request.Header.Get("If-None-Match") != "",
		e.writes && isWritten(request.Method, status):
		return response, nil
	}
	defer done(response)
	c := e.repository.Credential
	anonymous := c.Username == "" && c.IdentityToken.IsZero() && c.RegistryToken.IsZero()
	return nil, refusal(e.client.options.Clock, response, e.client.options.Remedies, anonymous)
}

// remember keeps the scheme that worked, until an answer makes it doubtful.
func (e *exchange) remember(scheme string, status int) {
	switch {
	case !e.repository.Insecure:
	case status == http.StatusBadRequest || status == http.StatusUpgradeRequired:
		// So servers answer that were spoken to plainly and want TLS.
		e.forget()
	default:
		e.client.schemes.Add(sessionKey(e.host, e.repository), scheme)
	}
}

func (e *exchange) forget() {
	if e.repository.Insecure {
		e.client.schemes.Remove(sessionKey(e.host, e.repository))
	}
}

// done reads the rest of a short answer, so that the connection can be used again, and closes it.
func done(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxErrorBody)
	_ = response.Body.Close() // What was wanted of it has been read.
}

// copyAll copies a body that has to fit into the limit.
func copyAll(ctx context.Context, into io.Writer, body io.Reader, limit limit) (size int64, err error) {
	size, err = io.Copy(into, io.LimitReader(drawn{ctx, body}, limit.bytes+1))
	switch {
	case err != nil:
		return size, fmt.Errorf("read the answer: %w", err)
	case size > limit.bytes:
		return size, limitErrorf("answer has more than %d bytes (%s)", limit.bytes, limit.name)
	}
	return size, nil
}

// held is how much is drawn for each byte of an answer: it is in memory as it came, and as it is read.
const held = 2

// drawn reads a body that is going to be held.
type drawn struct {
	//nolint:containedctx // It belongs to the one call that reads.
	ctx  context.Context
	body io.Reader
}

func (r drawn) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if short := memory.Draw(r.ctx, held*int64(n)); short != nil {
		return 0, short
	}
	return n, err
}

// Release gives back what was drawn for an answer, before the work ends that it was drawn for.
func Release(ctx context.Context, answer []byte) { memory.Return(ctx, held*int64(len(answer))) }

// meter counts what is read from a body, and tells it once.
type meter struct {
	io.ReadCloser

	observe func(int64)
	count   int64
	told    bool
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.count += int64(n)
	return n, err
}

func (m *meter) Close() error {
	if !m.told {
		m.told = true
		m.observe(m.count)
	}
	return m.ReadCloser.Close()
}
