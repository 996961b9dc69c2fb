package objects

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/catalog"
)

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	created := time.Unix(1_700_000_000, 0)
	pinned := func(change func(*modulesv1.ModuleTemplate)) *modulesv1.ModuleTemplate {
		template := &modulesv1.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "foo-1", CreationTimestamp: metav1.NewTime(created)},
			Spec: modulesv1.ModuleTemplateSpec{
				ModuleName: "foo", Version: "1.0.0", Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{Digest: "sha256:11"}},
			},
		}
		change(template)
		return template
	}
	fresh := catalog.Release{
		Template: "foo-1", Module: "foo", Version: "1.0.0", Digest: "sha256:11", Readiness: catalog.Idle, Since: created,
		Support: catalog.Support{State: modulesv1.SupportSupported},
	}
	with := func(change func(*catalog.Release)) catalog.Release {
		release := fresh
		change(&release)
		return release
	}
	failed := []metav1.Condition{{Type: modulesv1.ArtifactVerifiedCondition, Status: metav1.ConditionFalse, Message: "down"}}
	cases := map[string]struct {
		reason   string
		template *modulesv1.ModuleTemplate
		want     catalog.Release
	}{
		"Fresh":    {"a pinned release can be chosen before it was looked at", pinned(func(*modulesv1.ModuleTemplate) {}), fresh},
		"Deleting": {"what is on its way out says so", pinned(func(t *modulesv1.ModuleTemplate) { t.DeletionTimestamp = &metav1.Time{Time: created} }), with(func(r *catalog.Release) { r.Deleting = true })},
		"None":     {"none is no channel", pinned(func(t *modulesv1.ModuleTemplate) { t.Spec.Channel = "none" }), fresh},
		"Folder":   {"another folder of one artifact is other content", pinned(func(t *modulesv1.ModuleTemplate) { t.Spec.Artifact.Path = "./a//b/" }), with(func(r *catalog.Release) { r.Digest = "sha256:11//a/b" })},
		"Root":     {"the root has many spellings", pinned(func(t *modulesv1.ModuleTemplate) { t.Spec.Artifact.Path = "./" }), fresh},
		"Git": {"a commit is a pin", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Spec.Artifact = modulesv1.TemplateArtifact{Git: &modulesv1.GitArtifact{Commit: strings.Repeat("a", 40)}}
		}), with(func(r *catalog.Release) { r.Digest = "sha1:" + strings.Repeat("a", 40) })},
		"Reference": {"what another source has is not known before it was looked at", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Spec.Artifact = modulesv1.TemplateArtifact{SourceRef: &modulesv1.SourceReference{Name: "x"}}
		}), with(func(r *catalog.Release) {
			r.Digest, r.Readiness, r.Message = "", catalog.NotReady, "The source has no artifact yet"
		})},
		"Failed": {"what could not be had is not chosen", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Status = modulesv1.ModuleTemplateStatus{Version: "1.0.0", Content: "sha256:11", Conditions: failed}
		}), with(func(r *catalog.Release) { r.Readiness, r.Message = catalog.NotReady, "down" })},
		"Raised": {"a raised version is another release, and younger than all that were seen", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Status = modulesv1.ModuleTemplateStatus{Version: "0.9.0", Conditions: failed, Since: &metav1.Time{Time: created}}
		}), with(func(r *catalog.Release) { r.Since = time.Unix(1<<40, 0) })},
		"Corrected": {"what could not be had says nothing of what it was corrected to", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Status = modulesv1.ModuleTemplateStatus{Version: "1.0.0", Content: "sha256:00", Conditions: failed}
		}), fresh},
		"Changed": {"a version keeps what it was installed with", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Status = modulesv1.ModuleTemplateStatus{Version: "1.0.0", Content: "sha256:00", Installed: &modulesv1.InstalledVersion{Version: "1.0.0", Content: "sha256:00"}}
		}), with(func(r *catalog.Release) {
			r.Readiness, r.Message = catalog.NotReady,
				"The template has sha256:11, and version 1.0.0 was installed with sha256:00; publish it under a higher version"
		})},
		"Recorded": {"when a version was first stated is remembered", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Status = modulesv1.ModuleTemplateStatus{Version: "1.0.0", Content: "sha256:11", Since: &metav1.Time{Time: created.Add(time.Hour)}}
		}), with(func(r *catalog.Release) { r.Since = created.Add(time.Hour) })},
		"Support": {"the last day of support is a day of support", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Spec.Support = &modulesv1.TemplateSupport{State: "Deprecated", Message: "old", Until: "2027-06-30", ReplacedBy: "2.0.0"}
		}), with(func(r *catalog.Release) {
			r.Support = catalog.Support{State: "Deprecated", Message: "old", Until: time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC), ReplacedBy: "2.0.0"}
		})},
		"Undecodable": {"a spec that cannot be read stands for nothing", &modulesv1.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "foo-1", CreationTimestamp: metav1.NewTime(created)}, Undecodable: "spec cannot be decoded",
		}, catalog.Release{
			Template: "foo-1", Readiness: catalog.NotReady, Message: "spec cannot be decoded", Since: created, Support: catalog.Support{State: modulesv1.SupportSupported},
		}},
		"Malformed": {"a version that is none is shown, and is none", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Spec.Version, t.Annotations = "", map[string]string{modulesv1.ModuleVersionAnnotation: "v1"}
		}), with(func(r *catalog.Release) { r.Version, r.Stated = "", "v1" })},
		"Broken": {"one in spec, from before it was checked, is none either, and nothing else stands in for it", pinned(func(t *modulesv1.ModuleTemplate) {
			t.Spec.Version, t.Annotations = "v1", map[string]string{modulesv1.ModuleVersionAnnotation: "1.0.0"}
		}), with(func(r *catalog.Release) { r.Version, r.Stated = "", "v1" })},
		"Tag": {"a tag that is no version is none", pinned(func(t *modulesv1.ModuleTemplate) { t.Spec.Version, t.Spec.Artifact.OCI.Tag = "", "latest" }), with(func(r *catalog.Release) { r.Version = "" })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ReleaseOf(tc.template)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestARecordHasAVersionOrNone: what a template says instead of one may be longer than a record takes.
func TestARecordHasAVersionOrNone(t *testing.T) {
	t.Parallel()
	for _, stated := range []string{"", "v1", strings.Repeat("1", 300)} {
		template := &modulesv1.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{
			Name: "foo", Annotations: map[string]string{modulesv1.ModuleVersionAnnotation: stated},
		}}
		record, release := RecordOf(template), ReleaseOf(template)
		if record.Version != "" || release.Version != "" || release.Stated != stated {
			t.Errorf("%q: recorded as %q, offered as %q", stated, record.Version, release.Version)
		}
	}
}

