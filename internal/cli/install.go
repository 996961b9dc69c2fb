package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kustomize "sigs.k8s.io/kustomize/api/types"
)

// installer is one call of install.
type installer struct {
	*base

	bundle  bundle
	export  bool
	force   bool
	noWait  bool
	waiting waiting
}

func installCommand(b *base) *cobra.Command {
	i := &installer{base: b}
	command := &cobra.Command{
		Use:   "install",
		Short: "Apply the manifests of this version, and wait until the controllers run",
		Example: `  sluice install --image registry.example.com/sluice:1.0.0
  sluice install --export --image registry.example.com/sluice:1.0.0 > sluice.yaml
  sluice install --controllers source --image registry.example.com/sluice:1.0.0
  sluice install --with-ui --image registry.example.com/sluice:1.0.0`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	flags.StringVar(&i.bundle.image, "image", "", "Image of the controllers, as NAME:TAG or NAME@DIGEST.")
	flags.StringVar(&i.bundle.controllers, "controllers", "all", "What to install: all, or source for the source plane alone.")
	flags.StringVar(&i.bundle.namespace, "system-namespace", "", "Namespace of the controllers. Empty: "+defaultSystem+".")
	flags.BoolVar(&i.bundle.ui, "with-ui", false, "Install the web UI too, which starts once its certificate is there.")
	flags.BoolVar(&i.export, "export", false, "Print the manifests, and ask no API server.")
	flags.BoolVar(&i.force, "force-conflicts", false, "Take over fields that others have set.")
	flags.BoolVar(&i.noWait, "no-wait", false, "End once all is applied.")
	i.waiting.bind(command)
	command.MarkFlagsMutuallyExclusive("no-wait", timeoutFlag)
	return b.onUnless(&i.export, command, i.run)
}

func (i *installer) run(ctx context.Context, _ []string) error {
	if i.bundle.image == "" && !i.export {
		return usage("no image is named", "the manifests of themselves name none that a registry has: say it with --image")
	}
	if i.export {
		built, err := i.bundle.build()
		if err != nil {
			return err
		}
		text, err := built.AsYaml()
		if err != nil {
			return fmt.Errorf("write the manifests: %w", err)
		}
		_, err = i.Out.Write(text)
		return unprinted(err)
	}
	objects, err := i.bundle.objects()
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if obj.GetKind() == "Deployment" && obj.GetName() == uiDeployment && !i.force {
			if err := i.keepArguments(ctx, obj); err != nil {
				return err
			}
		}
		if err := i.apply(ctx, obj); err != nil {
			return err
		}
	}
	fmt.Fprintf(i.ErrOut, "Applied %d objects.\n", len(objects))
	if i.bundle.ui {
		fmt.Fprintf(i.ErrOut, "The web UI is not waited for: it starts once Secret %s/%s has its certificate, and is reached as its argument --host says.\n", objects[len(objects)-1].GetNamespace(), uiCertificate)
	}
	if i.noWait {
		return nil
	}
	return i.wait(ctx, objects)
}

// apply applies one object. All of them may be applied again, from wherever it stopped.
func (i *installer) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	what := "apply " + refOf(obj).String()
	raw, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	options := []client.PatchOption{manager}
	if i.force {
		options = append(options, client.ForceOwnership)
	}
	err = i.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.ApplyPatchType, raw), options...)
	switch {
	case apierrors.IsConflict(err):
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"--force-conflicts takes the fields over; what was applied before stays, and is applied again then"}}
	case err != nil:
		return explain(what, err, "cluster-admin")
	}
	fmt.Fprintln(i.Out, refOf(obj))
	return nil
}

// keepArguments leaves the arguments of the web UI as they are: its name is patched there.
func (i *installer) keepArguments(ctx context.Context, obj *unstructured.Unstructured) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	err := i.Get(ctx, client.ObjectKeyFromObject(obj), there)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return explain("read "+refOf(obj).String(), err, "cluster-admin")
	}
	path := []string{"spec", "template", "spec", "containers"}
	now, _, _ := unstructured.NestedSlice(there.Object, path...)
	next, _, _ := unstructured.NestedSlice(obj.Object, path...)
	if len(now) == 0 || len(next) == 0 {
		return nil
	}
	was, _ := now[0].(map[string]any)
	is, _ := next[0].(map[string]any)
	if was["name"] != is["name"] {
		return nil
	}
	is["args"] = was["args"]
	return unstructured.SetNestedSlice(obj.Object, next, path...) //nolint:wrapcheck // It is of JSON.
}

// uiDeployment is that of the web UI, and uiCertificate the one of its certificate.
const (
	uiDeployment  = "sluice-ui"
	uiCertificate = "sluice-ui-tls"
)

// wait waits until the controllers run as they are to.
func (i *installer) wait(ctx context.Context, objects []*unstructured.Unstructured) error {
	var targets []*target
	for _, obj := range objects {
		if obj.GetKind() == "Deployment" && obj.GetName() != uiDeployment {
			targets = append(targets, newTarget(kind{GroupVersionKind: obj.GroupVersionKind(), resource: "deployments"}, obj.GetNamespace(), obj.GetName()))
		}
	}
	inTime, stop, err := i.waiting.within(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return addHelp(i.waiting.on(i.base, runs).await(inTime, targets), "sluice check says what is missing")
}

// runs says whether a Deployment has come to what its spec asks for.
func runs(t *target) (verdict, string) {
	var now appsv1.Deployment
	if t.obj == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(t.obj.Object, &now) != nil {
		return pending, "it is not there"
	}
	status := fmt.Sprintf("%d of %d ready", now.Status.ReadyReplicas, replicas(&now))
	if now.Status.ObservedGeneration < now.Generation || now.Status.UpdatedReplicas < replicas(&now) || now.Status.ReadyReplicas < replicas(&now) {
		return pending, status
	}
	return yes, status
}

func replicas(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

// imageOf reads NAME:TAG, NAME@DIGEST, or NAME:TAG@DIGEST.
func imageOf(text string) (kustomize.Image, error) {
	image := kustomize.Image{Name: "sluice"}
	rest, digest, _ := strings.Cut(text, "@")
	name, tag := rest, ""
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, '/') {
		name, tag = rest[:at], rest[at+1:]
	}
	image.NewName, image.NewTag, image.Digest = name, tag, digest
	if name == "" || tag == "" && digest == "" || strings.ContainsAny(text, " \t\n") {
		return image, usage("--image "+text+" is none", "write NAME:TAG or NAME@DIGEST")
	}
	return image, nil
}
