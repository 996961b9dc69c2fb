package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/engine/build"
)

// contentOf is a file with the content of a release, as the program serves it.
func (s moduleScene) contentOf(template string) string {
	s.t.Helper()
	var made modulesv1.ModuleTemplate
	if err := env.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.system, Name: template}, &made); err != nil || made.Status.SourceRef == nil {
		s.t.Fatal(err, asJSON(made.Status))
	}
	var source sourcev1.OCIRepository
	if err := env.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.system, Name: made.Status.SourceRef.Name}, &source); err != nil {
		s.t.Fatal(err)
	}
	place := filepath.Join(s.t.TempDir(), "content.tar.gz")
	if err := os.WriteFile(place, s.download(source.Status.Artifact), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return place
}

// rendered says that the objects of a text are those that an installation has applied, to the byte.
func (s moduleScene) rendered(name, text string) {
	s.t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.TrimPrefix(text[strings.Index(text, "---\n"):], "---\n"), "---\n") {
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			s.t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			s.t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	var record modulesv1.Inventory
	if err := env.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &record); err != nil {
		s.t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(record.Data.Salt+build.RenderDigest(objects)))); got != record.Data.RenderDigest {
		s.t.Errorf("%d objects of digest %s were built, and %s was applied: %s", len(objects), got, record.Data.RenderDigest, text)
	}
}

// secretOf is a manifest of a Secret.
func secretOf(name, value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {password: " + value + "}\n"
}

// TestPlanIsTheControllers: what a person is shown is what waits for the approval, and what follows from it. No value of a Secret
// is shown, be it one of the release, one of the cluster, or one that stands in another object by substitution.
func TestPlanIsTheControllers(t *testing.T) {
	t.Parallel()
	const canary, newer, substituted = "canary-of-the-release", "canary-of-the-next", "canary-of-substitution"
	s := newRunningModules(t)
	s.secret("values", map[string]string{"token": substituted})
	held := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held}\ndata: {plain: %, token: 'x ${token}'}\n"
	s.release("1.0.0", map[string]string{
		"settings.yaml": settings("settings", "1.0.0"), "old.yaml": settings("old", "1.0.0"), "secret.yaml": secretOf("key", canary),
		"held.yaml": strings.Replace(held, "%", "one", 1), "same.yaml": settings("same", "1.0.0"),
	})
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
		spec.Config.SubstituteFrom = []modulesv1.SubstituteReference{{Kind: modulesv1.SubstituteFromSecret, Name: "values"}}
	})
	s.ready("app", "1.0.0")
	derived := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: derived}\ndata: {upper: '${token^^}', part: 'x${token:0:17}', 'other': '${token/canary/bird}'}\n"
	s.release("2.0.0", map[string]string{
		"settings.yaml": settings("settings", "2.0.0"), "new.yaml": settings("new", "2.0.0"), "derived.yaml": derived, "secret.yaml": secretOf("key", newer),
		"held.yaml": strings.Replace(held, "%", "two", 1), "same.yaml": settings("same", "1.0.0"),
	})
	obj := s.until("app", "a plan waits", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil
	})
	content := s.contentOf("foo-2.0.0")
	digest := obj.Status.Pending.Plan.Digest
	told := s.sluice(1, "plan", "app", "--artifact", content)
	s.saying(told,
		s.namespace+"/app  1.0.0 → 2.0.0\n", "+ ConfigMap "+s.namespace+"/new-app\n", "- ConfigMap "+s.namespace+"/old-app\n",
		"~ ConfigMap "+s.namespace+"/settings-app\n", `"1.0.0" → "2.0.0"`, `data.plain  "one" → "two"`,
		"~ Secret "+s.namespace+"/key\n    data.password  changed, value hidden\n",
		"2 created, 3 changed, 1 removed, 1 unchanged\n6 confirmed by the API server, 0 predicted\n", "plan "+digest+", the one that waits for approval\n",
	)
	all := told + s.sluice(1, "plan", "app", "--artifact", content, "-o", "json") + s.sluice(1, "plan", "app", "--artifact", content, "--evidence", "none") +
		s.sluice(1, "plan", "app", "--artifact", content, "--detail", "yaml")
	secrets := []string{canary, newer, substituted, strings.ToUpper(substituted), substituted[:17], substituted[len("canary"):]}
	for _, secret := range secrets {
		if strings.Contains(all, secret) {
			t.Errorf("%s is shown: %s", secret, all)
		}
	}
	s.saying(s.sluice(2, "plan", "app", "--artifact", s.contentOf("foo-1.0.0")), "does not have the announced digest")
	s.saying(s.sluice(2, "plan", "app"), "names no Service of the cluster")
	s.saying(s.sluice(1, "plan", "app", "--from-upstream", "--egress-allow-loopback"), `"1.0.0" → "2.0.0"`, "plan "+digest+", the one that waits for approval\n")
	s.saying(s.sluice(2, "plan", "app", "--from-upstream"), "make the content of the release from upstream: ")
	s.saying(s.sluice(3, "approve", "app", "--artifact", content), "--digest")
	s.saying(s.sluice(1, "approve", "app", "--digest", "sha256:0"), "the plan that waits is "+digest)
	s.saying(s.sluice(0, "approve", "app", "--yes", "--artifact", content), "Approved "+digest)
	s.ready("app", "2.0.0")
	if made := s.sluice(0, "build", "mi/app", "--artifact", content); slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(made, secret) }) {
		t.Errorf("a Secret is shown: %s", made)
	}
	s.rendered("app", s.sluice(0, "build", "mi/app", "--artifact", content, "--show-secrets"))
	planner := "planner-in-" + s.namespace
	s.saying(s.sluice(0, "plan", "app", "--artifact", content, "--as", planner, "--as-group", "system:masters"), "6 unchanged")
	requests, err := env.Requests("admin")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, r := range requests {
		if r.Impersonated() == planner {
			asked[r.Object.Resource]++
		}
	}
	// The one Secret holds the variables.
	if asked["inventories"] != 1 || asked["configmaps"] > 0 || asked["secrets"] != 1 {
		t.Errorf("what is unchanged was asked for: %v", asked)
	}
	s.saying(s.sluice(1, "approve", "app", "--yes"), "no plan waits")
}

