package function

import (
	"slices"

	"sluice.dev/sluice/internal/kpt"
)

// catalogueKind writes what is particular to the object's kind as kpt's set-labels does: a selector is made where there is none,
// and affinities are left as they are.
func (l *labeller) catalogueKind() {
	o := l.object
	spec := kpt.Lookup(o.root, "spec")
	group, kind := o.group(), o.kind()
	isWorkload := slices.Contains([]string{"Deployment", "ReplicaSet", "DaemonSet"}, kind) || group == "apps" && kind == "StatefulSet"
	isController := group == "" && kind == "ReplicationController"
	isJob := group == "batch" && kind == "Job"
	switch {
	case group == "" && kind == "Service", isController:
		l.all([]string{"spec", "selector"})
	case isWorkload:
		l.all([]string{"spec", "selector", "matchLabels"})
	case isJob, group == "policy" && kind == "PodDisruptionBudget":
		l.under(spec, []string{"spec"}, true, "selector", "matchLabels")
	case group == "networking.k8s.io" && kind == "NetworkPolicy":
		l.networkPolicy(spec)
	}
	switch {
	case isWorkload, isController, isJob:
		l.cataloguePod("spec", "template")
	case group == "batch" && kind == "CronJob" && !isNull(kpt.Lookup(spec, "jobTemplate")):
		l.all([]string{"spec", "jobTemplate", "metadata", "labels"})
		l.under(spec, []string{"spec"}, true, "jobTemplate", "spec", "selector", "matchLabels")
		l.cataloguePod("spec", "jobTemplate", "spec", "template")
	}
	if group == "apps" && kind == "StatefulSet" {
		l.claims(spec)
	}
}

// cataloguePod labels a template of Pods, and keeps its spread in step.
func (l *labeller) cataloguePod(path ...string) {
	template := kpt.Lookup(l.object.root, path...)
	if isNull(template) {
		return
	}
	l.all(join(path, "metadata", "labels"))
	l.spread(kpt.Lookup(template, "spec"), join(path, "spec"))
}
