package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
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

// cluster reads one Secret, apps/git, or fails.
type cluster struct {
	client.Reader
	data map[string]string
	err  error
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	secret, ok := out.(*corev1.Secret)
	switch {
	case !ok:
		return errors.New("only Secrets are read here")
	case c.err != nil:
		return c.err
	case key != client.ObjectKey{Namespace: "apps", Name: "git"}:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret.Data = make(map[string][]byte)
	for name, value := range c.data {
		secret.Data[name] = []byte(value)
	}
	return nil
}

// revealed is a credential that a failing test may print.
type revealed struct {
	Username, Password, Bearer, CA, Certificate, Key string
	User, Identity, Passphrase, Hosts                string
}

func reveal(g credential.Git) revealed {
	r := revealed{
		Username: g.Username, Password: g.Password.Reveal(), Bearer: g.BearerToken.Reveal(),
		CA: string(g.TLS.CA), Certificate: string(g.TLS.Certificate), Key: g.TLS.Key.Reveal(),
	}
	if g.SSH != nil {
		r.User, r.Identity, r.Passphrase, r.Hosts = g.SSH.User, g.SSH.PrivateKey.Reveal(),
			g.SSH.Passphrase.Reveal(), string(g.SSH.KnownHosts)
	}
	return r
}

func TestGitReads(t *testing.T) {
	t.Parallel()
	k := newKeys(t)

	cases := map[string]struct {
		reason string
		name   string
		url    string
		data   map[string]string
		want   revealed
	}{
		"anonymous": {
			reason: "A public repository needs no Secret.",
			url:    "https://git.example/x",
		},
		"userinfo": {
			reason: "The URL's user and password are taken where there is no Secret, decoded.",
			url:    "https://me:p%40ss@git.example/x",
			want:   revealed{Username: "me", Password: "p@ss"},
		},
		"basic": {
			reason: "The Secret wins over the URL, as a whole.",
			name:   "git",
			url:    "https://other:word@git.example/x",
			data:   map[string]string{"username": "me", "password": "p"},
			want:   revealed{Username: "me", Password: "p"},
		},
		"token as user": {
			reason: "Some hosts take a token for the user and want an empty password.",
			name:   "git",
			url:    "https://git.example/x",
			data:   map[string]string{"username": "t0ken", "password": ""},
			want:   revealed{Username: "t0ken"},
		},
		"bearer": {
			reason: "A token stands alone, also where the URL has a user to fall back on.",
			name:   "git",
			url:    "https://me:p@git.example/x",
			data:   map[string]string{"bearerToken": "t0ken"},
			want:   revealed{Bearer: "t0ken"},
		},
		"authority and userinfo": {
			reason: "A Secret that says nothing about logging in leaves it to the URL.",
			name:   "git",
			url:    "https://me:p@git.example/x",
			data:   map[string]string{"caFile": k.certificate},
			want:   revealed{Username: "me", Password: "p", CA: k.certificate},
		},
		"two authorities": {
			reason: "The newer key wins.",
			name:   "git",
			url:    "https://git.example/x",
			data:   map[string]string{"ca.crt": k.certificate, "caFile": k.otherCertificate},
			want:   revealed{CA: k.certificate},
		},
		"client certificate and token": {
			reason: "TLS and logging in are two things.",
			name:   "git",
			url:    "https://git.example/x",
			data:   map[string]string{"tls.crt": k.certificate, "tls.key": k.key, "bearerToken": "t0ken"},
			want:   revealed{Bearer: "t0ken", Certificate: k.certificate, Key: k.key},
		},
		"ssh": {
			reason: "A host without a user in its URL is logged in to as git.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.plain, "known_hosts": k.hosts},
			want:   revealed{User: "git", Identity: k.plain, Hosts: k.hosts},
		},
		"ssh user of the url": {
			reason: "The user in the URL is part of the address.",
			name:   "git",
			url:    "ssh://me@git.example:2222/x",
			data:   map[string]string{"identity": k.ecdsa, "known_hosts": k.hosts, "username": "other"},
			want:   revealed{User: "me", Identity: k.ecdsa, Hosts: k.hosts},
		},
		"ssh user of the secret": {
			reason: "The Secret's user is better than a guess.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.plain, "known_hosts": k.hosts, "username": "me"},
			want:   revealed{User: "me", Identity: k.plain, Hosts: k.hosts},
		},
		"encrypted": {
			reason: "The password of an ssh Secret opens its key.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.encrypted, "known_hosts": k.hosts, "password": passphrase},
			want:   revealed{User: "git", Identity: k.encrypted, Passphrase: passphrase, Hosts: k.hosts},
		},
		"encrypted, old format": {
			reason: "PEM keys encrypted the old way are still around.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.legacy, "known_hosts": k.hosts, "password": passphrase},
			want:   revealed{User: "git", Identity: k.legacy, Passphrase: passphrase, Hosts: k.hosts},
		},
		"passphrase left over": {
			reason: "A key that is not encrypted gets no passphrase.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.plain, "known_hosts": k.hosts, "password": "old"},
			want:   revealed{User: "git", Identity: k.plain, Hosts: k.hosts},
		},
		"known hosts": {
			reason: "Comments, empty lines, revoked keys, Windows' line ends and a missing last one are all in the format.",
			name:   "git",
			url:    "ssh://git.example/x",
			data: map[string]string{
				"identity":    k.plain,
				"known_hosts": "# hosts\r\n\r\n@revoked * " + strings.TrimPrefix(k.hosts, "git.example ") + strings.TrimSpace(k.hosts),
			},
			want: revealed{
				User: "git", Identity: k.plain,
				Hosts: "# hosts\r\n\r\n@revoked * " + strings.TrimPrefix(k.hosts, "git.example ") + strings.TrimSpace(k.hosts),
			},
		},
		"for both, over https": {
			reason: "One Secret may serve both kinds of URL; https takes its own keys.",
			name:   "git",
			url:    "https://git.example/x",
			data: map[string]string{
				"identity": "unread", "known_hosts": "unread", "username": "me", "password": "p",
			},
			want: revealed{Username: "me", Password: "p"},
		},
		"for both, over ssh": {
			reason: "One Secret may serve both kinds of URL; ssh takes its own keys.",
			name:   "git",
			url:    "ssh://git.example/x",
			data:   map[string]string{"identity": k.plain, "known_hosts": k.hosts, "bearerToken": "t"},
			want:   revealed{User: "git", Identity: k.plain, Hosts: k.hosts},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := New(cluster{data: tc.data}, Options{}).Git(t.Context(), GitRequest{Namespace: "apps", SecretName: tc.name, URL: tc.url})
			if err != nil {
				t.Fatalf("%s got error: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, reveal(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGitRefuses(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	const web, shell = "https://git.example/x", "ssh://git@git.example/x"
	hosts := func(data map[string]string) map[string]string {
		data["known_hosts"] = k.hosts
		return data
	}

	cases := map[string]struct {
		reason string
		name   string // of the Secret; empty means git, "-" none
		url    string
		data   map[string]string
		err    error
		stalls bool
		cause  string
		want   []string // what the text has to name, beside the Secret
	}{
		"missing": {
			reason: "The Secret may yet be created.", name: "absent", url: web,
			want: []string{"secret 'apps/absent' not found", "create it"},
		},
		"unreadable": {
			reason: "What the API server says is passed on.", url: web,
			err:  errors.New("connection refused"),
			want: []string{"read secret", "connection refused"},
		},
		"empty": {
			reason: "A Secret named and empty is a mistake, not anonymity.", url: web,
			data: map[string]string{"user": "canary-user", "username": ""},
			want: []string{"no value under 'username', 'bearerToken'", "remove spec.secretRef"},
		},
		"basic and bearer": {
			reason: "Which of the two is meant cannot be told.", url: web,
			data: map[string]string{"username": "canary-user", "password": "canary-word", "bearerToken": "canary-token"},
			want: []string{"both 'bearerToken' and 'username'", "remove one"},
		},
		"password alone": {
			reason: "A password is of somebody.", url: web,
			data: map[string]string{"password": "canary-word"},
			want: []string{"'password' but no 'username'"},
		},
		"password and authority": {
			reason: "A password is of somebody, whatever else is there.", url: web,
			data: map[string]string{"password": "canary-word", "ca.crt": k.certificate},
			want: []string{"'password' but no 'username'"},
		},
		"user alone": {
			reason: "A missing password is more often misspelt than meant.", url: web,
			data: map[string]string{"username": "canary-user", "pasword": "canary-word"},
			want: []string{"'username' but no 'password'"},
		},
		"colon": {
			reason: "The server would see another user and password.", url: web,
			data: map[string]string{"username": "canary:user", "password": "canary-word"},
			want: []string{"'username'", "colon"},
		},
		"line break in token": {
			reason: "The most frequent mistake of all.", url: web,
			data: map[string]string{"bearerToken": "canary-token\n"},
			want: []string{"'bearerToken'", "line break", "printf"},
		},
		"line break in password": {
			reason: "The server would only say 401.", url: web,
			data: map[string]string{"username": "canary-user", "password": "canary-word\n"},
			want: []string{"'password'", "line break"},
		},
		"line break in user": {
			reason: "The server would only say 401.", url: web,
			data: map[string]string{"username": "canary-user\r\n", "password": "canary-word"},
			want: []string{"'username'", "line break"},
		},
		"large token": {
			reason: "Nothing that large is a token.", url: web,
			data: map[string]string{"bearerToken": strings.Repeat("canary", 4000)},
			want: []string{"'bearerToken'", "larger than 16384 bytes"},
		},
		"large authority": {
			reason: "Sizes are bounded before anything is parsed.", url: web,
			data: map[string]string{"ca.crt": strings.Repeat(k.certificate, 2000)},
			want: []string{"'ca.crt'", "larger than 524288 bytes"},
		},
		"authority is no PEM": {
			reason: "A bad authority would show as an unknown one.", url: web,
			data: map[string]string{"ca.crt": "canary-authority"},
			want: []string{"'ca.crt'", "PEM certificates"},
		},
		"old authority is no certificate": {
			reason: "The key that is wrong is the one named.", url: web,
			data: map[string]string{"caFile": "-----BEGIN CERTIFICATE-----\nY2FuYXJ5LWF1dGhvcml0eQ==\n-----END CERTIFICATE-----\n"},
			want: []string{"'caFile'", "PEM certificates"},
		},
		"key among the authorities": {
			reason: "A private key is not to be passed round as if it were public.", url: web,
			data: map[string]string{"ca.crt": k.certificate + k.key},
			want: []string{"'ca.crt'", "PEM certificates"},
		},
		"certificate without key": {
			reason: "Half a client certificate proves nothing.", url: web,
			data: map[string]string{"tls.crt": k.certificate},
			want: []string{"only one of 'tls.crt' and 'tls.key'"},
		},
		"key without certificate": {
			reason: "Half a client certificate proves nothing.", url: web,
			data: map[string]string{"tls.key": k.key},
			want: []string{"only one of 'tls.crt' and 'tls.key'"},
		},
		"client certificate is no PEM": {
			reason: "The key that is wrong is the one named.", url: web,
			data: map[string]string{"tls.crt": "canary-certificate", "tls.key": k.key},
			want: []string{"'tls.crt'", "PEM certificate"},
		},
		"client key is no PEM": {
			reason: "The key that is wrong is the one named.", url: web,
			data: map[string]string{"tls.crt": k.certificate, "tls.key": "canary-key"},
			want: []string{"'tls.key'", "PEM private key"},
		},
		"client key of an odd type": {
			reason: "The parser would quote the type.", url: web,
			data: map[string]string{
				"tls.crt": k.certificate, "tls.key": "-----BEGIN CANARY-TYPE-----\nY2FuYXJ5\n-----END CANARY-TYPE-----\n",
			},
			want: []string{"'tls.key'", "is not the private key of 'tls.crt'"},
		},
		"long key of a certificate": {
			reason: "A key does not choose how long a handshake takes.", url: web,
			data: longPair(t),
			want: []string{"'tls.key'", "more than 8192 bits"},
		},
		"not a pair": {
			reason: "The handshake would fail without saying why.", url: web,
			data: map[string]string{"tls.crt": k.otherCertificate, "tls.key": k.key},
			want: []string{"'tls.key'", "is not the private key of 'tls.crt'"},
		},
		"ssh secret for https": {
			reason: "URL and Secret are at odds.", url: web,
			data: hosts(map[string]string{"identity": k.plain, "password": "canary-word"}),
			want: []string{"keys for ssh, but spec.url is https"},
		},
		"ssh secret for http": {
			reason: "URL and Secret are at odds.", url: "http://git.example/x",
			data: hosts(map[string]string{"identity": k.plain}),
			want: []string{"keys for ssh, but spec.url is http;"},
		},
		"app": {
			reason: "An App's Secret needs another provider.", url: web, cause: "InvalidProviderConfiguration",
			data: map[string]string{"githubAppPrivateKey": "canary-key", "githubAppID": "canary-id"},
			want: []string{"'githubAppID'", "GitHub App"},
		},
		"no identity": {
			reason: "ssh needs a key.", url: shell,
			data: hosts(map[string]string{"username": "canary-user", "password": "canary-word"}),
			want: []string{"no 'identity'"},
		},
		"no known hosts": {
			reason: "A host's key is always checked.", url: shell,
			data: map[string]string{"identity": k.plain},
			want: []string{"no 'known_hosts'"},
		},
		"identity is no key": {
			reason: "A bad key would show as a refused login.", url: shell,
			data: hosts(map[string]string{"identity": "canary-identity"}),
			want: []string{"'identity'", "not a private key"},
		},
		"identity of an odd type": {
			reason: "The parser would quote the type.", url: shell,
			data: hosts(map[string]string{"identity": "-----BEGIN CANARY-TYPE-----\nY2FuYXJ5\n-----END CANARY-TYPE-----\n"}),
			want: []string{"'identity'", "not a private key"},
		},
		"identity is the public key": {
			reason: "The two files are easily mixed up.", url: shell,
			data: hosts(map[string]string{"identity": strings.TrimPrefix(k.hosts, "git.example ")}),
			want: []string{"'identity'", "not a private key"},
		},
		"identity cut short": {
			reason: "A key was pasted without its end.", url: shell,
			data: hosts(map[string]string{"identity": k.plain[:len(k.plain)/2]}),
			want: []string{"'identity'", "not a private key"},
		},
		"large identity": {
			reason: "Sizes are bounded before anything is parsed.", url: shell,
			data: hosts(map[string]string{"identity": strings.Repeat(k.plain, 100)}),
			want: []string{"'identity'", "larger than 16384 bytes"},
		},
		"passphrase missing": {
			reason: "An encrypted key has to be opened.", url: shell,
			data: hosts(map[string]string{"identity": k.encrypted}),
			want: []string{"encrypted 'identity' but no 'password'"},
		},
		"passphrase wrong": {
			reason: "The remedy names the usual cause.", url: shell,
			data: hosts(map[string]string{"identity": k.encrypted, "password": passphrase + "\n"}),
			want: []string{"'password' that does not open 'identity'", "without a line break"},
		},
		"passphrase wrong, old format": {
			reason: "The old format tells it as well.", url: shell,
			data: hosts(map[string]string{"identity": k.legacy, "password": "canary-word"}),
			want: []string{"'identity'"},
		},
		"endless key": {
			reason: "A key does not choose how long it holds a worker.", url: shell,
			data: hosts(map[string]string{"identity": demanding(t, k.encrypted), "password": passphrase}),
			want: []string{"'identity'", "too much work"},
		},
		"short rsa": {
			reason: "Servers refuse it without saying why.", url: shell,
			data: hosts(map[string]string{"identity": k.weak}),
			want: []string{"'identity'", "less than 2048 bits"},
		},
		"long rsa": {
			reason: "A key does not choose how long a signature takes.", url: shell,
			data: hosts(map[string]string{"identity": longKey(t, 8194)}),
			want: []string{"'identity'", "more than 8192 bits"},
		},
		"dsa": {
			reason: "Servers refuse it without saying why.", url: shell,
			data: hosts(map[string]string{"identity": k.dsa}),
			want: []string{"'identity'", "DSA"},
		},
		"small curve": {
			reason: "There is no ssh key of this kind.", url: shell,
			data: hosts(map[string]string{"identity": k.p224}),
			want: []string{"'identity'", "cannot sign"},
		},
		"ssh user of the secret": {
			reason: "A user is one line.", url: "ssh://git.example/x",
			data: hosts(map[string]string{"identity": k.plain, "username": "canary\nuser"}),
			want: []string{"'username'", "line break"},
		},
		"known hosts is no list": {
			reason: "The line is named, not quoted.", url: shell,
			data: map[string]string{"identity": k.plain, "known_hosts": "# comment\n" + k.hosts + "canary-host ssh-ed25519 canary-key\n"},
			want: []string{"'known_hosts'", "line 3", "ssh-keyscan"},
		},
		"known hosts names only a host": {
			reason: "A line without a key is not skipped.", url: shell,
			data: map[string]string{"identity": k.plain, "known_hosts": "canary-host\n"},
			want: []string{"'known_hosts'", "line 1"},
		},
		"known hosts has an unknown marker": {
			reason: "What it would say of the key is unknown.", url: shell,
			data: map[string]string{"identity": k.plain, "known_hosts": k.hosts + "@canary " + k.hosts},
			want: []string{"'known_hosts'", "line 2"},
		},
		"known hosts is a comment": {
			reason: "Nobody is trusted.", url: shell,
			data: map[string]string{"identity": k.plain, "known_hosts": "# canary-comment\n"},
			want: []string{"'known_hosts'", "trusts no host key"},
		},
		"known hosts only revokes": {
			reason: "Nobody is trusted.", url: shell,
			data: map[string]string{"identity": k.plain, "known_hosts": "@revoked " + k.hosts},
			want: []string{"'known_hosts'", "trusts no host key"},
		},
		"ssh without a secret": {
			reason: "Only an edit of the object helps.", name: "-", url: shell, stalls: true,
			want: []string{"spec.secretRef is missing", "'identity' and 'known_hosts'"},
		},
		"bad url": {
			reason: "Only an edit of the object helps.", url: "https://me:canary/word@git.example/x", stalls: true,
			cause: "URLInvalid", want: []string{"spec.url is not a URL", "percent-encoded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := map[string]string{"": "git", "-": "", "absent": "absent"}[tc.name]
			got, err := New(cluster{data: tc.data, err: tc.err}, Options{}).Git(t.Context(), GitRequest{Namespace: "apps", SecretName: secret, URL: tc.url})
			if err == nil {
				t.Fatalf("%s got no error", tc.reason)
			}
			if diff := cmp.Diff(revealed{}, reveal(got)); diff != "" {
				t.Errorf("a credential came with the error:\n%s", diff)
			}

			found := failure.Of(err)
			want := &failure.Error{Disposition: failure.Retries, Reason: "AuthenticationFailed"}
			if tc.stalls {
				want.Disposition = failure.Stalls
			}
			if tc.err != nil {
				want.Disposition = failure.Waits
			}
			if tc.cause != "" {
				want.Reason = tc.cause
			}
			if found.Disposition != want.Disposition || found.Reason != want.Reason {
				t.Errorf("%s want %v %s, got %v %s", tc.reason, want.Disposition, want.Reason, found.Disposition, found.Reason)
			}
			if !tc.stalls {
				tc.want = append(tc.want, "secret 'apps/"+secret+"'")
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

// keepsSecrets looks for the lines of every value, and for canaries, in all that can be printed of an error.
func keepsSecrets(t *testing.T, err error, data map[string]string) {
	t.Helper()
	encoded, jsonErr := json.Marshal(err)
	must(t, jsonErr)
	printed := string(encoded)
	for e := err; e != nil; e = errors.Unwrap(e) {
		printed += fmt.Sprintf("\n%s\n%v\n%+v\n%#v\n%q", e, e, e, e, e)
	}
	needles := []string{"canary", "CANARY", base64.StdEncoding.EncodeToString([]byte("canary"))}
	for _, value := range data {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) > 8 {
				needles = append(needles, line, base64.StdEncoding.EncodeToString([]byte(line)))
			}
		}
	}
	for _, needle := range needles {
		if strings.Contains(printed, needle) {
			t.Errorf("%q is in the error:\n%s", needle, printed)
		}
	}
}

func TestReadPassesOnWhatHappened(t *testing.T) {
	t.Parallel()
	_, err := New(cluster{err: context.DeadlineExceeded}, Options{}).Git(t.Context(), GitRequest{Namespace: "apps", SecretName: "git", URL: "https://git.example/x"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
