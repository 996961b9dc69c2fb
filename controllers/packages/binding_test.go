package packages_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// marked is an object of the package with a binding point in each of its fields, which are named like them.
func marked(fields ...string) map[string]string {
	text := "apiVersion: x.example/v1\nkind: Site\nmetadata:\n  name: site\nspec:\n"
	for _, field := range fields {
		name, _, _ := strings.Cut(field, ":")
		text += "  " + field + " # packages.sluice.dev/bind: " + name + "\n"
	}
	return map[string]string{"a.yaml": text}
}

// fromMap binds the points called region to what a ConfigMap says.
func fromMap(object, path string) packagesv1.Binding {
	return packagesv1.Binding{BindingTarget: packagesv1.BindingTarget{Name: "region", Path: path}, From: packagesv1.BindingSource{
		Object: &packagesv1.BindingObject{APIVersion: "v1", Kind: "ConfigMap", Name: object},
	}}
}

// says binds the points of the name to a text.
func says(point, text string) packagesv1.Binding {
	return packagesv1.Binding{BindingTarget: packagesv1.BindingTarget{Name: point}, From: packagesv1.BindingSource{Literal: packagesv1.TextLiteral(text)}}
}

// binds is a spec with bindings, whose objects are read as the ServiceAccount.
func binds(account string, all ...packagesv1.Binding) func(*packagesv1.PackageVariantSpec) {
	return func(spec *packagesv1.PackageVariantSpec) { spec.ServiceAccountName, spec.Bindings = account, all }
}

// bound is what the status says of the points, and of bindings without any.
func (s *story) bound() (all []string) {
	for _, b := range s.v.Status.Bindings {
		if b.Reason != "" {
			all = append(all, b.Name+"!"+b.Reason)
		} else {
			all = append(all, b.Name+"="+b.From)
		}
	}
	return all
}

