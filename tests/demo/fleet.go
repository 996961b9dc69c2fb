package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

const (
	// fleetGuide is the page that these steps follow, block by block.
	fleetGuide = "docs/forty-clusters.md"
	// fleetRepository has a folder for each of the page's clusters, which are in a namespace of their own.
	fleetRepository = "clusters"
	fleetNamespace  = "fleet"
)

// fleetSpread makes a set for three clusters.
func (d *demo) fleetSpread(ctx context.Context) error {
	for _, section := range []string{"1. Publish the package", "2. Make the repositories known", "3. Make the clusters known", "4. One object for all of them"} {
		if err := d.follow(ctx, section); err != nil {
			return err
		}
	}
	return d.fleetRuns("north 1.0.0 eu-north", "south 1.0.0 eu-south", "west 1.0.0 us-west")
}

// clusterArrives gives a fourth one the label. The variants of the others stay as they are.
func (d *demo) clusterArrives(ctx context.Context) error {
	before, err := d.fleetVariants(ctx)
	if err != nil {
		return err
	}
	if err := d.follow(ctx, "5. A cluster more"); err != nil {
		return err
	}
	after, err := d.fleetVariants(ctx)
	if err != nil {
		return err
	}
	for name, generation := range before {
		if after[name] != generation {
			return fmt.Errorf("variant %s was %+v and is %+v", name, generation, after[name])
		}
	}
	return d.fleetRuns("east 1.0.0 us-east", "north 1.0.0 eu-north", "south 1.0.0 eu-south", "west 1.0.0 us-west")
}

// wavesStop has the gate hold the second wave, and then lets it go.
func (d *demo) wavesStop(ctx context.Context) error {
	section := "6. A new version, in waves"
	// The last block mends what stopped the rollout.
	if err := d.followBlocks(ctx, section, 0, -1); err != nil {
		return err
	}
	if err := d.fleetRuns("east 1.0.0 us-east", "north 2.0.0 eu-north", "south 1.0.0 eu-south", "west 1.0.0 us-west"); err != nil {
		return err
	}
	if err := d.followBlocks(ctx, section, -1, 0); err != nil {
		return err
	}
	return d.fleetRuns("east 2.0.0 us-east", "north 2.0.0 eu-north", "south 2.0.0 eu-south", "west 2.0.0 us-west")
}

// nothingDeleted makes a typo in the selector, and mends it.
func (d *demo) nothingDeleted(ctx context.Context) error {
	before, err := d.fleetVariants(ctx)
	if err != nil {
		return err
	}
	if err := d.follow(ctx, "7. A typo"); err != nil {
		return err
	}
	after, err := d.fleetVariants(ctx)
	if err == nil && !maps.Equal(before, after) {
		err = fmt.Errorf("the variants were %v and are %v", before, after)
	}
	d.say("all %d variants are the same objects as before", len(after))
	return err
}

// follow does what a section of the guide says.
func (d *demo) follow(ctx context.Context, section string) error {
	return d.followBlocks(ctx, section, 0, 0)
}

// followBlocks does what some blocks of a section say. Where from and to are not above 0, they count from the end.
func (d *demo) followBlocks(ctx context.Context, section string, from, to int) error {
	pages, err := docs.Pages(testenv.Root())
	if err != nil {
		return err
	}
	page := pages[slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == fleetGuide })]
	if page, err = page.Section(section); err != nil {
		return err
	}
	blocks := page.Blocks("sh", "yaml")
	if from < 0 {
		from += len(blocks)
	}
	for _, block := range blocks[from : len(blocks)+to] {
		text := strings.ReplaceAll(block.Text, "https://git.example.com/", strings.TrimSuffix(d.server.URL(""), ".git"))
		if block.Info == "yaml" {
			text = "kubectl apply -f - <<'EOF'\n" + text + "EOF\n"
		}
		if err := d.shell(ctx, text); err != nil {
			return fmt.Errorf("%s:%d: %w", page.Path, block.Line, err)
		}
	}
	return nil
}

// shell runs a script as people do at a terminal.
func (d *demo) shell(ctx context.Context, script string) error {
	d.say("$ %s", strings.TrimSpace(script))
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "KUBECONFIG="+d.env.Kubeconfig, "PATH="+d.assets+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"GIT_AUTHOR_NAME=Platform", "GIT_AUTHOR_EMAIL=platform@example.com", "GIT_COMMITTER_NAME=Platform", "GIT_COMMITTER_EMAIL=platform@example.com")
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the script ends with %w:\n%s", err, script)
	}
	return nil
}

// made is which object a variant is, and at which spec.
type made struct {
	uid        types.UID
	generation int64
}

func (d *demo) fleetVariants(ctx context.Context) (map[string]made, error) {
	var list packagesv1.PackageVariantList
	if err := d.env.Client.List(ctx, &list, client.InNamespace(fleetNamespace)); err != nil {
		return nil, err
	}
	all := map[string]made{}
	for _, v := range list.Items {
		all[v.Name] = made{v.UID, v.Generation}
	}
	return all, nil
}

// fleetRuns checks what is published in Git for each cluster: its name, the version, and its region.
func (d *demo) fleetRuns(want ...string) error {
	tree, err := d.repos[fleetRepository].Tree("main")
	if err != nil {
		return err
	}
	var have []string
	for name, file := range tree {
		cluster, isDeployment := strings.CutSuffix(name, "/portal/deployment.yaml")
		if !isDeployment {
			continue
		}
		_, version, _ := strings.Cut(file.Content, "image: example.com/portal:")
		_, region, _ := strings.Cut(tree[cluster+"/portal/settings.yaml"].Content, "region: ")
		have = append(have, fmt.Sprintf("%s %s %s", cluster, strings.TrimSpace(version), strings.TrimSpace(region)))
	}
	slices.Sort(have)
	d.say("on the branch: %s", strings.Join(have, ", "))
	if !slices.Equal(have, want) {
		return fmt.Errorf("the branch has %q, want %q", have, want)
	}
	return nil
}
