package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

// What becomes of an object, in the words of the table.
const (
	fateDeleted = "deleted"
	fateLetGo   = "let go"
	fateHeld    = "held"
	fateRefused = "refused"
	fateHanded  = "handed over"
	fateKept    = "kept"
)

// subject is an object of a row of the table, which a cell's release has.
type subject struct {
	// manifest has NAME, SPACE for the installation's namespace, GROUP for a group that only the cell has, and VALUE or
	// SCOPE in a field that cannot be changed. Each release has another VALUE.
	manifest string
	// scopes are what SCOPE is in the first release and the next one: Namespaced when empty.
	scopes [2]string
	// first is there before the release, and brings is in it beside the manifest.
	first, brings string
	// then is what a user makes when it is there.
	then string
	// users says that then is what the row is about, and not the release's object.
	users bool
	// manages has GROUP's kind be one of the release's managedResources.
	manages bool
	// home says that the object is the installation's own Namespace, which it has for itself.
	home bool
}

const namespaceManifest = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: NAME\n"

const claimManifest = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: NAME\nspec:\n" +
	"  accessModes: [ReadWriteOnce]\n  storageClassName: VALUE\n  volumeName: NAME\n  resources: {requests: {storage: 1Gi}}\n"

const volumeManifest = "apiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: NAME\nspec:\n" +
	"  accessModes: [ReadWriteOnce]\n  storageClassName: VALUE\n  capacity: {storage: 1Gi}\n  persistentVolumeReclaimPolicy: Retain\n  hostPath: {path: /VALUE}\n"

const definitionManifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.GROUP
spec:
  group: GROUP
  scope: SCOPE
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {owner: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: owner is immutable}]}}}}}}}
`

const widgetManifest = "apiVersion: GROUP/v1\nkind: Widget\nmetadata:\n  name: NAME\n  namespace: SPACE\nspec:\n  owner: VALUE\n"

const statefulManifest = `apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: NAME
spec:
  replicas: 0
  serviceName: VALUE
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: foo}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const configManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\nimmutable: true\ndata:\n  key: VALUE\n"

// subjects are the rows of the table.
func subjects() map[string][]subject {
	kept := strings.Replace(configManifest, "metadata:\n", "metadata:\n  annotations: {modules.sluice.dev/prune: disabled}\n", 1)
	foreign := strings.Replace(configManifest, "metadata:\n", "metadata:\n  namespace: NAME\n", 1)
	scopes := [2]string{"Namespaced", "Cluster"}
	return map[string][]subject{
		"any other object":                        {{manifest: configManifest}},
		"PersistentVolumeClaim, PersistentVolume": {{manifest: claimManifest, first: volumeManifest}, {manifest: volumeManifest}},
		"Namespace with nothing foreign in it":    {{manifest: namespaceManifest}},
		"Namespace with anything else in it":      {{manifest: namespaceManifest, then: foreign}},
		"the installation's own Namespace":        {{manifest: strings.Replace(namespaceManifest, "NAME", "SPACE", 1), home: true}},
		"CRD without objects":                     {{manifest: definitionManifest, scopes: scopes}},
		"CRD with objects":                        {{manifest: definitionManifest, scopes: scopes, then: widgetManifest}},
		"StatefulSet whose claims go with it":     {{manifest: statefulManifest}},
		"object of managedResources":              {{manifest: widgetManifest, brings: definitionManifest, manages: true}},
		"object with an annotation that keeps it": {{manifest: kept}},
		"users' data: objects that are no members": {
			{manifest: definitionManifest, scopes: scopes, then: widgetManifest, users: true, manages: true},
		},
	}
}

// cell is one place of the table: an installation of its own, that does one thing to one object.
type cell struct {
	moduleScene
	subject
	number int
}

func (c cell) name() string { return fmt.Sprintf("cell-%d", c.number) }

// fill puts the names and values of a release in a manifest, which are those of the first one or the next.
func (c cell) fill(manifest string, release int) string {
	value, scope := []string{"one", "two"}[release], "Namespaced"
	if c.scopes[release] != "" {
		scope = c.scopes[release]
	}
	return strings.NewReplacer("SCOPE", scope, "NAME", c.namespace+"-"+c.name(), "SPACE", c.namespace, "GROUP", c.name()+"."+c.namespace+".example.com", "VALUE", value).Replace(manifest)
}