// TestPinOf: the pin comes back out of every name that it went into.
func TestPinOf(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "application/x-a", "application/x-a!0011223344"} {
		for _, folder := range []string{"", "a", "a/b#c", "/a//b"} {
			if got := PinOf(content("sha256:11", part, folder)); got != "sha256:11" {
				t.Errorf("%q, %q: got %q", part, folder, got)
			}
		}
	}
}

// TestASourceIsNamedForWhatItHolds: what is reached in another way is the same.
func TestASourceIsNamedForWhatItHolds(t *testing.T) {
	t.Parallel()
	named := func(artifact modulesv1.OCIArtifact, path string) string {
		return SourceOf(&modulesv1.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "t"},
			Spec:       modulesv1.ModuleTemplateSpec{Artifact: modulesv1.TemplateArtifact{OCI: &artifact, Path: path}},
		}).Name
	}
	one := named(modulesv1.OCIArtifact{Digest: "sha256:11", Repository: "oci://a/b", Tag: "1"}, "x")
	same := named(modulesv1.OCIArtifact{Digest: "sha256:11", Repository: "oci://c/d", Insecure: true, SecretRef: &modulesv1.LocalReference{Name: "s"}}, "")
	other := named(modulesv1.OCIArtifact{Digest: "sha256:22", Repository: "oci://a/b", Tag: "1"}, "x")
	layer := named(modulesv1.OCIArtifact{Digest: "sha256:11", Repository: "oci://a/b", LayerSelector: &modulesv1.LayerSelector{MediaType: "x"}}, "x")
	if one != same || one == other || one == layer {
		t.Errorf("%s, %s, %s, %s", one, same, other, layer)
	}
	for _, template := range []string{strings.Repeat("a", 253), strings.Repeat("a", 199) + "." + strings.Repeat("b", 53)} {
		if faults := validation.IsDNS1123Subdomain(ownedName(template, "sha256:11", "")); len(faults) > 0 {
			t.Errorf("%s: %v", template, faults)
		}
	}
}

