package e2e

import (
	"crypto/md5"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestKilledWhileABucketIsPatched: whenever the program dies, the next one makes the artifact that the bucket now has, out of
// whatever the first one left in storage and cache; and no path ever serves other bytes.
func TestKilledWhileABucketIsPatched(t *testing.T) {
	t.Parallel()
	points := 4
	if os.Getenv("SLUICE_TORTURE") != "" {
		points = 50
	}
	s := newBucketScene(t, "--bucket-cache-path="+t.TempDir())
	s.secret(buckets.SecretKey)
	want := map[string]string{}
	for i := range 200 {
		want[fmt.Sprintf("dir-%d/file-%d", i%10, i)] = noise(4<<10, uint64(i))
	}
	s.put(want)
	s.create("app", nil)
	obj := s.until("app", "it is ready", bucketBeyond(""))
	served := map[string]digest.Digest{}
	see := func(artifact *meta.Artifact) {
		t.Helper()
		if was, known := served[artifact.Path]; known && was.String() != artifact.Digest {
			t.Errorf("%s served other bytes before", artifact.Path)
		}
		served[artifact.Path] = digest.Digest(artifact.Digest)
		s.holds(artifact, want)
	}
	see(obj.Status.Artifact)
	for point := range points {
		before := obj.Status.Artifact.Revision
		change := map[string]string{
			fmt.Sprintf("dir-%d/file-%d", point%10, point): noise(4<<10, uint64(1000+point)), fmt.Sprintf("new/file-%d", point): noise(40<<10, uint64(2000+point)),
		}
		s.put(change)
		maps.Copy(want, change)
		// The interval is a second, so that the points are spread over all that a poll does.
		time.Sleep(time.Duration(point) * 1200 * time.Millisecond / time.Duration(points))
		if err := syscall.Kill(s.manager.Pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-s.manager.Done()
		s.manager = nil
		s.start()
		revision := bucketRevision(want)
		obj = s.until("app", "it has all that is new", func(obj *sourcev1.Bucket) bool {
			// The first process may have come to its end, and status still have its address.
			return bucketBeyond(before)(obj) && obj.Status.Artifact.Revision == revision && isServed(obj.Status.Artifact.URL)
		})
		see(obj.Status.Artifact)
	}
}

// isServed tells whether there is something at a URL.
func isServed(url string) bool {
	response, err := http.Head(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // There is none.
	return response.StatusCode == http.StatusOK
}

// bucketRevision is what Flux's formula makes of objects whose etags are the MD5 of their bodies.
func bucketRevision(objects map[string]string) string {
	var lines strings.Builder
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		fmt.Fprintf(&lines, "%s %x\n", key, md5.Sum([]byte(objects[key])))
	}
	return digest.FromString(lines.String()).String()
}
