package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// point is an object of the package that takes over what an object of the cluster holds.
func point(kind, name, need string) string {
	version, content := "v1", "data:\n  region: none\n"
	switch kind {
	case "LimitRange":
		content = "spec:\n  limits: []\n"
	case "Secret":
		content = "data: {}\n"
	case "Network":
		version, content = "nowhere.example/v1", "spec: {}\n"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  annotations:\n    kpt.dev/config-injection: %s\n%s", version, kind, name, need, content)
}

// regional is a ConfigMap that says where a cluster is.
func (p *plane) regional(name, region string, labels ...string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: p.meta(name), Data: map[string]string{"region": region}}
	for _, label := range labels {
		made.Labels = map[string]string{"pick": label}
	}
	return made
}

// injecting makes a scene with one ServiceAccount that may read what is injected, and one that may not.
func injecting(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.mayRead()
	role := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"limitranges", "secrets"}, Verbs: []string{"get", "list", "watch"}}
	s.create(
		&corev1.ServiceAccount{ObjectMeta: s.meta("stranger")},
		&rbacv1.Role{ObjectMeta: s.meta("reads-more"), Rules: []rbacv1.PolicyRule{role}},
		&rbacv1.RoleBinding{
			ObjectMeta: s.meta("reads-more"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads-more"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: s.namespace}},
		},
	)
	return s
}

// inject is a spec with injectors, whose objects are read as the ServiceAccount.
func inject(account string, injectors ...packagesv1.Injector) func(*packagesv1.PackageVariantSpec) {
	return func(spec *packagesv1.PackageVariantSpec) {
		spec.ServiceAccountName, spec.Injectors = account, injectors
	}
}

