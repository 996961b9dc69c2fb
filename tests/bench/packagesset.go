package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

const (
	setName = "fleet"
	// setRegions is how many kinds of targets there are; those of one kind are alike but for their names.
	setRegions = 7

	rendersMetric = `sluice_package_renders_total{result="done"}`
	// looksMetric begins the samples of looks at variants, with the name of one behind it.
	looksMetric = `gotk_reconcile_duration_seconds_count{kind="PackageVariant",name="`
)

// setDrafts are wanted of the variants of a set.
func setDrafts() wantedDrafts {
	return wantedDrafts{wall: 2 * time.Minute, fetches: 2, pushes: 4, memory: 350 << 20}
}

// set has a set make its variants, and changes it a little.
func (r *packagesRun) set() error {
	if _, err := r.repositories(r.packages.setInto); err != nil {
		return err
	}
	if err := r.createTargets(); err != nil {
		return err
	}
	name := fmt.Sprintf("a set of %d targets in %d repositories", r.packages.setTargets, r.packages.setInto)
	rendered, err := r.metric(r.ctx, rendersMetric)
	if err != nil {
		return err
	}
	if err := r.drafts(name+", all drafts", "v1", r.packages.setTargets, setDrafts(), r.createSet); err != nil {
		return err
	}
	now, err := r.metric(r.ctx, rendersMetric)
	if err != nil {
		return err
	}
	r.target("variants that functions cannot tell apart", "rendered once", now-rendered == setRegions,
		"%.0f renders of %d variants of %d kinds", now-rendered, r.packages.setTargets, setRegions)
	for _, part := range []func() error{
		func() error { return r.atRest("an interval in which nothing happens to them") }, r.emptyEdit, r.oneMore,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// createTargets makes the objects that the set selects, and who may read them.
func (r *packagesRun) createTargets() error {
	meta := metav1.ObjectMeta{Namespace: packagesNamespace, Name: "reader"}
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		},
	}
	for i := range r.packages.setTargets {
		objects = append(objects, r.site(i))
	}
	for _, object := range objects {
		if err := r.client.Create(r.ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// site is one target.
func (r *packagesRun) site(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: packagesNamespace, Name: fmt.Sprintf("site-%04d", i),
		Labels: map[string]string{"kind": "site", "repo": clusterName(i % r.packages.setInto), "region": fmt.Sprintf("region-%d", i%setRegions)},
	}}
}

func (r *packagesRun) createSet() error {
	return r.client.Create(r.ctx, &packagesv1.PackageVariantSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesNamespace, Name: setName},
		Spec: packagesv1.PackageVariantSetSpec{
			Upstream: packagesv1.Upstream{Repo: blueprintsName, Package: blueprintName}, ServiceAccountName: "reader",
			Targets: []packagesv1.Target{{
				ObjectSelector: &packagesv1.ObjectSelector{
					APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"kind": "site"}},
				},
				Template: siteTemplate("target.labels.region"),
			}},
		},
	})
}

// siteTemplate is what is special about each target: where its package is, and its region, as the expression has it.
func siteTemplate(region string) *packagesv1.VariantTemplate {
	return &packagesv1.VariantTemplate{
		Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "target.labels.repo", PackageExpr: "target.name + '/' + packageDefault"},
		LabelExprs: []packagesv1.MapExpr{{Key: "region", ValueExpr: region}, {Key: "upstream", ValueExpr: "upstream.name"}},
	}
}

// emptyEdit edits the template so that the same comes of it.
func (r *packagesRun) emptyEdit() error {
	var set packagesv1.PackageVariantSet
	if err := r.client.Get(r.ctx, client.ObjectKey{Namespace: packagesNamespace, Name: setName}, &set); err != nil {
		return err
	}
	before := r.traffic()
	cost, err := r.spent(r.ctx, func() (time.Duration, error) {
		began := time.Now()
		set.Spec.Targets[0].Template = siteTemplate("string(target.labels.region)")
		if err := r.client.Update(r.ctx, &set); err != nil {
			return 0, err
		}
		err := follow(r.ctx, r.fleet, &packagesv1.PackageVariantSetList{}, func(obj *packagesv1.PackageVariantSet) bool {
			return obj.Status.ObservedGeneration == set.Generation
		}, client.InNamespace(packagesNamespace))
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	pushes, own := r.traffic().sum(before, upstream.Push), cost.own["patch packagevariantsets/status"]
	r.target("a template edit that changes nothing", "no commit, no API request but the set's own status", pushes == 0 && cost.all() == own,
		"%d pushes, %d requests for the set's status and %d others, %s, %s of CPU", pushes, own, cost.all()-own, timeText(cost.wall), timeText(cost.cpu))
	return nil
}

// oneMore adds a target.
func (r *packagesRun) oneMore() error {
	looks, err := r.metric(r.ctx, looksMetric)
	if err != nil {
		return err
	}
	before := r.traffic()
	cost, err := r.spent(r.ctx, func() (time.Duration, error) {
		began := time.Now()
		if err := r.client.Create(r.ctx, r.site(r.packages.setTargets)); err != nil {
			return 0, err
		}
		err := r.drafted("v1", r.packages.setTargets+1)
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	now, err := r.metric(r.ctx, looksMetric)
	if err != nil {
		return err
	}
	name, err := r.variantOf(r.site(r.packages.setTargets).Name)
	if err != nil {
		return err
	}
	own, err := r.metric(r.ctx, looksMetric+name+`"`)
	if err != nil {
		return err
	}
	pushes, made, others := r.traffic().sum(before, upstream.Push), cost.own["create packagevariants"], int(now-looks-own)
	r.target("one target more", "1 variant, 1 commit, no other variant is looked at", made == 1 && pushes == 1 && others == 0,
		"%d variants, %d pushes, %.0f looks at it and %d at others, %d API requests, %s, %s of CPU",
		made, pushes, own, others, cost.all(), timeText(cost.wall), timeText(cost.cpu))
	return nil
}

// variantOf is the name of the variant of a target.
func (r *packagesRun) variantOf(target string) (string, error) {
	var list packagesv1.PackageVariantList
	if err := r.client.List(r.ctx, &list, client.InNamespace(packagesNamespace)); err != nil {
		return "", err
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Spec.Downstream.Package, target+"/") {
			return list.Items[i].Name, nil
		}
	}
	return "", fmt.Errorf("target %s has no variant", target)
}
