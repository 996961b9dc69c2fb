package modules

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// ownedGrace is how long a source that nobody wants stays: longer than installations take between two looks, so that one
// whose status was lost can say again what it runs.
const ownedGrace = 15 * time.Minute

// collect deletes the template's sources that have not been wanted for the grace period, but for those named. It returns
// when the next one is due; 0 is never.
func (k *templates) collect(ctx context.Context, t *modulesv1.ModuleTemplate, keep map[string]bool) (time.Duration, error) {
	var ocis sourcev1.OCIRepositoryList
	if err := k.owned(ctx, t, &ocis); err != nil {
		return 0, err
	}
	var gits sourcev1.GitRepositoryList
	if err := k.owned(ctx, t, &gits); err != nil {
		return 0, err
	}
	sources := make([]client.Object, 0, len(ocis.Items)+len(gits.Items))
	for i := range ocis.Items {
		sources = append(sources, &ocis.Items[i])
	}
	for i := range gits.Items {
		sources = append(sources, &gits.Items[i])
	}
	var next time.Duration
	for _, source := range sources {
		if keep[source.GetName()] {
			k.wantedAgain(source.GetUID())
			continue
		}
		if left := ownedGrace - k.shared.Clock.Since(k.unwantedSince(source.GetUID())); left > 0 {
			next = sooner(next, left)
			continue
		}
		uid := source.GetUID()
		if err := k.shared.Client.Delete(ctx, source, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete source %q, which nothing needs any more: %w", source.GetName(), err)
		}
		k.wantedAgain(uid)
	}
	return next, nil
}

func (k *templates) owned(ctx context.Context, t *modulesv1.ModuleTemplate, list client.ObjectList) error {
	err := k.shared.Client.List(ctx, list, client.InNamespace(t.Namespace), client.MatchingFields{ownerIndex: string(t.UID)})
	if err != nil {
		return fmt.Errorf("list the sources of template %q: %w", t.Name, err)
	}
	return nil
}

// ownerIndex finds the sources that were made for a template, by its UID.
const ownerIndex = "metadata.ownerReferences.moduleTemplate"

func indexOwner(obj client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != modulesv1.ModuleTemplateKind || owner.APIVersion != modulesv1.GroupVersion.String() {
		return nil
	}
	return []string{string(owner.UID)}
}

// unwantedSince is when the source was first seen without use. Only this process knows: after a restart the time begins
// anew.
func (k *templates) unwantedSince(uid types.UID) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	since, known := k.unwanted[uid]
	if !known {
		since = k.shared.Clock.Now()
		k.unwanted[uid] = since
	}
	return since
}

func (k *templates) wantedAgain(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.unwanted, uid)
}