// parse makes objects of a manifest.
func (c cell) parse(manifest string) []*unstructured.Unstructured {
	c.t.Helper()
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq(c.fill(manifest, 0), "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			c.t.Fatal(err)
		}
		if object.Object == nil {
			continue
		}
		namespaced, err := env.Client.IsObjectNamespaced(object)
		if (err != nil || namespaced) && object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
		objects = append(objects, object)
	}
	return objects
}

// publishes a release of the cell that holds the manifests.
func (c cell) publishes(patch int, manifests ...string) {
	c.t.Helper()
	files := map[string]string{"settings.yaml": settings("settings", fmt.Sprint(patch))}
	for i, manifest := range manifests {
		if manifest != "" {
			files[fmt.Sprintf("%d.yaml", i)] = c.fill(manifest, patch)
		}
	}
	c.release(c.version(patch), files, func(spec *modulesv1.ModuleTemplateSpec) {
		if c.manages {
			spec.ManagedResources = []modulesv1.ManagedResource{{GroupVersionKind: modulesv1.GroupVersionKind{Group: c.fill("GROUP", 0), Version: "v1", Kind: "Widget"}}}
		}
	})
}

func (c cell) version(patch int) string { return fmt.Sprintf("1.%d.%d", c.number, patch) }

// isThere installs the first release, makes what is made then, and returns the object that the row is about.
func (c cell) isThere() *unstructured.Unstructured {
	c.t.Helper()
	c.install(c.name(), byVersion(c.version(0)))
	c.ready(c.name(), c.version(0))
	about := c.parse(c.manifest)[0]
	for _, object := range c.parse(c.then) {
		c.make(object)
		if c.users {
			about = object
		}
	}
	live := c.live(c.t.Context(), about)
	if live == nil {
		c.t.Fatal("the object was not made")
	}
	return live
}

// live is an object as it is now; nil is none.
func (c cell) live(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	c.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrors.IsNotFound(err) || kmeta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return live
}

// became waits until nothing is going any more, and says what became of the object. One that is made anew was deleted.
func (c cell) became(before *unstructured.Unstructured) (fate string) {
	c.t.Helper()
	c.eventually("what goes is gone", func(ctx context.Context) (bool, string) {
		live := c.live(ctx, before)
		switch {
		case live == nil || live.GetUID() != before.GetUID():
			fate = fateDeleted
		case live.GetLabels()[partOf] == c.id(c.name()):
			fate = fateHeld
		case live.GetLabels()[partOf] != "":
			fate = fateHanded
		case c.users:
			fate = fateKept
		default:
			fate = fateLetGo
		}
		return live == nil || live.GetDeletionTimestamp() == nil, asJSON(live)
	})
	return fate
}

// uninstalls removes the installation in a mode, and says whether that is blocked.
func (c cell) uninstalls(mode modulesv1.DeletionMode) (blocked bool) {
	c.t.Helper()
	c.change(c.name(), func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Deletion = &modulesv1.InstallationDeletion{Mode: mode}
	})
	c.remove(c.name())
	c.eventually("the uninstall has come to its end", func(ctx context.Context) (bool, string) {
		obj := &modulesv1.ModuleInstallation{}
		err := env.Client.Get(ctx, c.key(c.name()), obj)
		blocked = err == nil && conditions.IsTrue(obj, modulesv1.DeletionBlockedCondition)
		return blocked || apierrors.IsNotFound(err), asJSON(obj.Status)
	})
	return blocked
}

// settles waits until the installation has the version, or says what keeps it from that.
func (c cell) settles(version string) {
	c.t.Helper()
	c.until(c.name(), "it is at "+version+", or held", func(obj *modulesv1.ModuleInstallation) bool {
		upToDate := conditions.Get(obj, modulesv1.UpToDateCondition)
		if upToDate == nil || upToDate.ObservedGeneration != obj.Generation {
			return false
		}
		held := []string{modulesv1.PruneBlockedReason, modulesv1.ImmutableFieldReason}
		return slices.Contains(held, upToDate.Reason) || isInstalled(obj, version) && upToDate.Status == metav1.ConditionTrue
	})
}

