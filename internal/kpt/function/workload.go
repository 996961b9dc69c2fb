package function

import (
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// templates are what a workload makes others from, those that are there: Jobs, and at last Pods. A document that says nothing of
// them, as a patch may, gets none.
func templates(o *object) (job, pod []string) {
	switch group, kind := o.group(), o.kind(); {
	case group == "" && kind == "ReplicationController", group == "batch" && kind == "Job", isApp(o):
		pod = []string{"spec", "template"}
	case group == "batch" && kind == "CronJob":
		job, pod = []string{"spec", "jobTemplate"}, []string{"spec", "jobTemplate", "spec", "template"}
	}
	if isNull(kpt.Lookup(o.root, job...)) {
		job = nil
	}
	if isNull(kpt.Lookup(o.root, pod...)) {
		pod = nil
	}
	return job, pod
}

// isApp tells whether the object is a workload that keeps Pods running, of the group of today or of the one before.
func isApp(o *object) bool {
	group, kind := o.group(), o.kind()
	return (group == "apps" || group == "extensions") &&
		slices.Contains([]string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"}, kind)
}

// kind writes what is particular to the object's kind.
func (l *labeller) kind() {
	o := l.object
	spec := kpt.Lookup(o.root, "spec")
	group, kind := o.group(), o.kind()
	switch {
	case group == "" && kind == "Service":
		if kpt.Text(spec, "type") != "ExternalName" {
			l.own(spec, []string{"spec"}, "selector")
		}
	case group == "" && kind == "ReplicationController":
		l.own(spec, []string{"spec"}, "selector")
	case isApp(o):
		l.selector()
	case group == "" && kind == "Pod":
		l.pod(spec, []string{"spec"})
	case group == "batch" && kind == "Job", group == "policy" && kind == "PodDisruptionBudget":
		l.under(spec, []string{"spec"}, true, "selector", "matchLabels")
	case group == "batch" && kind == "CronJob":
		l.under(o.root, nil, true, "spec", "jobTemplate", "spec", "selector", "matchLabels")
	case (group == "networking.k8s.io" || group == "extensions") && kind == "NetworkPolicy":
		l.networkPolicy(spec)
	}
	job, pod := templates(o)
	if job != nil {
		l.all(join(job, "metadata", "labels"))
	}
	if pod != nil {
		l.all(join(pod, "metadata", "labels"))
		path := join(pod, "spec")
		l.pod(kpt.Lookup(o.root, path...), path)
	}
	if kind == "StatefulSet" && isApp(o) {
		l.claims(spec)
	}
}

// own writes every label into a selector that is a plain map and selects something. An empty one is left as it is: it says
// that somebody else finds the Pods, or all of them are meant.
func (l *labeller) own(spec *yaml.Node, path []string, key string) {
	if selector := kpt.Lookup(spec, key); selector != nil && len(selector.Content) > 0 {
		l.under(spec, path, false, key)
	}
}

// selector writes every label into the selector of a workload that has one.
func (l *labeller) selector() {
	path := []string{"spec", "selector"}
	selector := kpt.Lookup(l.object.root, path...)
	if isNull(selector) {
		return
	}
	l.all(join(path, "matchLabels"))
	for i, expression := range kpt.Elements(kpt.Lookup(selector, "matchExpressions")) {
		key := kpt.Text(expression, "key")
		value, set := l.labels[key]
		if set && !allows(expression, value) {
			l.try(l.object.fail(join(path, "matchExpressions", strconv.Itoa(i)),
				fmt.Errorf("would no longer select Pods with the label %s: %s", key, value)))
		}
	}
}

// allows tells whether an expression of a selector selects a label of the value.
func allows(expression *yaml.Node, value string) bool {
	named := slices.ContainsFunc(kpt.Elements(kpt.Lookup(expression, "values")), func(n *yaml.Node) bool { return n.Value == value })
	switch kpt.Text(expression, "operator") {
	case "In":
		return named
	case "NotIn":
		return !named
	case "DoesNotExist":
		return false
	default:
		return true
	}
}

// spread keeps the selectors in step by which Pods are spread.
func (l *labeller) spread(spec *yaml.Node, path []string) {
	for i, constraint := range kpt.Elements(kpt.Lookup(spec, "topologySpreadConstraints")) {
		l.under(constraint, join(path, "topologySpreadConstraints", strconv.Itoa(i)), true, "labelSelector", "matchLabels")
	}
}

// pod keeps the selectors in the spec of a Pod in step.
func (l *labeller) pod(spec *yaml.Node, path []string) {
	l.spread(spec, path)
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		terms := kpt.Lookup(spec, "affinity", kind)
		const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
		for i, term := range kpt.Elements(kpt.Lookup(terms, required)) {
			l.under(term, join(path, "affinity", kind, required, strconv.Itoa(i)), true, "labelSelector", "matchLabels")
		}
		for i, term := range kpt.Elements(kpt.Lookup(terms, preferred)) {
			l.under(term, join(path, "affinity", kind, preferred, strconv.Itoa(i)), true,
				"podAffinityTerm", "labelSelector", "matchLabels")
		}
	}
}

// networkPolicy keeps the selectors of Pods in step.
func (l *labeller) networkPolicy(spec *yaml.Node) {
	l.under(spec, []string{"spec"}, true, "podSelector", "matchLabels")
	l.peers(spec, "ingress", "from")
	l.peers(spec, "egress", "to")
}

func (l *labeller) peers(spec *yaml.Node, direction, peers string) {
	for i, rule := range kpt.Elements(kpt.Lookup(spec, direction)) {
		for j, peer := range kpt.Elements(kpt.Lookup(rule, peers)) {
			l.under(peer, []string{"spec", direction, strconv.Itoa(i), peers, strconv.Itoa(j)}, true, "podSelector", "matchLabels")
		}
	}
}

// claims labels the volumes that a StatefulSet asks for.
func (l *labeller) claims(spec *yaml.Node) {
	for i, claim := range kpt.Elements(kpt.Lookup(spec, "volumeClaimTemplates")) {
		path := []string{"spec", "volumeClaimTemplates", strconv.Itoa(i)}
		if l.err == nil {
			l.err = l.below(l.object, claim, path, []string{"metadata", "labels"}, true,
				func(parent *yaml.Node, path []string) error { return l.write(parent, path, false) })
		}
		l.under(claim, path, true, "spec", "selector", "matchLabels")
	}
}
