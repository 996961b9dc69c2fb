package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a piece of work took.
type usage struct {
	cpu, wall time.Duration
	peak      int64 // of the largest process, in bytes
	received  int64 // bytes the server sent
	artifact  int64 // bytes of the artifact; zero when none is made
}

// measure runs the commands side by side, as a shell runs a pipeline, and adds up what they and their children used.
func measure(commands ...*exec.Cmd) (usage, error) {
	began := time.Now()
	errors := make([]*bytes.Buffer, len(commands))
	roots := make([]int, 0, len(commands))
	for i, cmd := range commands {
		errors[i] = &bytes.Buffer{}
		cmd.Stderr = errors[i]
		if err := cmd.Start(); err != nil {
			return usage{}, err
		}
		roots = append(roots, cmd.Process.Pid)
	}
	done, peak := make(chan struct{}), make(chan int64, 1)
	go func() { peak <- watch(roots, done) }()

	var u usage
	var failed error
	last := int64(0) // as the kernel tells at the end
	for i, cmd := range commands {
		if err := cmd.Wait(); err != nil && failed == nil {
			failed = fmt.Errorf("run %q: %w: %s", cmd.Args, err, bytes.TrimSpace(errors[i].Bytes()))
		}
		u.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if spent, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			last = max(last, spent.Maxrss<<10) // getrusage(2): in KiB
		}
	}
	u.wall = time.Since(began)
	close(done)
	if u.peak = <-peak; u.peak == 0 {
		u.peak = last // They were over before anybody looked.
	}
	return u, failed
}

// watch looks at the processes and their children until done, and gives the largest resident set of any.
// getrusage would not do: Linux counts what the parent held at the fork as the child's.
func watch(roots []int, done <-chan struct{}) int64 {
	peak := int64(0)
	for tick := 1; ; tick++ {
		for _, pid := range roots {
			peak = max(peak, largest(pid))
		}
		// Short processes are looked at often; long ones must not be disturbed.
		pause := time.Millisecond
		if tick > 100 {
			pause = 5 * time.Millisecond
		}
		select {
		case <-done:
			return peak
		case <-time.After(pause):
		}
	}
}

// The resident set of a process, now and at most, as proc_pid_status(5) names it.
const (
	residentNow = "VmRSS:"
	residentMax = "VmHWM:"
)

// held is what a process holds in memory, in bytes; zero when it has ended.
func held(pid int, what string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), what)
	kib, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, _ := strconv.ParseInt(kib, 10, 64)
	return n << 10
}

// largest is the highest resident set so far of a process or of any of its children, in bytes.
func largest(pid int) int64 {
	peak := held(pid, residentMax)
	for _, child := range children(pid) {
		peak = max(peak, largest(child))
	}
	return peak
}

// children are the processes that the process has started; none when it has ended.
func children(pid int) (pids []int) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for child := range strings.FieldsSeq(string(list)) {
		if n, err := strconv.Atoi(child); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
