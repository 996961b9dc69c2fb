package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// inside is the scene as it is in another namespace: of the catalogue, say.
func (s moduleScene) inside(namespace string) moduleScene {
	there := *s.scene
	there.namespace = namespace
	s.scene = &there
	return s
}

// templateIn makes a template of foo in any catalogue, under any name.
func (s moduleScene) templateIn(namespace, name, version, channel string, artifact modulesv1.TemplateArtifact) *modulesv1.ModuleTemplate {
	s.t.Helper()
	obj := &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       modulesv1.ModuleTemplateSpec{ModuleName: "foo", Version: version, Channel: channel, Artifact: artifact},
	}
	s.make(obj)
	return obj
}

// untilTemplate waits until a template of the system's catalogue is as the condition says.
func (s moduleScene) untilTemplate(name, what string, condition func(*modulesv1.ModuleTemplate) bool) {
	s.t.Helper()
	obj := &modulesv1.ModuleTemplate{}
	s.eventually(fmt.Sprintf("template %s: %s", name, what), func(ctx context.Context) (bool, string) {
		*obj = modulesv1.ModuleTemplate{}
		if err := env.Client.Get(ctx, client.ObjectKey{Namespace: s.system, Name: name}, obj); err != nil {
			return false, err.Error()
		}
		return condition(obj), asJSON(obj.Status)
	})
}

// shows waits until a condition of a template in the system's catalogue reads so: its status, its reason, and a part of
// its message.
func (s moduleScene) shows(name, condition string, state metav1.ConditionStatus, reason, text string) {
	s.t.Helper()
	s.untilTemplate(name, fmt.Sprintf("%s is %s with %s and %q", condition, state, reason, text), func(obj *modulesv1.ModuleTemplate) bool {
		c := conditions.Get(obj, condition)
		return c != nil && c.Status == state && c.Reason == reason && strings.Contains(c.Message, text)
	})
}

// stuck waits until a template cannot be used before somebody edits something.
func (s moduleScene) stuck(name, condition string, state metav1.ConditionStatus, reason, text string) {
	s.t.Helper()
	s.shows(name, condition, state, reason, text)
	s.shows(name, meta.ReadyCondition, metav1.ConditionFalse, reason, text)
	s.shows(name, meta.StalledCondition, metav1.ConditionTrue, reason, text)
}

// selects asks for a release in words of its own.
func selects(request modulesv1.ModuleRequest) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module = request
		if spec.Module.Name == "" && spec.Module.TemplateRef == nil {
			spec.Module.Name = "foo"
		}
	}
}

// sources are the source objects that were made for templates of the catalogue, as Kind of template, in order.
func (s moduleScene) sources(ctx context.Context) ([]string, error) {
	var gits sourcev1.GitRepositoryList
	var ocis sourcev1.OCIRepositoryList
	for _, list := range []client.ObjectList{&gits, &ocis} {
		if err := env.Client.List(ctx, list, client.InNamespace(s.system)); err != nil {
			return nil, err
		}
	}
	found := []string{}
	note := func(kind string, obj metav1.Object) {
		if template := obj.GetAnnotations()[modulesv1.TemplateAnnotation]; template != "" {
			found = append(found, kind+" of "+template)
		}
	}
	for i := range gits.Items {
		note(sourcev1.GitRepositoryKind, &gits.Items[i])
	}
	for i := range ocis.Items {
		note(sourcev1.OCIRepositoryKind, &ocis.Items[i])
	}
	slices.Sort(found)
	return found, nil
}

// hasSources waits until exactly these sources are there for templates of the catalogue.
func (s moduleScene) hasSources(want ...string) {
	s.t.Helper()
	slices.Sort(want)
	s.eventually(fmt.Sprintf("the sources are %q", want), func(ctx context.Context) (bool, string) {
		found, err := s.sources(ctx)
		return err == nil && slices.Equal(found, want), fmt.Sprintf("%q %v", found, err)
	})
}

// drops deletes an object, and does not wait until it is gone.
func (s moduleScene) drops(obj client.Object) {
	s.t.Helper()
	if err := env.Client.Delete(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
}

// vanishes waits until an object is gone.
func (s moduleScene) vanishes(obj client.Object) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), asJSON(obj)
	})
}

// tellsNoSecrets fails when a canary stands in anything of the modules' kinds, or of what was made for them.
func (s moduleScene) tellsNoSecrets() {
	s.t.Helper()
	for _, namespace := range []string{s.namespace, s.system} {
		there := s.inside(namespace)
		there.keepsSecrets(there.manager.Log())
		for _, list := range []client.ObjectList{
			&modulesv1.ModuleTemplateList{}, &modulesv1.ModuleInstallationList{}, &modulesv1.InventoryList{}, &modulesv1.ModuleList{},
		} {
			if err := env.Client.List(s.t.Context(), list, client.InNamespace(namespace)); err != nil {
				s.t.Fatal(err)
			}
			text := asJSON(list)
			for canary, name := range s.canaries {
				if strings.Contains(text, canary) {
					s.t.Errorf("the secret value %s stands in a %T", name, list)
				}
			}
		}
	}
}
