package modules_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/tests/testenv"
)

const (
	ready    = "Ready"
	offered  = modulesv1.OfferedCondition
	verified = modulesv1.ArtifactVerifiedCondition
	conflict = modulesv1.ConflictCondition
	inUse    = modulesv1.InUseCondition
)

// TestFiveTemplatesOfAModule: three versions, of which one is in a channel alone, and two that are in one as well.
func TestFiveTemplatesOfAModule(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	v1, v2 := p.release("foo-1.0.0", "1.0.0", "", '1'), p.release("foo-2.0.0", "2.0.0", "none", '2')
	regular, fast := p.release("foo-regular", "1.0.0", "regular", '1'), p.release("foo-fast", "2.0.0", "fast", '2')
	experimental := p.release("foo-experimental", "2.2.0", "experimental", '3')
	p.create(v1, v2, regular, fast, experimental)

	for _, template := range []*modulesv1.ModuleTemplate{v1, v2, regular, fast} {
		p.look(template, offered, "True Alias")
	}
	p.look(experimental, offered, "True Succeeded")
	for _, pointed := range []*modulesv1.ModuleTemplate{regular, fast, experimental} {
		p.fetched(p.source(pointed), nil)
		p.look(pointed, ready, "True Succeeded")
		p.look(pointed, verified, "True Succeeded")
		if pointed.Status.Channel != pointed.Spec.Channel || pointed.Status.Digest != digestOf('f') {
			t.Errorf("%s: status %+v", pointed.Name, pointed.Status)
		}
	}
	for _, other := range []*modulesv1.ModuleTemplate{v1, v2} {
		p.look(other, ready, "True Succeeded")
		if made := p.sources(other); len(made) > 0 || condition(other, verified) != "" || other.Status.SourceRef != nil {
			t.Errorf("%s: nothing needs it, and it has %d sources and status %+v", other.Name, len(made), other.Status)
		}
		if other.Status.Digest != other.Spec.Artifact.OCI.Digest {
			t.Errorf("%s: digest %s", other.Name, other.Status.Digest)
		}
	}

	// The regular channel moves as its template is raised. What ran is kept for those that run it, with its source.
	before := regular.Status
	running := p.installation("runs-1", modulesv1.ModuleInstallationStatus{
		ObservedGeneration: 1,
		Current:            &modulesv1.Release{Module: "foo", Version: "1.0.0", Namespace: p.system, Template: regular.Name, Source: before.SourceRef},
	})
	p.create(running)
	p.look(regular, inUse, "True Installed")
	p.anHour()
	p.edit(regular, func() { regular.Spec.Version, regular.Spec.Artifact.OCI.Digest = "2.0.0", digestOf('2') })
	until(p, regular, "the raised version is seen", func(r *modulesv1.ModuleTemplate) bool { return r.Status.Version == "2.0.0" })
	if regular.Status.SourceRef.Name == before.SourceRef.Name || regular.Status.Since.Time.Equal(before.Since.Time) {
		t.Errorf("the raised release goes by the old one's source or time: %+v", regular.Status)
	}
	p.poke(regular) // Whoever sweeps reads from the same cache, which lags by less than the hour that passes here at once.
	p.anHour()
	p.sweep()
	p.anHour()
	p.sweep()
	if made := p.sources(regular); len(made) != 2 {
		t.Errorf("the raised template has %d sources, want the new one and the one that still runs", len(made))
	}
	p.edit(running, func() { running.Status.Current.Source = regular.Status.SourceRef })
	testenv.Eventually(t, "the old source goes when nobody runs it", func(context.Context) (bool, string) {
		p.anHour()
		p.sweep()
		return len(p.sources(regular)) == 1, "both are there"
	})
}

