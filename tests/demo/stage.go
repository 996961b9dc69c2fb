package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
	"k8s.io/apimachinery/pkg/util/wait"

	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

const (
	// namespace is where the demo's objects live.
	namespace = "demo"
	// systemNamespace has the catalogue that every namespace may choose from.
	systemNamespace = "sluice-system"
)

// demo is everything that runs, and how to take it down.
type demo struct {
	out    io.Writer
	dir    string
	assets string
	env    *testenv.Env
	repos  map[string]*upstream.Repository
	server *upstream.GitHTTP
	// registry and the signer of what is released in it.
	registry *registry.Registry
	signer   *signer
	// storage is where the S3 server listens, and objects its client.
	storage string
	objects *minio.Client
	manager *testenv.Manager
	began   time.Time
	cleanup []func() error
}

// start builds and starts the control plane, the upstreams and the program, and installs the kinds.
func start(ctx context.Context, out io.Writer) (d *demo, err error) {
	d = &demo{out: out, began: time.Now(), repos: map[string]*upstream.Repository{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
			d = nil
		}
	}()
	if d.dir, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
		return d, fmt.Errorf("make a folder: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error { return os.RemoveAll(d.dir) })

	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"build etcd, kube-apiserver, kube-controller-manager and kubectl", d.buildControlPlane},
		{"build sluice", d.buildSluice},
		{"start the control plane", d.startControlPlane},
		{"start a Git server (git http-backend) with seven repositories", d.startGit},
		{"start a registry (CNCF Distribution)", d.startRegistry},
		{"build and start an S3 server (Versity Gateway)", d.startStorage},
		{"start sluice manager", d.startManager},
	}
	for _, step := range steps {
		began := time.Now()
		d.say("==> %s", step.what)
		if err := step.do(ctx); err != nil {
			return d, fmt.Errorf("%s: %w", step.what, err)
		}
		d.say("    done in %s", time.Since(began).Round(time.Millisecond))
	}
	return d, nil
}

func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) buildControlPlane(context.Context) (err error) {
	d.assets, err = testenv.Assets()
	return err
}

func (d *demo) buildSluice(ctx context.Context) error {
	_, err := testenv.Build(ctx, d.dir)
	return err
}

func (d *demo) startControlPlane(ctx context.Context) error {
	log, err := os.Create(filepath.Join(d.dir, "controlplane.log"))
	if err != nil {
		return fmt.Errorf("make a log file: %w", err)
	}
	if d.env, err = testenv.Start(testenv.Options{Log: log}); err != nil {
		return err
	}
	d.cleanup = append(d.cleanup, d.env.Stop, log.Close)

	// The controller manager makes namespaces go away, owned objects be collected and the role admin be filled, as in a real
	// cluster.
	manager := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(d.assets, "kube-controller-manager"),
		"--kubeconfig="+d.env.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller,clusterrole-aggregation-controller")
	manager.Stdout, manager.Stderr = log, log
	if err := manager.Start(); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	d.cleanup = append(d.cleanup, func() error {
		_ = manager.Process.Kill()
		_ = manager.Wait()
		return nil
	})
	return errors.Join(d.env.Client.Create(ctx, testenv.Namespace(namespace)), d.env.Client.Create(ctx, testenv.Namespace(systemNamespace)))
}

func (d *demo) startGit(ctx context.Context) (err error) {
	root := filepath.Join(d.dir, "git")
	for _, name := range append([]string{"app", "library", blueprints, fleetRepository}, clusters()...) {
		if d.repos[name], err = upstream.NewRepository(ctx, root, name); err != nil {
			return err
		}
	}
	if err := d.fillRepositories(); err != nil {
		return err
	}
	if d.server, err = upstream.ServeHTTP(context.WithoutCancel(ctx), root, upstream.HTTPOptions{}); err != nil {
		return err
	}
	d.cleanup = append(d.cleanup, d.server.Close)
	return nil
}

func (d *demo) startRegistry(ctx context.Context) (err error) {
	if d.signer, err = newSigner(); err != nil {
		return err
	}
	if d.registry, err = registry.New(context.WithoutCancel(ctx), registry.Options{}); err != nil {
		return err
	}
	d.cleanup = append(d.cleanup, d.registry.Close)
	return nil
}

func (d *demo) startManager(context.Context) (err error) {
	storage := filepath.Join(d.dir, "data")
	if err := os.Mkdir(storage, 0o700); err != nil {
		return fmt.Errorf("make the storage: %w", err)
	}
	log, err := os.Create(filepath.Join(d.dir, "sluice.log"))
	if err != nil {
		return fmt.Errorf("make a log file: %w", err)
	}
	d.manager, err = testenv.StartManager(testenv.ManagerOptions{
		Binary: filepath.Join(d.dir, "sluice"), Kubeconfig: d.env.Kubeconfig, Storage: storage, Log: log,
		Flags: []string{"--system-namespace=" + systemNamespace, "--interval-jitter-percentage=0", "--max-retry-delay=2s"},
	})
	if err != nil {
		return err
	}
	d.cleanup = append(d.cleanup, log.Close, d.manager.Stop)
	return nil
}

// stop takes everything down, last started first.
func (d *demo) stop() error {
	var errs []error
	for _, clean := range slices.Backward(d.cleanup) {
		errs = append(errs, clean())
	}
	d.cleanup = nil
	return errors.Join(errs...)
}

// kubectl runs kubectl with the given standard input and shows the call and its answer.
func (d *demo) kubectl(ctx context.Context, stdin string, args ...string) error {
	d.say("$ kubectl %s", join(args))
	cmd := d.kubectlCommand(ctx, stdin, args...)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", join(args), err)
	}
	return nil
}

// eventually waits until the condition holds. On time-out it says what was waited for.
func eventually(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, condition); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}
