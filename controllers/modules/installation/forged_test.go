package installation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
)

// TestAForgedRecordLeadsNowhere: who may edit an Inventory has the controller read neither the artifacts of another
// namespace, nor such of their own as they know no digest of.
func TestAForgedRecordLeadsNowhere(t *testing.T) {
	t.Parallel()
	theirs := env.NewNamespace(t)
	for name, tc := range map[string]struct {
		reason string
		forge  func(p *plane, current *modulesv1.Release, pin, archive string)
		says   string
	}{
		"Namespace": {
			reason: "another tenant's source is not looked up, whatever is known of it",
			forge: func(_ *plane, current *modulesv1.Release, pin, archive string) {
				current.Namespace, current.Content, current.Digest = theirs, pin, archive
			},
			says: "which nothing is installed from here",
		},
		"Digest": {
			reason: "a release without its digest is not completed from whatever the source has",
			forge: func(p *plane, current *modulesv1.Release, pin, _ string) {
				current.Namespace, current.Content, current.Digest = p.namespace, pin, ""
			},
			says: "does not say which artifact",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, nil, theirs)
			p.release("1.0.0", "")
			p.install(func(spec *modulesv1.ModuleInstallationSpec) {
				spec.Module.Version, spec.Interval = "1.0.0", &metav1.Duration{Duration: time.Second}
			})
			p.until("installed", installed("1.0.0"))
			home, source := theirs, "private-"+strings.ToLower(name)
			if name == "Digest" {
				home = p.namespace
			}
			pin := p.depot.publish(t, map[string]string{"x.yaml": configMap("stolen", "secret")})
			obj := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: source}, Spec: sourcev1.OCIRepositorySpec{
				URL: "oci://registry.example/private", Reference: &sourcev1.OCIRepositoryRef{Digest: pin}, Interval: metav1.Duration{Duration: time.Hour},
			}}
			p.create(obj)
			testenv.Eventually(t, "the private artifact is there", func(ctx context.Context) (bool, string) {
				err := p.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
				return err == nil && obj.Status.Artifact != nil, "it is not"
			})
			p.edit(func(mi *modulesv1.ModuleInstallation) { mi.Spec.Module.Version = "3.0.0" })
			p.until("held", func(mi *modulesv1.ModuleInstallation) bool { return mi.Status.Pending != nil })

			record := p.inventory()
			record.Data.Current.Template = "none"
			record.Data.Current.Source = &modulesv1.SourceReference{
				APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.OCIRepositoryKind, Name: source,
			}
			tc.forge(p, record.Data.Current, pin, obj.Status.Artifact.Digest)
			check(t, p.client.Update(t.Context(), record))
			// The controller looks at its record again once a write of its own conflicts: mending an object makes one.
			check(t, p.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}}))
			p.until(tc.reason, func(mi *modulesv1.ModuleInstallation) bool {
				ready := conditions.Get(mi, meta.ReadyCondition)
				return ready != nil && ready.Status == metav1.ConditionFalse && strings.Contains(ready.Message, tc.says)
			})
			p.more(2)
			p.wantVersion("stolen", "")
		})
	}
}
