package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

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
	request := s.Core.RESTClient().Get().Namespace(labels[1]).Resource("services").Name(name).SubResource("proxy").Suffix(address.EscapedPath())
	if err := request.Error(); err != nil {
		return nil, fmt.Errorf("%w: its url names no Service of the cluster: %w", fetch.ErrArtifact, err)
	}
	response, err := s.ask(ctx, request.URL())
	if err != nil {
		return nil, fmt.Errorf("%w: through the API server: %w", fetch.ErrUnavailable, err)
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		return nil, s.refused(response)
	}
	return response, nil
}

// ask asks without client-go's own way of reading answers. Who answers behind the proxy may be anybody: whoever follows a redirect
// of his takes the login along, a body of his that says what is wrong has no end, and he has the request sent anew for as long as
// he likes.
func (s *Content) ask(ctx context.Context, address *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity")
	client := http.DefaultClient
	if made, ok := s.Core.RESTClient().(*rest.RESTClient); ok && made.Client != nil {
		client = made.Client
	}
	alike := *client
	alike.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return alike.Do(request)
}

// maxRefusal is how much is read of an answer that is not the content.
const maxRefusal = 16 << 10

// refused is why an answer is not the content, in the words of the API server where they are its own.
func (s *Content) refused(response *http.Response) error {
	code := response.StatusCode
	why := fmt.Errorf("it answers %d %s", code, http.StatusText(code))
	if code >= 300 && code < 400 {
		return fmt.Errorf("%w: through the API server: %w, and redirects are not followed", fetch.ErrStatus, why)
	}
	var status metav1.Status
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err == nil && json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Code == int32(code) { //nolint:gosec // A status has three digits.
		why = &apierrors.StatusError{ErrStatus: status}
	}
	if apierrors.IsForbidden(why) || apierrors.IsUnauthorized(why) {
		s.mu.Lock()
		s.err = why
		s.mu.Unlock()
	}
	return fmt.Errorf("%w: through the API server: %w", fetch.ErrUnavailable, why)
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
	return &http.Response{StatusCode: http.StatusOK, Body: file, ContentLength: info.Size()}, nil
}
