package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/health"
	"sluice.dev/sluice/internal/view"
)

// membership lists what installations have applied, and what that owns: one LIST a kind and namespace.
type membership struct {
	there   *session
	members []*view.Node
	// makes is where what members make is to be found.
	makes   []place
	lacking []error
}

// place is where objects of a kind are.
type place struct {
	schema.GroupVersionKind

	namespace string
}

// members lists the members of an installation. Beside the error stands what could be read.
func (s *session) members(ctx context.Context, installation *modulesv1.ModuleInstallation, checker *health.Checker) ([]*view.Node, error) {
	m := &membership{there: s}
	m.each(ctx, installation, checker.NeedsObject, func(gvk schema.GroupVersionKind, found []unstructured.Unstructured, missing int, whole bool) {
		for i := range found {
			m.members = append(m.members, view.Judged(&found[i], checker))
			m.owns(&found[i])
		}
		message := "not found: deleted, or without the label of the installation"
		if !whole {
			message = "not shown: the kind could not be listed"
		}
		if missing > 0 {
			m.members = append(m.members, &view.Node{Group: gvk.Group, Kind: gvk.Kind, Count: missing, Message: message})
		}
	})
	m.owned(ctx)
	return m.members, errors.Join(m.lacking...)
}

// found are the members as a record has them, but for what was rendered: for those who may not read the record.
func (s *session) found(ctx context.Context, installation *modulesv1.ModuleInstallation) ([]modulesv1.Member, error) {
	var all []modulesv1.Member
	m := &membership{there: s}
	never := func(schema.GroupVersionKind) bool { return false }
	m.each(ctx, installation, never, func(gvk schema.GroupVersionKind, found []unstructured.Unstructured, _ int, _ bool) {
		for i := range found {
			all = append(all, modulesv1.Member{
				Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: found[i].GetNamespace(), Name: found[i].GetName(),
				UID: string(found[i].GetUID()), State: modulesv1.MemberApplied, RenderHash: "unknown",
			})
		}
	})
	if len(m.lacking) > 0 {
		problem := m.lacking[0]
		if told, ok := errors.AsType[*CommandError](problem); !ok || !told.forbidden {
			return nil, problem
		}
		return nil, addHelp(problem, "or for the ClusterRole sluice-operate: who may read the Inventory needs no list")
	}
	return all, nil
}

// each lists the members of an installation, and has those of each kind taken, with how many are missing, and whether all could be
// looked for. Status names the first namespaces alone of those that are in very many.
func (m *membership) each(
	ctx context.Context, installation *modulesv1.ModuleInstallation, needed func(schema.GroupVersionKind) bool,
	take func(gvk schema.GroupVersionKind, found []unstructured.Unstructured, missing int, whole bool),
) {
	if installation.Status.Inventory == nil {
		return
	}
	labelled := client.MatchingLabels{engine.Label: engine.InstallationID(installation.Name, installation.Namespace)}
	for _, content := range installation.Status.Inventory.Contents {
		gvk := schema.GroupVersionKind{Group: content.Group, Version: content.Version, Kind: content.Kind}
		var found []unstructured.Unstructured
		whole := true
		for _, namespace := range namespacesOf(content) {
			some, err := m.list(ctx, gvk, namespace, needed(gvk), labelled)
			if err != nil {
				whole = false
				m.lacks(gvk, namespace, err)
			}
			found = append(found, some...)
		}
		take(gvk, found, int(content.Count)-len(found), whole)
	}
}

func namespacesOf(content modulesv1.InventoryContent) []string {
	if len(content.Namespaces) == 0 || len(content.Namespaces) == modulesv1.MaxContentNamespaces {
		return []string{metav1.NamespaceAll}
	}
	return content.Namespaces
}

func (m *membership) lacks(gvk schema.GroupVersionKind, namespace string, err error) {
	where := "in all namespaces"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	m.lacking = append(m.lacking, explain(fmt.Sprintf("list the %s objects %s", gvk.Kind, where), err, reads(m.there.RESTMapper(), gvk)))
}