// TestWhatIsBound is what the variant's ServiceAccount may read and the point can take. Anything else says why, where and what to do,
// and holds the package if the point is required.
func TestWhatIsBound(t *testing.T) {
	t.Parallel()
	scene := injecting(t)
	scene.create(
		scene.regional("site", "north", "one"), scene.regional("east", "east", "several"), scene.regional("west", "west", "several"), scene.regional("cluster", "home"),
		&corev1.ConfigMap{ObjectMeta: scene.meta("huge"), Data: map[string]string{"region": strings.Repeat("x", 256<<10)}},
		&corev1.Secret{ObjectMeta: scene.meta("hidden"), Data: map[string][]byte{"password": []byte("swordfish")}},
	)
	const secret = "c3dvcmRmaXNo" // The password, as a manifest has it.
	change := func(b packagesv1.Binding, change func(*packagesv1.Binding)) packagesv1.Binding {
		change(&b)
		return b
	}
	ofSecret := change(fromMap("hidden", "data.password"), func(b *packagesv1.Binding) { b.From.Object.Kind = "Secret" })
	labelled := func(label string) packagesv1.Binding {
		return change(fromMap("", "data.region"), func(b *packagesv1.Binding) {
			b.From.Object.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pick": label}}
		})
	}
	within := func(point, name, path string) packagesv1.Binding {
		return packagesv1.Binding{
			BindingTarget: packagesv1.BindingTarget{Name: point, Path: path},
			From:          packagesv1.BindingSource{PackageObject: &packagesv1.PackageObject{Kind: "Site", Name: name}},
		}
	}
	for name, test := range map[string]struct {
		reason   string
		fields   []string
		account  string
		bindings []packagesv1.Binding
		// bound is what the status says in order, has what the file has, and says are words of the condition.
		bound []string
		has   []string
		says  []string
		open  bool
	}{
		"object": {
			reason: "A field of an object of the cluster.", bindings: []packagesv1.Binding{fromMap("site", "data.region")},
			bound: []string{"region=data.region of ConfigMap NS/site"}, has: []string{"region: north #"}, open: true,
		},
		"own-name": {
			reason: "Without name and labels, the object is called as the downstream Repository.", bindings: []packagesv1.Binding{fromMap("", "data.region")},
			bound: []string{"region=data.region of ConfigMap NS/cluster"}, has: []string{"region: home #"}, open: true,
		},
		"labels": {
			reason: "The one object of the labels.", bindings: []packagesv1.Binding{labelled("one")},
			bound: []string{"region=data.region of ConfigMap NS/site"}, has: []string{"region: north #"}, open: true,
		},
		"whole": {
			reason: "Without a path, it is all data.", fields: []string{"region: {}"}, bindings: []packagesv1.Binding{fromMap("site", "")},
			bound: []string{"region=ConfigMap NS/site"}, has: []string{"region: north"}, open: true,
		},
		"literal": {
			reason: "A value of the spec needs no ServiceAccount.", account: "-", bindings: []packagesv1.Binding{says("region", "gold")},
			bound: []string{"region=the spec"}, has: []string{"region: gold #"}, open: true,
		},
		"context": {
			reason: "A key of the context.", account: "-",
			bindings: []packagesv1.Binding{change(says("region", ""), func(b *packagesv1.Binding) { b.From = packagesv1.BindingSource{PackageContext: "tier"} })},
			bound:    []string{"region=data.[tier] of the package's context"}, has: []string{"region: bronze #"}, open: true,
		},
		"package": {
			reason: "What is read in the package holds what is bound to it.", account: "-", fields: []string{"region: none", "again: none"},
			bindings: []packagesv1.Binding{within("again", "site", "spec.region"), says("region", "gold")},
			bound:    []string{"again=spec.region of Site site of the package", "region=the spec"}, has: []string{"region: gold #", "again: gold #"}, open: true,
		},
		"type": {
			reason: "A text that says a number is one where that is asked for.", fields: []string{"region: 1"}, account: "-",
			bindings: []packagesv1.Binding{change(says("region", "3"), func(b *packagesv1.Binding) { b.Type = packagesv1.IntegerBinding })},
			bound:    []string{"region=the spec"}, has: []string{"region: 3 #"}, open: true,
		},
		"no-binding": {
			reason: "A point for which there is no binding holds the package.", bound: []string{"region!BindingMissing"}, has: []string{"region: none #"},
			says: []string{"region", "spec.bindings"},
		},
		"wrong-type": {
			reason: "A text is no number.", fields: []string{"region: 1", "again: none"}, account: "-", bindings: []packagesv1.Binding{says("again", "gold"), says("region", "many")},
			bound: []string{"again=the spec", "region!BindingInvalid"}, has: []string{"region: 1 #", "again: gold #"},
			says: []string{"spec.region of", "in a.yaml: it takes an integer, and the spec is a string", "set the binding's type"},
		},
		"no-object": {
			reason: "An object that is not there is named.", bindings: []packagesv1.Binding{fromMap("moon", "data.region")},
			bound: []string{"region!InjectionMissing"}, has: []string{"region: none #"}, says: []string{"region (there is no ConfigMap moon"},
		},
		"several": {
			reason: "Of several objects, none is taken.", bindings: []packagesv1.Binding{labelled("several")},
			bound: []string{"region!AmbiguousInjection"}, has: []string{"region: none #"}, says: []string{"2", "east", "west"},
		},
		"no-path": {
			reason: "A path that leads nowhere is named, and in what it does.", bindings: []packagesv1.Binding{fromMap("site", "data.zone")},
			bound: []string{"region!PathMissing"}, has: []string{"region: none #"}, says: []string{"data.zone of ConfigMap NS/site", "leads nowhere"},
		},
		"huge": {
			reason: "A value has a limit.", bindings: []packagesv1.Binding{fromMap("huge", "data.region")},
			bound: []string{"region!BindingInvalid"}, has: []string{"region: none #"}, says: []string{"data.region of ConfigMap NS/huge", "at most 262144", "choose a part"},
		},
		"secret": {
			reason: "A Secret is not read unless that is meant.", bindings: []packagesv1.Binding{ofSecret},
			bound: []string{"region!InjectionForbidden"}, has: []string{"region: none #"}, says: []string{"is a Secret; set allowSecrets"},
		},
		"secret-allowed": {
			reason: "Here it is.", bindings: []packagesv1.Binding{change(ofSecret, func(b *packagesv1.Binding) { b.AllowSecrets = true })},
			bound: []string{"region=data.password of Secret NS/hidden"}, has: []string{"region: " + secret + " #"}, open: true,
		},
		"no-right": {
			reason: "What the ServiceAccount may not read is not read.", account: "stranger", bindings: []packagesv1.Binding{fromMap("site", "data.region")},
			bound: []string{"region!InjectionForbidden"}, has: []string{"region: none #"}, says: []string{"may not get configmaps", "NS:stranger"},
		},
		"elsewhere": {
			reason: "And nothing of another namespace.",
			bindings: []packagesv1.Binding{change(fromMap("extension-apiserver-authentication", "data"), func(b *packagesv1.Binding) {
				b.From.Object.Namespace = "kube-system"
			})},
			bound: []string{"region!InjectionForbidden"}, has: []string{"region: none #"}, says: []string{"in namespace kube-system"},
		},
		"no-point": {
			reason: "A binding whose name no point has is told, and holds nothing.", account: "-", bindings: []packagesv1.Binding{says("region", "gold"), says("regoin", "gold")},
			bound: []string{"region=the spec", "regoin!NoPoint"}, has: []string{"region: gold #"}, says: []string{"the package has no point of these bindings: regoin"}, open: true,
		},
		"cycle": {
			reason: "Bindings that wait for each other are named, and others go on.", account: "-", fields: []string{"region: none", "again: none", "far: none"},
			bindings: []packagesv1.Binding{within("again", "site", "spec.far"), within("far", "site", "spec.again"), says("region", "gold")},
			bound:    []string{"again!BindingInvalid", "far!BindingInvalid", "region=the spec"}, has: []string{"again: none #", "far: none #", "region: gold #"},
			says: []string{"again -> far -> again", "let one of them read something else"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			local := strings.NewReplacer("NS", s.namespace)
			switch test.account {
			case "":
				test.account = "reader"
			case "-":
				test.account = ""
			}
			if test.fields == nil {
				test.fields = []string{"region: none"}
			}
			s.release("v1", "1.0.0", marked(test.fields...))
			s.begin(binds(test.account, test.bindings...), approve(packagesv1.ApprovalAlways), func(spec *packagesv1.PackageVariantSpec) {
				spec.PackageContext = &packagesv1.PackageContext{Data: map[string]string{"tier": "bronze"}}
			})
			s.settle()
			for i := range test.bound {
				test.bound[i] = local.Replace(test.bound[i])
			}
			if diff := cmp.Diff(test.bound, s.bound()); diff != "" {
				t.Errorf("%s\n%s", test.reason, diff)
			}
			if got := s.v.Status.Published != nil; got != test.open {
				t.Fatalf("%s It is published: %t: %s", test.reason, got, said(s.v))
			}
			file := s.open
			if test.open {
				file = s.published
			}
			s.has(file("a.yaml"), test.has...)
			if conditions.IsTrue(s.v, packagesv1.InjectedCondition) != test.open {
				t.Errorf("whether points are filled is not told: %s", said(s.v))
			}
			for _, words := range test.says {
				s.has(conditions.GetMessage(s.v, packagesv1.InjectedCondition), local.Replace(words))
			}
		})
	}
}

