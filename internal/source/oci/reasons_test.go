package oci_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/tests/upstream/registry"
)

// run takes the object through the pipeline, into a store of its own.
func (r *repository) run(timeout time.Duration) (source.Outcome, error) {
	pipeline := &source.Pipeline{Store: openStore(r.t, digest.SHA256), Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
	subject := source.Subject{Object: storage.Object{Kind: "ocirepository", Namespace: "n", Name: "a"}, UID: "u", Timeout: timeout}
	return pipeline.Run(r.t.Context(), subject, r.Open, func(context.Context, source.Change) error { return nil })
}

// TestReasonsAreThoseOfFlux: what was being done decides, not what went wrong; that is in the message.
func TestReasonsAreThoseOfFlux(t *testing.T) {
	t.Parallel()
	const list, look, layer = sourcev1.ReadOperationFailedReason, sourcev1.OCIPullFailedReason, sourcev1.OCILayerOperationFailedReason
	ranged := func(r *repository) { r.obj.Spec.Reference = &sourcev1.OCIRepositoryRef{SemVer: "*"} }
	pinned := func(r *repository) { r.obj.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: r.head.Digest.String()} }
	tagged := func(*repository) {}
	refer := func(ref sourcev1.OCIRepositoryRef) func(*repository) {
		return func(r *repository) { r.obj.Spec.Reference = &ref }
	}
	copied := func(r *repository) {
		r.obj.Spec.LayerSelector = &sourcev1.OCILayerSelector{Operation: sourcev1.OCILayerCopy}
	}
	cases := map[string]struct {
		change func(*repository)
		fault  registry.Fault
		reason string
		says   string
	}{
		"TagRefused":        {tagged, registry.Status(http.StatusUnauthorized), look, "authentication failed"},
		"TagForbidden":      {tagged, registry.Status(http.StatusForbidden), look, "403 Forbidden"},
		"TagMissing":        {tagged, registry.Status(http.StatusNotFound), look, "not found"},
		"TagBroken":         {tagged, registry.Status(http.StatusBadGateway), look, "502 Bad Gateway"},
		"TagDropped":        {tagged, registry.Drop(), look, "EOF"},
		"TagSilent":         {tagged, registry.Hang(), look, "spec.timeout"},
		"TagMalformed":      {refer(sourcev1.OCIRepositoryRef{Tag: "-"}), registry.Fault{}, look, "spec.ref.tag"},
		"TagUnproven":       {func(r *repository) { r.obj.Spec.Insecure = false }, registry.Fault{}, look, "plain HTTP"},
		"TokensElsewhere":   {tagged, registry.ForeignRealm("https://tokens.example"), look, "token server is not trusted"},
		"DigestRefused":     {pinned, registry.Status(http.StatusUnauthorized), look, "authentication failed"},
		"DigestMissing":     {pinned, registry.Status(http.StatusNotFound), look, "not found"},
		"DigestBroken":      {pinned, registry.Status(http.StatusBadGateway), look, "502 Bad Gateway"},
		"DigestMalformed":   {refer(sourcev1.OCIRepositoryRef{Digest: "sha256:abc"}), registry.Fault{}, look, "spec.ref.digest"},
		"ManifestDamaged":   {tagged, registry.Corrupt(20).On(registry.ManifestGET), look, "does not match its digest"},
		"ManifestSilent":    {tagged, registry.Hang().On(registry.ManifestGET), look, "spec.timeout"},
		"TagsRefused":       {ranged, registry.Status(http.StatusUnauthorized), list, "authentication failed"},
		"TagsBroken":        {ranged, registry.Status(http.StatusBadGateway), list, "502 Bad Gateway"},
		"TagsSilent":        {ranged, registry.Hang(), list, "spec.timeout"},
		"RangeMalformed":    {refer(sourcev1.OCIRepositoryRef{SemVer: "newest"}), registry.Fault{}, list, "spec.ref.semver"},
		"FilterMalformed":   {refer(sourcev1.OCIRepositoryRef{SemVer: "*", SemverFilter: "("}), registry.Fault{}, list, "spec.ref.semverFilter"},
		"RangeEmpty":        {refer(sourcev1.OCIRepositoryRef{SemVer: ">9"}), registry.Fault{}, list, "no tag of 2"},
		"RangedTagBroken":   {ranged, registry.Status(http.StatusBadGateway).On(registry.ManifestHEAD), look, "502 Bad Gateway"},
		"LayerRefused":      {tagged, registry.Status(http.StatusUnauthorized).On(registry.Blob), layer, "authentication failed"},
		"LayerMissing":      {tagged, registry.Status(http.StatusNotFound).On(registry.Blob), layer, "not found"},
		"LayerDamaged":      {tagged, registry.Corrupt(0).On(registry.Blob), layer, "does not match its digest"},
		"LayerSilent":       {tagged, registry.HangAfter(20).On(registry.Blob), layer, "spec.timeout"},
		"CopiedLayerBroken": {copied, registry.Cut(20).On(registry.Blob), layer, "unexpected EOF"},
		"CopiedLayerSilent": {copied, registry.HangAfter(20).On(registry.Blob), layer, "spec.timeout"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.edited.Tag("1.0.0", r.head)
			tc.change(r)
			r.registry.Always(tc.fault)
			timeout := time.Minute
			if tc.says == "spec.timeout" {
				timeout = 5 * time.Second // What comes before takes far less.
			}
			_, err := r.run(timeout)
			if err == nil || failure.Of(err).Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v with the reason %q, want %q with %s", err, failure.Of(err).Reason, tc.says, tc.reason)
			}
			if _, staged := errors.AsType[*source.StageError](err); !staged {
				t.Error("it is of no stage")
			}
		})
	}
}

// TestSkippedLinksAreTold: once, by who made the artifact without them.
func TestSkippedLinksAreTold(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	layer, err := registry.TarGzip(registry.File("a", "a"), registry.Symlink("to/a", "../a"), registry.Hardlink("b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	r.edited.PushORAS("latest", registry.Layer{MediaType: registry.FluxContent, Content: layer})
	outcome, err := r.run(time.Minute)
	if err != nil || !strings.HasPrefix(outcome.SkippedLinks, `links left out of the artifact: 2, the first is "to/a" of layer sha256:`) {
		t.Errorf("told %q, %v", outcome.SkippedLinks, err)
	}
}
