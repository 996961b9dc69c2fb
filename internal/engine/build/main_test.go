package build_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"sluice.dev/sluice/internal/engine/build"
)

// TestMain makes the test's binary the worker that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case build.Subcommand:
		os.Exit(build.Main())
	case "worker-that-spins":
		must(build.ReadFrame(os.Stdin))
		must(build.Confine(256<<20, 1))
		for i := 0; ; i++ {
			spun = i
		}
	case "worker-that-hoards":
		must(build.ReadFrame(os.Stdin))
		must(build.Confine(64<<20, 600))
		var all [][]byte
		for {
			piece := make([]byte, 1<<20)
			for i := range piece {
				piece[i] = 1
			}
			all = append(all, piece)
			spun = len(all)
		}
	case "worker-that-sleeps":
		must(build.ReadFrame(os.Stdin))
		select {}
	case "worker-that-babbles":
		must(build.ReadFrame(os.Stdin))
		for {
			_, err := os.Stdout.WriteString("babble ")
			must(err)
		}
	case "worker-that-panics":
		panic("on purpose")
	case "worker-that-looks-around":
		lookAround()
	default:
		os.Exit(m.Run())
	}
}

// spun keeps the compiler from dropping the loops.
var spun int

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// lookAround tries what a build must not be able to do, and panics with the first that works.
func lookAround() {
	must(build.ReadFrame(os.Stdin))
	if environment := os.Environ(); len(environment) != 2 {
		panic(fmt.Sprint("it has an environment: ", environment))
	}
	fds, err := os.ReadDir("/proc/self/fd")
	must(err)
	for _, fd := range fds {
		target, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if err == nil && len(target) > 7 && target[:7] == "socket:" {
			panic("it inherited a socket")
		}
	}
	must(build.Confine(256<<20, 10))
	if _, err := os.ReadFile("/etc/passwd"); err == nil {
		panic("it can read files")
	}
	if err := os.WriteFile("/tmp/written-by-a-worker", nil, 0o600); err == nil {
		panic("it can write files")
	}
	if _, err := net.Dial("tcp", "127.0.0.1:1"); err == nil || !os.IsPermission(err) && err.Error() != "dial tcp 127.0.0.1:1: socket: operation not permitted" {
		panic(fmt.Sprint("it can connect: ", err))
	}
	if err := exec.Command("/bin/true").Run(); err == nil {
		panic("it can start programs")
	}
	panic("it can do nothing")
}
