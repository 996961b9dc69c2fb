package testenv

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Main runs a package's tests with one API server between them; it goes into TestMain.
func Main(m *testing.M, into **Env) int { return MainWith(m, into, Options{}) }

// MainWith is Main with other options.
func MainWith(m *testing.M, into **Env, options Options) int {
	env, err := Start(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*into = env
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// NewNamespace makes a namespace for one test.
func (e *Env) NewNamespace(t *testing.T) string {
	t.Helper()
	namespace := Namespace("")
	namespace.GenerateName = "test-"
	if err := e.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return namespace.Name
}

// Eventually waits until the condition holds, and fails the test with what it last said when it does not.
func Eventually(t *testing.T, what string, condition func(context.Context) (bool, string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = condition(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last seen: %s", what, err, last)
	}
}
