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
