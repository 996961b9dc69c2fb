package source

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// HelmRepositoryDir is the folder of the kind's artifacts, as paths and URLs spell it.
const HelmRepositoryDir = "helmrepository"

// helmRepository is the kind of which some objects are static: those of type oci.
type helmRepository struct {
	*kind[*sourcev1.HelmRepository]
}

var _ kernel.Static[*sourcev1.HelmRepository] = helmRepository{}

// Static implements kernel.Static.
func (helmRepository) Static(obj *sourcev1.HelmRepository) bool {
	return obj.Spec.GetType() == sourcev1.HelmRepositoryTypeOCI
}

// Clear implements kernel.Static. The generation that the schema gives to a new object is nobody's report.
func (helmRepository) Clear(obj *sourcev1.HelmRepository) {
	generation := min(obj.Status.ObservedGeneration, 0)
	obj.Status = sourcev1.HelmRepositoryStatus{ObservedGeneration: generation}
}

func helmRepositoryKind(shared Shared, opener source.Opener[*sourcev1.HelmRepository]) helmRepository {
	return helmRepository{&kind[*sourcev1.HelmRepository]{
		shared:      shared,
		name:        sourcev1.HelmRepositoryKind,
		dir:         HelmRepositoryDir,
		latest:      storage.LatestIndex,
		revisionsOf: "index",
		new:         func() *sourcev1.HelmRepository { return &sourcev1.HelmRepository{} },
		table:       newTable(sourcev1.FailedReason, sourcev1.FailedReason),
		opener:      opener,
		fields: func(obj *sourcev1.HelmRepository) fields {
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
		observe: func(*sourcev1.HelmRepository, source.Outcome) {},
		proof:   func(storage.Record) string { return "" },
		stored: func(record storage.Record) string {
			return fmt.Sprintf("stored artifact: revision '%s'", record.Current.Revision)
		},
		told: func(obj *sourcev1.HelmRepository, record storage.Record, _ bool) string {
			return fmt.Sprintf("stored fetched index of size %s from '%s'", humanSize(record.Current.Size), credential.CleanURL(obj.Spec.URL))
		},
	}}
}

// humanSize writes a size as Flux does: four digits, and a decimal unit without a space.
func humanSize(bytes int64) string {
	size, units := float64(bytes), []string{"B", "kB", "MB", "GB", "TB"}
	unit := 0
	for ; size >= 1000 && unit < len(units)-1; unit++ {
		size /= 1000
	}
	return fmt.Sprintf("%.4g%s", size, units[unit])
}

// SetupHelmRepository adds the controller of HelmRepository objects to the manager. Objects named on rebuild are reconciled
// at once.
func SetupHelmRepository(
	mgr ctrl.Manager, shared Shared, opener source.Opener[*sourcev1.HelmRepository], rebuild <-chan event.GenericEvent,
) error {
	made := helmRepositoryKind(shared, opener)
	return newController(mgr, made.kind, rebuild).Complete(newKernel(made))
}
