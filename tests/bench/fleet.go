package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/registry"
)

// The users in the API server's audit log.
const (
	sluiceUser  = "sluice"
	kubectlUser = "kubectl"
)

// fleet is a cluster with the program at work in it, as a process of its own, and a registry with releases.
type fleet struct {
	dir      string
	env      *testenv.Env
	registry *registry.Registry
	// client is the administrator's, without limits.
	client client.WithWatch
	// kubectl is the program, and kubeconfigs the files by user.
	kubectl     string
	kubeconfigs map[string]string
	manager     *testenv.Manager
	log         *os.File
	// quiet is how long nothing is asked before a piece of work counts as over.
	quiet   time.Duration
	cleanup []func() error
}

// startFleet starts all of it.
func startFleet(ctx context.Context, dir string, p plan) (f *fleet, err error) {
	f = &fleet{dir: dir, quiet: p.quiet, kubeconfigs: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	assets, err := testenv.Assets()
	if err != nil {
		return f, err
	}
	f.kubectl = filepath.Join(assets, "kubectl")
	if _, err = testenv.Build(ctx, dir); err != nil {
		return f, err
	}
	if f.env, err = testenv.Start(testenv.Options{Audit: true}); err != nil {
		return f, err
	}
	f.cleanup = append(f.cleanup, f.env.Stop)
	config := rest.CopyConfig(f.env.Config)
	config.QPS = -1
	if f.client, err = client.NewWithWatch(config, client.Options{Scheme: f.env.Scheme}); err != nil {
		return f, err
	}
	for _, user := range []string{sluiceUser, kubectlUser} {
		if f.kubeconfigs[user], err = f.env.KubeconfigAs(user); err != nil {
			return f, err
		}
		if err = f.client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}); err != nil {
			return f, err
		}
	}
	if err = f.client.Create(ctx, testenv.Namespace(catalogue)); err != nil {
		return f, err
	}
	if f.registry, err = registry.New(ctx, registry.Options{}); err != nil {
		return f, err
	}
	f.cleanup = append(f.cleanup, f.registry.Close)
	if f.log, err = os.Create(filepath.Join(dir, "sluice.log")); err != nil {
		return f, err
	}
	f.cleanup = append(f.cleanup, f.log.Close)
	if err = os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		return f, err
	}
	f.cleanup = append(f.cleanup, func() error { return f.stopManager() })
	return f, f.startManager()
}

// startManager starts the program with all planes and its default settings, except that no delay is jittered.
func (f *fleet) startManager() (err error) {
	f.manager, err = testenv.StartManager(testenv.ManagerOptions{
		Binary: filepath.Join(f.dir, "sluice"), Kubeconfig: f.kubeconfigs[sluiceUser], Storage: filepath.Join(f.dir, "data"), Log: f.log,
		Flags: []string{
			"--controllers=source,modules,packages", "--system-namespace=" + catalogue, "--metrics-addr=127.0.0.1:0", "--interval-jitter-percentage=0",
		},
	})
	return err
}

func (f *fleet) stopManager() error {
	if f.manager == nil {
		return nil
	}
	stopping := f.manager
	f.manager = nil
	return stopping.Stop()
}

// stop takes everything down, the last started first.
func (f *fleet) stop() error {
	var errs []error
	for _, clean := range slices.Backward(f.cleanup) {
		errs = append(errs, clean())
	}
	f.cleanup = nil
	return errors.Join(errs...)
}

// tell writes down what the program said, for a failure.
func (f *fleet) tell(out io.Writer) {
	if f.manager != nil {
		fmt.Fprintln(out, f.manager.Log())
	}
}
