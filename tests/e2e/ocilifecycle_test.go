package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/opencontainers/go-digest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestOCIAnObjectOfFluxIsTakenOver(t *testing.T) {
	t.Parallel()
	s := ociScene{newScene(t)}
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	same := repository.PushFlux("same", module(1), nil)
	moved := repository.PushFlux("moved", module(2), nil)
	cases := map[string]string{"same": at("same", same), "moved": at("moved", same), "failed": at("same", same)}
	for name, was := range cases {
		tag, _, _ := strings.Cut(was, "@")
		s.create(name, r.URL("team/app"), ociTag(tag))
		s.leaveAsFlux(name, was)
	}
	// Flux was about to store something when it was replaced.
	s.editStatus("failed", func(status *sourcev1.OCIRepositoryStatus) {
		status.Conditions = append(status.Conditions[:0],
			fluxCondition(meta.ReadyCondition, metav1.ConditionFalse, sourcev1.OCIPullFailedReason, "failed to pull"),
			fluxCondition(sourcev1.FetchFailedCondition, metav1.ConditionTrue, sourcev1.OCIPullFailedReason, "failed to pull"),
			fluxCondition(meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingWithRetryReason, "building artifact"),
		)
	})
	s.start()
	for name, want := range map[string]string{"same": at("same", same), "moved": at("moved", moved), "failed": at("same", same)} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			obj := s.ready(name, want)
			contents := module(1)
			if name == "moved" {
				contents = module(2)
			}
			s.holds(obj.Status.Artifact, files(contents))
			if host := strings.TrimPrefix(obj.Status.URL, "http://127.0.0.1:"); host == obj.Status.URL {
				t.Errorf("status.url is still %s", obj.Status.URL)
			}
			if got := obj.Finalizers; len(got) != 1 || got[0] != "finalizers.fluxcd.io" {
				t.Errorf("finalizers are %q", got)
			}
			// The name that Flux served other bytes under does not get these.
			if name != "moved" && strings.HasSuffix(obj.Status.Artifact.Path, "/"+same.Digest.String()+".tar.gz") {
				t.Errorf("%s is served again with other bytes", obj.Status.Artifact.Path)
			}
		})
	}
}

// leaveAsFlux gives an object the status and the finalizer that Flux leaves at a revision.
func (s ociScene) leaveAsFlux(name, revision string) {
	s.t.Helper()
	s.edit(name, func(obj *sourcev1.OCIRepository) { obj.Finalizers = []string{"finalizers.fluxcd.io"} })
	_, hash, _ := strings.Cut(revision, "@")
	const host = "http://source-controller.flux-system.svc.cluster.local./"
	folder := "ocirepository/" + s.namespace + "/" + name + "/"
	message := "stored artifact for digest '" + revision + "'"
	s.editStatus(name, func(status *sourcev1.OCIRepositoryStatus) {
		*status = sourcev1.OCIRepositoryStatus{
			ObservedGeneration: 1, URL: host + folder + "latest.tar.gz",
			Conditions: []metav1.Condition{
				fluxCondition(meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, message),
				fluxCondition(sourcev1.ArtifactInStorageCondition, metav1.ConditionTrue, meta.SucceededReason, message),
			},
			Artifact: &meta.Artifact{
				Path: folder + hash + ".tar.gz", URL: host + folder + hash + ".tar.gz", Revision: revision,
				Digest: digest.FromString("packed by Flux").String(), LastUpdateTime: metav1.Unix(1700000000, 0), Size: new(int64(1234)),
				Metadata: map[string]string{"org.opencontainers.image.created": "2020-01-01T00:00:00Z"},
			},
		}
	})
}

func fluxCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Unix(1700000000, 0),
	}
}

