package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// A server that asks for a certificate and breaks off says nothing itself.
func TestMissingClientCertificateIsTold(t *testing.T) {
	t.Parallel()
	ca := upstream.ForTest(t).CA()
	identity, err := ca.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	factory := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(factory.Close)
	for _, auth := range []tls.ClientAuthType{tls.NoClientCert, tls.RequestClientCert} {
		origin := breakOff(t, &tls.Config{Certificates: []tls.Certificate{identity.TLS}, ClientAuth: auth, MinVersion: tls.VersionTLS13})
		client, err := factory.HTTP(parse(t, origin), credential.TLS{CA: ca.PEM()}, credential.Proxy{})
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
			t.Fatal("there must be no answer")
		}
		asked := auth != tls.NoClientCert
		if got := strings.Contains(err.Error(), "asks for a client certificate"); got != asked {
			t.Errorf("asked %t: %v", asked, err)
		}
	}
}

// breakOff is a server that closes each connection after its handshake.
func breakOff(t *testing.T, config *tls.Config) (origin string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			_ = tls.Server(raw, config).HandshakeContext(context.WithoutCancel(t.Context()))
			_ = raw.Close()
		}
	}()
	return "https://" + listener.Addr().String()
}