// TestAChangeOfWhatIsBoundIsOneUpdate, and one of the object that leaves what is bound as it was is none.
func TestAChangeOfWhatIsBoundIsOneUpdate(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	north := s.regional("site", "north")
	s.create(north)
	s.release("v1", "1.0.0", marked("region: none"))
	s.begin(binds("reader", fromMap("site", "data.region")))
	s.settle()
	for _, step := range []struct {
		what    string
		do      func()
		updates int
		region  string
		bound   string
	}{
		{"another key", func() { s.ask(north, func() { north.Data["zone"] = "a" }) }, 0, "north", "region=data.region of ConfigMap " + s.namespace + "/site"},
		{"another value", func() { s.ask(north, func() { north.Data["region"] = "south" }) }, 1, "south", "region=data.region of ConfigMap " + s.namespace + "/site"},
		{"the key goes", func() { s.ask(north, func() { delete(north.Data, "region") }) }, 1, "none", "region!PathMissing"},
		{"it comes back", func() { s.ask(north, func() { north.Data["region"] = "west" }) }, 1, "west", "region=data.region of ConfigMap " + s.namespace + "/site"},
		{"the object goes", func() { s.delete(north) }, 1, "none", "region!InjectionMissing"},
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
		if diff := cmp.Diff([]string{step.bound}, s.bound()); diff != "" {
			t.Errorf("after %s:\n%s", step.what, diff)
		}
		s.has(s.open("a.yaml"), "region: "+step.region+" #")
	}
}

// whole is an object of the package that is a binding point of its name; content is what it holds.
func whole(version, kind, name, content string) string {
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  annotations:\n    packages.sluice.dev/bind: " + name + "\n" + content
}

