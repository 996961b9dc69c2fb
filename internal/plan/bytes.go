package plan

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"sluice.dev/sluice/internal/engine/fetch"
)

// Content is where what is served is read: a file, or what the controllers serve, by the API server's proxy of their Service.
// Whatever comes is checked against the digest on record by whoever asks.
type Content struct {
	Core typedcorev1.CoreV1Interface
	// File is read instead of what is served, where it is given.
	File string

	mu  sync.Mutex
	err error
}

// Refused is why the API server did not let the content through; nil if it did, or was not asked.
func (s *Content) Refused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Get asks for the artifact. The error is one of package fetch.
func (s *Content) Get(ctx context.Context, a fetch.Artifact) (*http.Response, error) {
	if s.File != "" {
		return fromFile(s.File)
	}
	address, err := url.Parse(a.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: its url is not valid", fetch.ErrArtifact)
	}
	// A Service's name is NAME.NAMESPACE, and may go on with svc and the cluster's domain.
	labels := strings.Split(strings.TrimSuffix(address.Hostname(), "."), ".")
	if len(labels) < 2 || len(labels) > 2 && labels[2] != "svc" {
		return nil, fmt.Errorf("%w: its url names no Service of the cluster; have the content in a file, and name it", fetch.ErrArtifact)
	}
	name := labels[0]
	if port := address.Port(); port != "" {
		name += ":" + port
	}
	body, err := s.Core.RESTClient().Get().Namespace(labels[1]).Resource("services").Name(name).SubResource("proxy").
		Suffix(address.EscapedPath()).SetHeader("Accept-Encoding", "identity").SetHeader("Accept", "*/*").Stream(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: through the API server: %w", fetch.ErrUnavailable, err)
	}
	return found(body, -1), nil
}

func fromFile(path string) (*http.Response, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fetch.ErrUnavailable, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %w", fetch.ErrUnavailable, err)
	}
	return found(file, info.Size()), nil
}

func found(body io.ReadCloser, length int64) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: body, ContentLength: length}
}
