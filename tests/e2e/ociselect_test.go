package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestOCITheSelectionIsThatOfFlux(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	pushed := map[string]ocispec.Descriptor{}
	for i, tag := range []string{
		"latest", "v1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0", "nightly-9.9.9",
		"20240101", "4711", "v3", "2024-12-31", "99.1", // Dates, build numbers and parts of versions are no versions.
	} {
		pushed[tag] = repository.PushFlux(tag, module(i), nil)
	}
	url := r.URL("team/app")
	cases := map[string]struct {
		reason string
		ref    *sourcev1.OCIRepositoryRef
		tag    string // none for a digest
		want   string // the tag whose manifest it is
	}{
		"default":     {"Without a reference, the tag latest is followed.", nil, "latest", "latest"},
		"empty":       {"An empty reference is none.", &sourcev1.OCIRepositoryRef{}, "latest", "latest"},
		"tag":         {"A tag is taken as it is.", &sourcev1.OCIRepositoryRef{Tag: "20240101"}, "20240101", "20240101"},
		"semver":      {"The highest version wins, whatever else looks like a number.", &sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"}, "2.0.0", "2.0.0"},
		"minor":       {"A range keeps what is outside it out.", &sourcev1.OCIRepositoryRef{SemVer: "1.x"}, "1.1.0", "1.1.0"},
		"prerelease":  {"A range that names a prerelease takes them in.", &sourcev1.OCIRepositoryRef{SemVer: ">=1.2.0-0 <2.0.0"}, "1.2.0-rc.1", "1.2.0-rc.1"},
		"filter":      {"The filter looks at tags before they are versions.", &sourcev1.OCIRepositoryRef{SemVer: "*", SemverFilter: "^v"}, "v1.0.0", "v1.0.0"},
		"digest":      {"A digest is a revision of its own.", &sourcev1.OCIRepositoryRef{Digest: pushed["1.1.0"].Digest.String()}, "", "1.1.0"},
		"digest-wins": {"A digest wins over all else.", &sourcev1.OCIRepositoryRef{Digest: pushed["v3"].Digest.String(), SemVer: "2.x", Tag: "latest"}, "", "v3"},
		"semver-wins": {"A range wins over a tag.", &sourcev1.OCIRepositoryRef{SemVer: "2.x", Tag: "v3"}, "2.0.0", "2.0.0"},
	}
	for name, c := range cases {
		s.create(name, url, func(spec *sourcev1.OCIRepositorySpec) { spec.Reference = c.ref })
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			revision := pushed[c.want].Digest.String()
			if c.tag != "" {
				revision = at(c.tag, pushed[c.want])
			}
			s.in(t).ready(name, revision)
		})
	}
}

func TestOCIWhatCannotBeSelectedIsTold(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	repository.PushFlux("20240101", module(1), nil)
	repository.PushFlux("v3", module(1), nil)
	url := r.URL("team/app")
	stalled := func(reason, text string) trouble { return trouble{meta.StalledCondition, reason, text} }
	missing := digest.FromString("nothing has this digest").String()
	cases := map[string]struct {
		reason string
		url    string
		ref    sourcev1.OCIRepositoryRef
		want   trouble
	}{
		"no-version":    {"A date and a part of a version are no versions.", url, sourcev1.OCIRepositoryRef{SemVer: ">=1"}, listFailed("no tag of 2 is a version")},
		"no-tag":        {"A tag that does not exist.", url, sourcev1.OCIRepositoryRef{Tag: "none"}, pullFailed("not found")},
		"no-repository": {"A repository that does not exist.", r.URL("team/none"), sourcev1.OCIRepositoryRef{Tag: "none"}, pullFailed("not found")},
		"no-digest":     {"A digest that nothing has.", url, sourcev1.OCIRepositoryRef{Digest: missing}, pullFailed("not found")},
		"tag-in-url":    {"A tag has no place in the URL.", url + ":v3", sourcev1.OCIRepositoryRef{}, stalled(sourcev1.URLInvalidReason, "spec.url")},
		"digest-in-url": {"Nor has a digest.", url + "@" + missing, sourcev1.OCIRepositoryRef{}, stalled(sourcev1.URLInvalidReason, "spec.url")},
		"range":         {"A range has to be one.", url, sourcev1.OCIRepositoryRef{SemVer: "newest"}, stalled(sourcev1.ReadOperationFailedReason, "spec.ref.semver")},
		"filter":        {"A filter has to be a pattern.", url, sourcev1.OCIRepositoryRef{SemVer: "*", SemverFilter: "("}, stalled(sourcev1.ReadOperationFailedReason, "spec.ref.semverFilter")},
		"digest":        {"A digest has to be one.", url, sourcev1.OCIRepositoryRef{Digest: "sha256:abc"}, stalled(sourcev1.OCIPullFailedReason, "spec.ref.digest")},
	}
	for name, c := range cases {
		s.create(name, c.url, ociRef(c.ref))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			if obj := s.in(t).failing(name, c.want); obj.Status.Artifact != nil {
				t.Errorf("it has an artifact: %s", asJSON(obj.Status))
			}
		})
	}
}

