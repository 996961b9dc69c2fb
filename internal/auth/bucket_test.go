package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// bucketLogin is what is in a credential.
type bucketLogin struct{ access, secret, session, bearer, account, accountKey, query string }

func revealBucket(b credential.Bucket) bucketLogin {
	return bucketLogin{
		b.AccessKey, b.SecretKey.Reveal(), b.SessionToken.Reveal(), b.Bearer.Reveal(), b.Account, b.AccountKey.Reveal(), b.Query.Reveal(),
	}
}

const azureEndpoint = "https://account.blob.core.windows.net"

func TestBucketReadsSecrets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		provider, endpoint string
		data               map[string]string
		want               bucketLogin
	}{
		"keys":            {"generic", "host", map[string]string{"accesskey": "a", "secretkey": "s"}, bucketLogin{access: "a", secret: "s"}},
		"keys for Amazon": {"aws", "host", map[string]string{"accesskey": "a", "secretkey": "s"}, bucketLogin{access: "a", secret: "s"}},
		"account key":     {"azure", azureEndpoint, map[string]string{"accountKey": "a2V5"}, bucketLogin{account: "account", accountKey: "a2V5"}},
		"signature":       {"azure", azureEndpoint, map[string]string{"sasKey": "?sv=1&sig=x"}, bucketLogin{query: "?sv=1&sig=x"}},
		"key before signature": {
			"azure", azureEndpoint, map[string]string{"sasKey": "sv=1", "accountKey": "a2V5"}, bucketLogin{account: "account", accountKey: "a2V5"},
		},
	} {
		secrets := New(objects{secrets: map[string]map[string]string{"login": tc.data}}, Options{})
		got, err := secrets.Bucket(t.Context(), BucketRequest{Namespace: "apps", Provider: tc.provider, Endpoint: tc.endpoint, SecretName: "login"})
		if err != nil || revealBucket(got) != tc.want {
			t.Errorf("%s: got %+v, %v", name, revealBucket(got), err)
		}
	}
	for _, provider := range []string{"", "generic", "azure"} {
		got, err := New(objects{}, Options{}).Bucket(t.Context(), BucketRequest{Namespace: "apps", Provider: provider, Endpoint: "http://127.0.0.1:10000/x"})
		if err != nil || revealBucket(got) != (bucketLogin{}) {
			t.Errorf("%s without a Secret: got %+v, %v", provider, revealBucket(got), err)
		}
	}
}

