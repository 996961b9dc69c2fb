package publish_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/verify/verifytest"
	fixture "sluice.dev/sluice/tests/upstream/registry"
)

// authority answers for one.
type authority func(*http.Request) (*http.Response, error)

func (a authority) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// TestAnAuthorityIsNotTrusted: it has the token, which no error quotes, and a time of its own, however slowly it answers.
func TestAnAuthorityIsNotTrusted(t *testing.T) {
	t.Parallel()
	token := verifytest.Token(t, "jane@example.com", "https://issuer.example")
	for name, answer := range map[string]authority{
		"Message": func(r *http.Request) (*http.Response, error) {
			body := `{"message": "invalid: ` + r.Header.Get("Authorization") + `"}`
			return &http.Response{StatusCode: http.StatusUnauthorized, Status: "401 Unauthorized", Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		},
		"Status": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusUnauthorized, Status: "401 " + token, Body: http.NoBody, Request: r}, nil
		},
		"Error": func(*http.Request) (*http.Response, error) {
			return nil, errors.New("malformed HTTP response " + token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounded := false
			signer, err := publish.NewKeyless(publish.KeylessOptions{
				Token: token, Authority: "https://authority.example", Log: "https://log.example", TrustedRoot: verifytest.NewSigstore(t).TrustedRoot(t),
				Client: &http.Client{Transport: authority(func(r *http.Request) (*http.Response, error) {
					_, bounded = r.Context().Deadline()
					return answer(r)
				})},
			})
			if err != nil {
				t.Fatal(err)
			}
			o := order(fixture.ForTest(t, fixture.Options{}), clone(t))
			o.Signer = signer
			if _, err = publish.Push(t.Context(), newClient(t), o); err == nil || strings.Contains(err.Error(), token) || !bounded {
				t.Errorf("ended with %v; it was bounded: %v", err, bounded)
			}
		})
	}
}
