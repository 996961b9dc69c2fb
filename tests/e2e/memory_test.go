package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// container is what the program may take in TestHostileInputsFitIntoASmallContainer.
const container = 256 << 20

// TestHostileInputsFitIntoASmallContainer: inputs that are each within their bounds come all at once, beside good ones, to a
// program in a container of 256 MiB without swap. Where no control group can be made, its peak is measured. The program is
// built without the race detector, which takes many times the memory. With SLUICE_TORTURE there are 40 and 100 of them.
func TestHostileInputsFitIntoASmallContainer(t *testing.T) {
	t.Parallel()
	plain, err := testenv.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	rounds, goods, files, objects := 2, 30, 60_000, 100_000
	if os.Getenv("SLUICE_TORTURE") != "" {
		rounds, goods, files, objects = 7, 100, 99_000, 1_000_000
	}
	s.prepare = func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args[0] = plain, plain
		cmd.Env = append(cmd.Env, "GOMEMLIMIT=192MiB")
	}
	server := s.hostileRepositories(files, objects)
	good := s.upstream.Repository("good")
	commit := good.Commit("main", "good", upstream.Text(map[string]string{"app.yaml": "kind: App"}))
	s.start()
	contained := contain(t, s.manager.Pid())

	// Artifacts that others include come first.
	s.create("wide-0", server.URL("wide"))
	s.ended("wide-0")
	var hostile []string
	for i := range rounds {
		for _, name := range []string{"wide", "deep", "message", "delta", "many"} {
			hostile = append(hostile, fmt.Sprintf("%s-%d", name, i+1))
			s.create(hostile[len(hostile)-1], server.URL(name))
		}
		var includes []change
		for place := range 36 {
			includes = append(includes, include("wide-0", "", fmt.Sprintf("in/%d", place)))
		}
		hostile = append(hostile, fmt.Sprintf("includes-%d", i))
		s.create(hostile[len(hostile)-1], server.URL("good"), includes...)
	}
	for i := range goods {
		s.create(fmt.Sprintf("good-%d", i), server.URL("good"))
	}
	for i := range goods {
		s.ready(fmt.Sprintf("good-%d", i), "main@sha1:"+commit)
	}
	for _, name := range hostile {
		s.ended(name)
	}
	select {
	case <-s.manager.Done():
		t.Fatal("the program was killed")
	default:
	}
	if peak := peakMemory(t, s.manager.Pid()); peak > container {
		t.Errorf("the program took %d MiB, in a control group: %t", peak>>20, contained)
	} else {
		t.Logf("the program took %d MiB at most, in a control group: %t", peak>>20, contained)
	}
}

// hostileRepositories are on one server: very many files, and more than may be, rules in a very deep folder, a long message,
// large deltas.
func (s *scene) hostileRepositories(files, objects int) *upstream.GitHTTP {
	for name, count := range map[string]int{"wide": files, "many": objects} {
		numbered := map[string]string{}
		for i := range count {
			numbered[fmt.Sprintf("%d/%d", i/1000, i)] = strconv.Itoa(i)
		}
		s.upstream.Repository(name).Commit("main", name, upstream.Text(numbered))
	}

	deep := strings.Repeat("d/", 250)
	var rules strings.Builder
	for i := range 9_900 {
		fmt.Fprintf(&rules, "%d/%d\n", i, i)
	}
	s.upstream.Repository("deep").Commit("main", "deep", upstream.Text(map[string]string{deep + ".sourceignore": rules.String(), deep + "file": ""}))

	s.upstream.Repository("message").Commit("main", strings.Repeat("a very long message\n", 15<<20/20), upstream.Text(map[string]string{"file": ""}))

	delta := s.upstream.Repository("delta")
	large := strings.Repeat("all the same but for a number\n", 30<<20/30)
	delta.Commit("main", "delta", upstream.Text(map[string]string{"one": large + "1", "two": large + "2", "three": large + "3"}))
	delta.Raw("repack", "-a", "-d", "-q", "--window=10")
	return s.upstream.HTTP(upstream.HTTPOptions{})
}

// ended waits until something has come of an object, good or bad.
func (s *scene) ended(name string) {
	s.t.Helper()
	s.until(name, "reported", func(obj *sourcev1.GitRepository) bool {
		ready := conditions.Get(obj, meta.ReadyCondition)
		return ready != nil && ready.Status != "Unknown"
	})
}

// contain puts a process into a control group with the limit; see the kernel's documentation of cgroup v1 and v2. It says
// whether that can be done here.
func contain(t *testing.T, pid int) bool {
	t.Helper()
	for root, limit := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		group := filepath.Join(root, fmt.Sprintf("sluice-test-%d", pid))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // It is empty once the program has ended.
		if tell(filepath.Join(group, limit), container) == nil && tell(filepath.Join(group, "cgroup.procs"), pid) == nil {
			return true
		}
	}
	return false
}

// tell writes a number into a file of the kernel's, which is there.
func tell(name string, number int) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(file, number)
	return errors.Join(err, file.Close())
}

// peakMemory is the most that a process had in memory; see proc_pid_status(5).
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var peak int64
	if _, err := fmt.Sscan(after, &peak); err != nil {
		t.Fatal(err)
	}
	return peak << 10
}
