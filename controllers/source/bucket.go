package source

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get

// BucketDir is the folder of the kind's artifacts, as paths and URLs spell it.
const BucketDir = "bucket"

// emptySelection is the revision of no object at all.
const emptySelection = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func bucketKind(shared Shared, opener source.Opener[*sourcev1.Bucket]) *kind[*sourcev1.Bucket] {
	return &kind[*sourcev1.Bucket]{
		shared: shared,
		name:   sourcev1.BucketKind,
		dir:    BucketDir,
		new:    func() *sourcev1.Bucket { return &sourcev1.Bucket{} },
		table:  newTable(sourcev1.BucketOperationFailedReason, sourcev1.BucketOperationFailedReason),
		opener: opener,
		fields: func(obj *sourcev1.Bucket) fields {
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
		observe: func(obj *sourcev1.Bucket, outcome source.Outcome) {
			// Rules that select the same objects as before have built nothing.
			if outcome.Changed {
				obj.Status.ObservedIgnore = obj.Spec.Ignore
			}
		},
		proof: func(storage.Record) string { return "" },
		stored: func(record storage.Record) string {
			return fmt.Sprintf("stored artifact: revision '%s'", record.Current.Revision)
		},
		told: func(obj *sourcev1.Bucket, record storage.Record, _ bool) string {
			return fmt.Sprintf("stored artifact with %s fetched files from '%s' bucket", record.Title, obj.Spec.BucketName)
		},
		warned: func(was *meta.Artifact, record storage.Record) (reason, message string) {
			if was == nil || was.Revision == emptySelection || record.Current.Revision != emptySelection {
				return "", ""
			}
			return sourcev1.EmptySelectionReason, "no object of the bucket is selected any more: the artifact is empty"
		},
	}
}

// SetupBucket adds the controller of Bucket objects to the manager. Objects named on rebuild are reconciled at once.
func SetupBucket(
	mgr ctrl.Manager, shared Shared, opener source.Opener[*sourcev1.Bucket], rebuild <-chan event.GenericEvent,
) error {
	made := bucketKind(shared, opener)
	return newController(mgr, made, rebuild).Complete(newKernel(made))
}