func TestOCIStatusAndEventsAreThoseOfFlux(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	first := repository.PushFlux("latest", module(1), map[string]string{"org.example.extra": "kept"})
	url := r.URL("team/app")
	s.create("app", url)
	obj := s.ready("app", at("latest", first))
	s.like(obj, first, map[string]string{
		ocispec.AnnotationCreated: "2020-01-01T00:00:00Z", "org.example.extra": "kept",
		ocispec.AnnotationSource:   "https://git.example.org/module.git",
		ocispec.AnnotationRevision: "main@sha1:0123456789abcdef0123456789abcdef01234567",
	})
	s.toldOCI("app", fmt.Sprintf("stored artifact with revision '%s' from '%s', origin source '%s', origin revision '%s'",
		at("latest", first), url, "https://git.example.org/module.git", "main@sha1:0123456789abcdef0123456789abcdef01234567"),
		map[string]string{
			"source.toolkit.fluxcd.io/revision":       at("latest", first),
			"source.toolkit.fluxcd.io/digest":         obj.Status.Artifact.Digest,
			"source.toolkit.fluxcd.io/originRevision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
		})

	// A tag that moves is followed; what was served before stays where it was.
	second := repository.PushORAS("latest", registry.Layer{MediaType: registry.FluxContent, Content: s.gzipped(module(2))})
	s.request("app")
	moved := s.ready("app", at("latest", second))
	s.like(moved, second, nil)
	s.toldOCI("app", fmt.Sprintf("stored artifact with revision '%s' from '%s'", at("latest", second), url), map[string]string{
		"source.toolkit.fluxcd.io/revision": at("latest", second), "source.toolkit.fluxcd.io/digest": moved.Status.Artifact.Digest,
	})
	s.holds(obj.Status.Artifact, files(module(1)))
	s.holds(moved.Status.Artifact, files(module(2)))

	lines := strings.Split(strings.TrimSpace(s.kubectl("get", "ocirepositories")), "\n")
	if len(lines) != 2 {
		t.Fatalf("kubectl get prints %q", lines)
	}
	if diff := cmp.Diff([]string{"NAME", "URL", "READY", "STATUS", "AGE"}, strings.Fields(lines[0])); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if want := "stored artifact for digest '" + at("latest", second) + "'"; !strings.Contains(lines[1], want) || !strings.Contains(lines[1], url) {
		t.Errorf("line %q lacks %q or %q", lines[1], want, url)
	}
	for _, name := range []string{"ocirepo", "fluxcd", "fluxcd-sources", "all"} {
		if out := s.kubectl("get", name, "--output=name"); !strings.Contains(out, "ocirepository.source.toolkit.fluxcd.io/app") {
			t.Errorf("kubectl get %s prints %q", name, out)
		}
	}
}

// like compares all of status with what Flux would show for the manifest under the tag latest.
func (s ociScene) like(obj *sourcev1.OCIRepository, manifest ocispec.Descriptor, annotations map[string]string) {
	s.t.Helper()
	artifact := obj.Status.Artifact
	base, _, found := strings.Cut(artifact.URL, "/ocirepository/")
	if !found {
		s.t.Fatalf("the artifact's url is %q", artifact.URL)
	}
	revision, folder := at("latest", manifest), "ocirepository/"+s.namespace+"/"+obj.Name+"/"
	good := metav1.Condition{
		Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
		Reason: meta.SucceededReason, Message: "stored artifact for digest '" + revision + "'",
	}
	ready, stored := good, good
	ready.Type, stored.Type = meta.ReadyCondition, sourcev1.ArtifactInStorageCondition
	want := sourcev1.OCIRepositoryStatus{
		ObservedGeneration: obj.Generation, Conditions: []metav1.Condition{ready, stored}, URL: base + "/" + folder + "latest.tar.gz",
		Artifact: &meta.Artifact{
			Path: folder + manifest.Digest.String() + ".tar.gz", URL: base + "/" + folder + manifest.Digest.String() + ".tar.gz",
			Revision: revision, Digest: artifact.Digest, LastUpdateTime: artifact.LastUpdateTime, Size: artifact.Size, Metadata: annotations,
		},
	}
	diff := cmp.Diff(want, obj.Status, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
		cmpopts.IgnoreFields(sourcev1.OCIRepositoryStatus{}, "ContentConfigChecksum", "ReconcileRequestStatus"), cmpopts.EquateEmpty())
	if diff != "" {
		s.t.Errorf("status (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(obj.Status.ContentConfigChecksum, "sha256:") || artifact.LastUpdateTime.IsZero() {
		s.t.Errorf("contentConfigChecksum or lastUpdateTime is missing: %s", asJSON(obj.Status))
	}
	latest, err := get(s.t.Context(), obj.Status.URL)
	if got := digest.FromBytes(latest.body).String(); err != nil || latest.status != 200 || got != artifact.Digest {
		s.t.Errorf("GET %s: status %d, %v, digest %s instead of %s", obj.Status.URL, latest.status, err, got, artifact.Digest)
	}
	if conditions.IsReconciling(obj) {
		s.t.Error("it is still reconciling")
	}
}

// toldOCI waits for the event NewArtifact with exactly this message and these annotations.
func (s ociScene) toldOCI(name, message string, annotations map[string]string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s: an event with %q and %v", name, message, annotations), func(ctx context.Context) (bool, string) {
		events, err := s.events(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		for _, event := range events {
			if event.Type == "Normal" && event.Reason == sourcev1.NewArtifactReason && event.Message == message &&
				cmp.Equal(annotations, event.Annotations) {
				return true, ""
			}
		}
		return false, asJSON(events)
	})
}

// gzipped is a layer with these files.
func (s ociScene) gzipped(contents map[string]string) []byte {
	s.t.Helper()
	layer, err := registry.TarGzip(registry.Files(contents)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return layer
}
