package main

import (
	"context"
	"fmt"
	"time"
)

// walk shows one thing after the other; each step proves what it says before the next one begins.
func (d *demo) walk(ctx context.Context) error {
	steps := []struct {
		title string
		do    func(context.Context) error
	}{
		{"A commit becomes an artifact", d.commitBecomesArtifact},
		{"The artifact is downloaded and its digest checked", d.download},
		{"A reconcile that finds nothing new is skipped: no API write, no clone", d.skipped},
		{"The same under Flux's own CRD, which prunes status.contentConfigChecksum", d.skippedUnderFluxCRD},
		{"A new commit", d.newCommit},
		{"A semver range moves forward with the tags", d.semver},
		{"One repository includes another, and follows it", d.include},
		{"A changed ignore rule rebuilds the artifact at the same revision", d.ignore},
		{"Upstream fails, and comes back", d.outage},
		{"A signed release in a registry becomes an artifact", d.releaseBecomesArtifact},
		{"The next release is refused until it is signed", d.nextRelease},
		{"A poll of a tag without news is one HEAD", d.oneHead},
		{"The tag moves to another manifest of the same layer: no layer is pulled", d.sameLayer},
		{"A bucket becomes an artifact, and one changed object another", d.bucketFollowed},
		{"A chart is published again, and the HelmChart of a release picks it up", d.chartFollowed},
		{"A module is published twice, and installed by channel", d.moduleInstalled},
		{"The channel moves, and the installation follows", d.channelMoves},
		{"The channel moves back, and the downgrade is refused", d.downgradeRefused},
		{"An edit and a deletion by somebody else are healed", d.driftHealed},
		{"Users' data keeps the module from being deleted", d.deletionBlocked},
		{"A user's volume in the module's Namespace survives the uninstall", d.userDataSurvives},
		{"A person pushes and signs a folder, releases and installs it, by commands", d.folderPublished},
		{"The next release: whom it moves, what it changes, who stays and why", d.upgradePlanned},
		{"Who scaled a Deployment by hand and what of an edit is mended, and whether an artifact is what upstream has", d.handsFound},
		{"The web UI shows the same; who may reconcile does, and who may not is told so", d.pagesOpened},
		{"A package is made into variants for three clusters", d.packageDrafted},
		{"The drafts are proposed, approved and published", d.packageApproved},
		{"Upstream is revised, and a person's edit is kept", d.packageUpdated},
		{"Three clusters are objects, and one object gives a package to each; docs/forty-clusters.md says so", d.fleetSpread},
		{"A fourth cluster arrives by its label", d.clusterArrives},
		{"A new revision goes out in two waves, of which the second stops at a gate", d.wavesStop},
		{"A selector that is emptied by mistake deletes nothing", d.nothingDeleted},
	}
	for i, step := range steps {
		d.say("\n--- %d. %s", i+1, step.title)
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %d, %q: %w\nlog of sluice:\n%s", i+1, step.title, err, d.manager.Log())
		}
		d.say("    (%s)", time.Since(began).Round(time.Millisecond))
	}
	d.say("\nall of it took %s", time.Since(d.began).Round(100*time.Millisecond))
	return nil
}

func (d *demo) commitBecomesArtifact(ctx context.Context) error {
	if err := d.kubectl(ctx, d.manifest("app", "ref:\n    branch: main"), "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := d.waitReady(ctx, "app", d.head()); err != nil {
		return err
	}
	return d.kubectl(ctx, "", "get", "gitrepositories")
}

func (d *demo) download(ctx context.Context) error {
	obj, err := d.app(ctx)
	if err != nil {
		return err
	}
	return d.fetch(ctx, obj.Status.Artifact)
}

func (d *demo) newCommit(ctx context.Context) error {
	commit, err := d.commit("app", "Scale to three", map[string]string{"deploy/app.yaml": manifestOf("app", 3)})
	if err != nil {
		return err
	}
	d.say("pushed %s", commit[:12])
	obj, err := d.waitReady(ctx, "app", commit)
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "gitrepositories"); err != nil {
		return err
	}
	return d.fetch(ctx, obj.Status.Artifact)
}

func (d *demo) semver(ctx context.Context) error {
	if _, err := d.repos["app"].Tag("v1.0.0", d.head(), true); err != nil {
		return err
	}
	if err := d.kubectl(ctx, d.manifest("release", "ref:\n    semver: \">=1.0.0 <2.0.0\""), "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := d.waitRevision(ctx, "release", "v1.0.0@sha1:"+d.head()); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "gitrepository", "release"); err != nil {
		return err
	}
	commit, err := d.commit("app", "Scale to four", map[string]string{"deploy/app.yaml": manifestOf("app", 4)})
	if err != nil {
		return err
	}
	for _, tag := range []string{"v1.1.0", "v2.0.0", "1.9"} {
		if _, err := d.repos["app"].Tag(tag, commit, true); err != nil {
			return err
		}
	}
	d.say("tagged v1.1.0, and also v2.0.0 (out of range) and 1.9 (no semantic version)")
	if _, err := d.waitRevision(ctx, "release", "v1.1.0@sha1:"+commit); err != nil {
		return err
	}
	return d.kubectl(ctx, "", "get", "gitrepository", "release")
}

func (d *demo) include(ctx context.Context) error {
	objects := d.manifestOf("library", "library", "ref:\n    branch: main") + "---\n" +
		d.manifestOf("bundle", "app", "ref:\n    branch: main\n  include:\n    - repository:\n        name: library\n      fromPath: charts\n      toPath: vendor/charts")
	if err := d.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	first, err := d.waitReady(ctx, "bundle", d.head())
	if err != nil {
		return err
	}
	if err := d.list(ctx, first.Status.Artifact); err != nil {
		return err
	}
	commit, err := d.commit("library", "Widen the chart", map[string]string{"charts/values.yaml": "replicas: 2\n"})
	if err != nil {
		return err
	}
	d.say("pushed %s to the included repository", commit[:12])
	second, err := d.waitOther(ctx, "bundle", first.Status.Artifact.Digest)
	if err != nil {
		return err
	}
	d.say("revision %s as before, but digest %s instead of %s", second.Status.Artifact.Revision,
		second.Status.Artifact.Digest[:19], first.Status.Artifact.Digest[:19])
	return nil
}

func (d *demo) ignore(ctx context.Context) error {
	before, err := d.app(ctx)
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "patch", "gitrepository", "app", "--type=merge", "-p", `{"spec":{"ignore":"docs/"}}`); err != nil {
		return err
	}
	after, err := d.waitOther(ctx, "app", before.Status.Artifact.Digest)
	if err != nil {
		return err
	}
	d.say("contentConfigChecksum %s -> %s", short(before.Status.ContentConfigChecksum), short(after.Status.ContentConfigChecksum))
	d.say("revision              %s (the same)", after.Status.Artifact.Revision)
	d.say("url                   %s", before.Status.Artifact.URL)
	d.say("                   -> %s", after.Status.Artifact.URL)
	if after.Status.Artifact.Revision != before.Status.Artifact.Revision || after.Status.Artifact.URL == before.Status.Artifact.URL {
		return fmt.Errorf("artifact %+v became %+v", before.Status.Artifact, after.Status.Artifact)
	}
	return d.list(ctx, after.Status.Artifact)
}
