// Command sluice turns Git commits and OCI layers into verified artifacts, serves them to a cluster, and installs modules
// from them.
package main

import (
	"os"

	"sluice.dev/sluice/internal/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
