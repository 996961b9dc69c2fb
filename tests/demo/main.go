// Command demo shows the main job from end to end: it starts a control plane, a real Git server, a real registry and the
// built sluice binary, and walks through what a user of GitRepository, OCIRepository, modules and packages sees. With -keep
// it leaves all of that running instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() { os.Exit(run()) }

func run() int {
	// What libraries log is not part of the story.
	ctrllog.SetLogger(logr.Discard())
	keep := flag.Bool("keep", false, "leave everything running in the background, and say how to reach it")
	down := flag.Bool("down", false, "stop what -keep left running")
	serve := flag.String("serve", "", "internal: run in the foreground and keep the state in this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	var err error
	switch {
	case *serve != "":
		err = serveUntilStopped(ctx, *serve)
	case *down:
		err = takeDown()
	case *keep:
		err = leaveRunning(ctx)
	default:
		err = show(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: failed:", err)
		return 1
	}
	return 0
}

// show runs the demo and takes everything down again.
func show(ctx context.Context) (err error) {
	d, err := start(ctx, os.Stdout)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := d.stop(); err == nil {
			err = stopErr
		}
		if err == nil {
			fmt.Println("demo: ok")
		}
	}()
	return d.walk(ctx)
}
