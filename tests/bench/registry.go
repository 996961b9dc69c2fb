package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream/registry"
)

const (
	releaseName  = "bench/release"
	releaseTag   = "stable"
	manifestType = ocispec.MediaTypeImageManifest
)

// served is what the registry's process says on each line.
type served struct {
	// Host is host:port.
	Host string
	// Layer is the digest of the layer, and Size its length.
	Layer digest.Digest
	Size  int64
	// Sent counts all bytes that the registry has sent.
	Sent int64
}

// serveRegistry is a registry in a process of its own, so that its memory and its CPU time are not ours. For each line
// that it reads it moves the tag to a new manifest of the same layer, whose title is the line; an empty line moves
// nothing. Then it says how it stands.
func serveRegistry(ctx context.Context, dir string, mib int64) (err error) {
	server, err := registry.New(ctx, registry.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	content, err := layer(mib << 20)
	if err != nil {
		return err
	}
	manifest := registry.Manifest{Layers: []registry.Layer{{MediaType: registry.FluxContent, Content: content}}}
	repository, out := server.Repository(releaseName), json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if title := lines.Text(); title != "" {
			manifest.Annotations = map[string]string{ocispec.AnnotationTitle: title}
			if _, err := repository.Push(ctx, releaseTag, manifest); err != nil {
				return err
			}
		}
		if err := out.Encode(served{
			Host: server.Host(), Layer: digest.FromBytes(content), Size: int64(len(content)), Sent: server.BytesOut(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// layer is a tar.gz of about that size, of files that shrink to half; the same on every run.
func layer(size int64) ([]byte, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	files := tar.NewWriter(zipped)
	chance := rand.NewChaCha8([32]byte{})
	raw, text := make([]byte, 64<<10), make([]byte, 0, 128<<10)
	for i := 0; int64(packed.Len()) < size; i++ {
		_, _ = chance.Read(raw) // It has no way to fail.
		text = fmt.Appendf(text[:0], "%x", raw)
		header := &tar.Header{Name: fmt.Sprintf("part-%05d.txt", i), Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(text); err != nil {
			return nil, err
		}
	}
	err = errors.Join(files.Close(), zipped.Close())
	return packed.Bytes(), err
}

// remoteRegistry is that process as seen from here.
type remoteRegistry struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
}

func startRegistry(ctx context.Context, dir string, mib int64) (*remoteRegistry, error) {
	cmd, err := self(ctx, job{what: jobRegistry, dir: dir}, "-layer", fmt.Sprint(mib))
	if err != nil {
		return nil, err
	}
	r := &remoteRegistry{cmd: cmd}
	if r.orders, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.answers = bufio.NewReader(out)
	cmd.Stderr = os.Stderr
	return r, cmd.Start()
}

// push moves the tag to a manifest of that title.
func (r *remoteRegistry) push(title string) (served, error) {
	if _, err := io.WriteString(r.orders, title+"\n"); err != nil {
		return served{}, fmt.Errorf("registry: %w", err)
	}
	line, err := r.answers.ReadBytes('\n')
	if err != nil {
		return served{}, fmt.Errorf("registry: %w", err)
	}
	var now served
	return now, json.Unmarshal(line, &now)
}

// sent is how many bytes the registry has sent so far.
func (r *remoteRegistry) sent() (int64, error) {
	now, err := r.push("")
	return now.Sent, err
}

func (r *remoteRegistry) stop() error {
	return errors.Join(r.orders.Close(), r.cmd.Wait())
}
