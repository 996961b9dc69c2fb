// Command gcs is fake-gcs-server, an emulator of Google Cloud Storage. It prints the address that it listens on, and ends with
// its standard input, so that nothing of it outlives the test that started it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

func main() {
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Host: "127.0.0.1", Port: 0, Scheme: "http"})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gcs:", err)
		os.Exit(1)
	}
	defer server.Stop()
	fmt.Println(server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
