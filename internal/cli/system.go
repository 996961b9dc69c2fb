package cli

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerLabel is the label of the manager's Deployment and pods, and programName its value.
const managerLabel, programName = "app.kubernetes.io/name", "sluice"

// managers are the Deployments that run the controllers, in all namespaces unless one is given.
func (s *session) managers(ctx context.Context, namespace string) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	if err := s.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{managerLabel: programName}); err != nil {
		return nil, explain("look for the Deployment of the controllers", err, "view")
	}
	return list.Items, nil
}

// system is the namespace that the controllers run in: the one that is given, else the one in which their Deployment is found.
func (s *session) system(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	found, err := s.managers(ctx, "")
	if err != nil {
		return "", addHelp(err, "or name their namespace with --system-namespace")
	}
	if len(found) != 1 {
		return "", &CommandError{
			Code: ExitUnanswered, What: "look for the Deployment of the controllers",
			Why: fmt.Sprintf("%d have the label %s=%s", len(found), managerLabel, programName), Help: []string{"name the namespace with --system-namespace"},
		}
	}
	return found[0].Namespace, nil
}
