package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
)

func TestAdmission(t *testing.T) {
	t.Parallel()
	subject, _ := admin(t)
	cases := map[string]struct {
		reason string
		guards []string
		want   error
		words  string
	}{
		"webhook": {
			reason: "a webhook whose server is not up yet",
			guards: []string{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS}, webhooks: [{name: down.example.com,
				clientConfig: {url: "https://127.0.0.1:1/"}, admissionReviewVersions: [v1], sideEffects: None, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}},
				rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]}]}`},
			want: cluster.ErrWebhook, words: "down.example.com",
		},
		"policy": {
			reason: "a policy that speaks of what is immutable is no immutable field",
			guards: []string{
				`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NS}, spec: {
				matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]},
				validations: [{expression: "false", message: it is immutable by decree}]}}`,
				`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NS}, spec: {policyName: NS, validationActions: [Deny]}}`,
			},
			want: cluster.ErrDenied, words: "it is immutable by decree",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.NewNamespace(t)
			for _, guard := range tc.guards {
				manifest := object(t, "%s", strings.ReplaceAll(guard, "NS", namespace))
				apply(t, subject, manifest, cluster.ApplyOptions{Manager: manager})
				t.Cleanup(func() {
					if err := env.Client.Delete(context.WithoutCancel(t.Context()), manifest); client.IgnoreNotFound(err) != nil {
						t.Error(err)
					}
				})
			}
			retry(t, func() error {
				_, err := subject.Apply(t.Context(), configMap(t, namespace, "me", time.Now().String()), cluster.ApplyOptions{Manager: manager})
				if err == nil {
					return errors.New("the guard is not on duty yet")
				}
				if !errors.Is(err, tc.want) {
					t.Fatalf("%s: want %v, got %v", tc.reason, tc.want, err)
				}
				wantWords(t, err, tc.words)
				return nil
			})
		})
	}
}

func TestAPIServerOutOfReachOrOverloaded(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	cases := map[string]struct {
		reason string
		answer func(*http.Request) (*http.Response, error)
		words  string
	}{
		"cut": {
			reason: "the connection is cut",
			answer: func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
			words:  "unexpected EOF",
		},
		"failing": {
			reason: "a server in between fails, with words that would run over several lines",
			answer: func(r *http.Request) (*http.Response, error) {
				return answer(r, http.StatusBadGateway, "bad\ngateway\x1b[31m")
			},
			words: "apply ConfigMap " + namespace + "/subject: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := wrapped(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.Method == http.MethodPatch {
						return tc.answer(request)
					}
					return next.RoundTrip(request)
				})
			})
			connector, err := cluster.NewConnector(config, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = as(t, connector, cluster.Identity{}).Apply(t.Context(), configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
			if !errors.Is(err, cluster.ErrUnavailable) {
				t.Fatalf("%s: want ErrUnavailable, got %v", tc.reason, err)
			}
			wantWords(t, err, tc.words)
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("the error does not print: %q", err)
			}
		})
	}
}

func TestBusyAPIServerIsAskedAgainAFewTimes(t *testing.T) {
	t.Parallel()
	delays := make(chan string, 3)
	for _, seconds := range []string{"0", "0", "7"} {
		delays <- seconds
	}
	config := wrapped(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodPatch {
				return next.RoundTrip(request)
			}
			response, err := answer(request, http.StatusTooManyRequests, "busy")
			response.Header.Set("Retry-After", <-delays)
			return response, err
		})
	})
	connector, err := cluster.NewConnector(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = as(t, connector, cluster.Identity{}).Apply(t.Context(), configMap(t, "default", "me", "1"), cluster.ApplyOptions{Manager: manager})
	var answered *cluster.AnswerError
	if !errors.As(err, &answered) || !errors.Is(err, cluster.ErrUnavailable) || answered.After != 7*time.Second {
		t.Errorf("want ErrUnavailable after 7s, got %+v", err)
	}
}

func TestCallerWhoGivesUpIsToldSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	subject, _ := admin(t)
	_, err := subject.Apply(ctx, configMap(t, "default", "me", "1"), cluster.ApplyOptions{Manager: manager})
	if !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up: want ErrUnavailable and context.Canceled, got %v", err)
	}
}

func answer(request *http.Request, code int, body string) (*http.Response, error) {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}