func TestConflictsAreToldOnBothSides(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	older := p.release("older", "1.0.0", "", '1')
	p.create(older)
	p.look(older, offered, "True Succeeded")
	p.edit(older, func() { older.Status.Since = &metav1.Time{Time: p.clock.Now().Add(-time.Hour)} })
	newer := p.release("newer", "1.0.0+rebuilt", "", '2')
	one, two := p.release("one", "2.0.0", "stable", '3'), p.release("two", "2.1.0", "stable", '4')
	p.create(newer, one, two)

	p.look(newer, conflict, "True Conflict")
	p.look(newer, ready, "False Conflict")
	p.look(newer, offered, "False Conflict")
	p.look(older, ready, "True Succeeded")
	for _, claimant := range []*modulesv1.ModuleTemplate{one, two} {
		p.look(claimant, conflict, "True ChannelConflict")
		p.look(claimant, ready, "False ChannelConflict")
		if claimant.Status.Channel != "" {
			t.Errorf("%s: a contested claim leads somewhere: %+v", claimant.Name, claimant.Status)
		}
	}
	// The first claim may have been fetched for while it was the only one.
	if len(p.sources(two)) != 0 {
		t.Errorf("a source was made for a claim that was contested from the beginning: %+v", two.Status)
	}
	testenv.Eventually(t, "the conflict is told once", func(context.Context) (bool, string) {
		told := p.events.count("one Warning ChannelConflict")
		return told == 1, strconv.Itoa(told)
	})

	// A Module that lists the channel ends the contest.
	module := &modulesv1.Module{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "foo"},
		Spec:       modulesv1.ModuleSpec{Channels: []modulesv1.Channel{{Name: "stable", Version: "2.1.0"}}},
	}
	p.create(module)
	p.look(one, offered, "True ChannelOverridden")
	p.look(two, offered, "True Succeeded")
	p.look(two, conflict, "")
	p.source(two)
	if err := env.Client.Delete(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	p.look(one, conflict, "True ChannelConflict")
}

// TestOldTemplates: where spec is silent, label, annotation, tag and artifact speak.
func TestOldTemplates(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	annotated := p.release("annotated", "", "regular", '1')
	annotated.Spec.ModuleName = ""
	annotated.Labels = map[string]string{modulesv1.ModuleNameLabel: "foo"}
	annotated.Annotations = map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"}
	tagged := p.release("tagged", "", "fast", '2')
	tagged.Spec.Artifact.OCI.Tag = "2.0.0"
	silent := p.release("silent", "", "experimental", '3')
	nameless := p.release("nameless", "4.0.0", "", '4')
	nameless.Spec.ModuleName = ""
	p.create(annotated, tagged, silent, nameless)

	p.look(annotated, offered, "True Succeeded")
	p.look(tagged, offered, "True Succeeded")
	p.look(silent, offered, "True VersionUnknown")
	p.look(nameless, ready, "False ModuleUnknown")
	p.look(nameless, offered, "False ModuleUnknown")
	if annotated.Status.ModuleName != "foo" || annotated.Status.Version != "1.0.0" || tagged.Status.Version != "2.0.0" || silent.Status.Version != "" {
		t.Errorf("versions %q, %q, %q", annotated.Status.Version, tagged.Status.Version, silent.Status.Version)
	}
	p.fetched(p.source(silent), map[string]string{"org.opencontainers.image.version": "3.0.0"})
	until(p, silent, "the artifact says its version", func(s *modulesv1.ModuleTemplate) bool { return s.Status.Version == "3.0.0" })
	p.look(silent, offered, "True Succeeded")
	if silent.Status.ArtifactVersion != "3.0.0" || annotated.Status.ArtifactVersion != "" {
		t.Errorf("artifacts say %q and %q", silent.Status.ArtifactVersion, annotated.Status.ArtifactVersion)
	}
	// What the artifact says lasts, and is looked up no more.
	p.anHour()
	p.poke(silent)
	if silent.Status.Version != "3.0.0" {
		t.Errorf("version %q", silent.Status.Version)
	}
}

