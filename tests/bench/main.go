// Command bench measures how a commit and a layer become artifacts, beside git, tar and gzip, and beside a plain download,
// doing the same work in the same run: CPU seconds, wall clock, peak memory and bytes received for a cold start, a small
// change and a no-op. For these it runs the pipeline alone, and makes and serves its own repositories; polls, and objects that
// share a repository, it also measures in the program, on a control plane. It serves artifacts
// beside net/http alone, Go's file server and, where it is installed, nginx. Modules it measures on a control plane of its
// own, beside kubectl: requests to the API server, time and memory.
// It does not know what the figures should be, beyond the targets that it prints beside them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// plan is how much is measured.
type plan struct {
	only          string
	files         int
	mib, layer    int64
	rounds, polls int
	// objects is how many a release has that is installed by itself, and fleetObjects how many one of the fleet has. Of
	// the fleet's installations, shared are made at once. Periodic rounds are those of steady installations.
	objects, steady, fleet, shared, fleetObjects int
	// window is how long the program is watched at rest, and quiet how long it asks nothing before work counts as over.
	window, quiet time.Duration
	engine        enginePlan
	packages      packagesPlan
	commands      commandsPlan
}

// job is what a process of its own does in one measurement.
type job struct {
	what jobKind
	dir  string
	url  string
}

type jobKind string

// The jobs. The first five are ours, and keep their storage in the job's folder.
const (
	jobIdle       jobKind = "idle"        // start, and nothing else
	jobGit        jobKind = "git"         // reconcile a GitRepository
	jobModules    jobKind = "modules"     // reconcile a GitRepository with its submodules
	jobCopy       jobKind = "copy"        // reconcile an OCIRepository with the operation copy
	jobExtract    jobKind = "extract"     // reconcile an OCIRepository with the operation extract
	jobBucket     jobKind = "bucket"      // measure both sides with a bucket
	jobBucketCold jobKind = "bucket-cold" // reconcile a Bucket once
	jobHelm       jobKind = "helm"        // measure both sides with an index and its charts
	jobHelmCold   jobKind = "helm-cold"   // reconcile a HelmRepository once
	jobHelmChange jobKind = "helm-change" // reconcile it once more, after a change
	jobDownload   jobKind = "download"    // get a URL into a file, and hash it
	jobHead       jobKind = "head"        // ask for the headers of a URL
	jobRegistry   jobKind = "registry"    // serve a registry
	jobServe      jobKind = "serve"       // store the files of a folder, and serve them
	jobBare       jobKind = "bare"        // serve the files of a folder from memory, with net/http alone
	jobFiles      jobKind = "files"       // serve the files of a folder with Go's file server
)

func main() { os.Exit(run()) }

func run() int {
	var p plan
	flag.StringVar(&p.only, "only", "", "measure only git, engine, oci, buckets, helm, serve, modules, packages, sets or commands")
	p.engine.flags()
	p.packages.flags()
	flag.IntVar(&p.files, "files", 5568, "files in the generated git repository")
	flag.Int64Var(&p.mib, "mib", 80, "size of these files in MiB")
	flag.Int64Var(&p.layer, "layer", 50, "size of the generated layer in MiB")
	flag.IntVar(&p.rounds, "rounds", 3, "how often everything is measured; the tables show medians")
	flag.IntVar(&p.polls, "polls", 200, "no-ops that are measured in a running process")
	flag.IntVar(&p.objects, "objects", 300, "objects in the release that is installed by itself")
	flag.IntVar(&p.steady, "steady", 10, "installations of that release whose periodic rounds are measured")
	flag.IntVar(&p.fleet, "fleet", 200, "installations in the fleet")
	flag.IntVar(&p.fleetObjects, "fleet-objects", 50, "objects in each installation of the fleet")
	flag.IntVar(&p.commands.listed, "listed", 1000, "installations that get lists")
	flag.IntVar(&p.commands.chosen, "templates", 1000, "templates that why chooses from")
	flag.IntVar(&p.commands.members, "members", 7500, "objects of the installation that is drawn")
	flag.IntVar(&p.commands.streams, "streams", 50, "pages that are open at once")
	flag.IntVar(&p.commands.moved, "moved", 10000, "installations that impact chooses for")
	flag.IntVar(&p.shared, "shared", 93, "installations of the fleet that are made at once, of an artifact that nobody has yet")
	flag.DurationVar(&p.window, "window", 10*time.Second, "how long the program is watched at rest, and five times as long as it serves a file")
	flag.DurationVar(&p.quiet, "quiet", 1500*time.Millisecond, "how long the program asks nothing before its work counts as over")
	what := flag.String("job", "", "internal: do one job in this process")
	dir := flag.String("dir", "", "internal: the job's folder")
	url := flag.String("url", "", "internal: the URL that the job is about")
	flag.Parse()
	log.SetLogger(logr.Discard()) // Kubernetes' libraries complain when nobody does.
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
	case jobServe:
		return serveArtifacts(ctx, j)
	case jobFiles:
		return serveFiles(ctx, j)
	case jobBare:
		return serveBare(ctx, j)
	case jobBucket:
		return measureBuckets(ctx, j)
	case jobBucketCold:
		return bucketCold(ctx, j)
	case jobHelm:
		return measureHelm(ctx, j)
	case jobHelmCold, jobHelmChange:
		return helmOnce(ctx, j)
	case jobDownload:
		return download(ctx, j)
	case jobHead:
		return head(ctx, j.url)
	default:
		return work(ctx, j)
	}
}
