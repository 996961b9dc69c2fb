package oci_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	clocktesting "k8s.io/utils/clock/testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
)

// proxied are credentials with a proxy.
type proxied struct {
	secrets

	proxy credential.Proxy
}

func (p proxied) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{Proxy: p.proxy}, nil
}

// TestVerificationGoesByTheObjectsProxy: what verification asks beside the registry is asked by the same proxy.
func TestVerificationGoesByTheObjectsProxy(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	var mu sync.Mutex
	var asked []string
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL = p.In.URL }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		asked = append(asked, request.URL.Host+request.URL.Path)
		mu.Unlock()
		if request.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden) // The registry speaks plain http.
			return
		}
		forward.ServeHTTP(w, request)
	}))
	t.Cleanup(proxy.Close)
	factory := transport.New(transport.Options{AllowLoopback: true, Proxy: func(request *http.Request) (*url.URL, error) {
		t.Errorf("%s was asked without the proxy", request.URL)
		return nil, nil
	}})
	t.Cleanup(factory.Close)
	client, err := registryclient.New(registryclient.Options{Transport: factory})
	if err != nil {
		t.Fatal(err)
	}
	sigstore := verifytest.NewSigstore(t)
	mirror := verifytest.NewMirror(t, sigstore.TrustedRoot(t), verifytest.Noon().AddDate(0, 0, 7))
	roots, err := verify.NewTUFRoots(verify.TUFOptions{
		Client: factory.Anonymous(), Mirror: mirror.URL, InitialRoot: mirror.InitialRoot,
		Clock: clocktesting.NewFakePassiveClock(verifytest.Noon()),
	})
	if err != nil {
		t.Fatal(err)
	}
	opener := oci.NewOpener(oci.Options{
		Client: client, Credentials: proxied{r.secrets, credential.Proxy{URL: proxy.URL}}, TempDir: t.TempDir(),
		Trust: trust.Trust{Roots: roots, Revocation: factory.Anonymous()},
	})
	wantAsked := func(part string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.ContainsFunc(asked, func(location string) bool { return strings.Contains(location, part) }) {
			t.Errorf("the proxy was not asked for %s: %q", part, asked)
		}
	}

	bundle := sigstore.Bundle(t, verify.Artifact{Repository: "team/app", Descriptor: r.head}, verifytest.Signing{Identity: "someone@example.com", Issuer: "https://tokens.example"})
	r.attach(bundle.MediaType, bundle)
	r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{
		Provider: "cosign", MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: ".*", Subject: ".*"}},
	}
	if _, err := r.prove(t.Context(), opener); err != nil {
		t.Errorf("keyless: %v", err)
	}
	wantAsked(strings.TrimPrefix(mirror.URL, "http://"))

	notary := verifytest.NewRevocableNotary(t)
	r.attach(notationType, notary.Sign(t, r.head, verify.MediaTypeNotationJWS))
	r.secrets["notary"] = notary.Certificates()
	r.secrets["notary"]["trustpolicy.json"] = notary.Policy(t, "strict", []string{"*"}, []string{"*"})
	r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{
		Provider: sourcev1.NotationOCIVerification, SecretRef: &meta.LocalObjectReference{Name: "notary"},
	}
	if _, err := r.prove(t.Context(), opener); err != nil {
		t.Errorf("notation: %v", err)
	}
	wantAsked("/list.crl")
}
