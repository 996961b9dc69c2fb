package testenv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout is how long each step of a start may take; an idle machine needs about 3 s for all of them.
	startTimeout = 3 * time.Minute
	// startAttempts is how often a start is tried. Ports are found by opening and closing them, so that another
	// process may have taken one before the program that it was found for gets there.
	startAttempts = 4
)

// startPlane starts the programs. Each attempt is a new control plane: one that is started again keeps its ports.
func (e *Env) startPlane(assets string, options Options) error {
	var failures []error
	for range startAttempts {
		plane, err := e.newPlane(assets, options)
		if err != nil {
			return err
		}
		if err = plane.Start(); err == nil {
			e.plane = plane
			return nil
		}
		failures = append(failures, err)
	}
	return fmt.Errorf("start the control plane: %w", errors.Join(failures...))
}

func (e *Env) newPlane(assets string, options Options) (*envtest.ControlPlane, error) {
	plane := &envtest.ControlPlane{
		Etcd: &envtest.Etcd{
			Path: filepath.Join(assets, "etcd"), StartTimeout: startTimeout, StopTimeout: startTimeout,
		},
		APIServer: &envtest.APIServer{
			Path: filepath.Join(assets, "kube-apiserver"), StartTimeout: startTimeout, StopTimeout: startTimeout,
		},
		KubectlPath: filepath.Join(assets, "kubectl"),
	}
	// What is stored is not for longer than the tests; a slow disk would make the API server time out.
	plane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	if options.Log != nil {
		plane.APIServer.Out, plane.APIServer.Err = options.Log, options.Log
	}
	if !options.Audit {
		return plane, nil
	}
	return plane, e.audit(plane.APIServer)
}

// prepare makes what is needed to use the control plane, and installs the kinds.
func (e *Env) prepare(kinds []string) error {
	// The server is there for the tests alone: no client holds itself back.
	admin, err := e.plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 2000})
	if err != nil {
		return fmt.Errorf("add an administrator: %w", err)
	}
	e.Config = admin.Config()
	if e.Client, err = client.New(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := e.awaitDefaultNamespace(); err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{
		Scheme: e.Scheme, Paths: kinds, ErrorIfPathMissing: true, MaxTime: startTimeout,
	}); err != nil {
		return fmt.Errorf("install the kinds: %w", err)
	}
	e.Kubeconfig, err = e.KubeconfigAs("admin", "system:masters")
	return err
}

// awaitDefaultNamespace waits until the API server has made it, which it does a little after it says that it is ready.
func (e *Env) awaitDefaultNamespace() error {
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = e.Client.Get(ctx, types.NamespacedName{Name: "default"}, &corev1.Namespace{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the default namespace: %w", errors.Join(err, last))
	}
	return nil
}
