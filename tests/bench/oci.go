package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The work with a registry, in the order of the table.
const (
	idle        = "idle"
	pull        = "cold pull, copy"
	moved       = "moved tag, new process"
	movedWarm   = "moved tag, running"
	ociNoop     = "no-op, new process"
	ociPolling  = "no-op, running"
	pullExtract = "cold pull, extract"
)

// What is wanted of a cold pull: at most so much of the download's CPU time, and so much memory over idle.
const (
	targetCPU    = 1.5
	targetMemory = 64 << 20
)

// ociStand is where both sides work on a registry.
type ociStand struct {
	site
	dir    string
	remote *remoteRegistry
	layer  served
	polls  int
}

// setUpOCI makes and serves the layer.
func setUpOCI(ctx context.Context, dir string, p plan) (s *ociStand, stop func() error, err error) {
	remote, err := startRegistry(ctx, filepath.Join(dir, "registry"), p.layer)
	if err != nil {
		return nil, nil, err
	}
	s = &ociStand{dir: dir, remote: remote, polls: p.polls}
	if s.layer, err = remote.push("first"); err != nil {
		return nil, nil, errors.Join(err, remote.stop())
	}
	s.site = site{ctx: ctx, url: "oci://" + s.layer.Host + "/" + releaseName, sent: remote.sent}
	return s, remote.stop, nil
}

