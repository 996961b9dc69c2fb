package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// The sides. The last is also the name of its program.
const (
	sluiceSide = "sluice"
	bareSide   = "net/http alone"
	fileSide   = "http.FileServer"
	nginxSide  = "nginx"
)

// servedSizes are the sizes of the artifacts in bytes.
var servedSizes = []int64{64 << 10, 6 << 20}

// What is wanted of us beside nginx, or beside Go's file server where there is no nginx.
const (
	targetServeCPU  = 30 * time.Microsecond // a request for 64 KiB
	targetServeRate = 0.7                   // of the other's, for 64 KiB
	targetServeBig  = 1.3                   // of the other's CPU, for 6 MiB
)

// pathOf is the path that a file has with all sides.
func pathOf(size int64) string { return artifacts.File(fmt.Sprintf("%d.tar.gz", size)) }

func servedWork(size int64) string { return fmt.Sprintf("%d KiB", size>>10) }

// compareServing lets each side serve the same files, in turn, and prints what a request took.
func compareServing(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, artifacts.Dir()), 0o755); err != nil {
		return err
	}
	for _, size := range servedSizes {
		content := make([]byte, size)
		_, _ = rand.Read(content) // It never fails.
		if err := os.WriteFile(filepath.Join(dir, pathOf(size)), content, 0o600); err != nil {
			return err
		}
	}
	sides, err := startSides(ctx, dir)
	defer func() {
		for _, side := range sides {
			err = errors.Join(err, side.stop())
		}
	}()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d kept connections on loopback\n%s\n\n", connections, machine(p))
	samples := map[string][]sample{}
	for range p.rounds {
		for _, size := range servedSizes {
			for _, side := range sides {
				c := &clients{address: side.address, path: pathOf(size), size: size}
				u, err := c.rate(ctx, side, p.window/5)
				if err != nil {
					return fmt.Errorf("%s: %w", side.name, err)
				}
				of := servedWork(size) + side.name
				samples[of] = append(samples[of], sample{ours: u})
			}
		}
	}
	return printServing(out, sides, samples)
}

// startSides starts ours first, and nginx where it is installed.
func startSides(ctx context.Context, dir string) (sides []*fileServer, err error) {
	starts := []func() (*fileServer, error){
		func() (*fileServer, error) { return startSelf(ctx, sluiceSide, job{what: jobServe, dir: dir}) },
		func() (*fileServer, error) { return startSelf(ctx, bareSide, job{what: jobBare, dir: dir}) },
		func() (*fileServer, error) { return startSelf(ctx, fileSide, job{what: jobFiles, dir: dir}) },
	}
	if program, err := exec.LookPath(nginxSide); err == nil {
		starts = append(starts, func() (*fileServer, error) { return startNginx(ctx, program, filepath.Join(dir, nginxSide), dir) })
	}
	for _, start := range starts {
		side, err := start()
		if err != nil {
			return sides, err
		}
		sides = append(sides, side)
	}
	return sides, nil
}

func printServing(out io.Writer, sides []*fileServer, samples map[string][]sample) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ARTIFACT\tSIDE\tCPU PER REQUEST\tREQUESTS A SECOND\tPEAK MEMORY\t")
	of := func(size int64, side string) usage {
		return medians(samples[servedWork(size)+side], func(s sample) usage { return s.ours })
	}
	for _, size := range servedSizes {
		ours := of(size, sluiceSide)
		for _, side := range sides {
			u := of(size, side.name)
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%s\t\n", servedWork(size), side.name, u.cpu.Round(100*time.Nanosecond),
				1/u.wall.Seconds(), bytesText(u.peak))
			if side.name != sluiceSide {
				fmt.Fprintf(w, "\tsluice : %s\t%s\t%s\t%s\t\n", side.name, ratio(int64(ours.cpu), int64(u.cpu)),
					ratio(int64(u.wall), int64(ours.wall)), ratio(ours.peak, u.peak))
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	against := sides[len(sides)-1].name
	small, big := servedSizes[0], servedSizes[1]
	fmt.Fprintf(out, "\nwanted: %s of CPU and %.1f of the rate of %s for %s, %.1f of its CPU for %s\nmeasured: %s, %s, %s\n",
		targetServeCPU, targetServeRate, against, servedWork(small), targetServeBig, servedWork(big),
		of(small, sluiceSide).cpu.Round(100*time.Nanosecond), ratio(int64(of(small, against).wall), int64(of(small, sluiceSide).wall)),
		ratio(int64(of(big, sluiceSide).cpu), int64(of(big, against).cpu)))
	return nil
}
