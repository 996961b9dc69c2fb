package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// mostKills is how often one operation is struck before it may come to its end: where it is struck at few points, each of the others
// is struck as well.
func mostKills() int { return fewestPoints(3, 9) }

// moduleKilling is a scene whose program is killed again and again while it installs, upgrades and removes.
type moduleKilling struct {
	moduleScene
	api    *apiProxy
	front  *front
	names  []string
	struck int
	tried  int
	// uids are those of the objects that both releases have.
	uids map[string]types.UID
}

func newModuleKilling(t *testing.T) *moduleKilling {
	t.Helper()
	api, front := newAPIProxy(t), newFront(t) // They have to outlive the program.
	api.counts = func(r *http.Request) bool {
		for _, other := range []string{"/events", "/source.toolkit.fluxcd.io/", "/moduletemplates", "/modules/"} {
			if strings.Contains(r.URL.Path, other) {
				return false
			}
		}
		return true
	}
	k := &moduleKilling{moduleScene: newModuleScene(t, front.flag), api: api, front: front, names: []string{"one", "two", "three"}}
	k.kubeconfig = api.kubeconfig
	for _, version := range []string{"1.0.0", "2.0.0"} {
		k.release(version, fooFiles(version))
	}
	for _, name := range k.names {
		// Somebody has copied the label of an installation. What carries it is not removed for that.
		k.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: bystander + name, Labels: map[string]string{partOf: k.id(name)},
		}})
	}
	k.start()
	return k
}

// start runs the program, and has its artifacts found where the ones before had theirs.
func (k *moduleKilling) start() {
	k.t.Helper()
	k.moduleScene.start()
	k.front.manager.Store(k.manager)
}

// bystander begins the names of objects that only carry a label.
const bystander = "bystander-"

// TestModuleKilledAtAnyStepItConverges kills the program at many writes to the API server: before they arrive, before they
// are answered, and after that.
func TestModuleKilledAtAnyStepItConverges(t *testing.T) {
	t.Parallel()
	for half := range 2 {
		t.Run(fmt.Sprint(half), func(t *testing.T) {
			t.Parallel()
			k := newModuleKilling(t)
			k.tried = half // The two strike at other moments of the same writes.
			fewest := fewestPoints(8, 50)
			for k.struck < fewest && k.tried < 4*fewest {
				k.operate("install", func(name string) { k.install(name, byVersion("1.0.0")) }, k.isExact("1.0.0"))
				k.uids = k.kept(nil)
				k.operate("upgrade", func(name string) { k.change(name, byVersion("2.0.0")) }, k.isExact("2.0.0"))
				k.uids = k.kept(k.uids)
				k.operate("delete", k.remove, k.isGone)
			}
			if t.Logf("killed at %d points", k.struck); k.struck < fewest {
				t.Errorf("killed at %d points, want at least %d", k.struck, fewest)
			}
			for _, name := range k.names {
				if obj, err := k.configMap(t.Context(), bystander+name); err != nil || obj == nil {
					t.Errorf("what only carries the label of %s is gone: %v", name, err)
				}
			}
		})
	}
}

// operate does something to all installations, and kills the program on the way, until it is done.
func (k *moduleKilling) operate(what string, begin func(name string), done func(context.Context, string) (bool, string)) {
	k.t.Helper()
	k.arm()
	for _, name := range k.names {
		begin(name)
	}
	for range mostKills() {
		if !k.diesBefore(what, func(ctx context.Context) (bool, string) {
			for _, name := range k.names {
				if ok, seen := done(ctx, name); !ok {
					return false, name + ": " + seen
				}
			}
			return true, ""
		}) {
			break
		}
		k.manager = nil
		k.struck++
		k.api.settle()
		k.nothingIsOrphaned(what)
		k.api.onWrite(0, "", nil)
		k.start()
		k.arm()
	}
	k.api.onWrite(0, "", nil)
	select {
	case <-k.manager.Done(): // It was struck after its last write.
		k.struck++
		k.start()
	default:
	}
	for _, name := range k.names {
		k.eventually(what+" "+name, func(ctx context.Context) (bool, string) { return done(ctx, name) })
	}
}

