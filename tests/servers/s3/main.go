// Command s3 is versitygw, a real S3 server, over a folder of its own. It prints the address that it listens on, and ends with
// its standard input, so that nothing of it outlives the test that started it.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := os.MkdirTemp("", "s3-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	data, side := filepath.Join(root, "data"), filepath.Join(root, "side")
	for _, dir := range []string{data, side} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	address, err := free()
	if err != nil {
		return err
	}
	fmt.Println(address) // Before the server prints lines of its own.
	beside, err := meta.NewSideCar(side)
	if err != nil {
		return err
	}
	backend, err := posix.New(data, beside, posix.PosixOpts{SideCarDir: side})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: os.Getenv("ACCESS_KEY"), RootUserSecret: os.Getenv("SECRET_KEY"), Region: "us-east-1",
		Ports: []string{address}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 100, Quiet: true, KeepAlive: true,
	})
}

// free is an address that nobody listens on. The server takes no listener that is open already.
func free() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
