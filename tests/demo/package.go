package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// blueprints is the repository that packages come from.
const blueprints = "blueprints"

// clusters are the repositories that variants of them are kept in, one a cluster.
func clusters() []string { return []string{"north", "south", "west"} }

// packageDrafted makes one package into a variant for each cluster. Nobody has approved anything yet: these are drafts.
func (d *demo) packageDrafted(ctx context.Context) error {
	if err := d.revise("1.0.0", "v1"); err != nil {
		return err
	}
	var repositories, variants strings.Builder
	for _, name := range append([]string{blueprints}, clusters()...) {
		fmt.Fprintf(&repositories, packageRepositoryManifest, name, d.server.URL(name))
	}
	for _, name := range clusters() {
		fmt.Fprintf(&variants, variantManifest, name)
	}
	for _, apply := range []func() error{
		func() error { return d.kubectl(ctx, "", "apply", "-k", "config/approval") },
		func() error { return d.kubectl(ctx, repositories.String()+packagerManifest, "apply", "-f", "-") },
	} {
		if err := apply(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := d.kubectl(ctx, variants.String(), "apply", "-f", "-"); err != nil {
		return err
	}
	for _, cluster := range clusters() {
		if _, err := d.waitDraft(ctx, cluster, map[string]string{"deployment.yaml": "web:1.0.0", "settings.yaml": "region: " + cluster}); err != nil {
			return err
		}
	}
	d.say("three drafts %s after kubectl began: cloned, adapted, filled as ServiceAccount packager, pushed", since(began))
	return errors.Join(
		d.kubectl(ctx, "", "get", "pkgrepo"),
		d.kubectl(ctx, "", "get", "pkgvar"),
		d.kubectl(ctx, "", "get", "pkgrev"),
		d.git("north", "show", "drafts/web/packagevariant-1:web/settings.yaml"),
	)
}

// packageApproved proposes the drafts and approves each by its commit. Who edits packages may not.
func (d *demo) packageApproved(ctx context.Context) error {
	if err := d.approvalRefused(ctx); err != nil {
		return err
	}
	if err := d.approveAll(ctx, "v1"); err != nil {
		return err
	}
	return errors.Join(
		d.kubectl(ctx, "", "get", "pkgrev"),
		d.git("north", "log", "--oneline", "--decorate", "main"),
	)
}

// packageUpdated revises the blueprint after a person has edited what one of the clusters runs. Both are in the update.
func (d *demo) packageUpdated(ctx context.Context) error {
	if err := d.scaleInGit(ctx, "north"); err != nil {
		return err
	}
	began := time.Now()
	if err := d.revise("2.0.0", "v2"); err != nil {
		return err
	}
	for _, cluster := range clusters() {
		want := map[string]string{"deployment.yaml": "web:2.0.0", "settings.yaml": "region: " + cluster}
		variant, err := d.waitDraft(ctx, cluster, want)
		if err != nil {
			return err
		}
		if files := variant.Status.Change.Files; files == nil || files.Added+files.Removed != 0 {
			return fmt.Errorf("the update of %s changes %+v, want changed files alone", cluster, files)
		}
	}
	d.say("three drafts updated %s after the tag", since(began))
	if err := d.kubectl(ctx, "", "get", "pkgvar"); err != nil {
		return err
	}
	if err := d.git("north", "diff", "main", "drafts/web/packagevariant-2", "--", "web/deployment.yaml"); err != nil {
		return err
	}
	if err := d.approveAll(ctx, "v2"); err != nil {
		return err
	}
	return d.editKept()
}

// editKept checks that the person's edit is on the one branch where it was made, beside what upstream has changed.
func (d *demo) editKept() error {
	for _, cluster := range clusters() {
		tree, err := d.repos[cluster].Tree("main")
		if err != nil {
			return err
		}
		text, replicas := tree["web/deployment.yaml"].Content, "replicas: 1 # enough"
		if cluster == "north" {
			replicas = "replicas: 5 # enough"
		}
		if !strings.Contains(text, replicas) || !strings.Contains(text, "web:2.0.0") {
			return fmt.Errorf("the branch of %s has not %q and the new image, but\n%s", cluster, replicas, text)
		}
		if len(tree["README.md"].Content) == 0 {
			return fmt.Errorf("the branch of %s has lost what else was on it", cluster)
		}
	}
	d.say("north keeps its five replicas, and has the new image; what was on the branches beside the package is untouched")
	return nil
}

// revise publishes a revision of the blueprint.
func (d *demo) revise(image, revision string) error {
	commit, err := d.commit(blueprints, "web "+image, packageFiles(image))
	if err != nil {
		return err
	}
	if _, err := d.repos[blueprints].Tag("web/"+revision, commit, false); err != nil {
		return err
	}
	d.say("pushed %s to %s, tagged web/%s", commit[:12], blueprints, revision)
	return nil
}

// waitDraft returns the cluster's variant as soon as its draft has these words in its files.
func (d *demo) waitDraft(ctx context.Context, cluster string, want map[string]string) (*packagesv1.PackageVariant, error) {
	return d.waitVariant(ctx, cluster, "is drafted", func(v *packagesv1.PackageVariant) bool {
		if v.Status.Change == nil || v.Status.Change.Commit == "" || !conditions.IsReady(v) || !conditions.IsTrue(v, packagesv1.InjectedCondition) {
			return false
		}
		files, err := d.repos[cluster].Tree(v.Status.Change.Commit)
		for name, words := range want {
			if err != nil || !strings.Contains(files["web/"+name].Content, words) {
				return false
			}
		}
		return true
	})
}
