package config_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"

	"sluice.dev/sluice/internal/app"
)

// TestArgumentsAreFlags: the deployment starts only if the manager knows every argument and accepts them together.
func TestArgumentsAreFlags(t *testing.T) {
	t.Parallel()
	args := find[appsv1.Deployment](t, "Deployment", "sluice").Spec.Template.Spec.Containers[0].Args
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "$(RUNTIME_NAMESPACE)", namespace)
	}
	var options app.Options
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	options.BindFlags(flags, func(string) (string, bool) { return "", false })
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	if options.StoragePath != "/data" || options.StorageAdvAddr != "source-controller.sluice-system.svc.cluster.local." {
		t.Errorf("got storage at %q, served as %q", options.StoragePath, options.StorageAdvAddr)
	}
	if !options.LeaderElection.Enable || !options.WatchAllNamespaces {
		t.Errorf("got leader election %t, all namespaces %t", options.LeaderElection.Enable, options.WatchAllNamespaces)
	}
}

// TestTheContainerHasRoomForWhatTheFlagsAllow: children get their memory beside the soft limit, of which half is the least;
// and the volume has room for all temporary files.
func TestTheContainerHasRoomForWhatTheFlagsAllow(t *testing.T) {
	t.Parallel()
	const downloads = 8 // of installations at once
	var options app.Options
	options.BindFlags(pflag.NewFlagSet("manager", pflag.ContinueOnError), func(string) (string, bool) { return "", false })
	pod := find[appsv1.Deployment](t, "Deployment", "sluice").Spec.Template.Spec
	container := pod.Containers[0]
	children := int64(options.BuildWorkers) * options.Limits.BuildBytes
	if limit := container.Resources.Limits.Memory().Value(); children > limit/2 {
		t.Errorf("%d bytes for processes that run kustomize are more than half of the container's %d", children, limit)
	}
	for _, variable := range container.Env {
		if variable.Name == "GOMEMLIMIT" {
			t.Error("a limit that is set does not follow the container's")
		}
	}
	files := options.TmpBytes() + options.Limits.CacheBytes + downloads*options.Limits.ArchiveBytes
	for _, volume := range pod.Volumes {
		if limit := volume.EmptyDir.SizeLimit; volume.Name == "tmp" && (limit == nil || limit.Value() < files) {
			t.Errorf("the volume for temporary files holds %v, and %d bytes are allowed", limit, files)
		}
	}
}
