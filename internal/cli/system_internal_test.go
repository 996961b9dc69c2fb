package cli

import (
	"context"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSystemIsNobodyElses: whoever labels a Deployment as that of the controllers changes nothing for others, where the usual namespace has
// one. Its replicas may be of several Deployments.
func TestSystemIsNobodyElses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		there     []string
		forbidden string
		want      string
		found     int
	}{
		"Usual":          {there: []string{"a-tenant", defaultSystem, defaultSystem, "b-tenant"}, want: defaultSystem, found: 2},
		"UsualAlone":     {there: []string{defaultSystem}, want: defaultSystem, found: 1},
		"NotAllMayRead":  {there: []string{defaultSystem, "a-tenant"}, forbidden: "all", want: defaultSystem, found: 1},
		"UsualForbidden": {there: []string{"other"}, forbidden: defaultSystem, want: "other", found: 1},
		"Other":          {there: []string{"other", "other"}, want: "other", found: 2},
		"Several":        {there: []string{"other", "a-tenant"}, found: 2},
		"None":           {},
	} {
		answers := interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var asked client.ListOptions
			asked.ApplyOptions(options)
			if test.forbidden == asked.Namespace && asked.Namespace != "" || test.forbidden == "all" && asked.Namespace == "" {
				return apierrors.NewForbidden(schema.GroupResource{}, "", http.ErrNoLocation)
			}
			found, _ := list.(*appsv1.DeploymentList)
			for _, namespace := range test.there {
				if asked.Namespace == "" || asked.Namespace == namespace {
					one := appsv1.Deployment{}
					one.Namespace = namespace
					found.Items = append(found.Items, one)
				}
			}
			return nil
		}}
		s := &session{WithWatch: interceptor.NewClient(nil, answers)}
		found, err := s.managers(t.Context(), "")
		if err != nil || len(found) != test.found {
			t.Errorf("%s: %d are found, %v", name, len(found), err)
		}
		if got, err := s.system(t.Context(), ""); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: it is %q, %v", name, got, err)
		}
	}
}

// TestABusyAPIServerMakesNobodyAManager: where the usual namespace cannot be looked into for now, no other one is taken for it.
func TestABusyAPIServerMakesNobodyAManager(t *testing.T) {
	t.Parallel()
	s := &session{WithWatch: interceptor.NewClient(nil, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if (&client.ListOptions{}).ApplyOptions(options).Namespace == defaultSystem {
			return apierrors.NewTooManyRequests("busy", 1)
		}
		found, _ := list.(*appsv1.DeploymentList)
		found.Items = make([]appsv1.Deployment, 1)
		return nil
	}})}
	if found, err := s.managers(t.Context(), ""); err == nil {
		t.Errorf("%d are said to run the controllers", len(found))
	}
}
