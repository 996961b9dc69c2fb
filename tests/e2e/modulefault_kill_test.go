package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// giving is a killing of a program that prunes, hands over and lets go.
type giving struct {
	*moduleKilling
	// ids are those of the objects that nobody ever deletes.
	ids map[string]types.UID
}

// givenFiles is a release with a shared object, and some that a config may drop.
func givenFiles() map[string]string {
	files := map[string]string{"settings.yaml": settings("settings", "3.0.0"), "shared.yaml": strings.Replace(settings("shared", "3.0.0"), "-${instance}", "", 1)}
	for i := range 5 {
		files[fmt.Sprintf("extra-%d.yaml", i)] = settings(fmt.Sprintf("extra-%d", i), "3.0.0")
	}
	return files
}

func givenMembers(instance string, extras bool) []string {
	members := []string{"ConfigMap/settings-" + instance}
	for i := 0; extras && i < 5; i++ {
		members = append(members, fmt.Sprintf("ConfigMap/extra-%d-%s", i, instance))
	}
	return members
}

// without drops the objects whose names match from the release.
func without(names ...string) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Config.Patches = nil
		for _, name := range names {
			spec.Config.Patches = append(spec.Config.Patches, modulesv1.Patch{
				Patch:  "$patch: delete\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: any}\n",
				Target: &modulesv1.PatchTarget{Kind: "ConfigMap", Name: name},
			})
		}
	}
}

func pruning(enabled bool) installChange {
	return func(spec *modulesv1.ModuleInstallationSpec) { spec.Prune = &modulesv1.PrunePolicy{Enabled: &enabled} }
}

// TestModuleKilledWhileItGivesUpObjects kills the program again and again while it prunes, while an object goes from
// one installation to another, and while it lets go of everything.
func TestModuleKilledWhileItGivesUpObjects(t *testing.T) {
	t.Parallel()
	k := &giving{moduleKilling: newModuleKilling(t)}
	k.names = []string{"one", "two"}
	k.release("3.0.0", givenFiles())
	const shared, extras = "shared", "extra-.*"
	fewest := fewestPoints(5, 24)
	for k.struck < fewest && k.tried < 4*fewest {
		k.install("one", byVersion("3.0.0"), without())
		k.install("two", byVersion("3.0.0"), without(shared))
		k.become("one", append(givenMembers("one", true), "ConfigMap/shared")...)
		k.become("two", givenMembers("two", true)...)
		k.meet()

		k.operate("prune", func(name string) {
			k.change(name, without(append([]string{extras}, map[string][]string{"two": {shared}}[name]...)...), pruning(true))
		}, k.has(map[string][]string{"one": {"ConfigMap/settings-one", "ConfigMap/shared"}, "two": {"ConfigMap/settings-two"}}))
		k.same("prune", "settings-one", "settings-two", "shared")

		// The first one does not need the object any more, and leaves it; the second one takes it.
		k.operate("hand over", func(name string) {
			k.change(name, without(append([]string{extras}, map[string][]string{"one": {shared}}[name]...)...), pruning(false))
		}, k.has(map[string][]string{"one": {"ConfigMap/settings-one", "ConfigMap/shared"}, "two": {"ConfigMap/settings-two", "ConfigMap/shared"}}, "two"))
		k.same("hand over", "settings-one", "settings-two", "shared")
		k.operate("clear", func(name string) { k.change(name, pruning(true)) },
			k.has(map[string][]string{"one": {"ConfigMap/settings-one"}, "two": {"ConfigMap/settings-two", "ConfigMap/shared"}}))
		k.same("clear", "settings-one", "settings-two", "shared")
		k.sharedIsOnlyOf("two")

		k.operate("let go", func(name string) {
			k.change(name, func(spec *modulesv1.ModuleInstallationSpec) {
				spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
			})
			k.remove(name)
		}, k.isGone)
		k.same("let go", "settings-one", "settings-two", "shared")
		k.bare("settings-one", "settings-two", "shared")
	}
	if t.Logf("killed at %d points", k.struck); k.struck < fewest {
		t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
	}
}

// become waits until an installation has the members, without any kill.
func (k *giving) become(name string, members ...string) {
	k.t.Helper()
	k.eventually("install "+name, func(ctx context.Context) (bool, string) {
		return k.has(map[string][]string{name: members})(ctx, name)
	})
}

// has says that the inventory lists exactly these members, and exactly they carry the label; but for the shared object,
// which carries only its holder's.
func (k *giving) has(want map[string][]string, holder ...string) func(context.Context, string) (bool, string) {
	return func(ctx context.Context, name string) (bool, string) {
		obj := &modulesv1.ModuleInstallation{}
		if err := env.Client.Get(ctx, k.key(name), obj); err != nil {
			return false, err.Error()
		}
		if !isInstalled(obj, "3.0.0") || !conditions.IsTrue(obj, modulesv1.UpToDateCondition) {
			return false, asJSON(obj.Status)
		}
		inventory, err := k.inventory(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		live, err := k.members(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		listed := slices.Sorted(slices.Values(want[name]))
		labelled := slices.DeleteFunc(slices.Clone(listed), func(object string) bool {
			return object == "ConfigMap/shared" && len(holder) > 0 && !slices.Contains(holder, name)
		})
		ok := slices.Equal(recorded(inventory), listed) && slices.Equal(live, labelled) && inventory.Data.Attempt == nil
		return ok, fmt.Sprintf("inventory %s\nlabelled %q\nwanted %q", asJSON(inventory), live, listed)
	}
}

// meet remembers the objects that are never to be deleted.
func (k *giving) meet() {
	k.t.Helper()
	k.ids = map[string]types.UID{}
	for _, name := range []string{"settings-one", "settings-two", "shared"} {
		obj, err := k.configMap(k.t.Context(), name)
		if err != nil || obj == nil {
			k.t.Fatalf("%s: %v", name, err)
		}
		k.ids[name] = obj.UID
	}
}

// same checks that the objects are those that were met.
func (k *giving) same(what string, names ...string) {
	k.t.Helper()
	for _, name := range names {
		obj, err := k.configMap(k.t.Context(), name)
		if err != nil || obj == nil || obj.UID != k.ids[name] || versionIn(obj) != "3.0.0" {
			k.t.Errorf("%s: %s is not the object that it was: %s, %v", what, name, asJSON(obj), err)
		}
	}
}

// bare checks that none of the labels is left on the objects, and removes them.
func (k *giving) bare(names ...string) {
	k.t.Helper()
	for _, name := range names {
		obj, err := k.configMap(k.t.Context(), name)
		if err != nil || obj == nil {
			k.t.Fatalf("%s: %v", name, err)
		}
		if len(obj.Labels) > 0 {
			k.t.Errorf("%s was let go of, and has the labels %v", name, obj.Labels)
		}
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}}
		if err := env.Client.Delete(k.t.Context(), config); err != nil && !apierrors.IsNotFound(err) {
			k.t.Fatal(err)
		}
	}
}
