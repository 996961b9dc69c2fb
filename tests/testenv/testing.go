package testenv

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
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
	env.stopWhenInterrupted()
	code := m.Run()
	if err := env.Stop(); err != nil {
		// The tests have said what they had to say; programs that did not stop in time have been killed.
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// stopWhenInterrupted ends the process when it is asked to, and the control plane first: its programs are in process
// groups of their own, so that an interrupt does not reach them, and would go on for ever.
func (e *Env) stopWhenInterrupted() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}()
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

// patience is how long a condition may take to become true. It bounds nothing but how long a failure takes: a loaded
// machine needs many times what an idle one does.
const patience = 4 * time.Minute

// Eventually waits until the condition holds, and fails the test with what it last said when it does not.
func Eventually(t *testing.T, what string, condition func(context.Context) (bool, string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var ok bool
		var now string
		if ok, now = condition(ctx); ctx.Err() == nil && !strings.Contains(now, "would exceed context deadline") {
			last = now // What is cut off by the end says nothing.
		}
		return ok, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last seen: %s", what, err, last)
	}
}
