package oci_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/trust"
	"sluice.dev/sluice/internal/verify"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

const notationType = "application/vnd.cncf.notary.signature"

// prove asks a new session who vouches for what the object selects.
func (r *repository) prove(ctx context.Context, opener *oci.Opener) (string, error) {
	r.t.Helper()
	session, err := opener.Open(ctx, r.obj)
	if err != nil {
		r.t.Fatal(err)
	}
	selected, err := session.Resolve(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	verifier, ok := session.(source.Verifier)
	if !ok {
		r.t.Fatal("the session proves nothing")
	}
	return verifier.Verify(ctx, selected)
}

func (r *repository) attach(artifactType string, s verify.Signature) {
	r.edited.Attach(r.head, registry.Attachment{ArtifactType: artifactType, MediaType: s.MediaType, Content: s.Content})
}

// TestTrustedSignatureIsFoundBesideToleratedOnes: a policy that lets strangers pass still tells who is none.
func TestTrustedSignatureIsFoundBesideToleratedOnes(t *testing.T) {
	t.Parallel()
	notary, stranger := verifytest.NewNotary(t), verifytest.NewNotary(t)
	for name, test := range map[string]struct {
		signers []*verifytest.Notary
		want    string
	}{
		"StrangerFirst": {[]*verifytest.Notary{stranger, notary}, "certificate"},
		"StrangerLast":  {[]*verifytest.Notary{notary, stranger}, "certificate"},
		"StrangerAlone": {[]*verifytest.Notary{stranger}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.secrets["notary"] = notary.Certificates()
			r.secrets["notary"]["trustpolicy.json"] = notary.Policy(t, "audit", []string{"*"}, []string{notary.SignerIdentity()})
			r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{
				Provider: sourcev1.NotationOCIVerification, SecretRef: &meta.LocalObjectReference{Name: "notary"},
			}
			for _, signer := range test.signers {
				r.attach(notationType, signer.Sign(t, r.head, verify.MediaTypeNotationJWS))
			}
			var logged strings.Builder
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { logged.WriteString(line) }, funcr.Options{}))
			signer, err := r.prove(ctx, r.opener)
			if tolerated := test.signers[0] == stranger; strings.Contains(logged.String(), "authenticity: ") != tolerated {
				t.Errorf("logged %q", logged.String())
			}
			if err != nil || !strings.HasPrefix(signer, test.want) || signer != "" != (test.want != "") {
				t.Errorf("signed by %q, %v; want %q", signer, err, test.want)
			}
		})
	}
}

// TestSignaturesAreLookedAtUpToTheLimit: the operator's limit counts, also above and below the default.
func TestSignaturesAreLookedAtUpToTheLimit(t *testing.T) {
	t.Parallel()
	const most = 3
	r := newRepository(t)
	opener := oci.NewOpener(oci.Options{
		Client: r.opener.Client, Credentials: r.secrets, TempDir: t.TempDir(), Trust: upTo(r.opener.Trust, most),
	})
	r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	r.trust(r.key)
	host := strings.TrimPrefix(r.registry.URL("team/app"), "oci://")
	forged := func(count int) []registry.Layer {
		layers := make([]registry.Layer, 0, count+1)
		for range count {
			s := verifytest.NewKey(t).SimpleSigning(t, host, r.head.Digest)
			layers = append(layers, registry.Layer{MediaType: s.MediaType, Content: s.Content, Annotations: s.Annotations})
		}
		return layers
	}
	good := r.key.SimpleSigning(t, host, r.head.Digest)
	own := registry.Layer{MediaType: good.MediaType, Content: good.Content, Annotations: good.Annotations}

	r.edited.AttachCosignTag(r.head, slices.Concat(forged(most-1), []registry.Layer{own})...)
	if signer, err := r.prove(t.Context(), opener); err != nil || !strings.HasPrefix(signer, "key ") {
		t.Errorf("the last of %d: signed by %q, %v", most, signer, err)
	}
	r.edited.AttachCosignTag(r.head, slices.Concat(forged(most), []registry.Layer{own})...)
	if signer, err := r.prove(t.Context(), opener); err == nil || !strings.Contains(err.Error(), "more signatures than 3") ||
		!strings.Contains(err.Error(), "none of the keys made it") {
		t.Errorf("one more: signed by %q, %v; want an error that names the limit and what was seen", signer, err)
	}
	if _, err := r.prove(t.Context(), r.opener); err != nil {
		t.Errorf("one more within the default: %v", err)
	}
}

