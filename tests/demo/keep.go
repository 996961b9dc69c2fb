package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stateDir is where a demo that is left running says how to reach it.
func stateDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "sluice", "up"), nil
}

// leaveRunning starts this program again in the background, and returns when everything is up.
func leaveRunning(ctx context.Context) error {
	state, err := stateDir()
	if err != nil {
		return err
	}
	if pid, running := runningPid(state); running {
		return fmt.Errorf("it is running already (process %d): make down stops it", pid)
	}
	if err := errors.Join(os.RemoveAll(state), os.MkdirAll(state, 0o700)); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	log, err := os.Create(filepath.Join(state, "log"))
	if err != nil {
		return fmt.Errorf("make a log file: %w", err)
	}
	defer func() { _ = log.Close() }()
	background := exec.CommandContext(context.WithoutCancel(ctx), self, "-serve", state)
	background.Stdout, background.Stderr = log, log
	background.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := background.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- background.Wait() }()
	return followUntilReady(ctx, state, ended)
}

// followUntilReady copies the log of the process in the background until it says that it is ready.
func followUntilReady(ctx context.Context, state string, ended <-chan error) error {
	shown := 0
	show := func() {
		if text, err := os.ReadFile(filepath.Join(state, "log")); err == nil {
			fmt.Print(string(text[shown:]))
			shown = len(text)
		}
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), takeDown())
		case err := <-ended:
			show()
			return fmt.Errorf("the background process ended: %w", err)
		case <-ticker.C:
			show()
			if _, err := os.Stat(filepath.Join(state, "ready")); err == nil {
				show()
				return nil
			}
		}
	}
}

// serveUntilStopped is the process in the background.
func serveUntilStopped(ctx context.Context, state string) (err error) {
	if err := os.WriteFile(filepath.Join(state, "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	d, err := start(ctx, os.Stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop(), os.RemoveAll(state)) }()
	for _, appear := range []func(context.Context) error{d.commitBecomesArtifact, d.releaseBecomesArtifact, d.moduleInstalled, d.packageDrafted} {
		if err := appear(ctx); err != nil {
			return err
		}
	}
	kubeconfig := filepath.Join(state, "kubeconfig")
	content, err := os.ReadFile(d.env.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	d.say(`
It is running. To use it:

  export KUBECONFIG=%s
  alias kubectl=%s

  kubectl -n %[3]s get gitrepositories -w
  kubectl -n %[3]s describe gitrepository app
  kubectl -n %[3]s patch gitrepository app --type=merge -p '{"spec":{"ignore":"docs/"}}'
  git clone %[4]s

  kubectl -n %[3]s get ocirepositories -w
  kubectl -n %[3]s describe ocirepository module
  kubectl -n %[3]s patch ocirepository module --type=merge -p '{"spec":{"verify":null}}'
  curl http://%[5]s/v2/%[6]s/tags/list

  kubectl -n %[3]s get modules,moduletemplates,moduleinstallations,inventories
  kubectl -n %[3]s describe moduleinstallation redis
  kubectl -n %[3]s patch module redis --type=merge -p '{"spec":{"channels":[{"name":"regular","version":"2.0.0"}]}}'
  kubectl -n %[3]s delete configmap redis-settings

  kubectl -n %[3]s get pkgrepo,pkgvar,pkgrev
  kubectl -n %[3]s describe packagevariant web-north
  kubectl -n %[3]s patch configmap north --type=merge -p '{"data":{"region":"far-north"}}'

Repositories: %[7]s
Registry: %[5]s (plain HTTP; anybody may push)
Log of sluice: %[8]s
To publish a module of your own, into the system namespace %[9]s: docs/publish-a-module.md
make down stops it.`, kubeconfig, filepath.Join(d.assets, "kubectl"), namespace, d.server.URL("app"),
		d.registry.Host(), modules, filepath.Join(d.dir, "git"), filepath.Join(d.dir, "sluice.log"), systemNamespace)
	if err := os.WriteFile(filepath.Join(state, "ready"), nil, 0o600); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	<-ctx.Done()
	return nil
}

// takeDown stops the process in the background and waits until it has cleaned up.
func takeDown() error {
	state, err := stateDir()
	if err != nil {
		return err
	}
	pid, running := runningPid(state)
	if !running {
		fmt.Println("nothing is running")
		return os.RemoveAll(state)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	for range 600 {
		if _, running := runningPid(state); !running {
			fmt.Println("stopped")
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("process %d does not stop", pid)
}

func runningPid(state string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(state, "pid"))
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil && syscall.Kill(pid, 0) == nil
}
