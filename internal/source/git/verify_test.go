package git_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream"
)

// keyring is a cluster with one Secret, which has the keys of those who are trusted.
type keyring struct {
	anonymous

	trusted []*verifytest.GitSigner
}

func (k *keyring) Data(context.Context, string, string, string) (map[string][]byte, error) {
	entries := map[string][]byte{}
	for _, signer := range k.trusted {
		entries[string(rune('a'+len(entries)))+signer.Entry] = signer.Public
	}
	return entries, nil
}

// fetches counts the packs that were asked for: of commits alone, or with files.
func fetches(server *upstream.GitHTTP, alone bool) (count int) {
	for _, request := range server.Requests() {
		if request.Kind == upstream.Fetch && bytes.Contains(request.Body, []byte("filter tree:0")) == alone {
			count++
		}
	}
	return count
}

// sign replaces a ref's object by the same with a signature.
func sign(t *testing.T, edited *upstream.Edited, ref, kind string, by *verifytest.GitSigner) string {
	t.Helper()
	raw, made := []byte(edited.Raw("cat-file", kind, ref)), []byte(nil)
	if kind == "tag" {
		made = by.Tag(t, append(raw, '\n'))
	} else {
		made = by.Commit(t, raw)
	}
	id := edited.Object(kind, made)
	edited.SetRef(ref, id)
	return id
}

// Demand implements sourcetest.Prover.
func (r *repository) Demand() {
	signer := verifytest.NewSSHSigner(r.t)
	r.keys.trusted = []*verifytest.GitSigner{signer}
	sign(r.t, r.edited, "refs/heads/main", "commit", signer)
	r.obj.Spec.Verification = &sourcev1.GitRepositoryVerification{SecretRef: meta.LocalObjectReference{Name: "keys"}}
}

// Rotate implements sourcetest.Prover.
func (r *repository) Rotate() { r.keys.trusted = append(r.keys.trusted, verifytest.NewPGPSigner(r.t)) }

// Distrust implements sourcetest.Prover.
func (r *repository) Distrust() {
	r.keys.trusted = []*verifytest.GitSigner{verifytest.NewPGPSigner(r.t)}
}

// signed is a repository in which some commits and tags are signed.
type signed struct {
	opener *gitsource.Opener
	server *upstream.GitHTTP
	keys   *keyring
	pgp    *verifytest.GitSigner
	// ids of commits and tags by their refs.
	ids map[string]string
}

func newSigned(t *testing.T, options upstream.HTTPOptions) *signed {
	t.Helper()
	fixture := upstream.ForTest(t)
	edited := fixture.Repository("subject")
	edited.Raw("config", "uploadpack.allowFilter", "true")
	s := &signed{server: fixture.HTTP(options), pgp: verifytest.NewPGPSigner(t), ids: map[string]string{}}
	s.keys = &keyring{trusted: []*verifytest.GitSigner{s.pgp}}
	s.opener = gitsource.NewOpener(gitsource.Options{Client: newClient(t), Credentials: s.keys, Artifacts: nothing{}})
	s.ids["plain"] = edited.Commit("plain", "plain", upstream.Text(map[string]string{"a": "1"}))
	edited.Commit("main", "main", upstream.Text(map[string]string{"a": "2"}))
	s.ids["main"] = sign(t, edited, "refs/heads/main", "commit", s.pgp)
	edited.Commit("other", "other", upstream.Text(map[string]string{"a": "3"}))
	s.ids["other"] = sign(t, edited, "refs/heads/other", "commit", verifytest.NewSSHSigner(t))
	edited.Tag("light", s.ids["main"], false)
	for tag, commit := range map[string]string{"v1.0.0": "main", "v0.9.0": "plain", "v2.0.0": "main", "foreign": "main"} {
		s.ids[tag] = edited.Tag(tag, s.ids[commit], true)
	}
	for _, tag := range []string{"v1.0.0", "v0.9.0"} {
		s.ids[tag] = sign(t, edited, "refs/tags/"+tag, "tag", s.pgp)
	}
	s.ids["foreign"] = sign(t, edited, "refs/tags/foreign", "tag", verifytest.NewSSHSigner(t))
	// A signed tag that is shown under another name, and a tag of a tag.
	edited.SetRef("refs/tags/v9.0.0", s.ids["v1.0.0"])
	nested := edited.Object("tag", s.pgp.Tag(t, fmt.Appendf(nil, "object %s\ntype %s\ntag wrapped\n\nIt wraps another.\n", s.ids["v1.0.0"], "tag")))
	edited.SetRef("refs/tags/wrapped", nested)
	return s
}

