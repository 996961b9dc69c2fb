// Package testenv gives tests and the demo a real API server with the project's kinds installed.
// It does not know which controllers run against it.
package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// Options choose what is started. The zero value is what tests need.
type Options struct {
	// CRDs are the folders or files with CRDs to install; nil means the project's own.
	CRDs []string
	// Log takes what the programs print; nil drops it.
	Log *os.File
	// Audit has all requests written down, for Env.Requests.
	Audit bool
	// Controllers are those of kube-controller-manager that run, such as namespace-controller; none when empty.
	Controllers []string
}

// Env is a running control plane.
type Env struct {
	// Config is an administrator's; Kubeconfig is the same as a file.
	Config     *rest.Config
	Kubeconfig string
	// Client reads and writes without a cache.
	Client client.Client
	Scheme *kruntime.Scheme

	plane           *envtest.ControlPlane
	dir             string
	auditLog        string
	stopControllers func()     // may be nil
	users           sync.Mutex // adding one is not for several at once
}

// Start starts etcd and kube-apiserver on free loopback ports, with the project's kinds installed.
func Start(options Options) (*Env, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	if options.CRDs == nil {
		options.CRDs = []string{filepath.Join(Root(), "config", "crd", "bases")}
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	env := &Env{Scheme: scheme}
	if env.dir, err = os.MkdirTemp("", "sluice-testenv-"); err != nil {
		return nil, fmt.Errorf("make a folder for the control plane: %w", err)
	}
	if err := env.startPlane(assets, options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(env.dir))
	}
	if err := env.prepare(options.CRDs); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	if len(options.Controllers) > 0 {
		if err := env.runControllers(assets, options); err != nil {
			return nil, errors.Join(err, env.Stop())
		}
	}
	return env, nil
}

// Stop stops the programs and removes their files.
func (e *Env) Stop() error {
	if e.stopControllers != nil {
		e.stopControllers()
	}
	return errors.Join(e.plane.Stop(), os.RemoveAll(e.dir))
}

// Assets is the folder with the control plane's programs: KUBEBUILDER_ASSETS, or what tests/controlplane builds.
func Assets() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	scripts := filepath.Join(Root(), "tests")
	build := exec.Command(filepath.Join(scripts, "quietly.sh"), filepath.Join(scripts, "controlplane", "build.sh"))
	var out bytes.Buffer
	build.Stdout, build.Stderr = &out, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// Root is the project's top folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

func newScheme() (*kruntime.Scheme, error) {
	scheme := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{
		clientgoscheme.AddToScheme, sourcev1.AddToScheme, extensionsv1.AddToScheme, modulesv1.AddToScheme, packagesv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return scheme, nil
}

// Namespace is a namespace object of the given name.
func Namespace(name string) *corev1.Namespace {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	return namespace
}
