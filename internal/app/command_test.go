package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sluice.dev/sluice/tests/testenv"
)

// interrupted is the variable that has a process of these tests become the program, which reads the file.
const interrupted = "SLUICE_TEST_INTERRUPTED"

func TestMain(m *testing.M) {
	if file := os.Getenv(interrupted); file != "" {
		os.Exit(Main("sluice", []string{"why", "foo", "--offline", "-f", file}))
	}
	os.Exit(testenv.Main(m, &env))
}

// TestTheSecondInterruptEndsTheProcess: whatever it is at, such as a file that nobody writes, which no context ends.
func TestTheSecondInterruptEndsTheProcess(t *testing.T) {
	t.Parallel()
	silent := filepath.Join(t.TempDir(), "silent.yaml")
	if err := syscall.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), interrupted+"="+silent)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// Where it reads already, a writer finds a reader.
	testenv.Eventually(t, "the file is being read", func(context.Context) (bool, string) {
		writer, err := os.OpenFile(silent, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			t.Cleanup(func() { _ = writer.Close() })
		}
		return err == nil, fmt.Sprint(err)
	})
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // How it ended is in its state.
		close(ended)
	}()
	testenv.Eventually(t, "it ends", func(context.Context) (bool, string) {
		select {
		case <-ended:
			return true, ""
		default:
			return false, fmt.Sprint("signalled: ", command.Process.Signal(os.Interrupt))
		}
	})
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", command.ProcessState)
	}
}
