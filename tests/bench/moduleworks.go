package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// round measures all work with one installation once, and removes it.
func (f *fleet) round(ctx context.Context, round int, samples map[string]*costs) error {
	namespace := ours(round)
	works := []struct {
		name string
		do   func() (wall time.Duration, err error)
		// manifests is what kubectl applies for the same end; nothing when it has no such work.
		manifests string
	}{
		{install, func() (time.Duration, error) {
			return timed(func() error { return f.install(ctx, namespace, "big", "1.0.0") },
				func() error { return f.installed(ctx, "1.0.0", namespace) })
		}, "1.0.0"},
		{oneOfAll, func() (time.Duration, error) {
			return timed(func() error { return f.change(ctx, namespace, `{"spec":{"module":{"version":"1.0.1"}}}`) },
				func() error { return f.installed(ctx, "1.0.1", namespace) })
		}, "1.0.1"},
		{edited, func() (time.Duration, error) { return f.edit(ctx, namespace) }, ""},
		{deleted, func() (time.Duration, error) { return f.remove(ctx, namespace) }, ""},
		{restarted, func() (time.Duration, error) { return 0, f.restart() }, ""},
		{removal, func() (time.Duration, error) { return f.uninstall(ctx, namespace) }, ""},
	}
	for _, work := range works {
		measured, err := f.spent(ctx, work.do)
		if err != nil {
			return fmt.Errorf("%s: %w", work.name, err)
		}
		all := samples[work.name]
		all.ours = append(all.ours, measured)
		if work.manifests == "" {
			continue
		}
		if measured, err = f.apply(ctx, theirs(round), work.manifests); err != nil {
			return fmt.Errorf("%s: %w", work.name, err)
		}
		all.theirs = append(all.theirs, measured)
	}
	again, err := f.apply(ctx, theirs(round), "1.0.1")
	samples[unchanged].theirs = append(samples[unchanged].theirs, again)
	return err
}

// timed is how long it takes from the end of the order until it is done.
func timed(order, done func() error) (time.Duration, error) {
	if err := order(); err != nil {
		return 0, err
	}
	began := time.Now()
	err := done()
	return time.Since(began), err
}

// edit changes an object as somebody else, and waits until it is as published again.
func (f *fleet) edit(ctx context.Context, namespace string) (time.Duration, error) {
	obj := &corev1.ConfigMap{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "app-5"}, obj); err != nil {
		return 0, err
	}
	want := obj.Data["version"]
	return timed(func() error {
		return f.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"data":{"version":"drifted"}}`)))
	}, func() error {
		return follow(ctx, f, &corev1.ConfigMapList{}, func(now *corev1.ConfigMap) bool {
			return now.Name == obj.Name && now.Data["version"] == want && now.ResourceVersion != obj.ResourceVersion
		}, client.InNamespace(namespace))
	})
}

// remove deletes an object as somebody else, and waits until it is there again.
func (f *fleet) remove(ctx context.Context, namespace string) (time.Duration, error) {
	obj := &corev1.ConfigMap{}
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "app-5"}, obj); err != nil {
		return 0, err
	}
	return timed(func() error { return f.client.Delete(ctx, obj) }, func() error {
		return follow(ctx, f, &corev1.ConfigMapList{}, func(now *corev1.ConfigMap) bool {
			return now.Name == obj.Name && now.UID != obj.UID
		}, client.InNamespace(namespace))
	})
}

// uninstall deletes the installation, and waits until it is gone.
func (f *fleet) uninstall(ctx context.Context, namespace string) (time.Duration, error) {
	obj := &modulesv1.ModuleInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installation}}
	return timed(func() error { return f.client.Delete(ctx, obj) }, func() error { return f.gone(ctx, namespace) })
}

// manifests writes down what kubectl applies.
func (f *fleet) manifests(version string, objects int) error {
	folder := filepath.Join(f.dir, version)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for name, content := range releaseFiles(objects, version) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// apply is the command line's way: all objects, whether or not they have changed.
func (f *fleet) apply(ctx context.Context, namespace, version string) (cost, error) {
	start, err := f.mark(kubectlUser)
	if err != nil {
		return cost{}, err
	}
	cmd := exec.CommandContext(ctx, f.kubectl, "--kubeconfig", f.kubeconfigs[kubectlUser], "--namespace", namespace,
		"apply", "--server-side", "-f", filepath.Join(f.dir, version))
	cmd.Env = append(os.Environ(), "HOME="+f.dir)
	used, err := measure(cmd)
	if err != nil {
		return cost{}, err
	}
	asked, err := f.since(start)
	return cost{tally: asked, cpu: used.cpu, wall: used.wall}, err
}