// TestWhatFillsAPoint is what an injector selects, read as the variant's ServiceAccount. What is not filled says why, and holds the
// package if it is required.
func TestWhatFillsAPoint(t *testing.T) {
	t.Parallel()
	scene := injecting(t)
	picked := &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "one"}}
	several := &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "several"}}
	scene.create(
		scene.regional("north", "north", "one"), scene.regional("south", "south", "several"), scene.regional("east", "east", "several"),
		scene.regional("own", "own"), scene.regional("cluster", "of the cluster"),
		&corev1.LimitRange{ObjectMeta: scene.meta("limits"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod}}}},
		&corev1.Secret{ObjectMeta: scene.meta("hidden"), Data: map[string][]byte{"password": []byte("swordfish")}},
	)
	secret := "c3dvcmRmaXNo" // The password, as a manifest has it.
	for name, test := range map[string]struct {
		reason    string
		points    map[string]string
		account   string
		injectors []packagesv1.Injector
		// filled are the points in order, with what fills them or why nothing does.
		filled []string
		// has is what the file has, and hasNot what no file has.
		has    map[string]string
		hasNot string
		says   []string
		open   bool
	}{
		"by-name": {
			reason: "An object of the name.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Name: "north"}}, filled: []string{"settings=north"},
			has: map[string]string{"a.yaml": "region: north"}, open: true,
		},
		"by-own-name": {
			reason: "Without name and selector, the object is called as the point.", points: map[string]string{"a.yaml": point("ConfigMap", "own", "required")},
			injectors: []packagesv1.Injector{{}}, filled: []string{"own=own"}, has: map[string]string{"a.yaml": "region: own"}, open: true,
		},
		"by-labels": {
			reason: "The one object that has the labels.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{LabelSelector: picked}}, filled: []string{"settings=north"},
			has: map[string]string{"a.yaml": "region: north"}, open: true,
		},
		"by-default": {
			reason:    "Without injectors, the object is called as the Repository that the package goes to.",
			points:    map[string]string{"a.yaml": point("ConfigMap", "own", "required"), "b.yaml": point("ConfigMap", "settings", "required")},
			injectors: nil, filled: []string{"own=cluster", "settings=cluster"},
			has: map[string]string{"a.yaml": "region: of the cluster", "b.yaml": "region: of the cluster"}, open: true,
		},
		"by-group": {
			reason: "An injector of a group is for its points alone; the core group has an empty name.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Group: new("apps"), Name: "south"}, {Group: new(""), Name: "north"}}, filled: []string{"settings=north"},
			has: map[string]string{"a.yaml": "region: north"}, open: true,
		},
		"by-version": {
			reason: "An injector of a version is for its points alone.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Version: new("v2"), Name: "south"}, {Group: new(""), Version: new("v1"), Kind: new("ConfigMap"), Name: "north"}},
			filled:    []string{"settings=north"}, has: map[string]string{"a.yaml": "region: north"}, open: true,
		},
		"no-group": {
			reason: "None is for the point.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Group: new("apps"), Name: "north"}, {Version: new("v2"), Name: "north"}, {Kind: new("LimitRange"), Name: "north"}},
			filled:    []string{"settings!InjectionMissing"}, says: []string{"settings"},
		},
		"two-points": {
			reason:    "Two points of one kind are bound to two objects.",
			points:    map[string]string{"a.yaml": point("ConfigMap", "one", "required"), "b.yaml": point("ConfigMap", "two", "required")},
			injectors: []packagesv1.Injector{{Point: "two", Name: "south"}, {Point: "one", Name: "north"}},
			filled:    []string{"one=north", "two=south"}, has: map[string]string{"a.yaml": "region: north", "b.yaml": "region: south"}, open: true,
		},
		"next-one": {
			reason: "An injector that has no object leaves the point to the next one.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Name: "west"}, {Name: "north"}}, filled: []string{"settings=north"},
			has: map[string]string{"a.yaml": "region: north"}, open: true,
		},
		"a-spec": {
			reason: "Of all but ConfigMaps and Secrets, it is the spec.", points: map[string]string{"a.yaml": point("LimitRange", "limits", "required")},
			injectors: []packagesv1.Injector{{Kind: new("LimitRange"), Name: "limits"}}, filled: []string{"limits=limits"},
			has: map[string]string{"a.yaml": "type: Pod"}, open: true,
		},
		"ambiguous": {
			reason: "Of several objects, none is taken.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{LabelSelector: several}}, filled: []string{"settings!AmbiguousInjection"},
			has: map[string]string{"a.yaml": "region: none"}, says: []string{"settings", "2", "east", "south"},
		},
		"missing": {
			reason: "A required point holds the package.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Name: "west"}}, filled: []string{"settings!InjectionMissing"}, says: []string{"settings"},
		},
		"optional": {
			reason: "One that is not required does not.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "optional")},
			injectors: []packagesv1.Injector{{Name: "west"}}, filled: []string{"settings!InjectionMissing"},
			has: map[string]string{"a.yaml": "region: none"}, open: true,
		},
		"unknown-kind": {
			reason: "There are no objects of a kind that the API server does not know.", points: map[string]string{"a.yaml": point("Network", "lan", "required")},
			injectors: []packagesv1.Injector{{}}, filled: []string{"lan!InjectionMissing"}, says: []string{"lan"},
		},
		"secret": {
			reason: "A Secret is written to Git only by an injector that allows it.", points: map[string]string{"a.yaml": point("Secret", "login", "required")},
			injectors: []packagesv1.Injector{{Name: "hidden"}}, filled: []string{"login!InjectionForbidden"}, hasNot: secret, says: []string{"login", "Secret"},
		},
		"secret-allowed": {
			reason: "This one allows it.", points: map[string]string{"a.yaml": point("Secret", "login", "required")},
			injectors: []packagesv1.Injector{{Name: "hidden", AllowSecrets: true}}, filled: []string{"login=hidden"},
			has: map[string]string{"a.yaml": secret}, open: true,
		},
		"no-right": {
			reason: "The right that is missing is named, and who lacks it.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			account: "stranger", injectors: []packagesv1.Injector{{Name: "north"}}, filled: []string{"settings!InjectionForbidden"},
			hasNot: "north", says: []string{"settings", "may not get configmaps in namespace ", scene.namespace + ":stranger"},
		},
		"no-right-to-list": {
			reason: "To select by labels takes another right.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			account: "stranger", injectors: []packagesv1.Injector{{LabelSelector: picked}}, filled: []string{"settings!InjectionForbidden"},
			hasNot: "north", says: []string{"settings", "may not list configmaps"},
		},
		"elsewhere": {
			reason: "Another namespace is as closed as it is to the ServiceAccount.", points: map[string]string{"a.yaml": point("ConfigMap", "settings", "required")},
			injectors: []packagesv1.Injector{{Namespace: "kube-system", Name: "extension-apiserver-authentication"}}, filled: []string{"settings!InjectionForbidden"},
			says: []string{"settings", "in namespace kube-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			if test.account == "" {
				test.account = "reader"
			}
			s.release("v1", "1.0.0", test.points)
			s.begin(inject(test.account, test.injectors...), approve(packagesv1.ApprovalAlways))
			s.settle()
			if diff := cmp.Diff(test.filled, s.filled()); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
			if got := s.v.Status.Published != nil; got != test.open {
				t.Fatalf("%s It is published: %t: %s", test.reason, got, said(s.v))
			}
			file := s.open
			if test.open {
				file = s.published
			} else if !conditions.IsFalse(s.v, packagesv1.InjectedCondition) {
				t.Errorf("it is not said that a point is not filled")
			}
			for name, want := range test.has {
				s.has(file(name), want)
			}
			if test.hasNot != "" {
				s.hasNot(file("a.yaml"), test.hasNot)
			}
			s.has(conditions.GetMessage(s.v, packagesv1.InjectedCondition), test.says...)
		})
	}
}

// filled is what the status says of the points.
func (s *story) filled() (all []string) {
	for _, point := range s.v.Status.Injected {
		if point.Reason != "" {
			all = append(all, point.Point+"!"+point.Reason)
		} else {
			all = append(all, point.Point+"="+point.Name)
		}
	}
	return all
}

