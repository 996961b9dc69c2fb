package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
	timeout time.Duration
}

func installCommand(b *base) *cobra.Command {
	i := &installer{base: b}
	command := &cobra.Command{
		Use:   "install",
		Short: "Apply the manifests of this version, and wait until the controllers run",
		Example: `  sluice install --image registry.example.com/sluice:1.0.0
  sluice install --export --image registry.example.com/sluice:1.0.0 > sluice.yaml
  sluice install --controllers source --image registry.example.com/sluice:1.0.0`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	flags.StringVar(&i.bundle.image, "image", "", "Image of the controllers, as NAME:TAG or NAME@DIGEST.")
	flags.StringVar(&i.bundle.controllers, "controllers", "all", "What to install: all, or source for the source plane alone.")
	flags.StringVar(&i.bundle.namespace, "system-namespace", "", "Namespace of the controllers. Empty: "+defaultSystem+".")
	flags.BoolVar(&i.export, "export", false, "Print the manifests, and ask no API server.")
	flags.BoolVar(&i.force, "force-conflicts", false, "Take over fields that others have set.")
	flags.BoolVar(&i.noWait, "no-wait", false, "End once all is applied.")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "How long the controllers are waited for.")
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
		if err := i.apply(ctx, obj); err != nil {
			return err
		}
	}
	fmt.Fprintf(i.ErrOut, "Applied %d objects.\n", len(objects))
	if i.noWait {
		return nil
	}
	return i.wait(ctx, objects)
}

// apply applies one object. All of them may be applied again, from wherever it stopped.
func (i *installer) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	what := "apply " + refOfAny(obj).String()
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
	fmt.Fprintln(i.Out, refOfAny(obj))
	return nil
}

// wait waits until the Deployments run as they are to.
func (i *installer) wait(ctx context.Context, objects []*unstructured.Unstructured) error {
	shown := newProgress(i.ErrOut, false)
	for _, obj := range objects {
		if obj.GetKind() != "Deployment" {
			continue
		}
		at := client.ObjectKeyFromObject(obj)
		var found atomic.Pointer[appsv1.Deployment] // What people are reminded of is read while it is looked at anew.
		found.Store(&appsv1.Deployment{})
		stop := shown.follow(ctx, func() {
			shown.tell(fmt.Sprintf("waiting for Deployment %s: %d of %d are ready", at, found.Load().Status.ReadyReplicas, replicas(found.Load())))
		})
		err := wait.PollUntilContextTimeout(ctx, time.Second, i.timeout, true, func(ctx context.Context) (bool, error) {
			now := &appsv1.Deployment{}
			lacking := i.Get(ctx, at, now)
			if apierrors.IsForbidden(lacking) {
				return false, lacking
			}
			found.Store(now)
			return lacking == nil && now.Status.ObservedGeneration >= now.Generation && now.Status.UpdatedReplicas >= replicas(now) && now.Status.ReadyReplicas >= replicas(now), nil
		})
		stop()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return explain("wait for Deployment "+at.String(), context.Cause(ctx), "")
		case apierrors.IsForbidden(err):
			return explain("read Deployment "+at.String(), err, "view")
		default:
			return &CommandError{Code: ExitTimeout, What: "wait for Deployment " + at.String(), Why: "--timeout has passed", Help: []string{"sluice check says what is missing"}}
		}
		fmt.Fprintf(i.ErrOut, "Deployment %s runs.\n", at)
	}
	return nil
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

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