// TestPointsOfOneKindHoldObjectsOfTheirOwn: two ConfigMaps of the package are bound to two of the cluster, beside a Secret and an object
// of a kind of somebody's own. What is bound changes with those objects, and goes and comes back with them.
func TestPointsOfOneKindHoldObjectsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	made := func(mark string) []client.Object {
		return []client.Object{
			s.regional("site", mark), s.regional("tier", mark+"2"),
			&corev1.Secret{ObjectMeta: s.meta("hidden"), Data: map[string][]byte{"password": []byte(mark)}},
			&corev1.LimitRange{ObjectMeta: s.meta("limits"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			}}}},
		}
	}
	objects := made("north")
	s.create(objects...)
	files := map[string]string{
		"one.yaml": whole("v1", "ConfigMap", "one", "data:\n  kept: none\n"), "two.yaml": whole("v1", "ConfigMap", "two", ""),
		"login.yaml": whole("v1", "Secret", "login", "type: Opaque\n"), "site.yaml": whole("x.example/v1", "Site", "site", "spec:\n  kept: none\n"),
	}
	to := func(point, kind, object string) packagesv1.Binding {
		return packagesv1.Binding{
			BindingTarget: packagesv1.BindingTarget{Name: point, AllowSecrets: kind == "Secret"},
			From:          packagesv1.BindingSource{Object: &packagesv1.BindingObject{APIVersion: "v1", Kind: kind, Name: object}},
		}
	}
	bindings := []packagesv1.Binding{to("one", "ConfigMap", "site"), to("two", "ConfigMap", "tier"), to("login", "Secret", "hidden"), to("site", "LimitRange", "limits")}
	filled := func(mark, base64 string) map[string]string {
		return map[string]string{
			"one.yaml": whole("v1", "ConfigMap", "one", "data:\n  region: "+mark+"\n"), "two.yaml": whole("v1", "ConfigMap", "two", "data:\n  region: "+mark+"2\n"),
			"login.yaml": whole("v1", "Secret", "login", "type: Opaque\ndata:\n  password: "+base64+"\n"),
			"site.yaml":  whole("x.example/v1", "Site", "site", "spec:\n  limits:\n  - max:\n      cpu: \"1\"\n    type: Pod\n"),
		}
	}
	s.release("v1", "1.0.0", files)
	s.begin(binds("reader", bindings...))
	s.settle()
	for _, step := range []struct {
		what string
		do   func()
		want map[string]string
		// bound is what the status says of each point.
		bound []string
	}{
		{"they are bound", nil, filled("north", "bm9ydGg="), []string{
			"login=Secret NS/hidden", "one=ConfigMap NS/site", "site=LimitRange NS/limits", "two=ConfigMap NS/tier",
		}},
		{"they change", func() {
			for i, next := range made("south") {
				next.SetResourceVersion(objects[i].GetResourceVersion())
				if err := env.Client.Update(t.Context(), next); err != nil {
					t.Fatal(err)
				}
			}
		}, filled("south", "c291dGg="), []string{
			"login=Secret NS/hidden", "one=ConfigMap NS/site", "site=LimitRange NS/limits", "two=ConfigMap NS/tier",
		}},
		{"they go", func() {
			for _, object := range objects {
				s.delete(object)
			}
		}, files, []string{"login!InjectionMissing", "one!InjectionMissing", "site!InjectionMissing", "two!InjectionMissing"}},
		{"they come back", func() { s.create(made("west")...) }, filled("west", "d2VzdA=="), []string{
			"login=Secret NS/hidden", "one=ConfigMap NS/site", "site=LimitRange NS/limits", "two=ConfigMap NS/tier",
		}},
		{"the bindings go", func() { s.edit(binds("reader")) }, files, []string{"login!BindingMissing", "one!BindingMissing", "site!BindingMissing", "two!BindingMissing"}},
	} {
		for i := range step.bound {
			step.bound[i] = strings.ReplaceAll(step.bound[i], "NS", s.namespace)
		}
		if step.do != nil {
			step.do()
		}
		until(s.plane, s.v, step.what, func(v *packagesv1.PackageVariant) (bool, string) {
			if diff := cmp.Diff(step.bound, s.bound()); diff != "" || v.Status.Change == nil {
				return false, diff + said(v)
			}
			for name, want := range step.want {
				if diff := cmp.Diff(want, s.open(name)); diff != "" {
					return false, name + "\n" + diff
				}
			}
			return true, ""
		})
	}
}

// example is the block of YAML of the page that has the words.
func example(t *testing.T, page, words string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, words) {
			return block
		}
	}
	t.Fatalf("no example of %s has %q", page, words)
	return ""
}

