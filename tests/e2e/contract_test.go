package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream"
)

func sparse(paths ...string) change {
	return func(spec *sourcev1.GitRepositorySpec) { spec.SparseCheckout = paths }
}

func submodules(spec *sourcev1.GitRepositorySpec) { spec.RecurseSubmodules = true }

// TestSubmodulesAndPathsShapeTheArtifact: each alone and both together, and each change of a submodule's pin is a new one.
func TestSubmodulesAndPathsShapeTheArtifact(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	app, lib := s.upstream.Repository("team/app"), s.upstream.Repository("team/lib")
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	pinned := func(text string) string {
		commit := lib.Commit("main", text, upstream.Text(map[string]string{"lib.yaml": text}))
		return app.Commit("main", text, upstream.Files{
			"deploy/app.yaml": {Content: "app"}, "docs/read.md": {Content: "docs"},
			"deploy/lib":  {Mode: upstream.Submodule, Content: commit},
			".gitmodules": {Content: "[submodule \"lib\"]\n\tpath = deploy/lib\n\turl = ../lib\n"},
		})
	}
	tip := pinned("one")
	shapes := map[string]struct {
		changes []change
		files   []string
	}{
		"plain":   {nil, []string{"deploy/app.yaml", "docs/read.md"}},
		"sparse":  {[]change{sparse("deploy")}, []string{"deploy/app.yaml"}},
		"modules": {[]change{submodules}, []string{"deploy/app.yaml", "deploy/lib/lib.yaml", "docs/read.md"}},
		"both":    {[]change{submodules, sparse("deploy/lib")}, []string{"deploy/lib/lib.yaml"}},
	}
	for name, shape := range shapes {
		s.create(name, server.URL("team/app"), shape.changes...)
	}
	for _, text := range []string{"one", "two"} {
		if text == "two" {
			tip = pinned(text)
		}
		for name, shape := range shapes {
			s.request(name)
			obj := s.ready(name, mainAt(tip))
			want := upstream.Files{}
			for _, file := range shape.files {
				want[file] = upstream.File{Mode: upstream.Regular, Content: map[string]string{"deploy/app.yaml": "app", "docs/read.md": "docs"}[file]}
				if file == "deploy/lib/lib.yaml" {
					want[file] = upstream.File{Mode: upstream.Regular, Content: text}
				}
			}
			s.holds(obj.Status.Artifact, want)
			if obj.Status.ObservedRecurseSubmodules != obj.Spec.RecurseSubmodules || !slices.Equal(obj.Status.ObservedSparseCheckout, obj.Spec.SparseCheckout) {
				t.Errorf("%s: status observes %s", name, asJSON(obj.Status))
			}
		}
	}
	before := s.get("sparse")
	s.edit("sparse", func(obj *sourcev1.GitRepository) { sparse("deploy", "nowhere")(&obj.Spec) })
	sameArtifact(t, before, s.failing("sparse", fetchFailed(`"nowhere" does not exist in the repository`)))
}

// TestOnlySignedCommitsAreServed: by OpenPGP and by SSH keys, and what was proven stays when what follows is not.
func TestOnlySignedCommitsAreServed(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	for name, signer := range map[string]*verifytest.GitSigner{"pgp": verifytest.NewPGPSigner(t), "ssh": verifytest.NewSSHSigner(t)} {
		repository := s.upstream.Repository(name)
		repository.Commit("main", "one", oneFile("replicas: 1\n"))
		signed := repository.Object("commit", signer.Commit(t, []byte(repository.Raw("cat-file", "commit", "main"))))
		repository.SetRef("refs/heads/main", signed)
		s.secret(name, map[string]string{signer.Entry: string(signer.Public)})
		s.create(name, server.URL(name), func(spec *sourcev1.GitRepositorySpec) {
			spec.Verification = &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitHEAD, SecretRef: meta.LocalObjectReference{Name: name}}
		})
		obj := s.ready(name, mainAt(signed))
		if says := conditions.GetMessage(obj, sourcev1.SourceVerifiedCondition); !strings.Contains(says, "commit '"+signed+"' with key '"+signer.Name+"'") {
			t.Errorf("%s: SourceVerified says %q", name, says)
		}
		repository.Commit("main", "two", oneFile("replicas: 2\n"))
		s.request(name)
		s.told(name, "Warning", "InvalidCommitSignature", "carries no signature")
		after := s.get(name)
		sameArtifact(t, obj, after)
		if !conditions.IsFalse(after, sourcev1.SourceVerifiedCondition) || !conditions.IsFalse(after, meta.ReadyCondition) {
			t.Errorf("%s: an unsigned commit is reported as %s", name, asJSON(after.Status.Conditions))
		}
	}
}

