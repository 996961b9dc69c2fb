package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// fillRepositories makes the first commits.
func (d *demo) fillRepositories() error {
	if _, err := d.commit("app", "First version", map[string]string{
		"deploy/app.yaml": manifestOf("app", 1), "docs/readme.md": "# app\n", "docs/logo.png": "not part of an artifact by default",
	}); err != nil {
		return err
	}
	for _, name := range append([]string{blueprints, fleetRepository}, clusters()...) {
		if _, err := d.commit(name, "Begin", map[string]string{"README.md": "# The packages of " + name + "\n"}); err != nil {
			return err
		}
		if err := d.repos[name].AcceptPushes(); err != nil {
			return err
		}
	}
	_, err := d.commit("library", "First chart", map[string]string{"charts/values.yaml": "replicas: 1\n", "notes.txt": "not included\n"})
	return err
}

func (d *demo) commit(repository, message string, files map[string]string) (string, error) {
	return d.repos[repository].Commit("main", message, upstream.Text(files))
}

// head is the commit that the main branch of the app repository names.
func (d *demo) head() string {
	hash, err := d.repos["app"].Resolve("refs/heads/main")
	if err != nil {
		return err.Error()
	}
	return hash
}

// manifestOf is a Deployment as a repository would hold it.
func manifestOf(name string, replicas int) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\nspec:\n  replicas: %d\n", name, replicas)
}

// manifest is a GitRepository of the app repository.
func (d *demo) manifest(name, spec string) string { return d.manifestOf(name, "app", spec) }

func (d *demo) manifestOf(name, repository, spec string) string {
	return fmt.Sprintf(`apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: %s
spec:
  url: %s
  interval: 1s
  %s
`, name, d.server.URL(repository), spec)
}

// app is the GitRepository that most steps are about.
func (d *demo) app(ctx context.Context) (*sourcev1.GitRepository, error) {
	return get[sourcev1.GitRepository](ctx, d, "app")
}

// wait returns the object as soon as it is Ready and the condition holds.
func (d *demo) wait(ctx context.Context, name, what string, condition func(*meta.Artifact) bool) (*sourcev1.GitRepository, error) {
	return waitFor[sourcev1.GitRepository](ctx, d, name, what, condition)
}

// sourceObject is what the kinds have in common; T is the kind's struct.
type sourceObject[T any] interface {
	*T
	client.Object
	conditions.Getter
	GetArtifact() *meta.Artifact
}

func get[T any, O sourceObject[T]](ctx context.Context, d *demo, name string) (O, error) {
	obj := O(new(T))
	err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	return obj, err
}

func waitFor[T any, O sourceObject[T]](
	ctx context.Context, d *demo, name, what string, condition func(*meta.Artifact) bool,
) (obj O, err error) {
	err = eventually(ctx, fmt.Sprintf("%s %s", name, what), func(ctx context.Context) (ok bool, err error) {
		if obj, err = get[T, O](ctx, d, name); err != nil {
			return false, err
		}
		return conditions.IsReady(obj) && obj.GetArtifact() != nil && condition(obj.GetArtifact()), nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w; its artifact is %+v, its conditions are %+v", err, obj.GetArtifact(), obj.GetConditions())
	}
	return obj, nil
}

func (d *demo) waitReady(ctx context.Context, name, commit string) (*sourcev1.GitRepository, error) {
	return d.waitRevision(ctx, name, "main@sha1:"+commit)
}

func (d *demo) waitRevision(ctx context.Context, name, revision string) (*sourcev1.GitRepository, error) {
	return d.wait(ctx, name, "has an artifact of "+revision, func(a *meta.Artifact) bool { return a.Revision == revision })
}

func (d *demo) waitOther(ctx context.Context, name, digest string) (*sourcev1.GitRepository, error) {
	return d.wait(ctx, name, "has other content", func(a *meta.Artifact) bool { return a.Digest != digest })
}

// short is the beginning of a checksum.
func short(checksum string) string {
	if len(checksum) < 19 {
		return checksum
	}
	return checksum[:19]
}