// TestWhoeverInjectsHasToBeNamed: without a ServiceAccount, a package with points is stalled, and one without is none of it.
func TestWhoeverInjectsHasToBeNamed(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	s.mayRead()
	s.release("v1", "1.0.0", map[string]string{"a.yaml": point("ConfigMap", "settings", "optional")})
	s.begin()
	s.settle()
	if !conditions.IsStalled(s.v) || conditions.GetReason(s.v, "Ready") != packagesv1.ServiceAccountMissingReason || s.written() != 0 {
		t.Errorf("it is not stalled: %s", said(s.v))
	}
	s.has(conditions.GetMessage(s.v, "Ready"), "serviceAccountName")
	s.edit(inject("reader"))
	s.settle()
	s.has(s.open("a.yaml"), "region: none")
}

// TestAChangeOfWhatIsInjectedIsOneUpdate, and one of the object that leaves what is injected as it was is none.
func TestAChangeOfWhatIsInjectedIsOneUpdate(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	north, south := s.regional("north", "north", "one"), s.regional("south", "south", "one")
	s.create(north)
	s.release("v1", "1.0.0", map[string]string{"a.yaml": point("ConfigMap", "settings", "required")})
	s.begin(inject("reader", packagesv1.Injector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pick": "one"}}}))
	s.settle()
	for _, step := range []struct {
		what    string
		do      func()
		updates int
		region  string
		filled  string
	}{
		{"an annotation", func() { s.ask(north, func() { north.Annotations = map[string]string{"some": "words"} }) }, 0, "north", "settings=north"},
		{"another value", func() { s.ask(north, func() { north.Data["region"] = "far north" }) }, 1, "far north", "settings=north"},
		{"one more object", func() { s.create(south) }, 1, "", "settings!AmbiguousInjection"},
		{"the first one goes", func() { s.delete(north) }, 1, "south", "settings=south"},
		{"the labels go", func() { s.ask(south, func() { south.Labels = nil }) }, 1, "", "settings!InjectionMissing"},
	} {
		before, was := s.written(), s.v.Status.Config
		step.do()
		until(s.plane, s.v, "the change is seen: "+step.what, func(v *packagesv1.PackageVariant) (bool, string) {
			return step.updates == 0 || v.Status.Config != was, said(v)
		})
		s.settle()
		if got := s.written() - before; got != step.updates {
			t.Errorf("%s made %d updates, not %d", step.what, got, step.updates)
		}
		if diff := cmp.Diff([]string{step.filled}, s.filled()); diff != "" {
			t.Errorf("after %s:\n%s", step.what, diff)
		}
		if step.region != "" {
			s.has(s.open("a.yaml"), "region: "+step.region+"\n")
		}
		if isOpen := strings.Contains(s.open("Kptfile"), "status: \"True\""); isOpen != (step.region != "") {
			t.Errorf("after %s, the gate is open: %t\n%s", step.what, isOpen, s.open("Kptfile"))
		}
	}
}

// TestAPointThatGoesTakesItsGateAlong, also where nothing ever filled it; one that is renamed waits under its new name.
func TestAPointThatGoesTakesItsGateAlong(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	foreign := kptfile + "info:\n  readinessGates:\n    - conditionType: example.com/checked\n"
	s.release("v1", "1.0.0", map[string]string{"Kptfile": foreign, "a.yaml": point("ConfigMap", "settings", "required")})
	s.begin(inject("reader", packagesv1.Injector{Name: "absent"}), approve(packagesv1.ApprovalAlways))
	s.settle()
	s.has(s.open("Kptfile"), "config.injection.ConfigMap.settings", "NoResourceSelected")
	s.release("v2", "2.0.0", map[string]string{"Kptfile": foreign, "a.yaml": point("ConfigMap", "renamed", "required")})
	s.settle()
	s.has(s.open("Kptfile"), "config.injection.ConfigMap.renamed")
	s.hasNot(s.open("Kptfile"), "config.injection.ConfigMap.settings")
	s.person(s.draft(), map[string]string{"Kptfile": s.open("Kptfile") + "    - type: example.com/checked\n      status: \"True\"\n"})
	s.release("v3", "3.0.0", map[string]string{"Kptfile": foreign, "a.yaml": strings.ReplaceAll(point("ConfigMap", "renamed", "required"), "    kpt.dev/config-injection: required\n", "    some: words\n")})
	s.settle()
	s.publish(s.v) // A person has committed to the draft, so that a person approves it.
	s.hasNot(s.published("Kptfile"), "config.injection")
	s.has(s.published("Kptfile"), "conditionType: example.com/checked", "type: example.com/checked")
	if len(s.v.Status.Injected) != 0 || conditions.Has(s.v, packagesv1.InjectedCondition) {
		t.Errorf("the status still has points: %v", s.filled())
	}
}
