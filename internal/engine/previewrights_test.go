package engine_test

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// deployable are the kinds that a deployer may write.
var deployable = []string{"configmaps", "secrets", "serviceaccounts"}

// verbs are all that an installation needs.
var allVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// asDeployer has the installation done by a ServiceAccount with all rights that it needs.
func (r *rig) asDeployer() {
	r.t.Helper()
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.loses("", "")
	r.awaitRight("secrets", "delete", true)
}

// loses takes a right away, and waits until the API server knows it.
func (r *rig) loses(resource, verb string) {
	r.t.Helper()
	var rules []rule
	for _, of := range deployable {
		for _, may := range allVerbs {
			if of != resource || may != verb {
				rules = append(rules, rule{"", of, may})
			}
		}
	}
	r.grant(rules...)
	if slices.Contains(allVerbs, verb) {
		r.awaitRight(resource, verb, false)
	}
}

func (r *rig) awaitRight(resource, verb string, want bool) {
	r.t.Helper()
	testenv.Eventually(r.t, "the API server knows the rights", func(ctx context.Context) (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + r.namespace + ":deployer",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: verb, Resource: resource},
		}}
		check(r.t, env.Client.Create(ctx, review))
		return review.Status.Allowed == want, review.Status.Reason
	})
}
