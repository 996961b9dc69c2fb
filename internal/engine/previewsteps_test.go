package engine_test

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// TestPreviewOfWhatTakesSteps: where one request is only taken after another one, a dry run of it tells nothing.
func TestPreviewOfWhatTakesSteps(t *testing.T) {
	t.Parallel()
	service := func(target string) map[string]string {
		return map[string]string{"s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: subject}\n" +
			"spec: {selector: {a: b}, ports: [{name: http, port: 80, targetPort: " + target + "}]}\n"}
	}
	job := func(history string) map[string]string {
		return map[string]string{"j.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: subject}\nspec:\n  schedule: '0 1 * * *'\n  failedJobsHistoryLimit: " + history +
			"\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}\n"}
	}
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	for name, tc := range map[string]struct {
		reason       string
		before, then map[string]string
		between      func(*rig)
		want         engine.Action
		evidence     engine.Evidence
		why          string
	}{
		"Stray": {
			reason: "somebody has renumbered a port, and the one that he made is removed first", before: service("8080"), then: service("9090"),
			between: func(r *rig) {
				r.edit(schema.GroupVersionKind{Version: "v1", Kind: "Service"}, "subject", `{"spec":{"ports":[{"name":"http","port":81,"targetPort":8080}]}}`)
			},
			want: engine.ActionChange, evidence: engine.EvidenceNone, why: "what others have put",
		},
		"Yielded": {
			reason: "a field that has to be there is given up, and stays", before: job("1"), then: job("2"),
			between: func(r *rig) {
				r.in.Spec.Drift = &modulesv1.DriftPolicy{Ignore: []modulesv1.DriftIgnore{{Paths: []string{"/spec/schedule"}}}}
			},
			want: engine.ActionChange, evidence: engine.EvidenceServer,
		},
		"Role": {
			reason: "a binding is made after its role",
			then: map[string]string{
				"subject.yaml": rbac + "kind: RoleBinding\nmetadata: {name: subject}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\n",
				"reader.yaml":  rbac + "kind: Role\nmetadata: {name: reader}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]\n",
			},
			between: func(r *rig) {
				r.deploysRoles()
			},
			want: engine.ActionCreate, evidence: engine.EvidenceNone, why: "its role comes with the release",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if tc.before != nil {
				r.in.Target = r.target("1.0.0", tc.before)
				r.settle("it is installed", settled)
			}
			tc.between(r)
			r.in.Target = r.target("2.0.0", tc.then)
			told := r.preview()
			row := rowOf(told, "subject")
			if len(told.Blockers) > 0 || row.Action != tc.want || row.Evidence != tc.evidence || !strings.Contains(row.Reason, tc.why) {
				t.Errorf("%s: blocked by %+v; %+v", tc.reason, told.Blockers, row)
			}
			if wrong := r.comesTrue(told); wrong != "" {
				t.Errorf("%s: %s", tc.reason, wrong)
			}
		})
	}
}

// deploysRoles has the installation done by an account that may grant the rights that it has itself.
func (r *rig) deploysRoles() {
	r.t.Helper()
	r.asDeployer()
	var rules []rule
	for _, verb := range allVerbs {
		rules = append(rules, rule{"", "configmaps", verb}, rule{"rbac.authorization.k8s.io", "roles", verb}, rule{"rbac.authorization.k8s.io", "rolebindings", verb})
	}
	r.grant(rules...)
	testenv.Eventually(r.t, "the API server knows the rights", func(ctx context.Context) (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + r.namespace + ":deployer",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: "delete", Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
		}}
		check(r.t, env.Client.Create(ctx, review))
		return review.Status.Allowed, review.Status.Reason
	})
}
