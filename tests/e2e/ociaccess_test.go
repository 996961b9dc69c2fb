package e2e

import (
	"encoding/base64"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/tests/upstream/registry"
)

const (
	ociPassword    = "canary-registry-password-41c7"
	ociBadPassword = "canary-wrong-password-93ab"
)

// ociAccess is one way into a registry.
type ociAccess struct {
	reason  string
	options registry.Options
	// secret makes the Secrets of the object; it may be nil.
	secret  func(s ociScene, name string, r *registry.Fixture)
	changes []ociChange
}

func TestOCIEveryAccessBringsTheLayer(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	s.hide("the registry's password", ociPassword)
	ca, clients := s.upstream.CA(), s.upstream.CA()
	identity, err := clients.Client("sluice")
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]string{"ada": ociPassword}
	trusts := func(s ociScene, name string, _ *registry.Fixture) {
		s.secret(name+"-ca", map[string]string{"ca.crt": string(ca.PEM())})
	}
	logsIn := func(s ociScene, name string, r *registry.Fixture) { s.dockerConfig(name, r.DockerConfig("ada")) }
	cases := map[string]ociAccess{
		"plain":    {reason: "A plain registry needs nothing but leave."},
		"tls":      {reason: "The Secret's authority is trusted.", options: registry.Options{CA: ca}, secret: trusts, changes: []ociChange{ociSecure, ociCert("tls-ca")}},
		"unproven": {reason: "A certificate that nobody vouches for needs leave, too.", options: registry.Options{CA: ca}},
		"client-certificate": {
			reason: "A certificate logs in.", options: registry.Options{CA: ca, ClientCA: clients},
			secret: func(s ociScene, name string, _ *registry.Fixture) {
				s.secret(name, map[string]string{"ca.crt": string(ca.PEM()), "tls.crt": string(identity.CertPEM), "tls.key": string(identity.KeyPEM)})
			},
			changes: []ociChange{ociSecure, ociCert("client-certificate")},
		},
		"basic": {reason: "Name and password log in.", options: registry.Options{Auth: registry.Basic, Users: users}, secret: logsIn, changes: []ociChange{ociSecret("basic")}},
		"basic-tls": {
			reason: "A password goes over TLS.", options: registry.Options{CA: ca, Auth: registry.Basic, Users: users},
			secret: func(s ociScene, name string, r *registry.Fixture) {
				trusts(s, name, r)
				logsIn(s, name, r)
			},
			changes: []ociChange{ociSecure, ociCert("basic-tls-ca"), ociSecret("basic-tls")},
		},
		"token": {reason: "Name and password get a token.", options: registry.Options{Auth: registry.TokenAuth, Users: users}, secret: logsIn, changes: []ociChange{ociSecret("token")}},
		"identity-token": {
			reason: "An identity token gets a token.", options: registry.Options{Auth: registry.TokenAuth, Users: users},
			secret: func(s ociScene, name string, r *registry.Fixture) {
				s.hide("the identity token", r.Tokens().IdentityToken("ada"))
				s.dockerConfig(name, r.DockerConfigIdentity("ada"))
			},
			changes: []ociChange{ociSecret("identity-token")},
		},
		"registry-token": {
			reason: "A registry token needs no token server.", options: registry.Options{Auth: registry.TokenAuth, Users: users},
			secret: func(s ociScene, name string, r *registry.Fixture) {
				issued, err := r.Tokens().RegistryToken("team/app", "pull")
				if err != nil {
					s.t.Fatal(err)
				}
				s.hide("the registry token", issued)
				s.dockerConfig(name, r.DockerConfigToken(issued))
			},
			changes: []ociChange{ociSecret("registry-token")},
		},
		"anonymous-token": {reason: "Nobody gets a token, too.", options: registry.Options{Auth: registry.TokenAuth, Anonymous: true}},
		"account": {
			reason: "The ServiceAccount's pull secrets log in.", options: registry.Options{Auth: registry.TokenAuth, Users: users},
			secret: func(s ociScene, name string, r *registry.Fixture) {
				s.dockerConfig(name, r.DockerConfig("ada"))
				s.account(name, name)
			},
			changes: []ociChange{ociAccount("account")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			r := registry.ForTest(t, c.options)
			pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
			if c.secret != nil {
				c.secret(s, name, r)
			}
			s.create(name, r.URL("team/app"), c.changes...)
			s.holds(s.ready(name, at("latest", pushed)).Status.Artifact, files(module(1)))
		})
	}
}

