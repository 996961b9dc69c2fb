package source

import (
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=ocirepositories/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get

// OCIRepositoryDir is the folder of the kind's artifacts, as paths and URLs spell it.
const OCIRepositoryDir = "ocirepository"

func ociKind(shared Shared, opener source.Opener[*sourcev1.OCIRepository]) *kind[*sourcev1.OCIRepository] {
	return &kind[*sourcev1.OCIRepository]{
		shared: shared,
		name:   sourcev1.OCIRepositoryKind,
		dir:    OCIRepositoryDir,
		new:    func() *sourcev1.OCIRepository { return &sourcev1.OCIRepository{} },
		table:  newTable(sourcev1.OCIPullFailedReason, sourcev1.OCILayerOperationFailedReason),
		opener: opener,
		fields: func(obj *sourcev1.OCIRepository) fields {
			return fields{
				View: kernel.View{
					Suspended: obj.Spec.Suspend, Unreadable: obj.UnreadableStatus, Interval: obj.GetRequeueAfter(), Timeout: obj.Spec.GetTimeout(),
					ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
				},
				checksum: &obj.Status.ContentConfigChecksum,
				artifact: &obj.Status.Artifact,
				latest:   &obj.Status.URL,
			}
		},
		observe: func(obj *sourcev1.OCIRepository, _ source.Outcome) {
			obj.Status.ObservedIgnore = obj.Spec.Ignore
			obj.Status.ObservedLayerSelector = obj.Spec.LayerSelector
		},
		proof: func(record storage.Record) string { return "verified signature of revision " + record.Current.Revision },
		stored: func(record storage.Record) string {
			return fmt.Sprintf("stored artifact for digest '%s'", record.Current.Revision)
		},
		told: toldOCI,
	}
}

// toldOCI is Flux's message. What the manifest says of its origin is repeated only where it says all of it.
func toldOCI(obj *sourcev1.OCIRepository, record storage.Record, _ bool) string {
	artifact := record.Current
	message := fmt.Sprintf("stored artifact with revision '%s' from '%s'", artifact.Revision, obj.Spec.URL)
	origin, revision := artifact.Metadata[ocispec.AnnotationSource], artifact.Metadata[ocispec.AnnotationRevision]
	if origin == "" || revision == "" {
		return message
	}
	return fmt.Sprintf("%s, origin source '%s', origin revision '%s'", message, origin, revision)
}

// SetupOCIRepository adds the controller of OCIRepository objects to the manager. Objects named on rebuild are
// reconciled at once.
func SetupOCIRepository(
	mgr ctrl.Manager, shared Shared, opener source.Opener[*sourcev1.OCIRepository], rebuild <-chan event.GenericEvent,
) error {
	made := ociKind(shared, opener)
	return newController(mgr, made, rebuild).Complete(newKernel(made))
}
