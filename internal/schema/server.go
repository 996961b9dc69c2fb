package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/utils/clock"
)

// ErrServer says that an API server could not be asked, or did not answer in words that are understood.
var ErrServer = errors.New("the schemas of the API server cannot be read")

const (
	// maxIndex bounds the list of documents, and maxDocument one of them.
	maxIndex, maxDocument = 4 << 20, 16 << 20
	// maxKept bounds the texts of the documents that are kept together; read, they take some five times as much.
	maxKept = 16 << 20
	// maxDocuments bounds how many are kept, however short.
	maxDocuments = 200
	// fresh is how long the list is good for, and patience how long one answer may take.
	fresh, patience = 15 * time.Second, 20 * time.Second
)

// Server reads the documents of one API server, each once as long as it stays the same. It may be used by many at a time.
type Server struct {
	client *http.Client
	host   url.URL
	clock  clock.PassiveClock

	// turn is taken by who asks or changes what follows.
	turn  chan struct{}
	index map[string]string // the addresses, by "apis/apps/v1"
	read  time.Time
	kept  *simplelru.LRU[string, *keptDocument]
	bytes int
}

type keptDocument struct {
	*Document

	bytes int
}

// NewServer returns a Server. The client says who is asking; every account may read what a Server asks for.
func NewServer(client *http.Client, host *url.URL, clock clock.PassiveClock) *Server {
	s := &Server{client: client, host: *host, clock: clock, turn: make(chan struct{}, 1)}
	// It fails for a size of nothing alone.
	s.kept, _ = simplelru.NewLRU(maxDocuments, func(_ string, gone *keptDocument) { s.bytes -= gone.bytes })
	return s
}

// Digest changes when what the server says of the version does. It is empty where there is no such version.
func (s *Server) Digest(ctx context.Context, group, version string) (string, error) {
	return locked(ctx, s, func() (string, error) { return s.address(ctx, group, version) })
}

// Version is what the server says of a version of a group, nil where there is no such version.
func (s *Server) Version(ctx context.Context, group, version string) (*Document, error) {
	return locked(ctx, s, func() (*Document, error) {
		address, err := s.address(ctx, group, version)
		if err != nil || address == "" {
			return nil, err
		}
		if found, ok := s.kept.Get(address); ok {
			return found.Document, nil
		}
		text, err := s.get(ctx, address, maxDocument)
		if err != nil {
			return nil, err
		}
		d, err := Parse(address, text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrServer, err)
		}
		s.kept.Add(address, &keptDocument{d, len(text)})
		for s.bytes += len(text); s.bytes > maxKept && s.kept.Len() > 1; {
			s.kept.RemoveOldest()
		}
		return d, nil
	})
}

// locked does it alone.
func locked[T any](ctx context.Context, s *Server, do func() (T, error)) (T, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return do()
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// address is where the document of a version is, with the hash of what it says: that is how the server names it.
func (s *Server) address(ctx context.Context, group, version string) (string, error) {
	name := path.Join("apis", group, version)
	if group == "" {
		name = path.Join("api", version)
	}
	if s.index == nil || s.clock.Since(s.read) > fresh {
		text, err := s.get(ctx, "/openapi/v3", maxIndex)
		if err != nil {
			return "", err
		}
		var read struct {
			Paths map[string]struct {
				URL string `json:"serverRelativeURL"`
			} `json:"paths"`
		}
		if err := json.Unmarshal(text, &read); err != nil || len(read.Paths) == 0 {
			return "", fmt.Errorf("%w: /openapi/v3 is no list of documents", ErrServer)
		}
		s.index, s.read = map[string]string{}, s.clock.Now()
		for name, at := range read.Paths {
			s.index[name] = at.URL
		}
	}
	return s.index[name], nil
}

// get reads what the server has at the address.
func (s *Server) get(ctx context.Context, address string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(at.Path, "/openapi/v3") {
		return nil, fmt.Errorf("%w: %q is no address of its OpenAPI", ErrServer, address)
	}
	whole := s.host
	whole.Path, whole.RawQuery = path.Join(s.host.Path, at.Path), at.RawQuery
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, whole.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrServer, err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrServer, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %s", ErrServer, at.Path, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrServer, at.Path, err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrServer, at.Path, most)
	}
	return text, nil
}