// compareOCI serves a layer, measures all work a number of times, and prints the table.
func compareOCI(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	fmt.Fprintf(out, "making a layer of %d MiB\n", p.layer)
	s, stop, err := setUpOCI(ctx, dir, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Fprintf(out, "%d bytes in one layer, served by CNCF Distribution from files on loopback\n%s\n", s.layer.Size, machine(p))
	samples := map[string][]sample{}
	for round := range p.rounds {
		if err := s.round(round, samples); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(out, "round %d of %d done\n", round+1, p.rounds)
	}
	fmt.Fprintln(out)
	rows := []row{
		{idle, "", ""},
		{pull, downloads, "download"},
		{moved, downloads, "download"},
		{movedWarm, downloads, "download"},
		{ociNoop, heads, "HEAD"},
		{ociPolling, heads, "HEAD"},
		{pullExtract, downloads, "download"},
	}
	if err := printTable(out, rows, samples); err != nil {
		return err
	}
	fmt.Fprintln(out)
	printTargets(out, samples)
	printSteps(out, samples, pull, moved, pullExtract)
	fmt.Fprint(out, ociNotes)
	return nil
}

// What each kind of work is measured against.
const (
	downloads = "GET of the layer into a file, sha256"
	heads     = "HEAD of the manifest"
)

const ociNotes = `
CPU is user and system time of the measured processes, not of the registry. Both sides are processes of the same
program, so that both pay for its start; "idle" is that start, with storage and clients but no work. Received is all
that the registry sent, HTTP included. Sluice also asks for the tag and the manifest, checks the layer's digest, and
flushes the artifact to disk before it is published; the download does none of that. A new process of sluice hashes
the stored artifact before it believes it; "running" is a process that has done so, as in the manager. The artifacts
that were copied are the layer byte for byte. "extract" unpacks the layer and archives its files, beside the same
download for information.
`

// round measures all work once. The sides take turns in going first, so that neither always finds warm caches.
func (s *ociStand) round(number int, samples map[string][]sample) error {
	folder := func(name string) string { return filepath.Join(s.dir, name+"-"+strconv.Itoa(number)) }
	ours, unpacked, theirs := folder("copy"), folder("extract"), folder("download")
	defer func() { os.RemoveAll(ours); os.RemoveAll(unpacked); os.RemoveAll(theirs) }()
	download := func() (usage, error) {
		u, err := s.run(job{what: jobDownload, dir: theirs, url: s.blob()})
		u.artifact = s.layer.Size
		return u, err
	}
	head := func() (usage, error) { return s.run(job{what: jobHead, url: s.manifest()}) }

	started, err := s.run(job{what: jobIdle, dir: folder("idle"), url: s.url})
	if err != nil {
		return fmt.Errorf("%s: %w", idle, err)
	}
	defer os.RemoveAll(folder("idle"))
	samples[idle] = append(samples[idle], sample{ours: started})
	works := []struct {
		name    string
		what    jobKind
		dir     string
		changes bool
		theirs  func() (usage, error)
	}{
		{pull, jobCopy, ours, true, download},
		{moved, jobCopy, ours, true, download},
		{ociNoop, jobCopy, ours, false, head},
		{pullExtract, jobExtract, unpacked, true, download},
	}
	for i, w := range works {
		if w.name == moved {
			if err := s.move(number, "new"); err != nil {
				return err
			}
		}
		one, report, err := s.both((number+i)%2 == 1, w.what, w.dir, w.theirs)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if report.Changed != w.changes {
			return fmt.Errorf("%s: artifact made: %v, want %v", w.name, report.Changed, w.changes)
		}
		if err := s.check(w.what, report); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		samples[w.name] = append(samples[w.name], one)
	}
	return s.warm(number, ours, samples)
}

// warm measures what a running process does with the state in dir: no-ops, then a tag that moves.
func (s *ociStand) warm(number int, dir string, samples map[string][]sample) (err error) {
	polled, err := s.polling(jobCopy, dir, s.polls)
	if err != nil {
		return fmt.Errorf("%s: %w", ociPolling, err)
	}
	against := samples[ociNoop][len(samples[ociNoop])-1].theirs
	samples[ociPolling] = append(samples[ociPolling], sample{ours: polled, theirs: against})

	process, err := s.start(jobCopy, dir)
	if process != nil {
		defer func() { err = errors.Join(err, process.stop()) }()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", movedWarm, err)
	}
	if err := s.move(number, "running"); err != nil {
		return err
	}
	one, _, err := process.again(1, 1)
	if err != nil {
		return fmt.Errorf("%s: %w", movedWarm, err)
	}
	one.artifact = s.layer.Size
	against = samples[moved][len(samples[moved])-1].theirs
	samples[movedWarm] = append(samples[movedWarm], sample{ours: one, theirs: against})
	return nil
}

// check makes sure that a figure is one for the work that it stands for.
func (s *ociStand) check(what jobKind, report result) error {
	if what == jobExtract {
		return nil
	}
	if report.Digest != s.layer.Layer || report.Size != s.layer.Size {
		return fmt.Errorf("artifact of %d bytes is %s, the layer %s", report.Size, report.Digest, s.layer.Layer)
	}
	return nil
}

// move pushes another manifest of the same layer under the tag.
func (s *ociStand) move(number int, why string) error {
	_, err := s.remote.push(why + " " + strconv.Itoa(number))
	return err
}

func (s *ociStand) blob() string {
	return "http://" + s.layer.Host + "/v2/" + releaseName + "/blobs/" + s.layer.Layer.String()
}

func (s *ociStand) manifest() string {
	return "http://" + s.layer.Host + "/v2/" + releaseName + "/manifests/" + releaseTag
}

// printTargets says how a cold pull stands to what is wanted of it, with and without the start of the process.
func printTargets(out io.Writer, samples map[string][]sample) {
	started := medians(samples[idle], func(s sample) usage { return s.ours })
	ours := medians(samples[pull], func(s sample) usage { return s.ours })
	theirs := medians(samples[pull], func(s sample) usage { return s.theirs })
	over := ours.peak - started.peak
	fmt.Fprintf(out, "%s: CPU %s of the download's, %s without the start of both (target %.1f); peak memory %s over idle (target %s)\n",
		pull, ratio(int64(ours.cpu), int64(theirs.cpu)), ratio(beyond(ours, started), beyond(theirs, started)), targetCPU,
		bytesText(over), bytesText(targetMemory))
}

// beyond is the CPU time that a process took after its start.
func beyond(u, started usage) int64 { return max(0, int64(u.cpu-started.cpu)/int64(time.Microsecond)) }
