package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/tests/upstream"
)

// answer is a whole answer of the artifact server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request without a body. Nothing is unpacked or followed on the way.
func ask(ctx context.Context, method, url string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, err
	}
	maps.Copy(request.Header, header)
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: body}, err
}

// get asks for a URL without any header.
func get(ctx context.Context, url string) (answer, error) {
	return ask(ctx, http.MethodGet, url, nil)
}

// download gets an artifact as a consumer does, and checks size and digest.
func (s *scene) download(artifact *meta.Artifact) []byte {
	s.t.Helper()
	last, err := get(s.t.Context(), artifact.URL)
	if err != nil || last.status != http.StatusOK {
		s.t.Fatalf("GET %s: status %d, %v", artifact.URL, last.status, err)
	}
	if got := digest.FromBytes(last.body); got.String() != artifact.Digest || int64(len(last.body)) != *artifact.Size {
		s.t.Fatalf("%s: got %d bytes with digest %s, status says %s", artifact.URL, len(last.body), got, asJSON(artifact))
	}
	return last.body
}

// holds fails when the artifact is not exactly these files.
func (s *scene) holds(artifact *meta.Artifact, want upstream.Files) {
	s.t.Helper()
	got, err := untar(s.download(artifact))
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("artifact of %s differs from what upstream holds (-want +got):\n%s", artifact.Revision, diff)
	}
}

// untar reads a whole tar.gz; what ends too early is an error. Folders are left out, as git has none.
func untar(body []byte) (upstream.Files, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unzip: %w", err)
	}
	found := upstream.Files{}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			// The checksum of gzip comes last.
			_, err = io.Copy(io.Discard, unzipped)
			return found, err
		}
		if err != nil {
			return nil, fmt.Errorf("untar: %w", err)
		}
		switch header.Typeflag {
		case tar.TypeDir:
		case tar.TypeSymlink:
			found[header.Name] = upstream.File{Mode: upstream.Symlink, Content: header.Linkname}
		case tar.TypeReg:
			content, err := io.ReadAll(files)
			if err != nil {
				return nil, fmt.Errorf("untar %q: %w", header.Name, err)
			}
			mode := upstream.Regular
			if header.Mode&0o100 != 0 {
				mode = upstream.Executable
			}
			found[header.Name] = upstream.File{Mode: mode, Content: string(content)}
		default:
			return nil, fmt.Errorf("untar %q: unexpected type %q", header.Name, header.Typeflag)
		}
	}
}

// noise is text that does not compress well; equal numbers give equal text.
func noise(bytes int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 1))
	text := make([]byte, bytes)
	for i := range text {
		text[i] = byte(33 + random.IntN(94))
	}
	return string(text)
}

// oneFile is a small tree.
func oneFile(content string) upstream.Files {
	return upstream.Text(map[string]string{"deploy/app.yaml": content})
}