func (s ociScene) editStatus(name string, edit func(*sourcev1.OCIRepositoryStatus)) {
	s.t.Helper()
	before := s.get(name)
	after := before.DeepCopy()
	edit(&after.Status)
	if err := env.Client.Status().Patch(s.t.Context(), after, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

func TestOCIObjectsAreSuspendedRepairedAndDeleted(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	first := repository.PushFlux("latest", module(1), nil)
	for _, name := range []string{"app", "same", "idle"} {
		s.create(name, r.URL("team/app"))
	}
	app, same := s.ready("app", at("latest", first)), s.ready("same", at("latest", first))
	idle := s.ready("idle", at("latest", first))

	s.change("idle", func(spec *sourcev1.OCIRepositorySpec) {
		spec.Suspend, spec.Interval = true, metav1.Duration{Duration: 50 * time.Millisecond}
	})
	s.until("idle", "the suspension is seen", func(obj *sourcev1.OCIRepository) bool {
		return obj.Status.ObservedGeneration == obj.Generation
	})
	r.Reset()
	second := repository.PushFlux("latest", module(2), nil)
	for range 3 {
		sameOCIArtifact(t, idle, s.reconcile("idle"))
	}
	if n := r.Count(); n != 0 {
		t.Errorf("the registry was asked for a suspended object: %+v", r.Requests())
	}
	s.holds(idle.Status.Artifact, files(module(1)))
	s.change("idle", func(spec *sourcev1.OCIRepositorySpec) { spec.Suspend = false })
	s.holds(s.ready("idle", at("latest", second)).Status.Artifact, files(module(2)))

	repository.Tag("latest", first)
	s.editStatus("app", func(status *sourcev1.OCIRepositoryStatus) {
		status.Artifact, status.URL = s.get("idle").Status.Artifact, "http://192.0.2.1/latest.tar.gz"
	})
	sameOCIArtifact(t, app, s.reconcile("app"))

	for _, name := range []string{"app", "idle"} {
		if err := env.Client.Delete(t.Context(), s.get(name)); err != nil {
			t.Fatal(err)
		}
		s.gone(name)
	}
	for _, url := range []string{app.Status.Artifact.URL, app.Status.URL} {
		if answer, err := get(t.Context(), url); err != nil || answer.status != 404 {
			t.Errorf("%s of a deleted object answers %d, %v", url, answer.status, err)
		}
	}
	// Both had the same bytes; those of the other object stay.
	s.holds(same.Status.Artifact, files(module(1)))
	found, wrong := readDisk(s.storage)
	if left := append(found.strays(), wrong...); len(left) > 0 || len(found.files) != 1 || len(found.blobs) != 1 {
		t.Errorf("left behind: %q, files %v, bodies %v", left, found.files, found.blobs)
	}
	// An edit of what shapes the artifact makes it anew, under a name of its own.
	s.change("same", func(spec *sourcev1.OCIRepositorySpec) { spec.Ignore = new("deploy/\n") })
	edited := s.ready("same", at("latest", first))
	s.holds(edited.Status.Artifact, files(map[string]string{"app.yaml": module(1)["app.yaml"]}))
	if edited.Status.Artifact.Path == same.Status.Artifact.Path || *edited.Status.ObservedIgnore != "deploy/\n" {
		t.Errorf("other rules, and status is %s", asJSON(edited.Status))
	}
	s.holds(same.Status.Artifact, files(module(1)))
}

// gone waits until the object and all its files are gone.
func (s ociScene) gone(name string) {
	s.t.Helper()
	s.eventually(name+" is gone", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, s.key(name), &sourcev1.OCIRepository{})
		found, _ := readDisk(s.storage)
		for file := range found.files {
			if strings.HasPrefix(file, "ocirepository/"+s.namespace+"/"+name+"/") {
				return false, file
			}
		}
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

func TestOCIALostStorageIsRebuiltFromTheSpec(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	pushed := repository.PushFlux("latest", module(1), nil)
	s.create("app", r.URL("team/app"))
	s.create("copied", r.URL("team/app"), ociLayer("", "copy"))
	s.create("pinned", r.URL("team/app"), ociDigest(pushed))
	revisions := map[string]string{"app": at("latest", pushed), "copied": at("latest", pushed), "pinned": pushed.Digest.String()}
	before := map[string]*sourcev1.OCIRepository{}
	for name, revision := range revisions {
		before[name] = s.ready(name, revision)
		s.toldNewArtifact(name, revision)
	}
	s.stop()
	r.Reset()
	s.start()
	for name, revision := range revisions {
		restarted := s.ready(name, revision)
		if was, is := before[name].Status.Artifact, restarted.Status.Artifact; was.Digest != is.Digest || was.Path != is.Path {
			t.Errorf("a restart turned artifact %s into %s", asJSON(was), asJSON(is))
		}
	}
	if n := blobs(r); n != 0 {
		t.Errorf("a restart pulled %d blobs", n)
	}
	s.stop()
	s.wipe()
	s.start()
	for name, revision := range revisions {
		rebuilt := s.ready(name, revision)
		if was, is := before[name].Status.Artifact, rebuilt.Status.Artifact; was.Digest != is.Digest || was.Path != is.Path {
			t.Errorf("artifact %s became %s", asJSON(was), asJSON(is))
		}
		if conditions.Has(rebuilt, sourcev1.SourceVerifiedCondition) {
			t.Errorf("%s is verified by nobody: %s", name, asJSON(rebuilt.Status))
		}
	}
}