// TestAVersionGoesWithItsAnnotation: nobody states it any more.
func TestAVersionGoesWithItsAnnotation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, left string
	}{
		"Removed": {"an annotation that is gone says nothing", ""},
		"Garbage": {"nor does one that is no version", "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newReleases(t)
			template := p.release("foo-1", "", "", '1')
			template.Annotations = map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"}
			p.create(template)
			p.look(template, offered, "True Succeeded")
			if template.Status.Version != "1.0.0" {
				t.Fatalf("version %q", template.Status.Version)
			}
			p.edit(template, func() { template.Annotations[modulesv1.ModuleVersionAnnotation] = tc.left })
			p.look(template, offered, "True VersionUnknown")
			if template.Status.Version != "" {
				t.Errorf("%s: version %q", tc.reason, template.Status.Version)
			}
		})
	}
}

func TestASourceIsThereWhileSomethingNeedsIt(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	template.Spec.Artifact.Path = "./deploy/"
	template.Spec.Artifact.OCI.SecretRef = &modulesv1.LocalReference{Name: "pull"}
	template.Spec.Artifact.OCI.LayerSelector = &modulesv1.LayerSelector{MediaType: "application/x-foo"}
	template.Spec.Artifact.OCI.CertSecretRef = &modulesv1.LocalReference{Name: "certificate"}
	template.Spec.Artifact.OCI.ProxySecretRef = &modulesv1.LocalReference{Name: "proxy"}
	template.Spec.Artifact.OCI.ServiceAccountName, template.Spec.Artifact.OCI.Insecure = "puller", true
	p.create(template)
	p.look(template, ready, "True Succeeded")
	if want := digestOf('1') + "#application/x-foo//deploy"; template.Status.Content != want {
		t.Errorf("content %q, want %q", template.Status.Content, want)
	}
	user := p.installation("app", p.wants("foo-1"))
	p.create(user)
	source := p.source(template)
	want := sourcev1.OCIRepositorySpec{
		URL: "oci://registry.example.com/foo", Reference: &sourcev1.OCIRepositoryRef{Digest: digestOf('1')}, Provider: "generic",
		Interval: metav1.Duration{Duration: 24 * time.Hour}, Timeout: &metav1.Duration{Duration: time.Minute},
		LayerSelector: &sourcev1.OCILayerSelector{MediaType: "application/x-foo", Operation: "extract"},
	}
	want.SecretRef = &meta.LocalObjectReference{Name: "pull"}
	want.CertSecretRef = &meta.LocalObjectReference{Name: "certificate"}
	want.ProxySecretRef = &meta.LocalObjectReference{Name: "proxy"}
	want.ServiceAccountName, want.Insecure = "puller", true
	if diff := cmp.Diff(want, source.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.look(template, ready, "Unknown Progressing")
	p.fetched(source, nil)
	p.look(template, ready, "True Succeeded")
	if template.Status.UsedBy != 1 || template.Status.SourceRef == nil || template.Status.SourceRef.Name != source.Name {
		t.Errorf("status %+v", template.Status)
	}

	p.edit(source, func() { source.Spec.URL, source.Spec.Suspend = "oci://evil.example.com/foo", true })
	until(p, source, "the source is mended", func(s *sourcev1.OCIRepository) bool { return s.Spec.URL == want.URL })
	if !source.Spec.Suspend {
		t.Error("the operator's suspension was taken back")
	}

	if err := env.Client.Delete(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	until(p, template, "nobody uses it", func(t *modulesv1.ModuleTemplate) bool { return t.Status.UsedBy == 0 && t.Status.SourceRef == nil })
	p.poke(template) // Whoever sweeps reads from the same cache, which now knows that nobody uses it.
	p.sweep()
	if len(p.sources(template)) != 1 {
		t.Error("the source went without grace")
	}
	p.anHour()
	p.sweep()
	if left := p.sources(template); len(left) != 0 {
		t.Errorf("%d sources are left", len(left))
	}
	p.offers(catalog.Idle, "")
}

// TestAFailedReleaseIsTriedOn: it is offered again only when it could be had.
func TestAFailedReleaseIsTriedOn(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	user := p.installation("app", p.wants("foo-1"))
	p.create(template, user)
	source := p.source(template)
	p.look(template, ready, "Unknown Progressing")
	p.offers(catalog.Idle, "")
	p.failed(source)
	p.look(template, verified, "False ArtifactFailed")
	p.look(template, ready, "False ArtifactFailed")
	if err := env.Client.Delete(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	until(p, template, "nobody uses it", func(t *modulesv1.ModuleTemplate) bool { return t.Status.UsedBy == 0 })
	if err := env.Client.Delete(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	again := p.source(template)
	testenv.Eventually(t, "the source is made anew", func(context.Context) (bool, string) {
		again = p.source(template)
		return again.UID != source.UID, string(again.UID)
	})
	p.look(template, verified, "False ArtifactFailed")
	p.offers(catalog.NotReady, "registry is down")
	p.fetched(again, nil)
	p.look(template, ready, "True Succeeded")
	p.look(template, verified, "")
	testenv.Eventually(t, "the recovery is told once", func(context.Context) (bool, string) {
		told := p.events.count("foo-1 Normal Succeeded")
		return told == 1, strconv.Itoa(told)
	})
}

// offers waits until the catalogue has release 1.0.0 as it should be, and says why.
func (p *releases) offers(want catalog.Readiness, why string) {
	p.t.Helper()
	testenv.Eventually(p.t, "release 1.0.0 is "+string(want), func(ctx context.Context) (bool, string) {
		catalogue, err := p.offered.Namespace(ctx, p.system)
		if err != nil {
			return false, err.Error()
		}
		for _, release := range catalogue.Releases("foo") {
			if release.Version == "1.0.0" {
				return release.Readiness == want && strings.Contains(release.Message, why), string(release.Readiness) + " " + release.Message
			}
		}
		return false, "there is none"
	})
}

// TestATemplateMayGoAtAnyTime: its name is free at once, and what is installed of it goes on having its source.
func TestATemplateMayGoAtAnyTime(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	user := p.installation("app", p.wants("foo-1"))
	p.create(template, user)
	p.look(template, inUse, "True Installed")
	source := p.source(template)
	record := objects.RecordOf(template)
	p.edit(user, func() { user.Status.Current, user.Status.Desired = &record, nil })
	remake := func(digit byte) *modulesv1.ModuleTemplate {
		t.Helper()
		if err := env.Client.Delete(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		again := p.release("foo-1", "1.0.0", "", digit)
		p.create(again)
		return again
	}
	template = remake('2')
	p.look(template, ready, "True Succeeded")
	for range 3 {
		p.anHour()
		p.sweep()
	}
	if made := p.sources(template); len(made) != 1 || made[0].UID != source.UID {
		t.Errorf("what is installed has lost its source: %+v", made)
	}
	// Corrected, it finds what was made for the one before.
	template = remake('1')
	p.look(template, ready, "Unknown Progressing")
	if made := p.source(template); made.UID != source.UID {
		t.Errorf("another source was made: %+v", made)
	}
	p.edit(user, func() { user.Status = modulesv1.ModuleInstallationStatus{ObservedGeneration: 1} })
	if err := env.Client.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the source goes when nobody needs it", func(context.Context) (bool, string) {
		p.anHour()
		p.sweep()
		return len(p.sources(template)) == 0, "it is there"
	})
}

// TestWhatNobodyInstalledIsCorrected: a wrong digest, and a registry that is reached in another way.
func TestWhatNobodyInstalledIsCorrected(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	p.create(template, p.installation("app", p.wants("foo-1")))
	p.failed(p.source(template))
	p.look(template, ready, "False ArtifactFailed")
	p.offers(catalog.NotReady, "registry is down")

	p.edit(template, func() { template.Spec.Artifact.OCI.Insecure = true })
	source := p.source(template)
	until(p, source, "the source is mended", func(s *sourcev1.OCIRepository) bool { return s.Spec.Insecure })
	p.look(template, verified, "False ArtifactFailed") // Until it is known to be better.
	p.failed(source)

	p.edit(template, func() { template.Spec.Artifact.OCI.Digest = digestOf('2') })
	p.look(template, ready, "Unknown Progressing")
	p.offers(catalog.Idle, "")
	testenv.Eventually(t, "the corrected release has a source", func(context.Context) (bool, string) {
		for _, made := range p.sources(template) {
			if made.Spec.Reference.Digest == digestOf('2') {
				p.fetched(&made, nil)
				return true, ""
			}
		}
		return false, "none"
	})
	p.look(template, ready, "True Succeeded")
	if template.Status.Content != digestOf('2') {
		t.Errorf("content %q", template.Status.Content)
	}
}

// TestEveryReleaseOfAnInstallationIsInUse: also the one that was begun before its spec led elsewhere.
func TestEveryReleaseOfAnInstallationIsInUse(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	user := p.installation("app", modulesv1.ModuleInstallationStatus{ObservedGeneration: 1})
	templates := map[string]*modulesv1.ModuleTemplate{}
	for i, role := range []string{"desired", "current", "attempted", "previous"} {
		templates[role] = p.release("foo-"+role, fmt.Sprintf("%d.0.0", i+1), "", byte('1'+i))
		p.create(templates[role])
	}
	named := func(role string) *modulesv1.Release {
		return &modulesv1.Release{Module: "foo", Namespace: p.system, Template: "foo-" + role}
	}
	user.Status.Desired, user.Status.Current = named("desired"), named("current")
	user.Status.Attempted, user.Status.Previous = named("attempted"), named("previous")
	p.create(user)
	for role, template := range templates {
		p.look(template, inUse, "True Installed")
		p.source(template)
		if len(template.Finalizers) != 0 {
			t.Errorf("%s has finalizers %v", role, template.Finalizers)
		}
	}
	p.sweep()
	p.anHour()
	p.sweep()
	p.source(templates["attempted"])
}

func TestSourcesOfOthersHaveToBePinned(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	template.Spec.Artifact = modulesv1.TemplateArtifact{SourceRef: &modulesv1.SourceReference{
		APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "OCIRepository", Name: "theirs",
	}}
	bucket := p.release("foo-2", "2.0.0", "", '1')
	bucket.Spec.Artifact = modulesv1.TemplateArtifact{SourceRef: &modulesv1.SourceReference{
		APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "Bucket", Name: "theirs",
	}}
	p.create(template, bucket)
	p.look(bucket, ready, "False SourceNotPinned")
	p.look(template, ready, "False SourceNotFound")
	theirs := &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "theirs"},
		Spec: sourcev1.OCIRepositorySpec{
			URL: "oci://registry.example.com/foo", Interval: metav1.Duration{Duration: time.Hour},
			Reference: &sourcev1.OCIRepositoryRef{Tag: "latest"},
		},
	}
	p.create(theirs)
	p.look(template, ready, "False SourceNotPinned")
	p.look(template, "Stalled", "True SourceNotPinned")

	p.edit(theirs, func() { theirs.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: digestOf('1')} })
	p.fetched(theirs, nil)
	p.look(template, ready, "True Succeeded")
	p.offers(catalog.Ready, "")
	if template.Status.Content != digestOf('1') {
		t.Errorf("content %q", template.Status.Content)
	}

	p.edit(theirs, func() { theirs.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: digestOf('2')} })
	p.fetched(theirs, nil)
	until(p, template, "what nobody installed follows its source", func(t *modulesv1.ModuleTemplate) bool { return t.Status.Content == digestOf('2') })
	p.isInstalled(template)
	p.edit(theirs, func() { theirs.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: digestOf('1')} })
	p.look(template, verified, "False ArtifactChanged")
	if template.Status.Content != digestOf('2') {
		t.Errorf("content %q: what was installed is forgotten", template.Status.Content)
	}
	p.edit(theirs, func() { theirs.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: digestOf('2')} })
	p.look(template, verified, "True Succeeded")
}