// account makes a ServiceAccount with one pull secret.
func (s ociScene) account(name, pullSecret string) {
	s.t.Helper()
	err := env.Client.Create(s.t.Context(), &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: pullSecret}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestOCIRefusedLoginsAreToldWithoutTheirSecretsAndHeal(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	s.hide("the registry's password", ociPassword)
	s.hide("a wrong password", ociBadPassword)
	ca, clients := s.upstream.CA(), s.upstream.CA()
	identity, err := clients.Client("sluice")
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]string{"ada": ociPassword}
	badLogin := func(s ociScene, name string, r *registry.Fixture) {
		s.dockerConfig(name, loginOf(r.Host(), "ada", ociBadPassword))
	}
	goodLogin := func(s ociScene, name string, r *registry.Fixture) {
		s.dropSecret(name)
		s.dockerConfig(name, r.DockerConfig("ada"))
	}
	nothing := func(ociScene, string, *registry.Fixture) {}
	cases := map[string]struct {
		reason  string
		options registry.Options
		before  func(s ociScene, name string, r *registry.Fixture)
		want    trouble
		after   func(s ociScene, name string, r *registry.Fixture)
		changes []ociChange
	}{
		// The next try is not made with a login that was refused, so that the registry's own words are those of the first.
		"basic": {"A wrong password is refused.", registry.Options{Auth: registry.Basic, Users: users}, badLogin, pullFailed("authentication failed: registry "), goodLogin, []ociChange{ociSecret("basic")}},
		"token": {"The token server refuses a wrong password.", registry.Options{Auth: registry.TokenAuth, Users: users}, badLogin, pullFailed("401 Unauthorized"), goodLogin, []ociChange{ociSecret("token")}},
		"nobody": {"The registry wants to know who asks.", registry.Options{Auth: registry.Basic, Users: users}, nothing, pullFailed("registry asks for a user name and a password"), func(s ociScene, name string, r *registry.Fixture) {
			s.dockerConfig(name, r.DockerConfig("ada"))
			s.change(name, ociSecret(name))
		}, nil},
		"missing": {"A Secret that is missing is named.", registry.Options{Auth: registry.Basic, Users: users}, nothing, loginFailed("secret '" + s.namespace + "/missing' not found"), func(s ociScene, name string, r *registry.Fixture) { s.dockerConfig(name, r.DockerConfig("ada")) }, []ociChange{ociSecret("missing")}},
		"unproven": {"A certificate that nobody vouches for is no proof.", registry.Options{CA: ca}, nothing, pullFailed("certificate signed by unknown authority"), func(s ociScene, name string, _ *registry.Fixture) {
			s.secret(name, map[string]string{"ca.crt": string(ca.PEM())})
			s.change(name, ociCert(name))
		}, []ociChange{ociSecure}},
		"certificate": {
			"The registry wants a certificate.",
			registry.Options{CA: ca, ClientCA: clients},
			func(s ociScene, name string, _ *registry.Fixture) {
				s.secret(name, map[string]string{"ca.crt": string(ca.PEM())})
			},
			pullFailed("certificate required"),
			func(s ociScene, name string, _ *registry.Fixture) {
				s.secret(name, map[string]string{"ca.crt": string(ca.PEM()), "tls.crt": string(identity.CertPEM), "tls.key": string(identity.KeyPEM)})
			},
			[]ociChange{ociSecure, ociCert("certificate")},
		},
		"plain": {"Without leave nothing is said in plain text.", registry.Options{}, nothing, pullFailed("http"), func(s ociScene, name string, _ *registry.Fixture) { s.edit(name, allowInsecure) }, []ociChange{ociSecure}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			r := registry.ForTest(t, c.options)
			pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
			c.before(s, name, r)
			s.create(name, r.URL("team/app"), c.changes...)
			if obj := s.failing(name, c.want); obj.Status.Artifact != nil || obj.Status.URL != "" {
				t.Errorf("an artifact without a login: %s", asJSON(obj.Status))
			}
			c.after(s, name, r)
			s.ready(name, at("latest", pushed))
		})
	}
}

// loginOf is a docker config with one login.
func loginOf(host, user, password string) []byte {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, host, auth)
}

func TestOCIAProxyIsUsedAndLoggedInTo(t *testing.T) {
	t.Parallel()
	const proxyPassword = "canary-proxy-password-6d02"
	s := newOCIScene(t)
	s.hide("the proxy's password", proxyPassword)
	s.hide("the registry's password", ociPassword)
	ca := s.upstream.CA()
	identity, err := ca.Server("registry.example.org")
	if err != nil {
		t.Fatal(err)
	}
	// Nothing but the proxy knows where the registry of that name is.
	const host = "registry.example.org:5443"
	options := map[string]registry.Options{
		"tls":   {Identity: &identity, Auth: registry.TokenAuth, Users: map[string]string{"ada": ociPassword}},
		"plain": {Auth: registry.Basic, Users: map[string]string{"ada": ociPassword}},
	}
	s.dockerConfig("login", loginOf(host, "ada", ociPassword))
	s.secret("ca", map[string]string{"ca.crt": string(ca.PEM())})
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			r := registry.ForTest(t, o)
			if name == "tls" {
				r.SetRealm("https://" + host + "/token")
			}
			pushed := r.Repository("team/app").PushFlux("latest", module(1), nil)
			proxy := newProxy(t, r.Host(), name == "plain", proxyPassword)
			changes := []ociChange{ociSecret("login"), ociProxy(name + "-proxy")}
			if name == "tls" {
				changes = append(changes, ociSecure, ociCert("ca"))
			}
			s.secret(name+"-proxy", map[string]string{"address": proxy.URL, "username": "out", "password": "canary-bad-proxy-password"})
			s.create(name, "oci://"+host+"/team/app", changes...)
			s.failing(name, pullFailed("roxy"))
			if n := r.Count(); n != 0 {
				t.Errorf("the registry got %d requests past the proxy", n)
			}
			s.secret(name+"-proxy", map[string]string{"address": proxy.URL, "username": "out", "password": proxyPassword})
			s.request(name)
			s.holds(s.ready(name, at("latest", pushed)).Status.Artifact, files(module(1)))
			if proxy.passed() == 0 {
				t.Error("the proxy passed nothing on")
			}
			for _, secret := range r.Secrets() {
				if secret != "" && proxy.knows(secret) {
					t.Errorf("the proxy's password went on to the registry: %q", secret)
				}
			}
		})
	}
}
