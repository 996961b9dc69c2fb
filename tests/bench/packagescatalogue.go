package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// large reads a repository with many packages, and then one more commit of it.
func (r *packagesRun) large() error {
	made, err := r.repository("catalogue", time.Hour, nil)
	if err != nil {
		return err
	}
	if _, err := made.RawInput(catalogueStream(r.packages.catalogue, r.packages.revisions), "fast-import", "--quiet"); err != nil {
		return err
	}
	name := fmt.Sprintf("%d packages, %d tags", r.packages.catalogue, r.packages.catalogue*r.packages.revisions)
	cold, err := r.sync("catalogue", func() error { return nil })
	if err != nil {
		return err
	}
	if err := r.settle(r.ctx); err != nil {
		return err
	}
	warm, err := r.sync("catalogue", func() error {
		_, err := made.Commit("main", "one more", upstream.Text(map[string]string{"pkg-0001/more.yaml": "a: 1\n"}))
		return err
	})
	if err != nil {
		return err
	}
	still, err := r.sync("catalogue", func() error { return nil })
	if err != nil {
		return err
	}
	r.target(name+", synced warm", fmt.Sprintf("at most %s", targetWarmSync), warm <= targetWarmSync,
		"%s with a new commit, %s with nothing new; from the start %s", timeText(warm), timeText(still), timeText(cold))
	return nil
}

// sync asks for a round of the repository, and tells how long it takes.
func (r *packagesRun) sync(name string, change func() error) (time.Duration, error) {
	if err := change(); err != nil {
		return 0, err
	}
	began := time.Now()
	token := began.Format(time.RFC3339Nano)
	if err := r.askFor(name, token); err != nil {
		return 0, err
	}
	err := follow(r.ctx, r.fleet, &packagesv1.RepositoryList{}, func(obj *packagesv1.Repository) bool {
		return obj.Name == name && conditions.IsReady(obj) && obj.Status.LastHandledReconcileAt == token
	}, client.InNamespace(packagesNamespace))
	return time.Since(began), err
}

// catalogueStream makes a repository in which each revision of each package is a commit with a tag.
func catalogueStream(packages, revisions int) []byte {
	var s strings.Builder
	mark, from := 0, ""
	for revision := 1; revision <= revisions; revision++ {
		for i := range packages {
			name := fmt.Sprintf("pkg-%04d", i)
			kptfile := fmt.Sprintf("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: %s\n", name)
			manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  revision: \"%d\"\n", name, revision)
			mark++
			fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\ncommitter Bench <bench@example.com> %d +0000\ndata 7\npublish\n%s", mark, 1_700_000_000+mark, from)
			for path, text := range map[string]string{"Kptfile": kptfile, "configmap.yaml": manifest} {
				fmt.Fprintf(&s, "M 100644 inline %s/%s\ndata %d\n%s\n", name, path, len(text), text)
			}
			fmt.Fprintf(&s, "\nreset refs/tags/%s/v%d\nfrom :%d\n\n", name, revision, mark)
			from = fmt.Sprintf("from :%d\n", mark)
		}
	}
	return []byte(s.String())
}