// TestExternalArtifactsArePinnedByTheTemplate: their makers may move them at any time.
func TestExternalArtifactsArePinnedByTheTemplate(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	from := modulesv1.TemplateArtifact{SourceRef: &modulesv1.SourceReference{
		APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "ExternalArtifact", Name: "theirs",
	}}
	template.Spec.Artifact = from
	p.create(template)
	p.look(template, ready, "False SourceNotFound")
	theirs := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "theirs"}}
	p.create(theirs)
	p.look(template, ready, "False SourceNotPinned")

	from.Digest = digestOf('1')
	pinned := p.release("foo-2", "2.0.0", "", '1')
	pinned.Spec.Artifact = from
	p.create(pinned)
	p.look(pinned, ready, "Unknown Progressing")
	has := func(digest string) {
		p.edit(theirs, func() {
			theirs.Status.Artifact = &meta.Artifact{
				Path: "a.tar.gz", URL: "http://theirs.example.com/a.tar.gz", Revision: "whatever", Digest: digest, LastUpdateTime: metav1.NewTime(p.clock.Now()),
			}
			conditions.MarkTrue(theirs, meta.ReadyCondition, meta.SucceededReason, "stored")
		})
	}
	has(digestOf('2'))
	p.look(pinned, ready, "Unknown Progressing")
	has(digestOf('1'))
	p.look(pinned, ready, "True Succeeded")
	if pinned.Status.Content != digestOf('1') {
		t.Errorf("content %q", pinned.Status.Content)
	}
	// With a pin for what has none of its own alone.
	other := p.release("foo-3", "3.0.0", "", '1')
	other.Spec.Artifact.Digest = digestOf('1')
	if err := env.Client.Create(t.Context(), other); err == nil || !strings.Contains(err.Error(), "digest goes with a sourceRef of the kind ExternalArtifact") {
		t.Error(err)
	}
}