// TestTheExampleOfBindingsIsTrue: what the page shows is made as it stands there.
func TestTheExampleOfBindingsIsTrue(t *testing.T) {
	t.Parallel()
	scene := injecting(t)
	berlin := scene.repository("berlin")
	berlin.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	scene.create(
		&corev1.ConfigMap{ObjectMeta: scene.meta("site"), Data: map[string]string{"replicas": "3"}},
		&corev1.ConfigMap{ObjectMeta: scene.meta("web-settings"), Data: map[string]string{"theme": "dark"}},
	)
	s := scene.story(t, "web")
	s.release("v3", "1.0.0", map[string]string{"deployment.yaml": example(t, "packagevariant.md", "packages.sluice.dev/bind: replicas")})
	s.v = &packagesv1.PackageVariant{}
	if err := yaml.UnmarshalStrict([]byte(example(t, "packagevariant.md", "name: web-berlin")), s.v); err != nil {
		t.Fatal(err)
	}
	s.v.Namespace, s.v.Spec.ServiceAccountName = s.namespace, "reader"
	s.create(s.v)
	s.settle()
	want := []string{
		"class=the spec", "home=metadata.namespace of Service web of the package", "replicas=data.replicas of ConfigMap " + s.namespace + "/site",
		"settings=ConfigMap " + s.namespace + "/web-settings", "zone=data.[zone] of the package's context",
	}
	if diff := cmp.Diff(want, s.bound()); diff != "" || !conditions.IsReady(s.v) || s.v.Status.Change == nil {
		t.Fatalf("%s\n%s", said(s.v), diff)
	}
	s.has(berlin.Tree(s.v.Status.Change.Commit)["web/deployment.yaml"].Content,
		"replicas: 3 #", "priorityClassName: gold #", "zone: eu-central-1a #", "value: shop #", "data:\n  theme: dark\n")
}

// TestOneNameMoreThanAStatusLists is not listed, and holds the package all the same.
func TestOneNameMoreThanAStatusLists(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	var fields []string
	var bindings []packagesv1.Binding
	for i := range packagesv1.MaxBindings + 1 {
		name := fmt.Sprintf("p%02d", i)
		fields, bindings = append(fields, name+": none"), append(bindings, says(name, "gold"))
	}
	s.release("v1", "1.0.0", marked(fields...))
	s.begin(binds("", bindings[:packagesv1.MaxBindings]...))
	s.settle()
	if got := len(s.v.Status.Bindings); got != packagesv1.MaxBindings {
		t.Errorf("%d names are listed", got)
	}
	last := fmt.Sprintf("p%02d", packagesv1.MaxBindings)
	if !conditions.IsFalse(s.v, packagesv1.InjectedCondition) {
		t.Errorf("the point that is not filled does not hold the package: %s", said(s.v))
	}
	s.has(conditions.GetMessage(s.v, packagesv1.InjectedCondition), last+" (no binding has the name")
	s.has(s.open("a.yaml"), "p00: gold #", last+": none #")
}

// TestABindingThatCannotBeIsToldAtOnce: it is named with what to do, and the variant goes on once that is done. In a dry run, the
// status says what would be bound, and nothing is written.
func TestABindingThatCannotBeIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := injecting(t).story(t, "app")
	s.release("v1", "1.0.0", marked("region: none"))
	dry := func(spec *packagesv1.PackageVariantSpec) { spec.DryRun = true }
	noPairs := fromMap("", "data.region")
	noPairs.From.Object.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	s.begin(dry, binds("", says("region", strings.Repeat("x", 16<<10))))
	for _, step := range []struct {
		change func(*packagesv1.PackageVariantSpec)
		reason string
		says   []string
	}{
		{nil, packagesv1.InvalidSpecReason, []string{"spec.bindings[0] (region)", "16386 bytes; at most 16384", "put it into a ConfigMap"}},
		{binds("reader", fromMap("site", "data.[region")), packagesv1.InvalidSpecReason, []string{"spec.bindings[0] (region)", "a bracket is not closed"}},
		{binds("", fromMap("site", "data.region")), packagesv1.ServiceAccountMissingReason, []string{"spec.serviceAccountName"}},
		{binds("reader", noPairs), packagesv1.InvalidSpecReason, []string{"the binding region: from.object.labelSelector", "Near"}},
	} {
		if step.change != nil {
			s.edit(step.change)
		}
		s.settle()
		if !conditions.IsStalled(s.v) || conditions.GetReason(s.v, "Ready") != step.reason {
			t.Errorf("it is not stalled with %s: %s", step.reason, said(s.v))
		}
		s.has(conditions.GetMessage(s.v, "Ready"), step.says...)
	}
	number := says("region", "gold")
	number.Type = packagesv1.NumberBinding
	for want, b := range map[string]packagesv1.Binding{"region!BindingInvalid": number, "region=the spec": says("region", "gold")} {
		s.edit(binds("", b))
		s.settle()
		if diff := cmp.Diff([]string{want}, s.bound()); diff != "" || s.v.Status.Preview == nil || s.written() != 0 {
			t.Errorf("the dry run: %s\n%s", said(s.v), diff)
		}
	}
}
