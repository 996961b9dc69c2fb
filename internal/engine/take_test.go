package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
)

var services = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// TestWhoElseManages: an object that is there already is taken over only if nobody else manages it, or spec.adopt says so.
func TestWhoElseManages(t *testing.T) {
	t.Parallel()
	const refused, taken = false, true
	for name, tc := range map[string]struct {
		metadata                 string
		manager                  string
		ifUnowned, never, always bool
		want                     string
	}{
		"Nobody":       {manager: "somebody", ifUnowned: taken, never: refused, always: taken, want: "was there before"},
		"Helm":         {metadata: "labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: prod}", manager: "helm", always: taken, want: "Helm release prod/web"},
		"HelmNote":     {metadata: "annotations: {meta.helm.sh/release-name: web}", manager: "helm", always: taken, want: "Helm release web"},
		"Flux":         {metadata: "labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}", manager: "kustomize-controller", always: taken, want: "Kustomization flux-system/apps"},
		"FluxHelm":     {metadata: "labels: {helm.toolkit.fluxcd.io/name: apps}", manager: "helm-controller", always: taken, want: "HelmRelease apps"},
		"Argo":         {metadata: "annotations: {'argocd.argoproj.io/tracking-id': 'apps:/ConfigMap:prod/a'}", manager: "argocd-controller", always: taken, want: "Application apps"},
		"ArgoByLabel":  {metadata: "labels: {app.kubernetes.io/instance: apps}", manager: "argocd-controller", always: taken, want: "Application apps"},
		"InstanceOnly": {metadata: "labels: {app.kubernetes.io/instance: apps}", manager: "somebody", ifUnowned: taken, always: taken, want: "was there before"},
		"Controller":   {metadata: "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true}]", manager: "somebody", always: taken, want: "Deployment web"},
		"Owner":        {metadata: "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u}]", manager: "somebody", ifUnowned: taken, always: taken, want: "was there before"},
	} {
		for policy, want := range map[modulesv1.AdoptPolicy]bool{
			"": tc.ifUnowned, modulesv1.AdoptIfUnowned: tc.ifUnowned, modulesv1.AdoptNever: tc.never, modulesv1.AdoptAlways: tc.always,
		} {
			t.Run(name+string(policy), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				theirs := &unstructured.Unstructured{}
				check(t, yaml.Unmarshal(fmt.Appendf(nil, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, %s}, data: {key: theirs}}", r.namespace, tc.metadata), &theirs.Object))
				check(t, env.Client.Create(t.Context(), theirs, client.FieldOwner(tc.manager)))
				r.in.Spec.Adopt = policy
				r.in.Target = r.target("1.0.0", configMapFiles("a", "ours"))
				if want {
					r.settle("it is installed", settled)
					if !member(r, "a").Adopted {
						t.Error("nothing tells that it was there before")
					}
					return
				}
				text := tc.want
				if policy == modulesv1.AdoptNever {
					text = "spec.adopt is Never"
				}
				r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, text)
				if diff := cmp.Diff(theirs.Object, r.get(configMaps, "a").Object); diff != "" {
					t.Errorf("it was touched:\n%s", diff)
				}
			})
		}
	}
}

// TestInstallingCostsOneCallEach: that an object is not there is found out by the apply that makes it; the
// one list is the watch's.
func TestInstallingCostsOneCallEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := map[string]string{}
	for i := range 30 {
		name := fmt.Sprintf("cm-%02d", i)
		files[name+".yaml"] = configMap(name, "1")
	}
	r.in.Target = r.target("1.0.0", files)
	made := r.calls(func() { r.settle("it is installed", settled) })
	if diff := cmp.Diff(map[string]int{"apply": 30, "list": 1}, made); diff != "" {
		t.Error(diff)
	}
}

// TestSomebodyElsesInItsPlace: what a member's name stands for after somebody deleted it, and made something else that is
// managed elsewhere, is not overwritten.
func TestSomebodyElsesInItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("it is installed", settled)
	r.synced()
	check(t, env.Client.Delete(t.Context(), r.get(configMaps, "a")))
	r.byHand("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/managed-by: Helm}}, data: {key: theirs}}")
	eventually(t, "it is refused", func() bool {
		_, err := r.engine.Reconcile(t.Context(), r.in)
		return err != nil
	})
	r.fails(engine.StageApply, modulesv1.OwnershipConflictReason, "Helm")
	if got := r.get(configMaps, "a").Object["data"]; !cmp.Equal(got, map[string]any{"key": "theirs"}) {
		t.Errorf("data: %v", got)
	}
}

