// Command helm is Helm's own command, as far as tests use it: charts are made, packaged, listed and pushed by it, and what is
// served is read by it.
package main

import (
	"errors"
	"fmt"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
)

func main() {
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err == nil {
		err = command.Execute()
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "helm:", err)
	if told, ok := errors.AsType[helm.CommandError](err); ok {
		os.Exit(told.ExitCode)
	}
	os.Exit(1)
}