// reads is the ClusterRole of Kubernetes that lets objects of a kind be read.
func reads(known meta.RESTMapper, gvk schema.GroupVersionKind) string {
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: secretKind}, schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return "edit"
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}:
		return "admin"
	case schema.GroupKind{Kind: "Namespace"}:
		return "view"
	case schema.GroupKind{Group: modulesv1.GroupVersion.Group, Kind: "Inventory"}:
		return "sluice-operate"
	}
	if mapping, err := known.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return "cluster-admin"
	}
	return "view"
}

// list lists objects of a kind: their metadata alone unless they are needed whole. What a Secret holds is never read.
func (m *membership) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string, whole bool, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	options = append(options, client.InNamespace(namespace))
	if whole {
		return m.there.listAll(ctx, kind{GroupVersionKind: gvk}, options...)
	}
	var all []unstructured.Unstructured
	err := eachChunk(kept(ctx), m.there, func() *metav1.PartialObjectMetadataList { return bareList(gvk) }, func(list *metav1.PartialObjectMetadataList, first bool) {
		if first {
			all = nil
		}
		all = append(all, bared(gvk, list)...)
	}, options...)
	return all, err
}

// bareList is for the metadata of objects of a kind.
func bareList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// bared are objects of the kind, of which there is no more than the metadata.
func bared(gvk schema.GroupVersionKind, list *metav1.PartialObjectMetadataList) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i]); err == nil {
			all = append(all, unstructured.Unstructured{Object: content})
		}
	}
	return all
}

const replicaSet = "ReplicaSet"

// makes are the kinds of what objects of a kind make.
func makes(gk schema.GroupKind) []schema.GroupVersionKind {
	pod, job := corev1.SchemeGroupVersion.WithKind("Pod"), schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	switch gk {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: replicaSet}, pod}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: replicaSet}, schema.GroupKind{Group: "batch", Kind: "Job"}:
		return []schema.GroupVersionKind{pod}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []schema.GroupVersionKind{job, pod}
	}
	return nil
}

// owns notes that what the object makes is to be listed.
func (m *membership) owns(obj *unstructured.Unstructured) {
	for _, made := range makes(obj.GroupVersionKind().GroupKind()) {
		if at := (place{made, obj.GetNamespace()}); !slices.Contains(m.makes, at) {
			m.makes = append(m.makes, at)
		}
	}
}

// owned hangs what members made under them. ReplicaSets are read for whose Pods they have, and not shown.
func (m *membership) owned(ctx context.Context) {
	var all []unstructured.Unstructured
	for _, at := range m.makes {
		found, err := m.list(ctx, at.GroupVersionKind, at.namespace, at.Kind != replicaSet)
		if err != nil {
			m.lacks(at.GroupVersionKind, at.namespace, err)
		}
		all = append(all, found...)
	}
	view.Hang(m.members, all, func(kind string) bool { return kind != replicaSet })
}

// checkerOf judges members by the expressions of the release that is installed, as far as these can be read.
func (s *session) checkerOf(ctx context.Context, installation *modulesv1.ModuleInstallation) (*health.Checker, error) {
	current := installation.Status.Current
	if current == nil || current.Template == "" {
		return &health.Checker{}, nil
	}
	template := &modulesv1.ModuleTemplate{}
	at := client.ObjectKey{Namespace: cmp.Or(current.Namespace, installation.Namespace), Name: current.Template}
	if err := s.Get(ctx, at, template); err != nil {
		return &health.Checker{}, explain("read ModuleTemplate "+at.String()+", which says how the health of objects is told", err, catalogueRole)
	}
	if template.Spec.Health == nil {
		return &health.Checker{}, nil
	}
	library, err := health.NewLibrary()
	if err != nil {
		return &health.Checker{}, fmt.Errorf("prepare expressions of health: %w", err)
	}
	checker, err := library.Checker(template.Spec.Health.Expressions)
	if err != nil {
		return &health.Checker{}, &CommandError{Code: ExitUnanswered, What: "judge the health of objects", Why: err.Error()}
	}
	return checker, nil
}
