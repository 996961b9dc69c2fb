package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
)

// objects reads the Secrets and ServiceAccounts of the namespace apps, or fails.
type objects struct {
	client.Reader
	secrets  map[string]map[string]string
	accounts map[string]corev1.ServiceAccount
	err      error
}

func (o objects) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if o.err != nil {
		return o.err
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, key.Name)
	if key.Namespace != "apps" {
		return missing
	}
	switch out := out.(type) {
	case *corev1.Secret:
		data, ok := o.secrets[key.Name]
		if !ok {
			return missing
		}
		out.Data = make(map[string][]byte)
		for name, value := range data {
			out.Data[name] = []byte(value)
		}
	case *corev1.ServiceAccount:
		account, ok := o.accounts[key.Name]
		if !ok {
			return missing
		}
		*out = account
	default:
		return errors.New("only Secrets and ServiceAccounts are read here")
	}
	return nil
}

// account makes a ServiceAccount with image pull secrets.
func account(pullSecrets ...string) corev1.ServiceAccount {
	var made corev1.ServiceAccount
	for _, name := range pullSecrets {
		made.ImagePullSecrets = append(made.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return made
}

// docker is a Secret with one entry of a docker config.
func docker(name, entry string) map[string]string {
	return map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths":{%q:%s}}`, name, entry)}
}

func basicAuth(text string) string {
	return `{"auth":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}`
}

// login is a credential that a failing test may print.
type login struct {
	Username, Password, Identity, Bearer string
	CA, Certificate, Key                 string
	SkipVerify                           bool
	Proxy, ProxyUser, ProxyPassword      string
}

func revealLogin(r credential.Registry) login {
	return login{
		Username: r.Username, Password: r.Password.Reveal(), Identity: r.IdentityToken.Reveal(), Bearer: r.RegistryToken.Reveal(),
		CA: string(r.TLS.CA), Certificate: string(r.TLS.Certificate), Key: r.TLS.Key.Reveal(), SkipVerify: r.TLS.SkipVerify,
		Proxy: r.Proxy.URL, ProxyUser: r.Proxy.Username, ProxyPassword: r.Proxy.Password.Reveal(),
	}
}

// asked is the request of most tests: a repository of one registry, in the namespace apps.
func asked(change func(*RegistryRequest)) RegistryRequest {
	r := RegistryRequest{Namespace: "apps", Host: "registry.example:5000", Repository: "team/app"}
	if change != nil {
		change(&r)
	}
	return r
}

func TestRegistryReads(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	file := "{\n \"private_key\": \"x\"\n}\n"
	reader := objects{
		secrets: map[string]map[string]string{
			"auth":     docker("registry.example:5000", basicAuth("me:p:w")),
			"unpadded": docker("registry.example:5000", `{"auth":"`+strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("me:pw")), "=")+`"}`),
			"fields":   docker("registry.example:5000", `{"username":"me","password":"pw"}`),
			"both":     docker("registry.example:5000", `{"username":"other","password":"other","auth":"bWU6cHc="}`),
			"identity": docker("registry.example:5000", `{"auth":"bWU6","identitytoken":"idt"}`),
			"bearer":   docker("registry.example:5000", `{"registrytoken":"bearer"}`),
			"keyfile":  docker("registry.example:5000", basicAuth("_json_key:"+file)),
			"old":      {".dockercfg": `{"https://registry.example:5000/v1/":` + basicAuth("me:pw") + `}`},
			"other":    docker("other.example", basicAuth("me:pw")),
			"empty":    {".dockerconfigjson": `{}`},
			"helper":   {".dockerconfigjson": `{"auths":{"registry.example:5000":{},"other.example":null},"credsStore":"desktop"}`},
			"path":     docker("registry.example:5000/team", basicAuth("team:pw")),
			"certs":    {"ca.crt": k.certificate, "tls.crt": k.certificate, "tls.key": k.key},
			"ca":       {"ca.crt": k.certificate},
			"proxy":    {"address": "http://proxy.example:3128/", "username": "out", "password": "way"},
			"socks":    {"address": "socks5://out:w%40y@proxy.example"},
			"keyed":    {"address": "https://in:side@proxy.example", "username": "out", "password": "way"},
			"open":     {"address": "http://proxy.example:3128"},
			"broken":   {".dockerconfigjson": `{"auths":{"other.example":{"auth":"?"},"registry.example:5000":{"auth":"bWU6cHc="}}}`},
		},
		accounts: map[string]corev1.ServiceAccount{"plain": account(), "puller": account("other", "auth"), "team": account("path")},
	}
	cases := map[string]struct {
		reason string
		ask    func(*RegistryRequest)
		want   login
	}{
		"anonymous":        {"A public repository needs nothing.", nil, login{}},
		"generic":          {"Generic has nobody to ask.", func(r *RegistryRequest) { r.Provider = "generic" }, login{}},
		"auth":             {"The password may have colons.", func(r *RegistryRequest) { r.SecretName = "auth" }, login{Username: "me", Password: "p:w"}},
		"unpadded":         {"Base64 comes without padding too.", func(r *RegistryRequest) { r.SecretName = "unpadded" }, login{Username: "me", Password: "pw"}},
		"fields":           {"User and password may stand by themselves.", func(r *RegistryRequest) { r.SecretName = "fields" }, login{Username: "me", Password: "pw"}},
		"both":             {"As with docker, auth wins.", func(r *RegistryRequest) { r.SecretName = "both" }, login{Username: "me", Password: "pw"}},
		"identity":         {"A token to be exchanged.", func(r *RegistryRequest) { r.SecretName = "identity" }, login{Username: "me", Identity: "idt"}},
		"bearer":           {"A token for the registry.", func(r *RegistryRequest) { r.SecretName = "bearer" }, login{Bearer: "bearer"}},
		"key file":         {"A key file of several lines is a password of some registries.", func(r *RegistryRequest) { r.SecretName = "keyfile" }, login{Username: "_json_key", Password: file}},
		"old format":       {"Old Secrets still count.", func(r *RegistryRequest) { r.SecretName = "old" }, login{Username: "me", Password: "pw"}},
		"other registry":   {"No entry means anonymous.", func(r *RegistryRequest) { r.SecretName = "other" }, login{}},
		"no entries":       {"No entry means anonymous.", func(r *RegistryRequest) { r.SecretName = "empty" }, login{}},
		"helper":           {"What a login helper keeps is not here.", func(r *RegistryRequest) { r.SecretName = "helper" }, login{}},
		"broken elsewhere": {"Another registry's entry is not read.", func(r *RegistryRequest) { r.SecretName = "broken" }, login{Username: "me", Password: "pw"}},
		"account":          {"The account's Secrets count.", func(r *RegistryRequest) { r.ServiceAccountName = "puller" }, login{Username: "me", Password: "p:w"}},
		"account, none":    {"An account without Secrets is anonymous.", func(r *RegistryRequest) { r.ServiceAccountName = "plain" }, login{}},
		"secret first": {
			"Where two are alike, the object's own Secret counts.",
			func(r *RegistryRequest) { r.SecretName, r.ServiceAccountName = "fields", "puller" },
			login{Username: "me", Password: "pw"},
		},
		"account, closer": {
			"A closer match counts, whosever it is.",
			func(r *RegistryRequest) { r.SecretName, r.ServiceAccountName = "fields", "team" },
			login{Username: "team", Password: "pw"},
		},
		"cloud with secret": {
			"A cloud is not asked where there is a Secret, even one for another registry.",
			func(r *RegistryRequest) { r.SecretName, r.Provider = "other", "aws" },
			login{},
		},
		"cloud with account's secret": {
			"Nor where the account has one.",
			func(r *RegistryRequest) { r.ServiceAccountName, r.Provider = "puller", "aws" },
			login{Username: "me", Password: "p:w"},
		},
		"certificates": {
			"TLS comes from a Secret of its own.",
			func(r *RegistryRequest) { r.CertSecretName = "certs" },
			login{CA: k.certificate, Certificate: k.certificate, Key: k.key},
		},
		"insecure": {"Insecure accepts any certificate.", func(r *RegistryRequest) { r.Insecure = true }, login{SkipVerify: true}},
		"insecure with authority": {
			"With certSecretRef there is something to verify by.",
			func(r *RegistryRequest) { r.Insecure, r.CertSecretName = true, "ca" },
			login{CA: k.certificate},
		},
		"proxy": {
			"The path of an address says nothing.",
			func(r *RegistryRequest) { r.ProxySecretName = "proxy" },
			login{Proxy: "http://proxy.example:3128", ProxyUser: "out", ProxyPassword: "way"},
		},
		"socks": {
			"User and password may stand in the address.",
			func(r *RegistryRequest) { r.ProxySecretName = "socks" },
			login{Proxy: "socks5://proxy.example", ProxyUser: "out", ProxyPassword: "w@y"},
		},
		"proxy, both": {
			"The keys win over the address.",
			func(r *RegistryRequest) { r.ProxySecretName = "keyed" },
			login{Proxy: "https://proxy.example", ProxyUser: "out", ProxyPassword: "way"},
		},
		"everything": {
			"Login, TLS and proxy are three things.",
			func(r *RegistryRequest) { r.SecretName, r.CertSecretName, r.ProxySecretName = "fields", "ca", "open" },
			login{Username: "me", Password: "pw", CA: k.certificate, Proxy: "http://proxy.example:3128"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := New(reader, Options{}).Registry(t.Context(), asked(tc.ask))
			if err != nil {
				t.Fatalf("%s got error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, revealLogin(got)); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	mine := func(entry string) map[string]string { return docker("registry.example:5000", entry) }
	secret := func(r *RegistryRequest) { r.SecretName = "subject" }
	certs := func(r *RegistryRequest) { r.CertSecretName = "subject" }
	proxy := func(r *RegistryRequest) { r.ProxySecretName = "subject" }
	puller := func(r *RegistryRequest) { r.ServiceAccountName = "puller" }

	cases := map[string]struct {
		reason string
		ask    func(*RegistryRequest)
		data   map[string]string
		err    error
		stalls string // the reason, if only an edit helps
		want   []string
	}{
		"missing":         {reason: "It may yet be created.", ask: func(r *RegistryRequest) { r.SecretName = "absent" }, want: []string{"secret 'apps/absent' not found", "create it", "spec.secretRef"}},
		"missing certs":   {reason: "The right field is named.", ask: func(r *RegistryRequest) { r.CertSecretName = "absent" }, want: []string{"secret 'apps/absent' not found", "spec.certSecretRef"}},
		"missing proxy":   {reason: "The right field is named.", ask: func(r *RegistryRequest) { r.ProxySecretName = "absent" }, want: []string{"secret 'apps/absent' not found", "spec.proxySecretRef"}},
		"missing account": {reason: "It may yet be created.", ask: func(r *RegistryRequest) { r.ServiceAccountName = "absent" }, want: []string{"service account 'apps/absent' not found", "create it", "spec.serviceAccountName"}},
		"missing pull secret": {
			reason: "The account that wants it is named.", ask: func(r *RegistryRequest) { r.ServiceAccountName = "dangling" },
			want: []string{"secret 'apps/absent' not found", "imagePullSecrets of service account 'apps/dangling'"},
		},
		"unreadable":         {reason: "What the API server says is passed on.", ask: secret, err: errors.New("connection refused"), want: []string{"read secret 'apps/subject'", "connection refused"}},
		"unreadable account": {reason: "What the API server says is passed on.", ask: puller, err: errors.New("connection refused"), want: []string{"read service account 'apps/puller'", "connection refused"}},

		"no config":    {reason: "A Secret of another kind is a mistake.", ask: secret, data: map[string]string{"username": "canary-user", "password": "canary-word"}, want: []string{"no '.dockerconfigjson'", "kubectl create secret docker-registry", "spec.secretRef"}},
		"pull secret":  {reason: "The account's are read alike.", ask: puller, data: map[string]string{"username": "canary-user"}, want: []string{"no '.dockerconfigjson'", "service account 'apps/puller'"}},
		"no JSON":      {reason: "The parser would quote it.", ask: secret, data: map[string]string{".dockerconfigjson": `canary{"auths":`}, want: []string{"'.dockerconfigjson'", "JSON"}},
		"odd JSON":     {reason: "Nothing of it is believed.", ask: secret, data: map[string]string{".dockerconfigjson": `{"auths":{"registry.example:5000":"canary-word"}}`}, want: []string{"'.dockerconfigjson'", "JSON"}},
		"old, no JSON": {reason: "The key that is wrong is the one named.", ask: secret, data: map[string]string{".dockercfg": `[canary`}, want: []string{"'.dockercfg'", "JSON"}},
		"large":        {reason: "Sizes are bounded before anything is parsed.", ask: secret, data: mine(basicAuth(strings.Repeat("canary", 100_000))), want: []string{"'.dockerconfigjson'", "larger than 524288 bytes"}},
		"no base64":    {reason: "It would show as a refused login.", ask: secret, data: mine(`{"auth":"canary-word!"}`), want: []string{"'.dockerconfigjson'", "'registry.example:5000'", "base64 of user:password"}},
		"no colon":     {reason: "There is no password in it.", ask: secret, data: mine(basicAuth("canary-word")), want: []string{"base64 of user:password"}},
		"line break":   {reason: "The most frequent mistake of all.", ask: secret, data: mine(basicAuth("canary-user:canary-word\n")), want: []string{"line break", "kubectl create secret"}},
		"line in user": {reason: "A user is one line.", ask: secret, data: mine(basicAuth("canary\nuser:canary-word")), want: []string{"line break"}},
		"token":        {reason: "A header cannot carry it.", ask: secret, data: mine(`{"registrytoken":"canary-token\n"}`), want: []string{"line break"}},
		"identity":     {reason: "A token is one line.", ask: secret, data: mine(`{"identitytoken":"canary\ntoken"}`), want: []string{"line break"}},
		"colon":        {reason: "The registry would see another user.", ask: secret, data: mine(`{"username":"canary:user","password":"canary-word"}`), want: []string{"colon"}},
		"nobody":       {reason: "A password is of somebody.", ask: secret, data: mine(basicAuth(":canary-word")), want: []string{"a password but no user"}},
		"long token":   {reason: "Nothing that large is a token.", ask: secret, data: mine(`{"registrytoken":"` + strings.Repeat("canary", 4000) + `"}`), want: []string{"more than 16384 bytes"}},

		"no certs":       {reason: "A Secret named and empty is a mistake.", ask: certs, data: map[string]string{"cert": "canary", "tls.crt": ""}, want: []string{"no value under 'ca.crt', or 'tls.crt' and 'tls.key'", "remove spec.certSecretRef"}},
		"half a pair":    {reason: "Half a client certificate proves nothing.", ask: certs, data: map[string]string{"tls.crt": k.certificate}, want: []string{"only one of 'tls.crt' and 'tls.key'"}},
		"bad authority":  {reason: "A bad authority would show as an unknown one.", ask: certs, data: map[string]string{"ca.crt": "canary-authority"}, want: []string{"'ca.crt'", "PEM certificates"}},
		"no address":     {reason: "A proxy is somewhere.", ask: proxy, data: map[string]string{"username": "canary-user"}, want: []string{"no 'address'", "remove spec.proxySecretRef"}},
		"address scheme": {reason: "Only what can be spoken.", ask: proxy, data: map[string]string{"address": "ftp://canary:canary@host"}, want: []string{"'address'", "scheme other than http, https and socks5"}},
		"address":        {reason: "The parser would quote it.", ask: proxy, data: map[string]string{"address": "http://canary:ca%nary@host"}, want: []string{"'address'", "is not a URL"}},
		"address host":   {reason: "There is nobody to ask.", ask: proxy, data: map[string]string{"address": "http://canary:canary@:3128"}, want: []string{"'address'", "names no host"}},
		"address line":   {reason: "The most frequent mistake of all.", ask: proxy, data: map[string]string{"address": "http://canary\n"}, want: []string{"'address'", "line break"}},
		"proxy password": {reason: "The most frequent mistake of all.", ask: proxy, data: map[string]string{"address": "http://host", "username": "canary", "password": "canary\n"}, want: []string{"'password'", "line break"}},
		"proxy nobody":   {reason: "A password is of somebody.", ask: proxy, data: map[string]string{"address": "http://host", "password": "canary"}, want: []string{"no user", "'username'"}},
		"proxy colon":    {reason: "The proxy would see another user.", ask: proxy, data: map[string]string{"address": "http://host", "username": "canary:x", "password": "canary"}, want: []string{"'username'", "colon"}},
		"hidden line":    {reason: "Percent-encoding hides it.", ask: proxy, data: map[string]string{"address": "http://canary:x%0Ay@host"}, want: []string{"'address'", "line break"}},
		"long for socks": {reason: "The protocol has no room for it.", ask: proxy, data: map[string]string{"address": "socks5://host", "username": "me", "password": strings.Repeat("canary", 50)}, want: []string{"more than 255 bytes", "socks5"}},

		"gate": {
			reason: "Only the operator may allow it.", stalls: "FeatureGateDisabled",
			ask:  func(r *RegistryRequest) { r.ServiceAccountName, r.Provider = "plain", "aws" },
			want: []string{"service account 'apps/plain'", "spec.provider aws", "feature gate ObjectLevelWorkloadIdentity", "--feature-gates=ObjectLevelWorkloadIdentity=true", "remove spec.serviceAccountName"},
		},
		"provider": {
			reason: "Only an edit helps.", stalls: "InvalidProviderConfiguration",
			ask: func(r *RegistryRequest) { r.Provider = "github" }, want: []string{`"github" is not known`, "use generic, aws, azure or gcp"},
		},
		"foreign registry": {
			reason: "A cloud's token goes to the cloud alone.", stalls: "InvalidProviderConfiguration",
			ask: func(r *RegistryRequest) { r.Provider = "azure" }, want: []string{"spec.provider azure", `"registry.example:5000"`, "use spec.provider generic"},
		},
		"registry in disguise": {
			reason: "What ends like a registry of the cloud may be somebody else's.", stalls: "InvalidProviderConfiguration",
			ask: func(r *RegistryRequest) { r.Provider, r.Host = "azure", "evil.example?x.azurecr.io" }, want: []string{"none of its registries"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := objects{
				secrets: map[string]map[string]string{"subject": tc.data}, err: tc.err,
				accounts: map[string]corev1.ServiceAccount{"plain": account(), "puller": account("subject"), "dangling": account("absent")},
			}
			got, err := New(reader, Options{}).Registry(t.Context(), asked(tc.ask))
			if err == nil {
				t.Fatalf("%s got no error", tc.reason)
			}
			if diff := cmp.Diff(login{}, revealLogin(got)); diff != "" {
				t.Errorf("a credential came with the error:\n%s", diff)
			}
			want := &failure.Error{Disposition: failure.Retries, Reason: "AuthenticationFailed"}
			switch {
			case tc.stalls != "":
				want = &failure.Error{Disposition: failure.Stalls, Reason: tc.stalls}
			case tc.err != nil:
				want.Disposition = failure.Waits
			}
			found := failure.Of(err)
			if found.Disposition != want.Disposition || found.Reason != want.Reason {
				t.Errorf("%s want %v %s, got %v %s", tc.reason, want.Disposition, want.Reason, found.Disposition, found.Reason)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s want %q in %q", tc.reason, part, err)
				}
			}
			keepsSecrets(t, err, tc.data)
		})
	}
}
