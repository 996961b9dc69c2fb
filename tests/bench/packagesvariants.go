package main

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// wantedDrafts is what is wanted of drafts that are made at once.
type wantedDrafts struct {
	wall            time.Duration
	fetches, pushes int
	memory          int64
}

// variantDrafts are wanted of variants that somebody makes.
func variantDrafts() wantedDrafts {
	return wantedDrafts{wall: time.Minute, fetches: 2, pushes: 3, memory: 300 << 20}
}

// fanOut makes variants of one package, and follows a new revision of it.
func (r *packagesRun) fanOut() error {
	blueprints, err := r.repositories(r.packages.into)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d variants in %d repositories", r.packages.variants, r.packages.into)
	if err := r.drafts(name+", all drafts", "v1", r.packages.variants, variantDrafts(), r.createVariants); err != nil {
		return err
	}
	if err := r.drafts(name+", a new revision", "v2", r.packages.variants, variantDrafts(), func() error {
		if err := publishAs(blueprints, blueprintName+"/v2", blueprint("example.com/app:2.0.0")); err != nil {
			return err
		}
		return r.ask(blueprintsName)
	}); err != nil {
		return err
	}
	return r.atRest("an interval in which nothing happens")
}

func (r *packagesRun) createVariants() error {
	for i := range r.packages.variants {
		variant := &packagesv1.PackageVariant{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesNamespace, Name: fmt.Sprintf("app-%04d", i)},
			Spec: packagesv1.PackageVariantSpec{
				Upstream:   packagesv1.Upstream{Repo: blueprintsName, Package: blueprintName},
				Downstream: packagesv1.Downstream{Repo: clusterName(i % r.packages.into), Package: fmt.Sprintf("app-%04d", i)},
				Namespace:  fmt.Sprintf("app-%04d", i), Labels: map[string]string{"cluster": clusterName(i % r.packages.into)},
				PackageContext: &packagesv1.PackageContext{Data: map[string]string{"region": fmt.Sprintf("region-%d", i%7)}},
			},
		}
		if err := r.client.Create(r.ctx, variant); err != nil {
			return err
		}
	}
	return nil
}

// drafts measures how long it takes until so many drafts are of the revision.
func (r *packagesRun) drafts(work, revision string, count int, wanted wantedDrafts, begin func() error) error {
	before, began := r.traffic(), time.Now()
	cost, err := r.spent(r.ctx, func() (time.Duration, error) {
		if err := begin(); err != nil {
			return 0, err
		}
		err := r.drafted(revision, count)
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	after := r.traffic()
	fetches, pushes := after.most(before, upstream.Fetch), after.most(before, upstream.Push)
	resident, peak := r.memory()
	r.target(work, fmt.Sprintf("at most %s, %d fetches and %d pushes a repository, %s", wanted.wall, wanted.fetches, wanted.pushes, bytesText(wanted.memory)),
		cost.wall <= wanted.wall && fetches <= wanted.fetches && pushes <= wanted.pushes && peak <= wanted.memory,
		"%s, %s of CPU, at most %d fetches and %d pushes a repository, %d API requests, %s resident and %s at most",
		timeText(cost.wall), timeText(cost.cpu), fetches, pushes, cost.all(), bytesText(resident), bytesText(peak))
	return nil
}

// drafted waits until so many variants have drafts of the revision.
func (r *packagesRun) drafted(revision string, count int) error {
	drafted := map[string]bool{}
	err := follow(r.ctx, r.fleet, &packagesv1.PackageVariantList{}, func(obj *packagesv1.PackageVariant) bool {
		if conditions.IsReady(obj) && obj.Status.Upstream != nil && obj.Status.Upstream.Revision == revision && obj.Status.Change != nil {
			drafted[obj.Name] = true
		}
		return len(drafted) == count
	}, client.InNamespace(packagesNamespace))
	if err != nil {
		return fmt.Errorf("%d of %d variants have drafts of %s: %w", len(drafted), count, revision, err)
	}
	return nil
}

// atRest watches all of it while nothing happens.
func (r *packagesRun) atRest(work string) error {
	before := r.traffic()
	busy, rounds, err := r.fleet.window(r.ctx, 3*r.packages.every, `controller_runtime_reconcile_total{controller="packagerepository"`)
	if err != nil {
		return err
	}
	after := r.traffic()
	lists := after.sum(before, upstream.LsRefs)
	fetches := after.sum(before, upstream.Fetch)
	r.target(work, "one ls-refs a repository, no API write",
		lists <= rounds && fetches == 0 && busy.all() == 0,
		"%d rounds, %d ls-refs, %d fetches, %d API requests, %s of CPU each", rounds, lists, fetches, busy.all(), (busy.cpu / time.Duration(max(1, rounds))).Round(time.Microsecond))
	return nil
}
