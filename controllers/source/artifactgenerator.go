package source

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source/generator"
	"sluice.dev/sluice/internal/status"
	"sluice.dev/sluice/storage"
)

// +kubebuilder:rbac:groups=source.extensions.fluxcd.io,resources=artifactgenerators,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=source.extensions.fluxcd.io,resources=artifactgenerators/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=source.extensions.fluxcd.io,resources=artifactgenerators/finalizers,verbs=update
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=externalartifacts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=externalartifacts/status,verbs=get;patch

// maxTold is how many artifacts an event names.
const maxTold = 20

// generators makes ArtifactGenerator a kernel.Kind: artifacts that are made of others, and the ExternalArtifacts that show them.
type generators struct {
	shared Shared
	maker  *generator.Maker
}

var (
	_ kernel.Kind[*extensionsv1.ArtifactGenerator, generator.Result]  = (*generators)(nil)
	_ kernel.Owner[*extensionsv1.ArtifactGenerator, generator.Result] = (*generators)(nil)
)

// New implements kernel.Kind.
func (*generators) New() *extensionsv1.ArtifactGenerator { return &extensionsv1.ArtifactGenerator{} }

// View implements kernel.Kind.
func (*generators) View(obj *extensionsv1.ArtifactGenerator) kernel.View {
	return kernel.View{
		Suspended: obj.IsDisabled(), Unreadable: obj.UnreadableStatus, Interval: obj.GetRequeueAfter(),
		ObservedGeneration: &obj.Status.ObservedGeneration, LastHandledReconcileAt: &obj.Status.LastHandledReconcileAt,
	}
}

// Table implements kernel.Kind. Ready alone tells of everything.
func (*generators) Table() status.Table { return status.Table{} }

// Work implements kernel.Kind.
func (k *generators) Work(ctx context.Context, obj *extensionsv1.ArtifactGenerator, announce kernel.Announce) (generator.Result, error) {
	if err := k.refuseCycle(ctx, obj); err != nil {
		return generator.Result{}, err
	}
	begin := func(ctx context.Context) error {
		return announce(ctx, status.Progress{Message: "reconciliation in progress"})
	}
	return k.maker.Make(ctx, obj, k.outputs(obj), !conditions.IsReady(obj), begin)
}

// Report implements kernel.Kind. What is stored is what is there, after a failure too.
func (k *generators) Report(obj *extensionsv1.ArtifactGenerator, result generator.Result, err error) kernel.Report {
	if result.Known {
		obj.Status.Inventory = nil
		for _, made := range result.Made {
			obj.Status.Inventory = append(obj.Status.Inventory, extensionsv1.ExternalArtifactReference{
				Name: made.Name, Namespace: obj.Namespace, Digest: made.Artifact.Digest.String(), Filename: path.Base(made.Artifact.Path),
			})
		}
	}
	if err == nil {
		obj.Status.ObservedSourcesDigest = result.Sources.String()
	}
	return kernel.Report{Message: succeeded(result)}
}

func succeeded(result generator.Result) string {
	return fmt.Sprintf("reconciliation succeeded, generated %d artifact(s)", len(result.Made))
}

// Events implements kernel.Kind: what was made or removed, a failure, or its end.
func (k *generators) Events(before, after *extensionsv1.ArtifactGenerator, result generator.Result, err error) []event.Event {
	about := event.About(after, extensionsv1.GroupVersion.WithKind(extensionsv1.ArtifactGeneratorKind))
	var events []event.Event
	if text := told(after.Namespace, result); text != "" {
		events = append(events, event.Happened(about, meta.SucceededReason, text, ""))
	}
	switch {
	case err != nil:
		_, reason := k.Table().Explain(err)
		if failure.Of(err).Disposition == failure.Waits {
			return append(events, event.Waiting(about, reason, err, ""))
		}
		return append(events, event.Failed(about, reason, err, ""))
	case len(events) == 0 && k.Table().HasFailed(before):
		events = append(events, event.Happened(about, meta.SucceededReason, succeeded(result), ""))
	}
	return events
}

// told names what a round has changed; empty for nothing.
func told(namespace string, result generator.Result) string {
	var names []string
	for _, made := range result.Changed {
		names = append(names, fmt.Sprintf("%s/%s (%s)", namespace, made.Name, made.Artifact.Digest))
	}
	for _, name := range result.Removed {
		names = append(names, fmt.Sprintf("%s/%s (removed)", namespace, name))
	}
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > maxTold {
		names, more = names[:maxTold], fmt.Sprintf(", and %d more", len(names)-maxTold)
	}
	return "external artifacts reconciled: " + strings.Join(names, ", ") + more
}

// Settle implements kernel.Owner. What is superseded was collected when the object that shows it was written.
func (*generators) Settle(context.Context, *extensionsv1.ArtifactGenerator, generator.Result) error {
	return nil
}

// Finalize implements kernel.Owner.
func (k *generators) Finalize(ctx context.Context, obj *extensionsv1.ArtifactGenerator) error {
	outputs := k.outputs(obj)
	outputs.reader = k.shared.Reader // The cache may not show yet what was made last.
	k.maker.Forget(string(obj.UID))
	_, err := outputs.Prune(ctx, nil)
	return err
}

func (k *generators) outputs(obj *extensionsv1.ArtifactGenerator) *outputs {
	return &outputs{
		shared: k.shared, reader: k.shared.Client, generator: obj, claimed: map[string]*sourcev1.ExternalArtifact{},
		store: k.shared.Pipeline.Store,
	}
}

// outputObject is what is stored for an ExternalArtifact of that name.
func outputObject(namespace, name string) storage.Object {
	return storage.Object{Kind: generator.Dir, Namespace: namespace, Name: name}
}
