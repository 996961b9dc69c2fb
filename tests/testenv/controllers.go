package testenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// runControllers starts kube-controller-manager with these of its controllers.
func (e *Env) runControllers(assets string, options Options) error {
	manager := exec.Command(filepath.Join(assets, "kube-controller-manager"),
		"--kubeconfig="+e.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers="+strings.Join(options.Controllers, ","))
	if options.Log != nil {
		manager.Stdout, manager.Stderr = options.Log, options.Log
	}
	if err := manager.Start(); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	e.stopControllers = func() {
		_ = manager.Process.Kill()
		_ = manager.Wait()
	}
	return nil
}
