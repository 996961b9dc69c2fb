// Command sluice turns Git commits and OCI layers into verified artifacts, serves them to a cluster, and installs modules
// from them; and shows what there is of that to whoever asks.
package main

import (
	"os"

	"sluice.dev/sluice/internal/app"
)

func main() { os.Exit(app.Main(os.Args[0], os.Args[1:])) }
