package installation_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

// TestMain makes the test's binary the build worker that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == build.Subcommand {
		os.Exit(build.Main())
	}
	os.Exit(testenv.Main(m, &env))
}
