package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var gitRepository = schema.GroupVersionKind{
	Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository",
}

func subject(name string) Subject {
	return About(&metav1.ObjectMeta{Namespace: "apps", Name: name}, gitRepository)
}

func TestConstructorsSpeakTheWireContract(t *testing.T) {
	t.Parallel()

	about := About(&metav1.ObjectMeta{
		Namespace: "apps", Name: "podinfo", UID: "u-1", ResourceVersion: "7",
		Annotations: map[string]string{
			"event.toolkit.fluxcd.io/team":       "blue",
			"event.toolkit.fluxcd.io.evil/other": "x",
			"kubectl.kubernetes.io/restartedAt":  "y",
		},
	}, gitRepository)
	object := corev1.ObjectReference{
		APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository",
		Namespace: "apps", Name: "podinfo", UID: "u-1", ResourceVersion: "7",
	}
	user := map[string]string{"event.toolkit.fluxcd.io/team": "blue"}
	full := map[string]string{
		"event.toolkit.fluxcd.io/team":      "blue",
		"source.toolkit.fluxcd.io/revision": "main@sha1:aa",
		"source.toolkit.fluxcd.io/digest":   "sha256:bb",
	}
	revisionOnly := map[string]string{
		"event.toolkit.fluxcd.io/team":      "blue",
		"source.toolkit.fluxcd.io/revision": "main@sha1:aa",
	}
	boom := errors.New("boom")

	cases := map[string]struct {
		reason string
		got    Event
		want   Event
	}{
		"new artifact": {
			reason: "A new artifact names its revision and digest.",
			got:    Stored(about, "NewArtifact", Artifact{Revision: "main@sha1:aa", Digest: "sha256:bb"}, "stored"),
			want:   Event{Object: object, Type: Normal, Reason: "NewArtifact", Message: "stored", Metadata: full},
		},
		"new artifact with an origin": {
			reason: "What the artifact says of its origin is told, so that a notification can name the commit.",
			got:    Stored(subject("podinfo"), "NewArtifact", Artifact{Revision: "v1@sha256:aa", Digest: "sha256:bb", OriginRevision: "main@sha1:cc"}, "stored"),
			want: Event{
				Object: subject("podinfo").reference, Type: Normal, Reason: "NewArtifact", Message: "stored",
				Metadata: map[string]string{
					"source.toolkit.fluxcd.io/revision": "v1@sha256:aa", "source.toolkit.fluxcd.io/digest": "sha256:bb",
					"source.toolkit.fluxcd.io/originRevision": "main@sha1:cc",
				},
			},
		},
		"recovered": {
			reason: "A recovery is a success with the artifact that was there.",
			got:    Recovered(about, Artifact{Revision: "main@sha1:aa", Digest: "sha256:bb"}, "stored"),
			want:   Event{Object: object, Type: Normal, Reason: "Succeeded", Message: "stored", Metadata: full},
		},
		"failed": {
			reason: "A failure is a warning with its own reason.",
			got:    Failed(about, "GitOperationFailed", boom, "main@sha1:aa"),
			want: Event{
				Object: object, Type: Warning, Reason: "GitOperationFailed", Message: "boom", Metadata: revisionOnly,
			},
		},
		"failed without reason or revision": {
			reason: "A plain error gets the general reason, and no empty revision is sent.",
			got:    Failed(about, "", boom, ""),
			want:   Event{Object: object, Type: Warning, Reason: "Failed", Message: "boom", Metadata: user},
		},
		"waiting": {
			reason: "Waiting for another object is not a warning.",
			got:    Waiting(about, "NoArtifact", boom, ""),
			want:   Event{Object: object, Type: Normal, Reason: "NoArtifact", Message: "boom", Metadata: user},
		},
		"artifact verification failed": {
			reason: "A damaged artifact is named by what it should have been.",
			got:    ArtifactVerificationFailed(about, Artifact{Revision: "main@sha1:aa", Digest: "sha256:bb"}, boom),
			want: Event{
				Object: object, Type: Warning, Reason: "ArtifactVerificationFailed", Message: "boom", Metadata: full,
			},
		},
		"garbage collected": {
			reason: "House-keeping is told to Kubernetes alone.",
			got:    GarbageCollected(about, 3),
			want: Event{
				Object: object, Type: Normal, Trace: true, Reason: "GarbageCollectionSucceeded",
				Message: "garbage collected 3 artifacts", Metadata: user,
			},
		},
		"warned": {
			reason: "A warning without a failure carries no artifact.",
			got:    warned(about, "Ambiguous", "tag overrules branch"),
			want: Event{
				Object: object, Type: Warning, Reason: "Ambiguous", Message: "tag overrules branch", Metadata: user,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEventsOfOneSubjectShareNoMap(t *testing.T) {
	t.Parallel()
	about := subject("podinfo")
	first := Stored(about, "NewArtifact", Artifact{Revision: "r1", Digest: "d1"}, "stored")
	Stored(about, "NewArtifact", Artifact{Revision: "r2", Digest: "d2"}, "stored").Metadata["x"] = "y"
	want := map[string]string{"source.toolkit.fluxcd.io/revision": "r1", "source.toolkit.fluxcd.io/digest": "d1"}
	if diff := cmp.Diff(want, first.Metadata); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUserMetadataIsBounded(t *testing.T) {
	t.Parallel()
	got := userMetadata(map[string]string{
		"event.toolkit.fluxcd.io/a": "small",
		"event.toolkit.fluxcd.io/b": strings.Repeat("x", maxUserMetadata),
		"event.toolkit.fluxcd.io/c": "small too",
	})
	want := map[string]string{"event.toolkit.fluxcd.io/a": "small", "event.toolkit.fluxcd.io/c": "small too"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// warned is an event of no particular kind.
func warned(s Subject, reason, message string) Event { return s.event(Warning, reason, message, nil) }
