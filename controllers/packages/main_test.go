package packages_test

import (
	"flag"
	"os"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	// The tests wait for Git and the API server most of the time.
	_ = flag.Set("test.parallel", "8")
	os.Exit(testenv.Main(m, &env))
}
