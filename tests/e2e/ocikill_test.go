package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// ociKilling is a scene whose program is killed, round after round, while it takes up one signed release after the
// other.
type ociKilling struct {
	ociScene
	api    *apiProxy
	r      signed
	key    *verifytest.Key
	rounds int
	struck int
	// digests is what every path that was ever seen had.
	digests map[string]digest.Digest
}

func newOCIKilling(t *testing.T) *ociKilling {
	t.Helper()
	api, r := newAPIProxy(t), newSigned(t) // They have to outlive the program.
	k := &ociKilling{ociScene: ociScene{newScene(t)}, api: api, r: r, key: verifytest.NewKey(t), digests: map[string]digest.Digest{}}
	k.kubeconfig = api.kubeconfig
	k.secret("key", map[string]string{"cosign.pub": string(k.key.PublicPEM(t))})
	k.start()
	manifest := k.release()
	k.create("app", r.URL("team/app"), ociVerify("cosign", "key"))
	k.proven("app", at("latest", manifest))
	return k
}

// contents is the files of the round's release: some, and one that makes the layer travel in several pieces.
func (k *ociKilling) contents() map[string]string {
	files := module(k.rounds)
	files["large.txt"] = noise(40<<10, uint64(k.rounds))
	return files
}

// release signs and pushes the round's release, and then makes it the latest.
func (k *ociKilling) release() ocispec.Descriptor {
	k.t.Helper()
	k.rounds++
	manifest := k.r.repository.PushFlux("", k.contents(), nil)
	k.r.attach(manifest, bundleType, k.key.Bundle(k.t, manifest))
	k.r.repository.Tag("latest", manifest)
	return manifest
}

// strike is the kill itself; it does not wait, so that it may be called from anywhere.
func (k *ociKilling) strike() func() {
	pid := k.manager.Pid()
	return func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
}

// round lets the program take up a release, kills it where arm says, and checks what it left and what becomes of it.
func (k *ociKilling) round(point string, arm func(strike func()) (disarm func())) {
	k.t.Helper()
	revision := at("latest", k.release())
	disarm := arm(k.strike())
	token := k.request("app")
	died := k.diesOrFinishes(token, revision)
	disarm()
	if !died {
		k.t.Logf("%s: not reached", point)
		return
	}
	k.manager = nil
	k.struck++
	k.api.settle()
	k.intact(point)
	told := k.get("app").Status.Artifact.Revision == revision
	k.start()
	k.holds(k.proven("app", revision).Status.Artifact, files(k.contents()))
	if !told {
		k.toldNewArtifact("app", revision)
	}
	k.clean(point)
}

// diesOrFinishes tells whether the process died. One that has done all its work gets a moment more for its events.
func (k *ociKilling) diesOrFinishes(token, revision string) bool {
	k.t.Helper()
	finished := time.NewTimer(patience)
	defer finished.Stop()
	poll := time.NewTicker(150 * time.Millisecond)
	defer poll.Stop()
	seen := false
	for {
		select {
		case <-k.manager.Done():
			return true
		case <-finished.C:
			if !seen {
				k.t.Fatalf("neither died nor finished; status %s", asJSON(k.get("app").Status))
			}
			return false
		case <-poll.C:
			obj := k.get("app")
			if !seen && obj.Status.LastHandledReconcileAt == token && obj.Status.Artifact.Revision == revision {
				seen = true
				finished.Reset(time.Second)
			}
		}
	}
}

// intact checks the storage as the kill left it: whatever is served is whole and named by the digest it has, whatever
// status names is there, and no path ever has other bytes than before.
func (k *ociKilling) intact(point string) {
	k.t.Helper()
	found, wrong := readDisk(k.storage)
	var objects sourcev1.OCIRepositoryList
	if err := env.Client.List(k.t.Context(), &objects, client.InNamespace(k.namespace)); err != nil {
		k.t.Fatal(err)
	}
	for _, obj := range objects.Items {
		artifact := obj.Status.Artifact
		if artifact == nil {
			continue
		}
		if got := found.files[artifact.Path]; got.String() != artifact.Digest {
			wrong = append(wrong, fmt.Sprintf("status names %s with the digest %s, its bytes have %q", artifact.Path, artifact.Digest, got))
		}
	}
	for name, is := range found.files {
		if was, known := k.digests[name]; known && was != is {
			wrong = append(wrong, fmt.Sprintf("%s had the digest %s and has %s", name, was, is))
		}
		k.digests[name] = is
	}
	if len(wrong) > 0 {
		k.t.Errorf("killed %s: %s", point, strings.Join(wrong, "\n"))
	}
}

// begin makes the second artifact: from the third one on, each change also removes one.
func (k *ociKilling) begin() {
	k.t.Helper()
	revision := at("latest", k.release())
	k.reconcile("app")
	k.toldNewArtifact("app", revision)
}

