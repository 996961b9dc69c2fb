package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

const (
	// catalogue is the namespace of all templates.
	catalogue = "catalogue"
	// deployer is the ServiceAccount in each namespace as which its installation works.
	deployer = "deployer"
	// installation is the name of each.
	installation = "app"
)

// memberKinds are the kinds of a release's objects, as formats that take a number and a version. Each is healthy by
// being there.
func memberKinds() []string {
	return []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app-%[1]d}\ndata:\n  version: %[2]q\n  text: " + strings.Repeat("x", 400) + "\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: app-%[1]d, annotations: {version: %[2]q}}\ndata:\n  key: " + strings.Repeat("QUFB", 32) + "\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app-%[1]d, annotations: {version: %[2]q}}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: app-%[1]d, annotations: {version: %[2]q}}\n" +
			"rules:\n  - {apiGroups: [\"\"], resources: [configmaps, secrets], verbs: [get, list, watch]}\n",
		"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: app-%[1]d, annotations: {version: %[2]q}}\n" +
			"spec:\n  podSelector: {matchLabels: {app: app-%[1]d}}\n  policyTypes: [Ingress]\n",
	}
}

// releaseFiles are so many objects, in equal parts of each kind. Only the first one tells the version.
func releaseFiles(objects int, version string) map[string]string {
	files, kinds := map[string]string{}, memberKinds()
	for i := range objects {
		kind, says := i%len(kinds), "all"
		if i == 0 {
			says = version
		}
		files[fmt.Sprintf("kind-%d.yaml", kind)] += fmt.Sprintf(kinds[kind], i, says) + "---\n"
	}
	return files
}

// publish pushes a release, and makes its template.
func (f *fleet) publish(ctx context.Context, module, version string, objects int) error {
	pushed, err := f.registry.Repository("modules/"+module).PushFlux(ctx, version, releaseFiles(objects, version), nil)
	if err != nil {
		return err
	}
	return f.client.Create(ctx, &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogue, Name: module + "-" + version},
		Spec: modulesv1.ModuleTemplateSpec{
			ModuleName: module, Version: version,
			Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
				Repository: f.registry.URL("modules/" + module), Digest: pushed.Digest.String(), Tag: version, Insecure: true,
			}},
		},
	})
}

// tenant makes a namespace with an account that may do everything in it.
func (f *fleet) tenant(ctx context.Context, namespace string) error {
	for _, obj := range []client.Object{
		testenv.Namespace(namespace),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployer}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployer},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: deployer}},
		},
	} {
		if err := f.client.Create(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// install makes the installation of a namespace. It is looked at every 10 minutes, as by default.
func (f *fleet) install(ctx context.Context, namespace, module, version string) error {
	return f.client.Create(ctx, &modulesv1.ModuleInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installation},
		Spec: modulesv1.ModuleInstallationSpec{
			Module: modulesv1.ModuleRequest{Name: module, Version: version}, ServiceAccountName: deployer,
		},
	})
}

// change edits the spec of an installation.
func (f *fleet) change(ctx context.Context, namespace, patch string) error {
	obj := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installation}}
	return f.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
}
