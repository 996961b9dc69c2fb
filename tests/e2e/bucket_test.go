package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/minio/minio-go/v7"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// bucketScene is a scene whose objects are Buckets of a real S3 server.
type bucketScene struct {
	*scene
	server *buckets.Server
	writer *minio.Client
}

// bucketName is the bucket of a scene.
const bucketName = "configuration"

func newBucketScene(t *testing.T, flags ...string) bucketScene {
	t.Helper()
	s := bucketScene{scene: newRunning(t, flags...), server: buckets.Serve(t, testenv.Root(), "s3")}
	var err error
	if s.writer, err = buckets.Writer(s.server.Address); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.MakeBucket(t.Context(), bucketName, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s bucketScene) put(bodies map[string]string) {
	s.t.Helper()
	for key, body := range bodies {
		if _, err := s.writer.PutObject(s.t.Context(), bucketName, key, strings.NewReader(body), int64(len(body)), minio.PutObjectOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s bucketScene) create(name string, change func(*sourcev1.BucketSpec)) {
	s.t.Helper()
	obj := &sourcev1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: s.labels},
		Spec: sourcev1.BucketSpec{
			BucketName: bucketName, Endpoint: s.server.Address, Insecure: true, Interval: metav1.Duration{Duration: time.Second},
			SecretRef: &meta.LocalObjectReference{Name: "keys"},
		},
	}
	if change != nil {
		change(&obj.Spec)
	}
	if err := env.Client.Create(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

// secret makes the Secret that objects name; its key is a canary.
func (s bucketScene) secret(key string) {
	s.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "keys"}, StringData: map[string]string{"accesskey": buckets.AccessKey, "secretkey": key},
	}
	s.hide("the secret key", key)
	if err := env.Client.Create(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for an object.
func (s bucketScene) until(name, what string, holds func(*sourcev1.Bucket) bool) *sourcev1.Bucket {
	s.t.Helper()
	obj := &sourcev1.Bucket{}
	err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := env.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj)
		return err == nil && holds(obj), err
	})
	if err != nil {
		s.t.Fatalf("wait until %s: %v: %+v", what, err, obj.Status)
	}
	return obj
}

// holds downloads the artifact as consumers do.
func (s bucketScene) holds(artifact *meta.Artifact, want map[string]string) {
	s.t.Helper()
	response, err := http.Get(artifact.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || digest.FromBytes(body).String() != artifact.Digest {
		s.t.Fatalf("%s, %d bytes, %v", response.Status, len(body), err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]string{}
	for entries := tar.NewReader(unpacked); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			s.t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			found[header.Name] = string(text)
		}
	}
	if !maps.Equal(found, want) {
		s.t.Errorf("the artifact holds %d files: %.500v", len(found), found)
	}
}

func bucketBeyond(revision string) func(*sourcev1.Bucket) bool {
	return func(obj *sourcev1.Bucket) bool {
		return conditions.IsReady(obj) && obj.Status.Artifact != nil && obj.Status.Artifact.Revision != revision
	}
}

// TestABucketIsFollowed: the built program, a real S3 server, and what people and consumers see; also after a start.
func TestABucketIsFollowed(t *testing.T) {
	t.Parallel()
	s := newBucketScene(t, "--bucket-cache-path="+t.TempDir())
	s.secret(buckets.SecretKey)
	want := map[string]string{".sourceignore": "*.md\n"}
	for i := range 50 {
		want[fmt.Sprintf("deploy/app-%d.yaml", i)] = fmt.Sprint("replicas: ", i)
	}
	s.put(want)
	s.put(map[string]string{"notes.md": "left out"})
	s.create("app", nil)
	first := s.until("app", "it is ready", bucketBeyond(""))
	s.holds(first.Status.Artifact, want)

	s.put(map[string]string{"deploy/app-7.yaml": "replicas: 70"})
	want["deploy/app-7.yaml"] = "replicas: 70"
	second := s.until("app", "it has what is new", bucketBeyond(first.Status.Artifact.Revision))
	s.holds(second.Status.Artifact, want)
	s.holds(&meta.Artifact{URL: second.Status.URL, Digest: second.Status.Artifact.Digest}, want)

	s.stop()
	if err := s.writer.RemoveObject(t.Context(), bucketName, "deploy/app-8.yaml", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	delete(want, "deploy/app-8.yaml")
	s.start()
	third := s.until("app", "it has noticed what went", bucketBeyond(second.Status.Artifact.Revision))
	s.holds(third.Status.Artifact, want)
	if lines := strings.Split(strings.TrimSpace(s.kubectl("get", "buckets")), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "NAME") ||
		strings.Join(strings.Fields(lines[0]), " ") != "NAME ENDPOINT AGE READY STATUS" {
		t.Errorf("kubectl shows %q", lines)
	}
	if err := env.Client.Delete(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		response, err := http.Get(third.Status.Artifact.URL)
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusNotFound, response.Body.Close()
	})
	if err != nil {
		t.Errorf("its artifact is still served: %v", err)
	}
}