// once is a round without a kill, up to the event that ends it.
func (k *ociKilling) once() {
	k.t.Helper()
	k.begin()
	k.told("app", "Normal", sourcev1.GarbageCollectionSucceededReason, "garbage collected 1 artifacts")
}

func TestOCIKilledAtAnyStepInTheStorageItConverges(t *testing.T) {
	t.Parallel()
	k := newOCIKilling(t)
	k.begin()
	counting := watch(t, 0, nil, k.storage)
	k.once()
	all := counting.close()
	t.Logf("a change makes %d file system events", all)
	fewest := fewestPoints(6, 20)
	step := max(1, float64(all)/float64(fewest+4))
	for n := 1.0; n <= float64(all); n += step {
		k.round(fmt.Sprintf("at file system event %d", int64(n)), func(strike func()) func() {
			w := watch(t, int64(n), strike, k.storage)
			return func() { w.close() }
		})
	}
	if k.struck < fewest {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
	}
}

func TestOCIKilledAtAnyStepOnTheWireItConverges(t *testing.T) {
	t.Parallel()
	k := newOCIKilling(t)
	k.begin()
	k.api.onWrite(0, "", nil)
	k.r.Reset()
	k.once()
	writes, requests := k.api.seen(), k.r.Requests()
	t.Logf("a change makes %d writes and %d requests: %q", len(writes), len(requests), writes)

	for n := 1; n <= len(writes); n++ {
		for _, when := range someOf(n, beforeForwarding, beforeAnswering, afterAnswering) {
			k.round(fmt.Sprintf("at write %d to the API server, %s", n, when), func(strike func()) func() {
				k.api.onWrite(n, when, strike)
				return func() { k.api.onWrite(0, "", nil) }
			})
		}
	}
	k.duringRequests(requests)
	k.duringLayers()
	k.whileComingAndGoing()
	if fewest := fewestPoints(12, 30); k.struck < fewest {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
	}
}

// duringRequests strikes before each of a release's requests is answered.
func (k *ociKilling) duringRequests(requests []registry.Request) {
	k.t.Helper()
	nth := map[registry.Kind]int{}
	for _, request := range requests {
		nth[request.Kind]++
		n := nth[request.Kind]
		k.round(fmt.Sprintf("before the registry answers %s number %d", request.Kind, n), func(strike func()) func() {
			left := make(chan struct{}, n)
			for range n - 1 {
				left <- struct{}{}
			}
			k.r.Before(request.Kind, func() {
				select {
				case <-left:
				default:
					strike()
				}
			})
			return func() { k.r.Before(request.Kind, nil) }
		})
	}
}

// duringLayers strikes after each piece of a layer.
func (k *ociKilling) duringLayers() {
	k.t.Helper()
	const piece = 2 << 10
	for n := 0; n < 12; n += fewestPoints(4, 1) {
		k.round(fmt.Sprintf("after %d bytes of a layer", n*piece), func(strike func()) func() {
			ticks, done := make(chan time.Time), make(chan struct{})
			go func() {
				defer strike()
				for range n + 1 { // The tick after a piece is taken when the piece has been sent.
					select {
					case ticks <- time.Time{}:
					case <-done:
						return
					}
				}
			}()
			large := func(request registry.Request) bool { return request.Reference == k.layerDigest(k.contents()) }
			k.r.Always(registry.Slow(piece, ticks).On(registry.Blob).When(large))
			return func() {
				close(done)
				k.r.Heal()
			}
		})
	}
}

// whileComingAndGoing strikes while an object is taken up for the first time, and while it is deleted.
func (k *ociKilling) whileComingAndGoing() {
	k.t.Helper()
	latest, err := k.r.repository.Resolve(k.t.Context(), "latest")
	if err != nil {
		k.t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		when := []moment{beforeForwarding, beforeAnswering}[n%2]
		name := fmt.Sprintf("new-%d", n)
		k.api.onWrite(n, when, k.strike())
		k.create(name, k.r.URL("team/app"), ociVerify("cosign", "key"))
		k.within(fmt.Sprintf("killed at write %d for a new object, %s", n, when), k.manager.Done())
		k.manager = nil
		k.struck++
		k.api.settle()
		k.intact(name)
		k.start()
		k.proven(name, at("latest", latest))

		k.api.onWrite(1, when, k.strike())
		if err := env.Client.Delete(k.t.Context(), k.get(name)); err != nil {
			k.t.Fatal(err)
		}
		k.within("killed while an object goes away, "+string(when), k.manager.Done())
		k.manager = nil
		k.struck++
		k.api.onWrite(0, "", nil)
		k.start()
		k.gone(name)
		k.clean(name)
	}
}