func (s *signed) open(t *testing.T, ref *sourcev1.GitRepositoryRef, mode sourcev1.GitVerificationMode) (source.Session, error) {
	t.Helper()
	return s.opener.Open(t.Context(), &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{
		URL: s.server.URL("subject"), Reference: ref,
		Verification: &sourcev1.GitRepositoryVerification{Mode: mode, SecretRef: meta.LocalObjectReference{Name: "keys"}},
	}})
}

// verify is what the pipeline does up to the proof.
func (s *signed) verify(t *testing.T, ref *sourcev1.GitRepositoryRef, mode sourcev1.GitVerificationMode) (string, error) {
	t.Helper()
	session, err := s.open(t, ref, mode)
	if err != nil {
		return "", err
	}
	selected, err := session.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verifier, ok := session.(source.Verifier)
	if !ok {
		t.Fatal("nothing is verified")
	}
	return verifier.Verify(t.Context(), selected)
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	head, tag, both := sourcev1.ModeGitHEAD, sourcev1.ModeGitTag, sourcev1.ModeGitTagAndHEAD
	for version, options := range map[string]upstream.HTTPOptions{"V2": {}, "V0": {WithoutV2: true}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newSigned(t, options)
			commit := func(name string) string { return "\n\t- commit '" + s.ids[name] + "' with key '" + s.pgp.Name + "'" }
			tagged := func(name string) string {
				return "\n\t- tag '" + name + "@" + s.ids[name] + "' with key '" + s.pgp.Name + "'"
			}
			for name, tc := range map[string]struct {
				ref    sourcev1.GitRepositoryRef
				mode   sourcev1.GitVerificationMode
				proof  string
				reason string
				says   string
			}{
				"Branch":         {sourcev1.GitRepositoryRef{Branch: "main"}, head, commit("main"), "", ""},
				"Default":        {sourcev1.GitRepositoryRef{Branch: "main"}, "", commit("main"), "", ""},
				"Old spelling":   {sourcev1.GitRepositoryRef{Branch: "main"}, sourcev1.ModeGitHEADLegacy, commit("main"), "", ""},
				"Pinned":         {sourcev1.GitRepositoryRef{Commit: s.ids["main"]}, head, commit("main"), "", ""},
				"HEAD of a tag":  {sourcev1.GitRepositoryRef{Tag: "light"}, head, commit("main"), "", ""},
				"Tag":            {sourcev1.GitRepositoryRef{Tag: "v0.9.0"}, tag, tagged("v0.9.0"), "", ""},
				"Named tag":      {sourcev1.GitRepositoryRef{Name: "refs/tags/v0.9.0"}, tag, tagged("v0.9.0"), "", ""},
				"Semver":         {sourcev1.GitRepositoryRef{SemVer: "1.x"}, both, tagged("v1.0.0") + commit("main"), "", ""},
				"Unsigned HEAD":  {sourcev1.GitRepositoryRef{Branch: "plain"}, head, "", sourcev1.InvalidCommitSignatureReason, "it carries no signature"},
				"Stranger":       {sourcev1.GitRepositoryRef{Branch: "other"}, head, "", sourcev1.InvalidCommitSignatureReason, "none of those that are trusted"},
				"Only the tag":   {sourcev1.GitRepositoryRef{Tag: "v0.9.0"}, both, "", sourcev1.InvalidCommitSignatureReason, s.ids["plain"]},
				"Lightweight":    {sourcev1.GitRepositoryRef{Tag: "light"}, tag, "", sourcev1.InvalidGitObjectReason, "cannot verify signature of tag 'light' since it is not signed"},
				"Unsigned tag":   {sourcev1.GitRepositoryRef{Tag: "v2.0.0"}, tag, "", sourcev1.InvalidGitObjectReason, "since it is not signed"},
				"Foreign tag":    {sourcev1.GitRepositoryRef{Tag: "foreign"}, tag, "", sourcev1.InvalidTagSignatureReason, "signature verification of tag 'foreign@"},
				"Another's name": {sourcev1.GitRepositoryRef{Tag: "v9.0.0"}, tag, "", sourcev1.InvalidTagSignatureReason, "another name"},
				"Tag of a tag":   {sourcev1.GitRepositoryRef{Tag: "wrapped"}, tag, "", sourcev1.InvalidTagSignatureReason, "another commit"},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					proof, err := s.verify(t, &tc.ref, tc.mode)
					if f := failure.Of(err); tc.reason != "" && (f == nil || f.Disposition != failure.Retries || f.Reason != tc.reason || !strings.Contains(err.Error(), tc.says)) {
						t.Errorf("want %s that says %q, got %v (%+v)", tc.reason, tc.says, err, f)
					}
					if tc.reason == "" && (err != nil || proof != tc.proof) {
						t.Errorf("want %q, got %q, %v", tc.proof, proof, err)
					}
				})
			}
		})
	}
}