// operations are the columns of the table: each does what its heading says, and returns what became of the object.
func operations() map[string]func(cell) string {
	return map[string]func(cell) string{
		"Dropped by a release": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			c.publishes(1)
			before := c.isThere()
			c.change(c.name(), byVersion(c.version(1)))
			c.settles(c.version(1))
			return c.became(before)
		},
		"Config edit": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			before := c.isThere()
			c.change(c.name(), c.dropping)
			c.settles(c.version(0))
			return c.became(before)
		},
		"Uninstall, Block": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			before := c.isThere()
			if c.uninstalls(modulesv1.DeletionBlock) && c.users {
				return fateHeld
			}
			return c.became(before)
		},
		"Uninstall, Orphan": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			before := c.isThere()
			c.uninstalls(modulesv1.DeletionOrphan)
			return c.became(before)
		},
		"Recreate (force)": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			c.publishes(1, c.brings, c.manifest)
			before := c.isThere()
			c.change(c.name(), byVersion(c.version(1)), forced)
			c.settles(c.version(1))
			if fate := c.became(before); fate != fateHeld {
				return fate
			}
			return fateRefused
		},
		"Hand-over": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			c.publishes(1)
			before := c.isThere()
			other := c.name() + "-other"
			c.install(other, byVersion(c.version(0)))
			c.failing(other, modulesv1.AppliedCondition, modulesv1.OwnershipConflictReason, "")
			c.change(c.name(), byVersion(c.version(1)))
			c.ready(c.name(), c.version(1))
			c.ready(other, c.version(0))
			return c.became(before)
		},
		"Adopted": func(c cell) string {
			c.publishes(0, c.brings, c.manifest)
			for _, object := range c.parse(c.brings + "---\n" + c.manifest) {
				// Of a kind that has just been defined, objects can be made a little later.
				c.eventually("it can be made", func(ctx context.Context) (bool, string) {
					err := env.Client.Create(ctx, object)
					return client.IgnoreAlreadyExists(err) == nil, fmt.Sprint(err)
				})
			}
			before := c.isThere()
			c.uninstalls(modulesv1.DeletionBlock)
			return c.became(before)
		},
	}
}

// dropping is a config without the object.
func (c cell) dropping(spec *modulesv1.ModuleInstallationSpec) {
	object := c.parse(c.manifest)[0]
	spec.Config.Patches = []modulesv1.Patch{{
		Target: &modulesv1.PatchTarget{Kind: object.GetKind(), Name: object.GetName()},
		Patch:  fmt.Sprintf("$patch: delete\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", object.GetAPIVersion(), object.GetKind(), object.GetName()),
	}}
}

// TestTheTableOfFates does in a cluster what each cell of the table in docs/moduleinstallation.md is about, and holds what
// becomes of the object against what the cell says.
func TestTheTableOfFates(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	rows, columns := subjects(), operations()
	number := 0
	table := fates(t)
	for _, row := range table.Rows {
		name := strings.ReplaceAll(row[0], "`", "")
		if rows[name] == nil {
			t.Errorf("no test knows the row %q", name)
		}
		for _, about := range rows[name] {
			for i, want := range row[1:] {
				operation := strings.ReplaceAll(table.Header[i+1], "`", "")
				do := columns[operation]
				if do == nil {
					t.Fatalf("no test knows the column %q", operation)
				}
				number++
				c := cell{moduleScene: s, subject: about, number: number}
				t.Run(name+"/"+operation, func(t *testing.T) {
					t.Parallel()
					if want == "" {
						t.Skip("the table says nothing of it")
					}
					if want == fateRefused && strings.Contains(c.manifest, "kind: Namespace\n") {
						t.Skip("no field of a Namespace is immutable, so that nothing asks for another one")
					}
					c.in(t).holds(do, want)
				})
			}
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("the table has no row %q", name)
	}
}

// in is the cell in a test of its own.
func (c cell) in(t *testing.T) cell {
	t.Helper()
	if c.home {
		c.moduleScene = newRunningModules(t)
		return c
	}
	c.scene = c.scene.in(t)
	return c
}

// holds does the operation, and compares what becomes of the object with the cell.
func (c cell) holds(do func(cell) string, want string) {
	c.t.Helper()
	for _, object := range c.parse(c.first) {
		c.make(object)
	}
	if got := do(c); got != want {
		c.t.Errorf("it is %s, and the table says %q", got, want)
	}
}

// fates is the table.
func fates(t *testing.T) docs.Table {
	t.Helper()
	pages, err := docs.Pages(testenv.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if page.Path != "docs/moduleinstallation.md" {
			continue
		}
		for _, table := range page.Tables() {
			if slices.Contains(table.Header, "Dropped by a release") {
				return table
			}
		}
	}
	t.Fatal("docs/moduleinstallation.md has no table of what becomes of objects")
	return docs.Table{}
}
