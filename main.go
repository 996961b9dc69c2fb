// Command sluice turns Git commits into verified artifacts and serves them to a cluster.
package main

import (
	"os"

	"sluice.dev/sluice/internal/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