// TestABucketThatIsRefusedSaysSo, and tells no key.
func TestABucketThatIsRefusedSaysSo(t *testing.T) {
	t.Parallel()
	s := newBucketScene(t)
	s.secret("CANARY-not-the-key")
	s.put(map[string]string{"a": "1"})
	s.create("app", nil)
	s.until("app", "it has failed", func(obj *sourcev1.Bucket) bool {
		failed := conditions.Get(obj, sourcev1.FetchFailedCondition)
		return failed != nil && failed.Reason == "BucketOperationFailed" &&
			strings.Contains(failed.Message, "failed to confirm existence of 'configuration' bucket: the storage answers 403 Forbidden SignatureDoesNotMatch")
	})
	s.create("elsewhere", func(spec *sourcev1.BucketSpec) { spec.BucketName, spec.SecretRef = "elsewhere", nil })
	s.until("elsewhere", "it has failed", func(obj *sourcev1.Bucket) bool {
		return conditions.IsTrue(obj, sourcev1.FetchFailedCondition)
	})
}

// TestABucketOfFluxIsTakenOver: with its status and finalizer, its revision, and a URL of our own.
func TestABucketOfFluxIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newBucketScene(t)
	s.secret(buckets.SecretKey)
	s.put(map[string]string{"a": "1"})
	s.stop()
	s.create("app", nil)
	obj := &sourcev1.Bucket{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, obj); err != nil {
		t.Fatal(err)
	}
	obj.Finalizers = []string{"finalizers.fluxcd.io"}
	if err := env.Client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	// The line is "a c4ca4238a0b923820dcc509a6f75849b", the MD5 of "1".
	revision := "sha256:" + digest.FromString("a c4ca4238a0b923820dcc509a6f75849b\n").Encoded()
	const host = "http://source-controller.flux-system.svc.cluster.local./"
	folder := "bucket/" + s.namespace + "/app/"
	message := "stored artifact: revision '" + revision + "'"
	obj.Status = sourcev1.BucketStatus{
		ObservedGeneration: 1, URL: host + folder + "latest.tar.gz",
		Conditions: []metav1.Condition{
			fluxCondition(meta.ReadyCondition, metav1.ConditionTrue, meta.SucceededReason, message),
			fluxCondition(sourcev1.ArtifactInStorageCondition, metav1.ConditionTrue, meta.SucceededReason, message),
		},
		Artifact: &meta.Artifact{
			Path: folder + strings.TrimPrefix(revision, "sha256:") + ".tar.gz", URL: host + folder + strings.TrimPrefix(revision, "sha256:") + ".tar.gz", Revision: revision,
			Digest: digest.FromString("packed by Flux").String(), LastUpdateTime: metav1.Unix(1700000000, 0), Size: new(int64(1234)),
		},
	}
	if err := env.Client.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	was := obj.Status.Artifact.Path
	s.start()
	taken := s.until("app", "it is served here", func(obj *sourcev1.Bucket) bool {
		return conditions.IsReady(obj) && strings.HasPrefix(obj.Status.URL, "http://127.0.0.1:")
	})
	if taken.Status.Artifact.Revision != revision || taken.Status.Artifact.Path == was {
		t.Errorf("got %+v; the name that Flux served other bytes under must not get these", taken.Status.Artifact)
	}
	s.holds(taken.Status.Artifact, map[string]string{"a": "1"})
}