// TestBucketRefuses: every malformed form of every provider, in Flux's words.
func TestBucketRefuses(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	secrets := map[string]map[string]string{
		"none": {"other": "CANARY"}, "half": {"accesskey": "CANARY-access"}, "line": {"accesskey": "a", "secretkey": "CANARY\nkey"},
		"user": {"username": "u"}, "tls": {"tls.crt": k.certificate}, "proxyless": {"username": "u"}, "login": {"accesskey": "a", "secretkey": "s"},
		"json": {"serviceaccount": "CANARY{"}, "type": {"serviceaccount": `{"type":"external_account","credential_source":{"url":"http://127.0.0.1:1/CANARY","file":"/etc/passwd"}}`},
		"uri":  {"serviceaccount": `{"type":"service_account","client_email":"e","private_key":"CANARY","token_uri":"https://evil.example/token"}`},
		"http": {"serviceaccount": `{"type":"service_account","client_email":"e","private_key":"CANARY","token_uri":"http://oauth2.googleapis.com/token"}`},
		"bare": {"serviceaccount": `{"type":"service_account"}`}, "pem": {"serviceaccount": `{"type":"service_account","client_email":"e","private_key":"CANARY"}`},
		"accountkey": {"accountKey": "Q0FOQVJZ"}, "sas": {"sasKey": "sig=CANARY%zz"},
		"authority": {"tenantId": "t", "clientId": "c", "clientSecret": "CANARY", "authorityHost": "https://evil.example/"},
		"plain":     {"tenantId": "t", "clientId": "c", "clientSecret": "CANARY", "authorityHost": "http://login.microsoftonline.com/"},
		"cert":      {"tenantId": "11111111-1111-1111-1111-111111111111", "clientId": "c", "clientCertificate": "CANARY"},
		"tenant":    {"tenantId": "t", "clientSecret": "CANARY"},
		"managed":   {"clientId": "c"},
	}
	ldap := &STS{Provider: "ldap", Endpoint: "https://sts.example"}
	with := func(secret, cert string) *STS {
		return &STS{Provider: "ldap", Endpoint: "https://sts.example", SecretName: secret, CertSecretName: cert}
	}
	for name, tc := range map[string]struct {
		request BucketRequest
		says    string
		reason  string
		stalls  bool
	}{
		"no secret":        {BucketRequest{SecretName: "gone"}, "failed to get secret 'apps/gone': secret 'apps/gone' not found", "AuthenticationFailed", false},
		"no keys":          {BucketRequest{SecretName: "half"}, "invalid 'half' secret data: required fields 'accesskey' and 'secretkey'", "AuthenticationFailed", false},
		"no keys, Amazon":  {BucketRequest{Provider: "aws", SecretName: "none"}, "invalid 'none' secret data: required fields 'accesskey' and 'secretkey'", "AuthenticationFailed", false},
		"a line break":     {BucketRequest{SecretName: "line"}, "has a bad 'secretkey'", "AuthenticationFailed", false},
		"half a pair":      {BucketRequest{CertSecretName: "tls"}, "failed to get TLS config: secret 'apps/tls' has only one of", "AuthenticationFailed", false},
		"no certificates":  {BucketRequest{CertSecretName: "gone"}, "failed to get TLS config: secret 'apps/gone' not found", "AuthenticationFailed", false},
		"no proxy":         {BucketRequest{ProxySecretName: "proxyless"}, "failed to get proxy URL: secret 'apps/proxyless' has no 'address'", "AuthenticationFailed", false},
		"STS user":         {BucketRequest{STS: with("user", "")}, "invalid 'user' secret data for 'ldap' STS provider: required fields username, password", "AuthenticationFailed", false},
		"STS secret":       {BucketRequest{STS: with("gone", "")}, "failed to get STS secret 'apps/gone': ", "AuthenticationFailed", false},
		"STS certificates": {BucketRequest{STS: with("", "tls")}, "failed to get STS TLS config: ", "AuthenticationFailed", false},
		"STS elsewhere":    {BucketRequest{Provider: "gcp", STS: ldap}, "STS provider 'ldap' is not supported for 'gcp' bucket provider", "InvalidSTSConfiguration", true},
		"LDAP for Amazon":  {BucketRequest{Provider: "aws", STS: ldap}, "STS provider 'ldap' is not supported for 'aws' bucket provider", "InvalidSTSConfiguration", true},
		"Amazon's STS":     {BucketRequest{STS: &STS{Provider: "aws", Endpoint: "https://sts.amazonaws.com"}}, "STS provider 'aws' is not supported", "InvalidSTSConfiguration", true},
		"no STS":           {BucketRequest{STS: &STS{Provider: "ldap", Endpoint: "https://u:CANARY@%zz"}}, "failed to parse STS endpoint", "URLInvalid", true},
		"STS with a user":  {BucketRequest{STS: &STS{Provider: "ldap", Endpoint: "https://u:CANARY@host"}}, "failed to parse STS endpoint", "URLInvalid", true},
		"no Amazon STS":    {BucketRequest{Provider: "aws", STS: &STS{Provider: "aws", Endpoint: "https://evil.example"}}, "spec.sts.endpoint: invalid STS endpoint", "URLInvalid", true},
		"no key file":      {BucketRequest{Provider: "gcp", SecretName: "none"}, "invalid 'none' secret data: required fields 'serviceaccount'", "AuthenticationFailed", false},
		"no JSON":          {BucketRequest{Provider: "gcp", SecretName: "json"}, "has a bad 'serviceaccount': it is no JSON", "AuthenticationFailed", false},
		"another type":     {BucketRequest{Provider: "gcp", SecretName: "type"}, "it is not of type service_account", "AuthenticationFailed", false},
		"another host":     {BucketRequest{Provider: "gcp", SecretName: "uri"}, "has a token_uri that is none of Google's", "AuthenticationFailed", false},
		"no TLS":           {BucketRequest{Provider: "gcp", SecretName: "http"}, "has a token_uri that is none of Google's", "AuthenticationFailed", false},
		"no key":           {BucketRequest{Provider: "gcp", SecretName: "bare"}, "has no client_email or private_key", "AuthenticationFailed", false},
		"no PEM":           {BucketRequest{Provider: "gcp", SecretName: "pem"}, "its private_key is no RSA key in PEM", "AuthenticationFailed", false},
		"nothing of Azure": {BucketRequest{Provider: "azure", SecretName: "none"}, "invalid 'none' secret data: requires a 'clientId' or 'accountKey' field, ", "AuthenticationFailed", false},
		"half a principal": {BucketRequest{Provider: "azure", SecretName: "tenant"}, "requires a 'clientId' or 'accountKey' field, ", "AuthenticationFailed", false},
		"no account":       {BucketRequest{Provider: "azure", Endpoint: "http://127.0:1", SecretName: "accountkey"}, "more than two labels", "AuthenticationFailed", false},
		"no signature":     {BucketRequest{Provider: "azure", SecretName: "sas"}, "has a bad 'sasKey'", "AuthenticationFailed", false},
		"authority":        {BucketRequest{Provider: "azure", SecretName: "authority"}, "has a bad 'authorityHost'", "AuthenticationFailed", false},
		"plain authority":  {BucketRequest{Provider: "azure", SecretName: "plain"}, "has a bad 'authorityHost'", "AuthenticationFailed", false},
		"no certificate":   {BucketRequest{Provider: "azure", SecretName: "cert"}, "has a bad 'clientCertificate'", "AuthenticationFailed", false},
		"managed elsewhere": {
			BucketRequest{Provider: "azure", Endpoint: "https://evil.example", SecretName: "managed"}, "not https at one of Azure's own hosts", "AuthenticationFailed", false,
		},
		"account elsewhere": {
			BucketRequest{Provider: "azure", Endpoint: "https://evil.example", ServiceAccountName: "apps"}, "not https at one of Azure's own hosts", "AuthenticationFailed", false,
		},
		"account without gate": {BucketRequest{Provider: "gcp", ServiceAccountName: "apps"}, "ObjectLevelWorkloadIdentity", "FeatureGateDisabled", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Namespace = "apps"
			all := New(objects{secrets: secrets, accounts: map[string]corev1.ServiceAccount{"apps": {}}}, Options{})
			_, err := all.Bucket(t.Context(), tc.request)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("want %q, got %v", tc.says, err)
			}
			got := failure.Of(err)
			if got.Reason != tc.reason || (got.Disposition == failure.Stalls) != tc.stalls {
				t.Errorf("got %+v", got)
			}
			keepsSecrets(t, err, nil)
		})
	}
}