// TestTagsAreVerifiedAsTheModeSays: the tag, or the tag and what it names.
func TestTagsAreVerifiedAsTheModeSays(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	repository, signer := s.upstream.Repository("app"), verifytest.NewPGPSigner(t)
	s.secret("keys", map[string]string{signer.Entry: string(signer.Public)})
	tagged := func(name, commit string) string {
		repository.Tag(name, commit, true)
		raw := []byte(repository.Raw("cat-file", "tag", "refs/tags/"+name) + "\n")
		id := repository.Object("tag", signer.Tag(t, raw))
		repository.SetRef("refs/tags/"+name, id)
		return id
	}
	plain := repository.Commit("main", "one", oneFile("replicas: 1\n"))
	tagged("v1.0.0", plain)
	repository.Commit("main", "two", oneFile("replicas: 2\n"))
	signed := repository.Object("commit", signer.Commit(t, []byte(repository.Raw("cat-file", "commit", "main"))))
	repository.SetRef("refs/heads/main", signed)
	both := tagged("v2.0.0", signed)
	repository.Tag("v3.0.0", signed, true)

	for name, tc := range map[string]struct {
		tag, commit  string
		mode         sourcev1.GitVerificationMode
		proof        []string
		reason, says string
	}{
		"tag":       {"v1.0.0", plain, sourcev1.ModeGitTag, []string{"tag 'v1.0.0@"}, "", ""},
		"both":      {"v2.0.0", signed, sourcev1.ModeGitTagAndHEAD, []string{"tag 'v2.0.0@" + both + "'", "commit '" + signed + "'"}, "", ""},
		"tag-alone": {"v1.0.0", plain, sourcev1.ModeGitTagAndHEAD, nil, sourcev1.InvalidCommitSignatureReason, "carries no signature"},
		"unsigned":  {"v3.0.0", signed, sourcev1.ModeGitTag, nil, sourcev1.InvalidGitObjectReason, "since it is not signed"},
	} {
		s.create(name, server.URL("app"), ref(sourcev1.GitRepositoryRef{Tag: tc.tag}), func(spec *sourcev1.GitRepositorySpec) {
			spec.Verification = &sourcev1.GitRepositoryVerification{Mode: tc.mode, SecretRef: meta.LocalObjectReference{Name: "keys"}}
		})
		if tc.reason != "" {
			s.told(name, "Warning", tc.reason, tc.says)
			if obj := s.get(name); obj.Status.Artifact != nil || conditions.GetReason(obj, sourcev1.SourceVerifiedCondition) != tc.reason {
				t.Errorf("%s: reported as %s", name, asJSON(obj.Status))
			}
			continue
		}
		obj := s.ready(name, tc.tag+"@sha1:"+tc.commit)
		for _, proof := range tc.proof {
			if says := conditions.GetMessage(obj, sourcev1.SourceVerifiedCondition); !strings.Contains(says, proof) {
				t.Errorf("%s: SourceVerified says %q, not %q", name, says, proof)
			}
		}
	}
}

// TestGitGoesThroughTheProxyOfItsObject: nothing but the proxy knows where the server of that name is.
func TestGitGoesThroughTheProxyOfItsObject(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	const name, word = "git.proxied.invalid", "canary-git-proxy-password-19ab"
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	ca := s.upstream.CA()
	identity, err := ca.Server(name)
	if err != nil {
		t.Fatal(err)
	}
	s.secret("login", map[string]string{"ca.crt": string(ca.PEM())})
	for scheme, options := range map[string]upstream.HTTPOptions{"http": {}, "https": {Identity: &identity}} {
		target, err := url.Parse(s.upstream.HTTP(options).URL("app"))
		if err != nil {
			t.Fatal(err)
		}
		proxy := newProxy(t, target.Host, scheme == "http", word)
		s.secret(scheme, map[string]string{"address": proxy.URL, "username": "out", "password": word})
		s.create(scheme, scheme+"://"+name+target.Path, func(spec *sourcev1.GitRepositorySpec) {
			spec.ProxySecretRef = &meta.LocalObjectReference{Name: scheme}
			if scheme == "https" {
				secretRef("login")(spec)
			}
		})
		s.ready(scheme, mainAt(commit))
		if proxy.passed() == 0 {
			t.Errorf("%s: the proxy passed nothing on", scheme)
		}
	}
}

// TestAnAppOfGitHubLogsIn with the token that its own server gives it, and with nothing else.
func TestAnAppOfGitHubLogsIn(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	ca := s.upstream.CA()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	const given = "canary-installation-token-77f0"
	s.hide("the installation's token", given)
	api := s.secure(ca, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v3/app/installations/42/access_tokens" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer eyJ") {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"token": given, "expires_at": "2100-01-01T00:00:00Z"})
	})
	server := s.upstream.HTTP(upstream.HTTPOptions{CA: ca, Access: upstream.Access{Username: "x-access-token", Password: given}})
	s.secret("app", map[string]string{
		"githubAppID": "7", "githubAppInstallationID": "42", "githubAppPrivateKey": string(text), "githubAppBaseURL": api.URL, "ca.crt": string(ca.PEM()),
	})
	s.create("app", server.URL("app"), secretRef("app"), func(spec *sourcev1.GitRepositorySpec) { spec.Provider = sourcev1.GitProviderGitHub })
	s.ready("app", mainAt(commit))
}

// secure is a server whose certificate is of the authority.
func (s *scene) secure(ca *upstream.CA, answer http.HandlerFunc) *httptest.Server {
	s.t.Helper()
	identity, err := ca.Server("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(answer)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{identity.TLS}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	s.t.Cleanup(server.Close)
	return server
}
