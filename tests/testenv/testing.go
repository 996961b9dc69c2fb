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

// soonest and latest bound the pauses between two looks at a condition.
const (
	soonest = 10 * time.Millisecond
	latest  = 500 * time.Millisecond
)

// Eventually waits until the condition holds, and fails the test with what it last said when it does not. It looks after
// pauses that grow with what has passed already: a look costs the API server more than it takes to wait.
func Eventually(t *testing.T, what string, condition func(context.Context) (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last, began := "", time.Now()
	for {
		ok, now := condition(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil && !strings.Contains(now, "would exceed context deadline") {
			last = now // What is cut off by the end says nothing.
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v; last seen: %s", what, ctx.Err(), last)
		case <-time.After(min(max(time.Since(began)/8, soonest), latest)):
		}
	}
}
