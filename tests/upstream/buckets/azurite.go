package buckets

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"

	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/programs"
)

// The account that Azurite has.
const (
	AzureAccount = "devstoreaccount1"
	AzureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// ServeAzure starts Azurite, Microsoft's emulator of Azure's storage, and returns the URL of its account's blobs; empty where there is
// no Node.js to run it. It ends with the test.
func ServeAzure(t upstream.TB, root, dir string) string {
	t.Helper()
	path, err := programs.Path(context.WithoutCancel(t.Context()), root, "azurite/node_modules/.bin/azurite-blob")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), path,
		"--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry")
	process.Dir, process.Stderr = dir, os.Stderr
	output, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatalf("start azurite: %v", err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "listens on "); ok {
			go func() {
				for lines.Scan() { // What nobody reads would hold it up.
				}
			}()
			return strings.TrimSpace(address) + "/" + AzureAccount
		}
	}
	t.Fatalf("azurite does not say where it listens")
	return ""
}
