package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/engine/cluster"
)

// A webhook asks for an hour. Whoever called is told so, rather than to sleep in the call.
func TestNobodySleepsForAWebhook(t *testing.T) {
	t.Parallel()
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests",
		"message":"admission webhook \"a\" asks for time","details":{"retryAfterSeconds":3600}}`
	connector, err := cluster.NewConnector(wrapped(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if !strings.Contains(request.URL.Path, "/configmaps") {
				return next.RoundTrip(request)
			}
			return &http.Response{
				StatusCode: http.StatusTooManyRequests, Request: request, Body: io.NopCloser(strings.NewReader(refusal)),
				Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"3600"}},
			}, nil
		})
	}), cluster.Options{RequestTimeout: 30 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	subject := as(t, connector, cluster.Identity{})
	ref := cluster.Ref{GVK: configMaps, Namespace: "default", Name: "a", UID: "b"}
	for name, call := range map[string]func() error{
		"get":      func() error { _, err := subject.Get(t.Context(), ref); return err },
		"metadata": func() error { _, err := subject.Metadata(t.Context(), ref); return err },
		"list": func() error {
			_, err := subject.Instances(t.Context(), configMaps.GroupKind(), "default", nil)
			return err
		},
		"objects": func() error { return subject.Objects(t.Context(), configMaps, "default", "", nil) },
		"delete":  func() error { _, err := subject.Delete(t.Context(), ref, ""); return err },
	} {
		answer, ok := errors.AsType[*cluster.AnswerError](call())
		if !ok || answer.After != time.Hour {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}
