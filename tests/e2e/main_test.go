// Package e2e tests the built program, run with the race detector, against a real API server and real upstreams.
// It does not know anything of the program but its flags, its objects and what it serves.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

var (
	env    *testenv.Env
	built  string
	depend = sync.OnceValue(testenv.DependOnSources) // Some tests start the program a hundred times.
)

func TestMain(m *testing.M) {
	if top := os.Getenv(diskVariable); top != "" {
		if err := inNamespace(top); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The tests wait for other processes most of the time. What the command line says counts more.
	_ = flag.Set("test.parallel", "4")
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		built, err = testenv.Build(context.Background(), dir, "-race")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testenv.MainWith(m, &env, testenv.Options{
		Audit: true,
		Controllers: []string{
			"namespace-controller", "garbage-collector-controller", "deployment-controller", "replicaset-controller",
			"clusterrole-aggregation-controller", "ttl-after-finished-controller", "persistentvolume-binder-controller",
			"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller",
		},
	})
}

// program is the path of the built program. A test that runs it depends on what it was built from.
func program(t *testing.T) string {
	t.Helper()
	if err := depend(); err != nil {
		t.Fatal(err)
	}
	return built
}