// TestOldTemplatesKeepTheirContent: where spec states no version, the API server does not keep the artifact from changing
// under one that was installed.
func TestOldTemplatesKeepTheirContent(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "", "", '1')
	template.Annotations = map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"}
	p.create(template)
	p.look(template, ready, "True Succeeded")
	p.isInstalled(template)

	p.edit(template, func() { template.Spec.Artifact.OCI.Tag, template.Spec.Artifact.OCI.Digest = "2.0.0", digestOf('2') })
	p.look(template, verified, "False ArtifactChanged")
	p.offers(catalog.NotReady, "publish it under a higher version")
	if template.Status.Content != digestOf('1') || template.Status.Version != "1.0.0" || len(p.sources(template)) != 0 {
		t.Errorf("what was installed is forgotten: %+v", template.Status)
	}
	// A wish for the release makes it no other one.
	p.create(p.installation("app", p.wants("foo-1")))
	p.look(template, inUse, "True Installed")
	p.look(template, verified, "False ArtifactChanged")

	p.edit(template, func() { template.Annotations[modulesv1.ModuleVersionAnnotation] = "2.0.0" })
	p.look(template, ready, "Unknown Progressing")
	p.fetched(p.source(template), nil)
	p.look(template, verified, "True Succeeded")
	if template.Status.Content != digestOf('2') || template.Status.Version != "2.0.0" {
		t.Errorf("the raised version is not seen: %+v", template.Status)
	}
}