// TestFormerManagersAreInherited: a field that the release does not have goes, whoever had set it: kubectl's apply, Helm,
// or an earlier life of the installation.
func TestFormerManagersAreInherited(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*rig, *unstructured.Unstructured){
		"KubectlApply": func(r *rig, o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
			check(r.t, env.Client.Create(r.t.Context(), o, client.FieldOwner("kubectl-client-side-apply")))
		},
		"KubectlServerSide": func(r *rig, o *unstructured.Unstructured) {
			check(r.t, env.Client.Apply(r.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl")))
		},
		"Helm": func(r *rig, o *unstructured.Unstructured) {
			check(r.t, env.Client.Create(r.t.Context(), o, client.FieldOwner("helm")))
		},
		"EarlierLife": func(r *rig, _ *unstructured.Unstructured) {
			first := r.sibling("redis")
			first.in.UID = "uid-of-an-earlier-life-in-" + r.namespace
			first.in.Target = first.target("1.0.0", map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: old, dropped: old}\n"})
			first.settle("it is installed", settled)
			check(r.t, r.client.Delete(r.t.Context(), first.inventory()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			before(r, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": r.namespace},
				"data": map[string]any{"key": "old", "dropped": "old"},
			}})
			r.in.Target = r.target("2.0.0", configMapFiles("a", "new"))
			r.settle("it is installed", settled)
			live := r.get(configMaps, "a")
			if diff := cmp.Diff(map[string]any{"key": "new"}, live.Object["data"]); diff != "" {
				t.Error(diff)
			}
			if len(live.GetAnnotations()) > 0 {
				t.Errorf("annotations: %v", live.GetAnnotations())
			}
			r.synced()
			if made := r.calls(func() { r.round() }); len(made) > 0 {
				t.Errorf("a steady member costs %v", made)
			}
		})
	}
}

// TestEditedListIsHealed: an edit of an item in a list is undone, whether the merge of both would be refused or not, and
// whoever made it where it would be. One of the reads is for its health.
func TestEditedListIsHealed(t *testing.T) {
	t.Parallel()
	const rename = `{"spec":{"$setElementOrder/ports":[{"port":81}],"ports":[{"name":%q,"port":81,"protocol":"TCP","targetPort":80},{"$patch":"delete","port":80}]}}`
	for name, tc := range map[string]struct {
		manager, edit string
		want          map[string]int
	}{
		"RefusedMerge":   {manager: "kubectl-edit", edit: fmt.Sprintf(rename, "http"), want: map[string]int{"apply": 2, "get": 2, "patch": 1}},
		"ByAnotherTool":  {manager: "a-dashboard", edit: fmt.Sprintf(rename, "http"), want: map[string]int{"apply": 2, "get": 2, "patch": 1}},
		"QuietMerge":     {manager: "kubectl-edit", edit: fmt.Sprintf(rename, "web"), want: map[string]int{"apply": 2, "get": 1, "patch": 1}},
		"ScalarInAnItem": {manager: "kubectl-edit", edit: `{"spec":{"ports":[{"port":80,"name":"web"}]}}`, want: map[string]int{"apply": 2, "get": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.in.Target = r.target("1.0.0", map[string]string{
				"s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{name: http, port: 80}]}\n",
			})
			r.settle("it is installed", settled)
			r.synced()
			want := r.get(services, "s").Object["spec"]
			check(t, env.Client.Patch(t.Context(), r.get(services, "s"), client.RawPatch(types.StrategicMergePatchType, []byte(tc.edit)), client.FieldOwner(tc.manager)))
			made := r.calls(func() { r.settle("it is healed", func(out engine.Outcome) bool { return healed(out) == 1 }) })
			if diff := cmp.Diff(want, r.get(services, "s").Object["spec"]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, made); diff != "" {
				t.Error(diff)
			}
		})
	}
}
