package source

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
)

// maxMakers bounds how many ExternalArtifacts are looked at in search of a cycle. Behind more of them one could hide.
const maxMakers = 1000

// refuseCycle stalls a generator that copies from what it makes itself, directly or through others: each artifact would be the
// reason for the next one, without end.
func (k *generators) refuseCycle(ctx context.Context, obj *extensionsv1.ArtifactGenerator) error {
	seen := map[types.NamespacedName]bool{}
	queue := artifactsIn(obj)
	for len(queue) > 0 {
		next := queue[0]
		if queue = queue[1:]; seen[next] {
			continue
		}
		if len(seen) == maxMakers {
			return failure.Stall(extensionsv1.ValidationFailedReason,
				fmt.Errorf("its sources lead to more than %d ExternalArtifacts, so that nobody can tell whether they lead back: take some out", maxMakers))
		}
		seen[next] = true
		var artifact sourcev1.ExternalArtifact
		if err := k.shared.Client.Get(ctx, next, &artifact); err != nil {
			continue // What is missing leads nowhere; that it is, is told where it matters.
		}
		maker := makerOf(&artifact)
		if maker == client.ObjectKeyFromObject(obj) {
			return failure.Stall(extensionsv1.ValidationFailedReason,
				errors.New("its sources lead back to what it makes itself: take the ExternalArtifact "+next.String()+" out of the cycle"))
		}
		var other extensionsv1.ArtifactGenerator
		if err := k.shared.Client.Get(ctx, maker, &other); maker.Name == "" || err != nil {
			continue
		}
		queue = append(queue, artifactsIn(&other)...)
	}
	return nil
}

// artifactsIn are the ExternalArtifacts that a generator copies from.
func artifactsIn(obj *extensionsv1.ArtifactGenerator) (keys []types.NamespacedName) {
	for _, ref := range obj.Spec.Sources {
		if ref.Kind == sourcev1.ExternalArtifactKind {
			keys = append(keys, types.NamespacedName{Namespace: ref.GetNamespace(obj.Namespace), Name: ref.Name})
		}
	}
	return keys
}