// TestTagsAreVerifiedOfTagsAlone: it stalls, for only another spec helps.
func TestTagsAreVerifiedOfTagsAlone(t *testing.T) {
	t.Parallel()
	s := newSigned(t, upstream.HTTPOptions{})
	for name, ref := range map[string]*sourcev1.GitRepositoryRef{
		"None": nil, "Branch": {Branch: "main"}, "Commit": {Commit: s.ids["main"], Tag: "v1.0.0"}, "Name": {Name: "refs/heads/main"},
	} {
		_, err := s.open(t, ref, sourcev1.ModeGitTag)
		f := failure.Of(err)
		if f == nil || f.Disposition != failure.Stalls || f.Reason != sourcev1.InvalidVerificationModeReason ||
			!strings.Contains(err.Error(), "cannot verify tag object's signature if a tag reference is not specified") {
			t.Errorf("%s: %v (%+v)", name, err, f)
		}
	}
}

// TestKeysAreReadToProveSomething: it may take seconds of work that nothing cuts short, and so is nothing for each look at
// upstream, which takes no slot.
func TestKeysAreReadToProveSomething(t *testing.T) {
	t.Parallel()
	s := newSigned(t, upstream.HTTPOptions{})
	s.keys.trusted = []*verifytest.GitSigner{{Entry: "none.asc", Public: []byte("no key")}}
	ref := &sourcev1.GitRepositoryRef{Branch: "main"}
	if _, err := s.open(t, ref, sourcev1.ModeGitHEAD); err != nil {
		t.Errorf("keys are read to look at upstream: %v", err)
	}
	_, err := s.verify(t, ref, sourcev1.ModeGitHEAD)
	if f := failure.Of(err); f == nil || f.Disposition != failure.Retries || f.Reason != sourcev1.VerificationErrorReason || !strings.Contains(err.Error(), "holds no PGP public keys") {
		t.Errorf("got %v (%+v)", err, f)
	}
}

// TestAProofTakesTheCommitAlone: what is not proven is not downloaded, however often it is tried.
func TestAProofTakesTheCommitAlone(t *testing.T) {
	t.Parallel()
	s := newSigned(t, upstream.HTTPOptions{})
	for range 3 {
		if _, err := s.verify(t, &sourcev1.GitRepositoryRef{Branch: "other"}, sourcev1.ModeGitHEAD); err == nil {
			t.Fatal("a stranger is trusted")
		}
	}
	if alone, files := fetches(s.server, true), fetches(s.server, false); alone != 1 || files != 0 {
		t.Errorf("%d fetches of commits, %d of files", alone, files)
	}
}
