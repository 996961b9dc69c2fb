package installation_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// depot is a registry, its source controller, and the server of its artifacts.
type depot struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string][]byte
	// withheld says that no source gets its artifact for now.
	withheld bool
	// lost says that the server has nothing of what sources say they have.
	lost bool
}

func newDepot(t *testing.T) *depot {
	t.Helper()
	d := &depot{bodies: map[string][]byte{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		body, found := d.bodies[strings.TrimPrefix(r.URL.Path, "/")]
		if !found || d.lost {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(d.Close)
	return d
}

// publish makes an artifact of files. What names it in the registry is the digest of the artifact, for simplicity.
func (d *depot) publish(t *testing.T, files map[string]string) string {
	t.Helper()
	var body bytes.Buffer
	zipped := gzip.NewWriter(&body)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		check(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(files[name]))
		check(t, err)
	}
	check(t, errors.Join(archive.Close(), zipped.Close()))
	sum := sha256.Sum256(body.Bytes())
	digest := hex.EncodeToString(sum[:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies[digest] = body.Bytes()
	return "sha256:" + digest
}

// provide gives a source its artifact, as a source controller does.
func (d *depot) provide(ctx context.Context, c client.Client, req ctrl.Request) error {
	obj := &sourcev1.OCIRepository{}
	if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
		return client.IgnoreNotFound(err)
	}
	d.mu.Lock()
	body, found := d.bodies[strings.TrimPrefix(obj.Spec.Reference.Digest, "sha256:")]
	withheld := d.withheld
	d.mu.Unlock()
	if withheld || !found || obj.Status.Artifact != nil {
		return nil
	}
	before := obj.DeepCopy()
	digest := obj.Spec.Reference.Digest
	obj.Status.Artifact = &meta.Artifact{
		Path: digest, URL: d.URL + "/" + strings.TrimPrefix(digest, "sha256:"), Revision: "latest@" + digest, Digest: digest,
		LastUpdateTime: metav1.Now(), Size: new(int64(len(body))),
	}
	obj.Status.ObservedGeneration = obj.Generation
	conditions.MarkTrue(obj, meta.ReadyCondition, meta.SucceededReason, "stored")
	return c.Status().Patch(ctx, obj, client.MergeFrom(before))
}

// lose makes the server lose what it has, or find it again. The sources say nothing of it.
func (d *depot) lose(lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = lost
}

// release lets the sources have their artifacts, and tells them.
func (d *depot) release(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	d.mu.Lock()
	d.withheld = false
	d.mu.Unlock()
	var list sourcev1.OCIRepositoryList
	check(t, c.List(t.Context(), &list, client.InNamespace(namespace)))
	for i := range list.Items {
		check(t, d.provide(t.Context(), c, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}))
	}
}
