package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serverFile is a Deployment whose number of replicas is nobody's yet.
const serverFile = `apiVersion: apps/v1
kind: Deployment
metadata: {name: 'web${suffix}'}
spec:
  revisionHistoryLimit: 2
  selector: {matchLabels: {app: 'web${suffix}'}}
  template:
    metadata: {labels: {app: 'web${suffix}'}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
`

// handsFound shows who scaled a Deployment and who changed a field by hand, what of it is mended, and that an artifact is what
// upstream has.
func (d *demo) handsFound(ctx context.Context) error {
	if err := errors.Join(
		d.kubectl(ctx, "", "patch", "deployment", "web-live", "--type=merge", "-p", `{"spec":{"replicas":3}}`), d.playDeployment(ctx, "web-live"),
		d.kubectl(ctx, "", "patch", "configmap", "web-settings-live", "--type=merge", "--field-manager=somebody", "-p", `{"data":{"night":"yes"}}`),
	); err != nil {
		return err
	}
	if err := d.sluices(ctx,
		typed{0, "spec.replicas = 3  by kubectl-patch (Update", []string{"trace", "deployment/web-live", "--field", "spec.replicas"}},
		typed{0, "somebody", []string{"trace", "configmap/web-settings-live", "--field", "data.night"}},
	); err != nil {
		return err
	}
	if err := d.scaleStays(ctx); err != nil {
		return err
	}
	served := filepath.Join(d.dir, "app.tar.gz")
	obj, err := d.app(ctx)
	if err != nil {
		return err
	}
	body, err := d.body(ctx, obj.Status.Artifact)
	if err != nil {
		return err
	}
	if err := os.WriteFile(served, body, 0o600); err != nil {
		return fmt.Errorf("keep the artifact: %w", err)
	}
	return d.sluices(ctx, typed{0, "rebuilt, and the same", []string{"verify", "gitrepository/app", "--egress-allow-loopback", "--artifact", served}})
}

// scaleStays changes by hand what the release sets, too. That is mended, and what the release leaves to others is not.
func (d *demo) scaleStays(ctx context.Context) error {
	if err := d.kubectl(ctx, "", "patch", "deployment", "web-live", "--type=merge", "--field-manager=somebody", "-p", `{"spec":{"revisionHistoryLimit":9}}`); err != nil {
		return err
	}
	obj := &appsv1.Deployment{}
	if err := eventually(ctx, "the edit is mended", func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web-live"}, obj)
		return err == nil && *obj.Spec.RevisionHistoryLimit == 2, err
	}); err != nil {
		return err
	}
	if *obj.Spec.Replicas != 3 {
		return fmt.Errorf("the Deployment has %d replicas, and 3 were asked for", *obj.Spec.Replicas)
	}
	d.say("revisionHistoryLimit, which the release sets, is 2 again; replicas, which it leaves to others, are 3")
	return d.playDeployment(ctx, "web-live")
}

// playDeployment says of a Deployment that all of its replicas run: nobody is here who could run them.
func (d *demo) playDeployment(ctx context.Context, name string) error {
	obj := &appsv1.Deployment{}
	return eventually(ctx, "Deployment "+name+" runs", func(ctx context.Context) (bool, error) {
		if err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		all := *obj.Spec.Replicas
		obj.Status = appsv1.DeploymentStatus{
			ObservedGeneration: obj.Generation, Replicas: all, UpdatedReplicas: all, ReadyReplicas: all, AvailableReplicas: all,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		err := d.env.Client.Status().Update(ctx, obj)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}