// loopback reaches this machine.
func loopback() *transport.Factory {
	return transport.New(transport.Options{AllowLoopback: true})
}

// TestLDAPLogsInToAnSTS: objects that log in as the same share the keys, which are asked for anew when they are old.
func TestLDAPLogsInToAnSTS(t *testing.T) {
	t.Parallel()
	asked := 0
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Method != http.MethodPost || r.FormValue("Action") != "AssumeRoleWithLDAPIdentity" || r.FormValue("Version") != "2011-06-15" ||
			r.FormValue("LDAPUsername") != "user" || r.FormValue("LDAPPassword") != "CANARY-ldap" {
			http.Error(w, "I do not know "+r.FormValue("LDAPPassword"), http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithLDAPIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithLDAPIdentityResult><Credentials>
			<AccessKeyId>id-%d</AccessKeyId><SecretAccessKey>key</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>
			</Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>`, asked, ends.Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	clock := clocktesting.NewFakePassiveClock(ends.Add(-time.Hour))
	reader := objects{secrets: map[string]map[string]string{
		"user": {"username": "user", "password": "CANARY-ldap"}, "other": {"username": "user", "password": "CANARY-wrong"},
	}}
	secrets := New(reader, Options{Transport: loopback(), Clock: clock})
	request := BucketRequest{Namespace: "apps", STS: &STS{Provider: "ldap", Endpoint: sts.URL, SecretName: "user"}}
	for i, wait := range []time.Duration{0, 0, 50 * time.Minute} {
		clock.SetTime(clock.Now().Add(wait))
		got, err := secrets.Bucket(t.Context(), request)
		want := bucketLogin{access: "id-1", secret: "key", session: "session"}
		if i == 2 {
			want.access = "id-2"
		}
		if err != nil || revealBucket(got) != want {
			t.Errorf("%d: got %+v, %v", i, revealBucket(got), err)
		}
	}
	request.STS.SecretName = "other"
	_, err := secrets.Bucket(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "the server answers 403 Forbidden") {
		t.Errorf("got %v", err)
	}
	keepsSecrets(t, err, nil)
}

// TestRule4AnswersOfAnSTSAreBounded, and are what an STS says.
func TestRule4AnswersOfAnSTSAreBounded(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		},
		"no XML":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
		"no keys": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<x></x>") },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
	} {
		sts := httptest.NewServer(http.HandlerFunc(answer))
		t.Cleanup(sts.Close)
		secrets := New(objects{}, Options{Transport: loopback()})
		request := BucketRequest{Namespace: "apps", STS: &STS{Provider: "ldap", Endpoint: sts.URL}}
		if _, err := secrets.Bucket(t.Context(), request); err == nil || failure.Of(err).Reason != "AuthenticationFailed" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRule10AnSTSPassesTheDialPolicy: it is a URL in a spec as any other.
func TestRule10AnSTSPassesTheDialPolicy(t *testing.T) {
	t.Parallel()
	denied := transport.New(transport.Options{AllowLoopback: true, DeniedPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, connections := range []*transport.Factory{denied, transport.New(transport.Options{})} {
		secrets := New(objects{}, Options{Transport: connections})
		request := BucketRequest{Namespace: "apps", STS: &STS{Provider: "ldap", Endpoint: "http://127.0.0.1:1"}}
		if _, err := secrets.Bucket(t.Context(), request); !errors.Is(err, transport.ErrDenied) {
			t.Errorf("got %v", err)
		}
	}
}

// TestRule7CredentialFilesAreData: a key file is exchanged at Google, or where the operator says, and at no other place.
func TestRule7CredentialFilesAreData(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	file := func(uri string) string {
		text, err := json.Marshal(map[string]string{
			"type": "service_account", "client_email": "reader@project", "private_key_id": "7", "token_uri": uri,
			"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		})
		must(t, err)
		return string(text)
	}
	now := time.Now()
	var audience string
	exchange := func(w http.ResponseWriter, r *http.Request) {
		claims := jwt.MapClaims{}
		proof, err := jwt.ParseWithClaims(r.FormValue("assertion"), claims, func(*jwt.Token) (any, error) { return &private.PublicKey, nil })
		if err != nil || claims["iss"] != "reader@project" || claims["aud"] != audience || proof.Header["kid"] != "7" ||
			claims["scope"] != "https://www.googleapis.com/auth/devstorage.read_only" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		reply(`{"access_token":"canary-google","expires_in":3600}`)(w, r)
	}
	own := httptest.NewServer(http.HandlerFunc(exchange))
	t.Cleanup(own.Close)
	c := newCloud(t, map[string]http.HandlerFunc{"oauth2.googleapis.com/token": exchange})
	for name, tc := range map[string]struct {
		uri, audience string
		hosts         []string
		proxy         string
	}{
		"Google":       {"", "https://oauth2.googleapis.com/token", nil, "proxy"},
		"Google, said": {"https://oauth2.googleapis.com/token", "https://oauth2.googleapis.com/token", nil, "proxy"},
		"the operator": {own.URL + "/t", own.URL + "/t", []string{strings.TrimPrefix(own.URL, "http://")}, ""},
	} {
		audience = tc.audience
		reader := objects{secrets: map[string]map[string]string{"key": {"serviceaccount": file(tc.uri)}, "proxy": c.secret()}}
		secrets := New(reader, Options{Transport: loopback(), GoogleTokenHosts: tc.hosts, Clock: clocktesting.NewFakePassiveClock(now)})
		got, err := secrets.Bucket(t.Context(), BucketRequest{Namespace: "apps", Provider: "gcp", SecretName: "key", ProxySecretName: tc.proxy})
		if err != nil || got.Bearer.Reveal() != "canary-google" || got.Principal == "" {
			t.Errorf("%s: got %+v, %v", name, revealBucket(got), err)
		}
	}
}

// TestPrincipalsLogInToAzure: with a secret and with a certificate, by the object's proxy.
func TestPrincipalsLogInToAzure(t *testing.T) {
	t.Parallel()
	const tenant = "11111111-1111-1111-1111-111111111111"
	authority := "login.microsoftonline.com/" + tenant
	answers := map[string]http.HandlerFunc{
		authority + "/v2.0/.well-known/openid-configuration": reply(
			`{"authorization_endpoint":"https://%[1]s/a","token_endpoint":"https://%[1]s/oauth2/v2.0/token","issuer":"https://%[1]s/v2.0"}`, authority),
		authority + "/oauth2/v2.0/token": func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("client_secret") != "CANARY-client" && r.FormValue("client_assertion") == "" || !strings.Contains(r.FormValue("scope"), azureScope) {
				w.WriteHeader(http.StatusUnauthorized)
				reply(`{"error":"invalid_client","error_description":"not %s"}`, r.FormValue("client_secret"))(w, r)
				return
			}
			reply(`{"token_type":"Bearer","expires_in":3600,"access_token":"canary-azure"}`)(w, r)
		},
	}
	c := newCloud(t, answers)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	reader := objects{secrets: map[string]map[string]string{
		"secret": {"tenantId": tenant, "clientId": "client", "clientSecret": "CANARY-client"},
		"cert":   {"tenantId": tenant, "clientId": "client", "clientCertificate": rsaPair(t, private), "clientCertificateSendChain": "1"},
		"wrong":  {"tenantId": tenant, "clientId": "client", "clientSecret": "CANARY-wrong"},
		"proxy":  c.secret(),
	}}
	secrets := New(reader, Options{Transport: loopback()})
	for _, name := range []string{"secret", "cert"} {
		got, err := secrets.Bucket(t.Context(), BucketRequest{
			Namespace: "apps", Provider: "azure", Endpoint: azureEndpoint, SecretName: name, ProxySecretName: "proxy",
		})
		if err != nil || got.Bearer.Reveal() != "canary-azure" {
			t.Errorf("%s: got %+v, %v", name, revealBucket(got), err)
		}
	}
	_, err = secrets.Bucket(t.Context(), BucketRequest{
		Namespace: "apps", Provider: "azure", Endpoint: azureEndpoint, SecretName: "wrong", ProxySecretName: "proxy",
	})
	if err == nil || failure.Of(err).Reason != "AuthenticationFailed" {
		t.Errorf("got %v", err)
	}
	keepsSecrets(t, err, nil)
}

// TestAccountsLogInToBuckets: each cloud's own token is what its storage takes.
func TestAccountsLogInToBuckets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		provider
		want bucketLogin
	}{
		{amazon(), bucketLogin{access: "id", secret: "key", session: "session"}},
		{google(), bucketLogin{bearer: "canary-google"}},
		{microsoft(), bucketLogin{bearer: "canary-entra"}},
	} {
		c := newCloud(t, tc.answers)
		secrets, registry := tc.subject(c, Options{})
		request := BucketRequest{
			Namespace: "apps", Provider: tc.name, Endpoint: azureEndpoint, Region: "eu-west-1",
			ServiceAccountName: registry.ServiceAccountName, ProxySecretName: registry.ProxySecretName,
		}
		for range 2 {
			got, err := secrets.Bucket(t.Context(), request)
			if err != nil || revealBucket(got) != tc.want || got.Principal == "" {
				t.Errorf("%s: got %+v, %v", tc.name, revealBucket(got), err)
			}
		}
	}
}

// TestControllerReadsBucketsOfAmazon: the keys of the environment sign requests.
func TestControllerReadsBucketsOfAmazon(t *testing.T) {
	leaveClouds(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary-key")
	got, err := New(objects{}, Options{}).Bucket(t.Context(), BucketRequest{Namespace: "apps", Provider: "aws", Endpoint: "s3.amazonaws.com"})
	if err != nil || revealBucket(got) != (bucketLogin{access: "id", secret: "canary-key"}) {
		t.Errorf("got %+v, %v", revealBucket(got), err)
	}
}

// rsaPair is a certificate with its key, in PEM.
func rsaPair(t *testing.T, private *rsa.PrivateKey) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}
