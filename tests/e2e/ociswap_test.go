package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

const (
	// swappers is of how many repositories a tag moves to something unsigned between verification and pull.
	swappers  = 10
	swapLayer = "application/vnd.example"
	latestTag = "latest"
)

// swapsOfEach is how often each of them does.
func swapsOfEach() int { return fewestPoints(6, 20) }

// swapped is an object that follows a tag.
type swapped interface {
	client.Object
	conditions.Getter
	GetArtifact() *meta.Artifact
}

// swapper is a repository whose tag names a signed manifest to whoever asks for the tag, and an unsigned one to whoever
// asks again.
type swapper struct {
	signed
	tag          string
	honest, evil []ocispec.Descriptor
	// stored is the digest of the artifact that each signed manifest has to become, and want the revision that goes with it.
	stored []string
	want   map[string]string
}

// release pushes something for a repository without a tag, and says which digest it is stored with, and under which revision.
type release func(r *registry.Edited, text string) (manifest ocispec.Descriptor, digest, revision string)

func newSwapper(t *testing.T, key *verifytest.Key, tag, name string, push release) *swapper {
	t.Helper()
	s := &swapper{signed: newSigned(t), tag: tag, want: map[string]string{}}
	for i := range swapsOfEach() {
		manifest, digest, revision := push(s.repository, fmt.Sprintf("%s signed %d", name, i))
		s.attach(manifest, bundleType, key.Bundle(t, manifest))
		s.honest, s.stored, s.want[digest] = append(s.honest, manifest), append(s.stored, digest), revision
		evil, _, _ := push(s.repository, fmt.Sprintf("%s unsigned %d", name, i))
		s.evil = append(s.evil, evil)
	}
	return s
}

// swap goes on to the next release: from now on, the first request and every other one after it are answered honestly.
func (s *swapper) swap(release int) {
	s.Alternate("team/app", s.tag, s.honest[release].Digest, s.evil[release].Digest)
}

func TestOCIATagSwappedBetweenVerificationAndPullChangesNothing(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t, "--kube-api-qps=1000", "--kube-api-burst=2000")
	key := verifytest.NewKey(t)
	s.secret("key", map[string]string{"cosign.pub": string(key.PublicPEM(t))})
	push := func(r *registry.Edited, text string) (ocispec.Descriptor, string, string) {
		layer := registry.Layer{MediaType: swapLayer, Content: []byte(text)}
		manifest := r.PushORAS("", layer)
		return manifest, layer.Descriptor().Digest.String(), at(latestTag, manifest)
	}
	swapTags(s.scene, func(name string) (*swapper, *sourcev1.OCIRepository) {
		return newSwapper(t, key, latestTag, name, push), &sourcev1.OCIRepository{}
	}, func(name string, r *swapper) {
		s.create(name, r.URL("team/app"), ociVerify("cosign", "key"), ociLayer("", "copy"))
	})
}

// swapTags swaps the tags of repositories under objects that follow them. What prepare gives is a repository and an object of the kind;
// follow creates an object.
func swapTags[O swapped](s *scene, prepare func(name string) (*swapper, O), follow func(name string, r *swapper)) {
	s.t.Helper()
	type following struct {
		*swapper

		obj  O
		seen func() []O
	}
	all := map[string]following{}
	for i := range swappers {
		name := fmt.Sprintf("app-%d", i)
		r, obj := prepare(name)
		obj.SetNamespace(s.namespace)
		obj.SetName(name)
		all[name] = following{r, obj, watched(s, obj)}
		r.swap(0)
		follow(name, r)
	}
	for i := range swapsOfEach() {
		for name, r := range all {
			r.swap(i)
			s.ask(r.obj, fmt.Sprintf("%s-%d", name, i))
		}
		for name, r := range all {
			s.eventually(fmt.Sprint(name, " has taken up release ", i), func(ctx context.Context) (bool, string) {
				err := env.Client.Get(ctx, s.key(name), r.obj)
				artifact := r.obj.GetArtifact()
				return err == nil && artifact != nil && artifact.Digest == r.stored[i], asJSON(r.obj)
			})
		}
	}
	stored := 0
	for _, r := range all {
		stored += onlyVerified(s, r.swapper, r.seen())
	}
	if fewest := swappers * swapsOfEach(); stored < fewest {
		s.t.Errorf("%d releases were stored, want %d", stored, fewest)
	}
}

// ask asks for a reconcile of any object.
func (s *scene) ask(obj client.Object, token string) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	if err := env.Client.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatal(err)
	}
}

// onlyVerified counts the releases that were ever stored for an object, and fails unless each was verified.
func onlyVerified[O swapped](s *scene, r *swapper, versions []O) int {
	s.t.Helper()
	stored := map[string]bool{}
	for _, obj := range versions {
		artifact := obj.GetArtifact()
		if artifact == nil {
			continue
		}
		stored[artifact.Digest] = true
		if revision, ok := r.want[artifact.Digest]; !ok || artifact.Revision != revision {
			s.t.Errorf("stored %s with the digest %s; what was verified with that digest is %q", artifact.Revision, artifact.Digest, revision)
		}
		if conditions.IsReady(obj) && !conditions.IsTrue(obj, sourcev1.SourceVerifiedCondition) {
			s.t.Errorf("ready without a signature: %s", asJSON(obj))
		}
	}
	if r.Count(registry.Blob) < swapsOfEach() {
		s.t.Errorf("only %d blobs were pulled", r.Count(registry.Blob))
	}
	return len(stored)
}

// watched collects every version of an object, from before it is there.
func watched[O client.Object](s *scene, obj O) func() []O {
	s.t.Helper()
	watching, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		s.t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(obj, env.Scheme)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := env.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		s.t.Fatal(err)
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		s.t.Fatalf("%T is no list", made)
	}
	key := client.ObjectKeyFromObject(obj)
	events, err := watching.Watch(s.t.Context(), list, client.InNamespace(key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(events.Stop)
	var mu sync.Mutex
	var versions []O
	go func() {
		for event := range events.ResultChan() {
			if obj, ok := event.Object.(O); ok {
				mu.Lock()
				versions = append(versions, obj)
				mu.Unlock()
			}
		}
	}()
	return func() []O {
		s.t.Helper()
		if err := env.Client.Get(s.t.Context(), key, obj); err != nil {
			s.t.Fatal(err)
		}
		var all []O
		s.eventually("all versions of "+key.Name+" have been seen", func(context.Context) (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			all = versions
			return len(all) > 0 && all[len(all)-1].GetResourceVersion() == obj.GetResourceVersion(), fmt.Sprint(len(all), " versions")
		})
		return all
	}
}
