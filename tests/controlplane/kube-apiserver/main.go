// Command kube-apiserver is the Kubernetes API server, built from its Go module.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	debug.SetGCPercent(400) // Tests have more memory to spare than time.
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
