package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/ui"
	"sluice.dev/sluice/internal/view"
)

// Module implements ui.Reader: what the catalogue has in two requests, and who has it as the installations' status says, in one, or one for each
// namespace that is named.
func (s *sight) Module(ctx context.Context, namespace, name string, in []string) (*ui.Module, error) {
	made := &ui.Module{Namespace: namespace, Name: name, Findings: map[string][]catalog.Finding{}}
	similar, err := s.offered(ctx, made)
	made.Read = err == nil
	take := func(obj *modulesv1.ModuleInstallation) {
		switch user, uses := userOf(obj, namespace, name); {
		case uses:
			made.Users = append(made.Users, user)
		case obj.Status.Resolution == nil && obj.Spec.Module.Name == name && (obj.Namespace == namespace || obj.Spec.Module.GetCatalog() != modulesv1.CatalogLocal):
			made.Unseen++
		}
	}
	problems := []error{err}
	if in == nil {
		lacking, failed := s.eachInstallation(ctx, func() { made.Users, made.Unseen = nil, 0 }, take)
		problems = append(problems, lacking, failed)
	}
	for _, one := range in {
		users, unseen := made.Users, made.Unseen
		if err := s.installationsIn(ctx, func() { made.Users, made.Unseen = users, unseen }, take, client.InNamespace(one)); err != nil {
			problems = append(problems, explain("list the installations of namespace "+one, err, "sluice-view"))
		}
	}
	for _, err := range problems {
		if isGeneral(err) {
			return nil, err
		}
		if err != nil {
			made.Lacking = append(made.Lacking, err.Error())
		}
	}
	if made.Read && !made.HasObject && len(made.Releases)+len(made.Users) == 0 {
		told := &CommandError{What: fmt.Sprintf("find module %q in the catalogue of namespace %q", name, namespace), Why: "not found"}
		if len(similar) > 0 {
			told.Help = []string{"similar: " + list(similar)}
		}
		return nil, &ui.NotFoundError{What: told.Error()}
	}
	return made, nil
}

// offered adds what the catalogue has of the module, and gives the names of similar ones.
func (s *sight) offered(ctx context.Context, to *ui.Module) (similar []string, err error) {
	catalogue := newCatalogues(s.WithWatch, &manifests{}, time.Now())
	there, err := catalogue.offers(ctx, to.Namespace)
	if err != nil {
		return nil, err
	}
	catalogue.everything = map[string]*offered{to.Namespace: there}
	contents, err := catalogue.in(ctx, to.Namespace)
	if err != nil {
		return nil, err
	}
	to.Channels, to.Releases = contents.Channels(to.Name, catalogue.now), contents.Releases(to.Name)
	for _, release := range to.Releases {
		to.Findings[release.Template] = contents.Findings(release.Template)
	}
	for i := range there.modules {
		if there.modules[i].Name == to.Name {
			to.HasObject, to.Description = true, there.modules[i].Spec.Description
		}
	}
	return catalog.Near(to.Name, contents.Modules()), nil
}

// userOf is the installation as one of the module; false where it neither has nor chooses a release of it.
func userOf(obj *modulesv1.ModuleInstallation, namespace, name string) (user ui.ModuleUser, uses bool) {
	found, status := cmp.Or(obj.Status.Resolution, &modulesv1.Resolution{}), &obj.Status
	user = ui.ModuleUser{Namespace: obj.Namespace, Name: obj.Name}
	if current := status.Current; current != nil && current.Namespace == namespace && cmp.Or(current.Module, found.Module, obj.Spec.Module.Name) == name {
		user.Has = ui.ModuleRelease{Template: current.Template, Version: current.Version}
	}
	if found.Namespace != namespace || found.Module != name {
		user.Left = true
		return user, user.Has.Template != ""
	}
	user.SelectedBy, user.Channel = found.SelectedBy, objects.ChannelOf(obj)
	if desired := status.Desired; desired != nil && !objects.SameRelease(status.Current, desired) {
		user.Gets = ui.ModuleRelease{Template: desired.Template, Version: desired.Version}
	}
	switch {
	case status.Pending != nil:
		user.Waits = status.Pending.Reason
	case user.Gets.Template == "":
	case obj.Spec.Suspend:
		user.Waits = string(view.Suspended)
	case obj.Spec.GetManagement() == modulesv1.ManagementPaused:
		user.Waits = modulesv1.PausedReason
	}
	return user, true
}

// moduleOf is the module that an object is about; nil for none.
func moduleOf(obj *unstructured.Unstructured) *ui.ModuleName {
	of := ui.ModuleName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch obj.GetKind() {
	case modulesv1.ModuleKind:
	case modulesv1.ModuleTemplateKind:
		var template modulesv1.ModuleTemplate
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &template); err != nil {
			return nil
		}
		of.Name = template.GetModuleName()
	case modulesv1.ModuleInstallationKind:
		of.Namespace, _, _ = unstructured.NestedString(obj.Object, "status", "resolution", "namespace")
		of.Name, _, _ = unstructured.NestedString(obj.Object, "status", "resolution", "module")
	default:
		return nil
	}
	if of.Namespace == "" || of.Name == "" {
		return nil
	}
	return &of
}
