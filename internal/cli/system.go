package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerLabel is the label of the manager's Deployment and pods, and programName its value.
const managerLabel, programName = "app.kubernetes.io/name", "sluice"

// managers are the Deployments that run the controllers: those in the namespace that is given, or else in the usual one, or else in all.
// Where the usual one has them nobody else's count, as whoever may make Deployments may make any number with that label.
func (s *session) managers(ctx context.Context, namespace string) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	for _, one := range slices.Compact([]string{cmp.Or(namespace, defaultSystem), namespace}) {
		err := s.List(ctx, &list, client.InNamespace(one), client.MatchingLabels{managerLabel: programName})
		switch {
		case err == nil && len(list.Items) > 0:
			return list.Items, nil
		case err != nil && (one == namespace || !apierrors.IsForbidden(err)):
			return nil, explain("look for the Deployment of the controllers", err, "view")
		}
	}
	return nil, nil
}

// system is the namespace that the controllers run in: the one that is given, else the one in which alone their Deployment is found.
func (s *session) system(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	found, err := s.managers(ctx, "")
	if err != nil {
		return "", addHelp(err, "or name their namespace with --system-namespace")
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(one appsv1.Deployment) bool { return one.Namespace != found[0].Namespace }) {
		return "", &CommandError{
			Code: ExitUnanswered, What: "look for the Deployment of the controllers",
			Why: fmt.Sprintf("%d have the label %s=%s", len(found), managerLabel, programName), Help: []string{"name the namespace with --system-namespace"},
		}
	}
	return found[0].Namespace, nil
}
