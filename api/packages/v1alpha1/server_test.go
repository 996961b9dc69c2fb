package v1alpha1_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

// env is the one API server of the package.
var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }
