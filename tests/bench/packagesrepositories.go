package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// blueprint is the package that variants are made of.
func blueprint(image string) upstream.Files {
	return upstream.Text(map[string]string{
		"app/Kptfile": `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
    - image: set-labels
      configMap:
        app: app
`,
		"app/deployment.yaml": strings.ReplaceAll(blueprintDeployment, "IMAGE", image),
		"app/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: app
spec:
  selector:
    app: app
  ports:
    - port: 80
`,
		"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  level: info\n",
	})
}

const blueprintDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 2 # for each cluster
  selector:
    matchLabels:
      app: app
  template:
    metadata:
      labels:
        app: app
    spec:
      containers:
        - name: app
          image: IMAGE
          ports:
            - containerPort: 8080
`

// repository serves a repository and makes its objects. Nobody fetches it as a source.
func (r *packagesRun) repository(name string, every time.Duration, files upstream.Files) (*upstream.Repository, error) {
	made, err := upstream.NewRepository(r.ctx, r.host.dir, name)
	if err != nil {
		return nil, err
	}
	if err := made.AcceptPushes(); err != nil {
		return nil, err
	}
	if files != nil {
		if _, err := made.Commit("main", "begin", files); err != nil {
			return nil, err
		}
	}
	header := metav1.ObjectMeta{Namespace: packagesNamespace, Name: name}
	err = r.client.Create(r.ctx, &sourcev1.GitRepository{ObjectMeta: header, Spec: sourcev1.GitRepositorySpec{
		URL: r.host.http.URL(name), Interval: metav1.Duration{Duration: time.Hour}, Suspend: true,
	}})
	if err == nil {
		err = r.client.Create(r.ctx, &packagesv1.Repository{ObjectMeta: header, Spec: packagesv1.RepositorySpec{
			GitRepositoryRef: packagesv1.LocalReference{Name: name}, Interval: &metav1.Duration{Duration: every},
		}})
	}
	return made, err
}

// repositories makes the one with the blueprint, and so many for its variants.
func (r *packagesRun) repositories(into int) (*upstream.Repository, error) {
	blueprints, err := r.repository(blueprintsName, r.packages.every, nil)
	if err != nil {
		return nil, err
	}
	if err := publishAs(blueprints, blueprintName+"/v1", blueprint("example.com/app:1.0.0")); err != nil {
		return nil, err
	}
	for i := range into {
		if _, err := r.repository(clusterName(i), r.packages.every, upstream.Text(map[string]string{"README.md": "a cluster\n"})); err != nil {
			return nil, err
		}
	}
	return blueprints, r.synced(1 + into)
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%02d", i) }

// publishAs tags what the repository has on its branch.
func publishAs(made *upstream.Repository, tag string, files upstream.Files) error {
	commit, err := made.Commit("main", tag, files)
	if err != nil {
		return err
	}
	_, err = made.Tag(tag, commit, false)
	return err
}

func (r *packagesRun) ask(name string) error {
	return r.askFor(name, time.Now().Format(time.RFC3339Nano))
}

func (r *packagesRun) askFor(name, token string) error {
	object := &packagesv1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: packagesNamespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	return r.client.Patch(r.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// synced waits until so many repositories are read.
func (r *packagesRun) synced(repositories int) error {
	ready := map[string]bool{}
	return follow(r.ctx, r.fleet, &packagesv1.RepositoryList{}, func(obj *packagesv1.Repository) bool {
		if conditions.IsReady(obj) {
			ready[obj.Name] = true
		}
		return len(ready) == repositories
	}, client.InNamespace(packagesNamespace))
}