// TestPlansBeforeWhatFollows: impact and resume show what would change, object by object, before anything does.
func TestPlansBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.template("1.0.0", "regular", s.publish("1.0.0", map[string]string{"settings.yaml": settings("settings", "1.0.0")}))
	s.template("2.0.0", "fast", s.publish("2.0.0", map[string]string{"settings.yaml": settings("settings", "2.0.0")}))
	s.install("app", byChannel("regular"))
	s.ready("app", "1.0.0")
	s.untilTemplate("foo-2.0.0-fast", "it has a source", func(obj *modulesv1.ModuleTemplate) bool { return obj.Status.SourceRef != nil })
	file := filepath.Join(t.TempDir(), "edited.yaml")
	var edited strings.Builder
	for name, channel := range map[string]string{"foo-1.0.0-regular": "old", "foo-2.0.0-fast": "regular"} {
		obj := s.templateNamed(name)
		obj.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleTemplateKind))
		obj.ManagedFields, obj.Spec.Channel = nil, channel
		edited.WriteString(asJSON(obj) + "\n---\n")
	}
	if err := os.WriteFile(file, []byte(edited.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	way, change := s.namespace+"/app  1.0.0 → 2.0.0\n", "~ ConfigMap "+s.namespace+"/settings-app\n"
	upstream := []string{"--plan", "--from-upstream", "--egress-allow-loopback"}
	s.saying(s.sluice(1, append([]string{"impact", "-f", file}, upstream...)...), "upgrades at once\n", "1 upgrade at once", way, change, "1 changed")
	s.saying(s.sluice(2, "impact", "--plan", "-f", file), "upgrades at once\n", "names no Service of the cluster")
	s.saying(s.sluice(3, "impact", "--from-upstream", "-f", file), "--from-upstream is for plans, and none is asked for")

	s.saying(s.sluice(0, "suspend", "app"), "suspended")
	s.change("app", byChannel("fast"))
	s.saying(s.sluice(3, "resume", "app", "--plan"), "nobody can be asked")
	s.saying(s.sluice(2, "resume", "app", "--plan", "--yes"), "names no Service of the cluster")
	if !s.get("app").Spec.Suspend {
		t.Error("it is resumed without its plan")
	}
	asked := "Resume ModuleInstallation " + s.namespace + "/app? [y/N] "
	resume := append([]string{"resume", "app"}, upstream...)
	s.atTerminal(1, asked, "n", s.command(resume...))
	if !s.get("app").Spec.Suspend {
		t.Error("it is resumed though nobody has said yes")
	}
	s.saying(strings.ReplaceAll(s.atTerminal(0, asked, "yes", s.command(resume...)), "\r\n", "\n"), way, change, "resumed")
	s.ready("app", "2.0.0")
}

// TestPlanByReadersAlone: who may read, and write nothing, gets a plan that says what it could not try; without the Inventory it has no
// digest.
func TestPlanByReadersAlone(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{"settings.yaml": settings("settings", "1.0.0"), "old.yaml": settings("old", "1.0.0")})
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
	})
	s.ready("app", "1.0.0")
	s.release("2.0.0", map[string]string{"settings.yaml": settings("settings", "2.0.0")})
	s.until("app", "a plan waits", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil
	})
	s.people()
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader-in-" + s.namespace}
	s.bindHere(user, "sluice-view")
	s.bindHere(user, "view")
	s.make(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.system, Name: "reader"}, Subjects: []rbacv1.Subject{user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sluice-view"},
	})
	content := s.contentOf("foo-2.0.0")
	told := s.sluice(1, "plan", "app", "--artifact", content, "--as", user.Name)
	s.saying(told, "- ConfigMap "+s.namespace+"/old-app", "~ ConfigMap "+s.namespace+"/settings-app", "0 confirmed by the API server, 2 predicted, 2 of these from what is there",
		"may not patch configmaps", "data.",
		"no digest, as the Inventory may not be read")
	s.saying(s.sluice(1, "plan", "app", "--artifact", content, "--as", user.Name, "--evidence", "server"), "blocked by Forbidden: ")
	s.saying(s.sluice(1, "plan", "app", "--artifact", content, "--as-installation"), "as ServiceAccount "+s.namespace+"/"+deployer, "2 confirmed by the API server")
}
