package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// The label that every member carries, and that kubectl finds members by.
const partOf = "applyset.kubernetes.io/part-of"

// Verbs of the audit log.
const (
	verbPatch  = "patch"
	verbDelete = "delete"
	verbList   = "list"
)

// memberKinds are the kinds of which the tests' releases have objects.
func memberKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "Namespace"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	}
}

// inventory is the record of an installation; nil when there is none.
func (s moduleScene) inventory(ctx context.Context, name string) (*modulesv1.Inventory, error) {
	obj := &modulesv1.Inventory{}
	err := env.Client.Get(ctx, s.key(name), obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// id is the value of the label on an installation's members, as KEP-3659 makes it.
func (s moduleScene) id(name string) string {
	sum := sha256.Sum256([]byte(name + "." + s.namespace + ".ModuleInstallation.modules.sluice.dev"))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// recorded are the members that the inventory lists, as Kind/name, in order.
func recorded(inventory *modulesv1.Inventory) []string {
	found := []string{}
	if inventory == nil {
		return found
	}
	for _, m := range inventory.Data.Members {
		name := m.Kind + "/" + m.Name
		if m.State == modulesv1.MemberPending {
			name += " is pending"
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

// labelled are all objects with the label value, in every namespace, as Kind/name, in order.
func (s moduleScene) labelled(ctx context.Context, value string) ([]string, error) {
	found := []string{}
	for _, gvk := range append(memberKinds(), schema.GroupVersionKind{Group: s.widgets(), Version: "v1", Kind: "Widget"}) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		err := env.Client.List(ctx, list, client.MatchingLabels{partOf: value})
		if kmeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // No such kind: its CRD is not there, or not any more.
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			found = append(found, gvk.Kind+"/"+item.Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// exact waits until the inventory lists exactly these members, as Kind/name, and exactly they carry the label.
func (s moduleScene) exact(name string, want ...string) {
	s.t.Helper()
	slices.Sort(want)
	s.eventually(name+" has exactly its members", func(ctx context.Context) (bool, string) {
		inventory, err := s.inventory(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		listed := recorded(inventory)
		if !slices.Equal(listed, want) {
			return false, fmt.Sprintf("inventory %q\nwanted %q", listed, want)
		}
		live, err := s.labelled(ctx, s.id(name))
		return err == nil && slices.Equal(live, want), fmt.Sprintf("labelled %q\nwanted %q\n%v", live, want, err)
	})
}

// gone waits until an installation, its inventory and everything with its label are gone.
func (s moduleScene) gone(name string) {
	s.t.Helper()
	s.eventually(name+" is gone", func(ctx context.Context) (bool, string) {
		obj := &modulesv1.ModuleInstallation{}
		if err := env.Client.Get(ctx, s.key(name), obj); !apierrors.IsNotFound(err) {
			return false, fmt.Sprint(err, asJSON(obj.Status))
		}
		inventory, err := s.inventory(ctx, name)
		if err != nil || inventory != nil {
			return false, fmt.Sprint("inventory ", asJSON(inventory), err)
		}
		live, err := s.labelled(ctx, s.id(name))
		return err == nil && len(live) == 0, fmt.Sprint(live, err)
	})
}

// memberCalls are the requests so far for objects of the installations that work as the deployer.
func (s moduleScene) memberCalls() []testenv.Request {
	s.t.Helper()
	var found []testenv.Request
	for _, request := range s.requests() {
		if request.Impersonated() == "system:serviceaccount:"+s.namespace+":"+deployer && request.Object.Resource != "" {
			found = append(found, request)
		}
	}
	return found
}

// requests are the program's requests so far. The audit log is complete up to the last answer that was awaited.
func (s moduleScene) requests() []testenv.Request {
	s.t.Helper()
	all, err := env.Requests(s.user)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// lines are requests as people read them.
func lines(requests []testenv.Request) string {
	var text []string
	for _, r := range requests {
		text = append(text, fmt.Sprintf("%s as %q: %s %s -> %d", r.User.Name, r.Impersonated(), r.Verb, r.URI, r.Response.Code))
	}
	return strings.Join(text, "\n")
}

// only are the requests with one of the verbs.
func only(requests []testenv.Request, verbs ...string) []testenv.Request {
	var found []testenv.Request
	for _, r := range requests {
		// Of a watch there are two lines: when it was opened, and when it ended.
		if slices.Contains(verbs, r.Verb) && r.Stage == "ResponseComplete" {
			found = append(found, r)
		}
	}
	return found
}