// TestSimpleSignaturesAreFoundAmongReferrers: cosign attaches them so when it is told to, and names the type in the
// manifest or in its config.
func TestSimpleSignaturesAreFoundAmongReferrers(t *testing.T) {
	t.Parallel()
	const simpleType = "application/vnd.dev.cosign.artifact.sig.v1+json"
	named := registry.Manifest{ArtifactType: simpleType}
	configured := registry.Manifest{Config: &registry.Layer{MediaType: simpleType, Content: []byte("{}")}}
	for name, test := range map[string]struct {
		reason   string
		manifest registry.Manifest
		forged   int
		good     bool
		says     string
	}{
		"ArtifactType": {"the type is the manifest's", named, 0, true, ""},
		"Config":       {"the type is the config's", configured, 0, true, ""},
		"BesideForged": {"forged ones in the same manifest do no harm", configured, 2, true, ""},
		"Forged":       {"nobody who is trusted signed", named, 2, false, "none of the keys made it"},
		"Limit":        {"they count like the others", named, 4, true, "more signatures than 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			opener := oci.NewOpener(oci.Options{
				Client: r.opener.Client, Credentials: r.secrets, TempDir: t.TempDir(), Trust: upTo(r.opener.Trust, 3),
			})
			r.obj.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
			r.trust(r.key)
			host := strings.TrimPrefix(r.registry.URL("team/app"), "oci://")
			add := func(key *verifytest.Key) {
				s := key.SimpleSigning(t, host, r.head.Digest)
				test.manifest.Layers = append(test.manifest.Layers, registry.Layer{MediaType: s.MediaType, Content: s.Content, Annotations: s.Annotations})
			}
			for range test.forged {
				add(verifytest.NewKey(t))
			}
			if test.good {
				add(r.key)
			}
			test.manifest.Subject = &ocispec.Descriptor{MediaType: r.head.MediaType, Digest: r.head.Digest, Size: r.head.Size}
			r.edited.Push("", test.manifest)
			signer, err := r.prove(t.Context(), opener)
			if test.says == "" && (err != nil || !strings.HasPrefix(signer, "key ")) {
				t.Errorf("%s: signed by %q, %v", test.reason, signer, err)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%s: signed by %q, %v; want an error that says %q", test.reason, signer, err, test.says)
			}
		})
	}
}

// broken are credentials that cannot be read.
type broken struct{ secrets }

var errBroken = failure.Retry(sourcev1.AuthenticationFailedReason, errors.New("secret is malformed"))

func (broken) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, errBroken
}

// TestBrokenCredentialIsNoVerdictOnSignatures: of a pinned digest, verification is the first that needs the registry.
func TestBrokenCredentialIsNoVerdictOnSignatures(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.Demand()
	r.obj.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: r.head.Digest.String()}
	_, err := r.prove(t.Context(), newOpener(t, broken{r.secrets}))
	var staged *source.StageError
	if !errors.Is(err, errBroken) || !errors.As(err, &staged) || staged.Stage != source.StageOpen {
		t.Errorf("got %v at %+v, want %v of the stage %s", err, staged, errBroken, source.StageOpen)
	}
}

// upTo is the trust with a limit.
func upTo(t trust.Trust, most int) trust.Trust {
	t.MaxSignatures = most
	return t
}
