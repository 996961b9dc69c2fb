// Command bench measures how a commit becomes an artifact, beside git, tar and gzip doing the same work in the same
// run: CPU seconds, wall clock, peak memory and bytes received for a cold start, a one-line commit and a no-op.
// It does not know a cluster: it runs the pipeline, and makes and serves its own repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// plan is how much is measured.
type plan struct {
	files         int
	mib           int64
	rounds, polls int
}

func main() { os.Exit(run()) }

func run() int {
	var p plan
	flag.IntVar(&p.files, "files", 5568, "files in the generated repository")
	flag.Int64Var(&p.mib, "mib", 80, "size of the generated files in MiB")
	flag.IntVar(&p.rounds, "rounds", 3, "how often everything is measured; the table shows medians")
	flag.IntVar(&p.polls, "polls", 200, "no-ops that are measured in a running process")
	job := flag.String("work", "", "internal: reconcile once with the state in this folder")
	url := flag.String("url", "", "internal: the repository to reconcile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	var err error
	if *job != "" {
		err = work(ctx, *job, *url, p.polls)
	} else {
		err = compare(ctx, os.Stdout, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: failed:", err)
		return 1
	}
	return 0
}
