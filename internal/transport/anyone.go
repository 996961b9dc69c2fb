package transport

import (
	"context"
	"net/http"

	"sluice.dev/sluice/internal/credential"
)

// proxyKey is the context's key of the proxy of requests that nobody chose a client for.
type proxyKey struct{}

// WithProxy has the requests of an Anonymous client go by the proxy. An empty one leaves it to the environment.
func WithProxy(ctx context.Context, proxy credential.Proxy) context.Context {
	return context.WithValue(ctx, proxyKey{}, proxy)
}

// ProxyOf is the proxy that requests with the context go by.
func ProxyOf(ctx context.Context) credential.Proxy {
	proxy, _ := ctx.Value(proxyKey{}).(credential.Proxy)
	return proxy
}

// Anonymous returns a client for servers that are known by their URL alone, wherever they are: nobody's certificate or
// credential goes to them. Requests go by the proxy of their context, and redirects are followed as by HTTP's clients.
func (f *Factory) Anonymous() *http.Client {
	return &http.Client{Transport: anyone{f}, CheckRedirect: checkRedirect}
}

// anyone sends each request as to its own origin.
type anyone struct{ factory *Factory }

// RoundTrip implements http.RoundTripper. Bodies are guarded against stalling.
func (a anyone) RoundTrip(request *http.Request) (*http.Response, error) {
	client, err := a.factory.HTTP(request.URL, credential.TLS{}, ProxyOf(request.Context()))
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := client.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = a.factory.Body(response.Body)
	return response, nil
}
