package packages_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, &env)) }
