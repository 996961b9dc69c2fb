package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// askedKey is the context's key of an *atomic.Bool: whether a handshake asked for a client certificate in vain.
type askedKey struct{}

// noteRequests presents no certificate, as a configuration without one does, and notes that one was asked for.
//
// In TLS 1.3 a server refuses only after the client has ended its part of the handshake (RFC 8446, section 4.4.2.4).
// What the client then sees first may be a broken connection, which says nothing about the cause.
func noteRequests(config *tls.Config) {
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if asked, ok := info.Context().Value(askedKey{}).(*atomic.Bool); ok {
			asked.Store(true)
		}
		return new(tls.Certificate), nil
	}
}

// explained sends the request and, if it fails, says so where a certificate is missing.
func explained(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	var asked atomic.Bool
	response, err := next.RoundTrip(request.WithContext(context.WithValue(request.Context(), askedKey{}, &asked)))
	if err != nil && asked.Load() && !strings.Contains(err.Error(), "certificate") {
		err = fmt.Errorf("%w: the server asks for a client certificate, and none is given", err)
	}
	return response, err
}
