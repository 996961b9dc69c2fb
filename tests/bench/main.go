// Command bench measures how a commit and a layer become artifacts, beside git, tar and gzip, and beside a plain download,
// doing the same work in the same run: CPU seconds, wall clock, peak memory and bytes received for a cold start, a small
// change and a no-op.
// It does not know a cluster: it runs the pipeline, and makes and serves its own repositories.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// plan is how much is measured.
type plan struct {
	only          string
	files         int
	mib, layer    int64
	rounds, polls int
}

// job is what a process of its own does in one measurement.
type job struct {
	what jobKind
	dir  string
	url  string
}

type jobKind string

// The jobs. The first four are ours, and keep their storage in the job's folder.
const (
	jobIdle     jobKind = "idle"     // start, and nothing else
	jobGit      jobKind = "git"      // reconcile a GitRepository
	jobCopy     jobKind = "copy"     // reconcile an OCIRepository with the operation copy
	jobExtract  jobKind = "extract"  // reconcile an OCIRepository with the operation extract
	jobDownload jobKind = "download" // get a URL into a file, and hash it
	jobHead     jobKind = "head"     // ask for the headers of a URL
	jobRegistry jobKind = "registry" // serve a registry
)

func main() { os.Exit(run()) }

func run() int {
	var p plan
	flag.StringVar(&p.only, "only", "", "measure only git, or only oci")
	flag.IntVar(&p.files, "files", 5568, "files in the generated git repository")
	flag.Int64Var(&p.mib, "mib", 80, "size of these files in MiB")
	flag.Int64Var(&p.layer, "layer", 50, "size of the generated layer in MiB")
	flag.IntVar(&p.rounds, "rounds", 3, "how often everything is measured; the tables show medians")
	flag.IntVar(&p.polls, "polls", 200, "no-ops that are measured in a running process")
	what := flag.String("job", "", "internal: do one job in this process")
	dir := flag.String("dir", "", "internal: the job's folder")
	url := flag.String("url", "", "internal: the URL that the job is about")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	err := do(ctx, os.Stdout, p, job{what: jobKind(*what), dir: *dir, url: *url})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: failed:", err)
		return 1
	}
	return 0
}

func do(ctx context.Context, out io.Writer, p plan, j job) error {
	switch j.what {
	case "":
		return compare(ctx, out, p)
	case jobRegistry:
		return serveRegistry(ctx, j.dir, p.layer)
	case jobDownload:
		return download(ctx, j)
	case jobHead:
		return head(ctx, j.url)
	default:
		return work(ctx, j)
	}
}