// TestAnOldTemplateRaisesVersionAndArtifactTogether: in one edit, without a moment in which it has other content.
func TestAnOldTemplateRaisesVersionAndArtifactTogether(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-regular", "", "regular", '1')
	template.Annotations = map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"}
	p.create(template)
	p.fetched(p.source(template), nil)
	p.look(template, ready, "True Succeeded")
	p.isInstalled(template)
	p.edit(template, func() {
		template.Annotations[modulesv1.ModuleVersionAnnotation], template.Spec.Artifact.OCI.Digest = "2.0.0", digestOf('2')
	})
	until(p, template, "it stands for the higher version", func(t *modulesv1.ModuleTemplate) bool {
		return t.Status.Version == "2.0.0" && t.Status.Content == digestOf('2')
	})
	p.look(template, ready, "Unknown Progressing")
}

// TestADefaultConfigThatNobodyCanCreateIsTold: once the release was installed, which might have brought its kind along.
func TestADefaultConfigThatNobodyCanCreateIsTold(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-1", "1.0.0", "", '1')
	template.Spec.DefaultConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"cache.example.com/v1","kind":"Rediss","metadata":{"name":"x"}}`)}
	p.create(template)
	p.look(template, offered, "True Succeeded")
	p.isInstalled(template)
	p.poke(template)
	p.look(template, offered, "True DefaultConfigNotServed")
	p.edit(template, func() {
		template.Spec.DefaultConfig.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)
	})
	p.look(template, offered, "True Succeeded")
}

func TestACommitHasAGitRepository(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	commit := strings.Repeat("a", 40)
	template := p.release("foo-1", "1.0.0", "regular", '1')
	template.Spec.Artifact = modulesv1.TemplateArtifact{Git: &modulesv1.GitArtifact{
		URL: "https://git.example.com/foo", Commit: commit, SecretRef: &modulesv1.LocalReference{Name: "token"},
	}}
	p.create(template)
	until(p, template, "it has a source", func(t *modulesv1.ModuleTemplate) bool { return t.Status.SourceRef != nil })
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: template.Status.SourceRef.Name}}
	until(p, source, "the source is made", func(*sourcev1.GitRepository) bool { return true })
	if source.Spec.Reference == nil || source.Spec.Reference.Commit != commit || source.Spec.SecretRef == nil ||
		source.Spec.SecretRef.Name != "token" || source.Spec.URL != "https://git.example.com/foo" {
		t.Errorf("%+v", source.Spec)
	}
	if template.Status.Digest != "sha1:"+commit || template.Status.Content != "sha1:"+commit {
		t.Errorf("%+v", template.Status)
	}
	p.edit(source, func() {
		source.Status.Artifact = &meta.Artifact{
			Path: "a.tar.gz", URL: "http://artifacts.example.com/a.tar.gz", Revision: "sha1:" + commit, Digest: digestOf('e'),
			LastUpdateTime: metav1.NewTime(p.clock.Now()),
		}
	})
	p.look(template, verified, "True Succeeded")
	if template.Status.Revision != "sha1:"+commit || template.Status.Digest != digestOf('e') {
		t.Errorf("%+v", template.Status)
	}
}

// TestAStrangersSourceIsLeftAlone: the name that a template would use may be taken.
func TestAStrangersSourceIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template, user := p.release("foo-1", "1.0.0", "", '1'), p.installation("app", p.wants("foo-1"))
	p.create(template, user)
	source := p.source(template)
	p.edit(source, func() { source.Annotations, source.Spec.URL = nil, "oci://registry.example.com/mine" })
	p.look(template, ready, "False Failed")
	until(p, source, "it stays theirs", func(s *sourcev1.OCIRepository) bool { return s.Spec.URL == "oci://registry.example.com/mine" })
}

func TestNothingNewIsNoWrite(t *testing.T) {
	t.Parallel()
	p := newReleases(t)
	template := p.release("foo-regular", "1.0.0", "regular", '1')
	module := &modulesv1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "foo"}}
	user := p.installation("app", p.wants("foo-regular"))
	p.create(template, module, user)
	p.fetched(p.source(template), nil)
	p.look(template, ready, "True Succeeded")
	until(p, module, "the module is ready", func(m *modulesv1.Module) bool {
		return condition(m, ready) == "True Succeeded" && len(m.Status.Channels) == 1 && m.Status.Channels[0].Ready
	})
	source := p.source(template)
	versions := func() []string {
		t.Helper()
		all := []string{}
		for _, obj := range []client.Object{template, module, source, user} {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			all = append(all, obj.GetName()+" "+obj.GetResourceVersion())
		}
		return all
	}
	before := versions()
	p.anHour()
	for range 2 {
		if _, err := p.template.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(template)}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.module.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(module)}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}
