package main

import (
	"errors"
	"fmt"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

const targetEvaluations = 2 * time.Second

// evaluate evaluates the expressions of one template, in this process, as a set does: compiled by what edit it is, and then once for
// each target.
func (r *packagesRun) evaluate() error {
	compiler, err := fanout.NewCompiler()
	if err != nil {
		return err
	}
	template := siteTemplate("target.labels.region")
	const expressions = 4
	spec := &packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: blueprintsName, Package: blueprintName}, Targets: []packagesv1.Target{{Template: template}},
	}
	sites := make([]fanout.Target, r.packages.setTargets)
	for i := range sites {
		site := r.site(i)
		sites[i] = fanout.Target{Name: site.Name, Repo: site.Name, Package: blueprintName, Value: fanout.Seen(site.Name, "", site.Labels, nil)}
	}
	upstream := map[string]any{"name": blueprintName}
	anything := func(string) (map[string]any, bool) { return map[string]any{}, true }
	began := ownCPU()
	first, err := compiler.Compile("edit", spec)
	if err != nil {
		return err
	}
	compiling, evaluated, compiled := ownCPU()-began, 0, 1
	for evaluated < r.packages.evaluations {
		set, err := compiler.Compile("edit", spec)
		if err != nil {
			return err
		}
		if set != first {
			compiled++
		}
		if made := set.Variants(sites, upstream, anything); len(made.Variants) != len(sites) {
			return errors.New("a target has no variant")
		}
		evaluated += expressions * len(sites)
	}
	spent := ownCPU() - began
	r.target(fmt.Sprintf("%d evaluations of a template's expressions", evaluated), fmt.Sprintf("at most %s of CPU, compiled once", targetEvaluations),
		spent <= targetEvaluations && compiled == 1, "%s of CPU, compiled %d times, which took %s of it", timeText(spent), compiled, timeText(compiling))
	return nil
}
