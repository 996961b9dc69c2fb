package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// The tag of each of so many repositories moves so often to something unsigned between verification and pull.
const (
	swappers     = 10
	swapsOfEach  = 20
	swapLayer    = "application/vnd.example"
	latestTag    = "latest"
	fewestStored = swappers * swapsOfEach
)

// swapper is a repository whose tag names a signed manifest to whoever asks for the tag, and an unsigned one to whoever
// asks again.
type swapper struct {
	signed
	honest, evil []ocispec.Descriptor
	// want is the digest of the artifact that each signed revision has to become.
	want map[string]string
}

func newSwapper(t *testing.T, key *verifytest.Key, name string) *swapper {
	t.Helper()
	s := &swapper{signed: newSigned(t), want: map[string]string{}}
	layer := func(kind string, number int) registry.Layer {
		return registry.Layer{MediaType: swapLayer, Content: fmt.Appendf(nil, "%s %s %d", name, kind, number)}
	}
	for i := range swapsOfEach {
		manifest := s.repository.PushORAS("", layer("signed", i))
		s.attach(manifest, bundleType, key.Bundle(t, manifest))
		s.want[at(latestTag, manifest)] = layer("signed", i).Descriptor().Digest.String()
		s.honest, s.evil = append(s.honest, manifest), append(s.evil, s.repository.PushORAS("", layer("unsigned", i)))
	}
	return s
}

// swap goes on to the next release: from now on, the first request and every other one after it are answered honestly.
func (s *swapper) swap(release int) {
	s.Alternate("team/app", latestTag, s.honest[release].Digest, s.evil[release].Digest)
}

func TestOCIATagSwappedBetweenVerificationAndPullChangesNothing(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t, "--kube-api-qps=1000", "--kube-api-burst=2000")
	key := verifytest.NewKey(t)
	s.secret("key", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	all := map[string]*swapper{}
	seen := map[string]func() []*sourcev1.OCIRepository{}
	for i := range swappers {
		name := fmt.Sprintf("app-%d", i)
		all[name], seen[name] = newSwapper(t, key, name), s.watchOCI(name)
		all[name].swap(0)
		s.create(name, all[name].URL("team/app"), ociVerify("cosign", "key"), ociLayer("", "copy"))
	}
	for i := range swapsOfEach {
		for name, r := range all {
			r.swap(i)
			s.request(name)
		}
		for name, r := range all {
			s.until(name, fmt.Sprint("has taken up release ", i), func(obj *sourcev1.OCIRepository) bool {
				return obj.Status.Artifact != nil && obj.Status.Artifact.Revision == at(latestTag, r.honest[i])
			})
		}
	}
	stored := 0
	for name, r := range all {
		stored += s.onlyVerified(r, seen[name]())
	}
	if stored < fewestStored {
		t.Errorf("%d releases were stored, want %d", stored, fewestStored)
	}
}

// onlyVerified counts the releases that were ever stored for an object, and fails unless each was verified.
func (s ociScene) onlyVerified(r *swapper, versions []*sourcev1.OCIRepository) int {
	s.t.Helper()
	stored := map[string]bool{}
	for _, obj := range versions {
		artifact := obj.Status.Artifact
		if artifact == nil {
			continue
		}
		stored[artifact.Revision] = true
		if digest, ok := r.want[artifact.Revision]; !ok || artifact.Digest != digest {
			s.t.Errorf("stored %s with the digest %s; the layer that was verified has %q", artifact.Revision, artifact.Digest, digest)
		}
		if conditions.IsReady(obj) && !conditions.IsTrue(obj, sourcev1.SourceVerifiedCondition) {
			s.t.Errorf("ready without a signature: %s", asJSON(obj.Status))
		}
	}
	if r.Count(registry.Blob) < swapsOfEach {
		s.t.Errorf("only %d blobs were pulled", r.Count(registry.Blob))
	}
	return len(stored)
}

// watchOCI collects every version of an object, from before it is there.
func (s ociScene) watchOCI(name string) func() []*sourcev1.OCIRepository {
	s.t.Helper()
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		s.t.Fatal(err)
	}
	events, err := watching.Watch(s.t.Context(), &sourcev1.OCIRepositoryList{}, client.InNamespace(s.namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(events.Stop)
	var mu sync.Mutex
	var versions []*sourcev1.OCIRepository
	go func() {
		for event := range events.ResultChan() {
			if obj, ok := event.Object.(*sourcev1.OCIRepository); ok {
				mu.Lock()
				versions = append(versions, obj)
				mu.Unlock()
			}
		}
	}()
	return func() []*sourcev1.OCIRepository {
		s.t.Helper()
		last := s.get(name).ResourceVersion
		var all []*sourcev1.OCIRepository
		s.eventually("all versions of "+name+" have been seen", func(context.Context) (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			all = versions
			return len(all) > 0 && all[len(all)-1].ResourceVersion == last, fmt.Sprint(len(all), " versions")
		})
		return all
	}
}
