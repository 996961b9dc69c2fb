package packages

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// TestTheRepositoryOfARevisionThatGoesIsLookedAt: the object itself may be another one by then.
func TestTheRepositoryOfARevisionThatGoesIsLookedAt(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	synctest.Test(t, func(t *testing.T) {
		k := &revisions{shared: Shared{Plane: NewPlane(), Pipeline: &source.Pipeline{Store: store}}}
		obj := &packagesv1.PackageRevision{}
		obj.Namespace, obj.Name, obj.Spec.Repository = "default", "one", "cluster"
		if err := k.Finalize(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		obj.Spec.Repository = "another"
		synctest.Wait()
		time.Sleep(showAgainDelay)
		synctest.Wait()
		if _, isWoken := k.shared.repositories.early[types.NamespacedName{Namespace: "default", Name: "cluster"}]; !isWoken {
			t.Errorf("woken are %v", k.shared.repositories.early)
		}
	})
}