// TestACopiedSourceIsNobodysButItsMakers: whoever copies one copies the annotation along.
func TestACopiedSourceIsNobodysButItsMakers(t *testing.T) {
	t.Parallel()
	template := &modulesv1.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	template.Spec.Artifact.OCI = &modulesv1.OCIArtifact{Digest: "sha256:11"}
	source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{
		Name: SourceOf(template).Name, Annotations: map[string]string{modulesv1.TemplateAnnotation: "t"},
	}}
	source.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: "sha256:11"}
	if got := ReadSource(source).MadeFor(); got != "t" {
		t.Errorf("made for %q", got)
	}
	source.Name = "mine"
	if got := ReadSource(source).MadeFor(); got != "" {
		t.Errorf("a copy was made for %q", got)
	}
}

// TestRemediesNameFieldsThatAreThere: of the template where the source was made for one, else of the source.
func TestRemediesNameFieldsThatAreThere(t *testing.T) {
	t.Parallel()
	template := &modulesv1.ModuleTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	template.Spec.Artifact.OCI = &modulesv1.OCIArtifact{Digest: "sha256:11"}
	source := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Name: SourceOf(template).Name}}
	source.Spec.Reference = &sourcev1.OCIRepositoryRef{Digest: "sha256:11"}
	conditions.MarkFalse(source, meta.ReadyCondition, meta.FailedReason, "%s", "no: check spec.url and spec.ref, set spec.insecure")
	told := func() string {
		_, err := ReadSource(source).ArtifactOf("sha256:11")
		return err.Error()
	}
	if got := told(); !strings.HasSuffix(got, "has no artifact: no: check spec.url and spec.ref, set spec.insecure") {
		t.Errorf("of somebody's source: %s", got)
	}
	source.Annotations = map[string]string{modulesv1.TemplateAnnotation: "t"}
	if got := told(); !strings.HasSuffix(got, "no: check spec.artifact.oci.repository and spec.artifact.oci.digest, set spec.artifact.oci.insecure") {
		t.Errorf("of a template's source: %s", got)
	}
}

// TestAPinIsComparedInFull: a part of a digest names no artifact.
func TestAPinIsComparedInFull(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, revision, pin string
		want                  bool
	}{
		"Digest":     {"a revision may be the digest alone", "sha256:1122", "sha256:1122", true},
		"Tagged":     {"or follow a tag", "1.0.0@sha256:1122", "sha256:1122", true},
		"Commit":     {"or a branch", "main@sha1:aabb", "sha1:aabb", true},
		"OddBranch":  {"which may look like anything", "a@b@sha1:aabb", "sha1:aabb", true},
		"Letter":     {"its last letter is not enough", "1.0.0@sha256:1122", "2", false},
		"Hash":       {"nor is the hash without its algorithm", "1.0.0@sha256:1122", "1122", false},
		"Everything": {"no pin is no artifact", "1.0.0@", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := Source{Object: &sourcev1.OCIRepository{}, Artifact: &meta.Artifact{Revision: tc.revision}}
			if _, err := source.ArtifactOf(tc.pin); (err == nil) != tc.want {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