// arm has the process killed at another write than the last time, and at another moment of it.
func (k *moduleKilling) arm() {
	k.tried++
	pid := k.manager.Pid()
	moments := []moment{beforeAnswering, afterAnswering, beforeForwarding}
	k.api.onWrite(1+(k.tried*5)%13, moments[k.tried%len(moments)], func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
}

// nothingIsOrphaned checks what the process left when it was killed: every object with the label of an installation is
// in its inventory, so that somebody still knows of it.
func (k *moduleKilling) nothingIsOrphaned(what string) {
	k.t.Helper()
	for _, name := range k.names {
		inventory, err := k.inventory(k.t.Context(), name)
		if err != nil {
			k.t.Fatal(err)
		}
		live, err := k.members(k.t.Context(), name)
		if err != nil {
			k.t.Fatal(err)
		}
		known := map[string]bool{}
		if inventory != nil {
			for _, m := range inventory.Data.Members {
				known[m.Kind+"/"+m.Name] = true
			}
		}
		for _, object := range live {
			if !known[object] {
				k.t.Errorf("killed during %s: %s of %s is in no inventory: %s", what, object, name, asJSON(inventory))
			}
		}
	}
}

// members are the objects with the label, without the bystander.
func (k *moduleKilling) members(ctx context.Context, name string) ([]string, error) {
	live, err := k.labelled(ctx, k.id(name))
	return slices.DeleteFunc(live, func(object string) bool { return object == "ConfigMap/"+bystander+name }), err
}

// isExact says that the version is installed, and that the inventory, the objects with the label and the release are
// the same.
func (k *moduleKilling) isExact(version string) func(context.Context, string) (bool, string) {
	return func(ctx context.Context, name string) (bool, string) {
		obj := &modulesv1.ModuleInstallation{}
		if err := env.Client.Get(ctx, k.key(name), obj); err != nil {
			return false, err.Error()
		}
		if !isInstalled(obj, version) || !conditions.IsTrue(obj, modulesv1.UpToDateCondition) {
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
		want := fooMembers(name, version)
		slices.Sort(want)
		ok := slices.Equal(recorded(inventory), want) && slices.Equal(live, want) && inventory.Data.Attempt == nil
		return ok, fmt.Sprintf("inventory %s\nlabelled %q\nwanted %q", asJSON(inventory), live, want)
	}
}

// isGone says that nothing of the installation is left.
func (k *moduleKilling) isGone(ctx context.Context, name string) (bool, string) {
	obj := &modulesv1.ModuleInstallation{}
	if err := env.Client.Get(ctx, k.key(name), obj); !apierrors.IsNotFound(err) {
		return false, fmt.Sprint(asJSON(obj.Status), err)
	}
	inventory, err := k.inventory(ctx, name)
	if err != nil || inventory != nil {
		return false, fmt.Sprint(asJSON(inventory), err)
	}
	live, err := k.members(ctx, name)
	return err == nil && len(live) == 0, fmt.Sprint(live, err)
}

// kept are the UIDs of the settings, which both releases have. They are the same objects as before.
func (k *moduleKilling) kept(before map[string]types.UID) map[string]types.UID {
	k.t.Helper()
	found := map[string]types.UID{}
	for _, name := range k.names {
		obj, err := k.configMap(k.t.Context(), "settings-"+name)
		if err != nil || obj == nil {
			k.t.Fatalf("settings of %s: %v", name, err)
		}
		found[name] = obj.UID
		if was := before[name]; was != "" && was != obj.UID {
			k.t.Errorf("the settings of %s were removed and made again by an upgrade", name)
		}
	}
	return found
}
