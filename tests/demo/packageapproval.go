package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// approveAll proposes the draft of every cluster, and approves the commit that was looked at.
func (d *demo) approveAll(ctx context.Context, revision string) error {
	began := time.Now()
	for _, cluster := range clusters() {
		variant, err := d.waitVariant(ctx, cluster, "has a draft", func(v *packagesv1.PackageVariant) bool { return v.Status.Change != nil })
		if err != nil {
			return err
		}
		if err := d.approve(ctx, variant.Status.Change.PackageRevision); err != nil {
			return err
		}
		if _, err := d.waitVariant(ctx, cluster, "is published as "+revision, func(v *packagesv1.PackageVariant) bool {
			return conditions.IsReady(v) && v.Status.Change == nil && v.Status.Published != nil && v.Status.Published.Revision == revision
		}); err != nil {
			return err
		}
	}
	d.say("%s proposed, approved and published in three repositories in %s", revision, since(began))
	return nil
}

// approve takes one change from draft to published.
func (d *demo) approve(ctx context.Context, name string) error {
	if _, err := d.waitRevisionOf(ctx, name, packagesv1.LifecycleDraft); err != nil {
		return err
	}
	if err := d.ask(ctx, name, `{"spec":{"lifecycle":"Proposed"}}`); err != nil {
		return err
	}
	proposed, err := d.waitRevisionOf(ctx, name, packagesv1.LifecycleProposed)
	if err != nil {
		return err
	}
	if err := d.ask(ctx, name, publishing(proposed.Status.Commit)); err != nil {
		return err
	}
	_, err = d.waitRevisionOf(ctx, name, packagesv1.LifecyclePublished)
	return err
}

func publishing(commit string) string {
	return fmt.Sprintf(`{"spec":{"lifecycle":"Published","approvedCommit":%q}}`, commit)
}

func (d *demo) ask(ctx context.Context, name, patch string) error {
	return d.kubectl(ctx, "", "patch", "packagerevision", name, "--type=merge", "-p", patch)
}

// approvalRefused tries to publish as a person who edits packages. The policy may need a moment until it is in force, so
// that each try is a dry run.
func (d *demo) approvalRefused(ctx context.Context) error {
	variant, err := d.waitVariant(ctx, clusters()[0], "has a draft", func(v *packagesv1.PackageVariant) bool { return v.Status.Change != nil })
	if err != nil {
		return err
	}
	args := []string{
		"--as=editor", "patch", "packagerevision", variant.Status.Change.PackageRevision, "--dry-run=server", "--type=merge",
		"-p", publishing(variant.Status.Change.Commit),
	}
	var answer []byte
	err = eventually(ctx, "an editor is refused to approve", func(ctx context.Context) (bool, error) {
		answer, err = d.kubectlCommand(ctx, "", args...).CombinedOutput()
		return err != nil && strings.Contains(string(answer), "you need the approve permission"), nil
	})
	d.say("$ kubectl %s\n%s", join(args), strings.TrimSpace(string(answer)))
	return err
}

// scaleInGit edits what a cluster runs as people do: in a clone, with a commit that is pushed.
func (d *demo) scaleInGit(ctx context.Context, cluster string) error {
	clone := filepath.Join(d.dir, "clone-"+cluster)
	file := filepath.Join(clone, "web", "deployment.yaml")
	call := func(folder string, args ...string) error {
		d.say("$ git %s", join(args))
		if out, err := upstream.Command(ctx, folder, nil, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", join(args), err, out)
		}
		return nil
	}
	if err := call(d.dir, "clone", "--quiet", d.server.URL(cluster), "clone-"+cluster); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the clone: %w", err)
	}
	edited := strings.ReplaceAll(string(text), "replicas: 1", "replicas: 5")
	if edited == string(text) {
		return errors.New("there is nothing to edit in the clone")
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		return fmt.Errorf("edit the clone: %w", err)
	}
	if err := call(clone, "commit", "--quiet", "--all", "--message=Five of it in "+cluster); err != nil {
		return err
	}
	return call(clone, "push", "--quiet", "origin", "main")
}

// git shows what git says about a repository of the server.
func (d *demo) git(repository string, args ...string) error {
	out, err := d.repos[repository].Raw(args...)
	d.say("$ git %s\n%s", join(args), out)
	return err
}

// waitVariant returns the cluster's variant as soon as the condition holds.
func (d *demo) waitVariant(
	ctx context.Context, cluster, what string, holds func(*packagesv1.PackageVariant) bool,
) (*packagesv1.PackageVariant, error) {
	obj := &packagesv1.PackageVariant{}
	return obj, d.waitPackage(ctx, "web-"+cluster, what, obj, func() bool { return holds(obj) })
}

// waitRevisionOf returns the PackageRevision as soon as it is where the lifecycle says.
func (d *demo) waitRevisionOf(ctx context.Context, name string, lifecycle packagesv1.Lifecycle) (*packagesv1.PackageRevision, error) {
	obj := &packagesv1.PackageRevision{}
	return obj, d.waitPackage(ctx, name, "is "+string(lifecycle), obj, func() bool {
		return obj.Status.Lifecycle == lifecycle && obj.Status.Commit != "" && conditions.IsReady(obj)
	})
}

// waitPackage waits until what was read into the object is as it should be.
func (d *demo) waitPackage(ctx context.Context, name, what string, obj interface {
	client.Object
	conditions.Getter
}, holds func() bool,
) error {
	err := eventually(ctx, name+" "+what, func(ctx context.Context) (bool, error) {
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
		return err == nil && holds(), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("%w; its conditions are %s", err, said(obj))
	}
	return nil
}
