package auth_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/failure"
)

func TestHelmCredentials(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, url    string
		secret         map[string]string
		user, password string
		says           string
	}{
		"None":       {reason: "no Secret, no credential", url: "https://x/y"},
		"InURL":      {reason: "a user in the URL counts", url: "https://u:p@x/y", user: "u", password: "p"},
		"Basic":      {reason: "user and password", url: "https://x/y", secret: map[string]string{"username": "a", "password": "b"}, user: "a", password: "b"},
		"Both":       {reason: "the Secret wins", url: "https://u:p@x/y", secret: map[string]string{"username": "a", "password": "b"}, user: "a", password: "b"},
		"Docker":     {reason: "a docker config is as good as none", url: "https://x/y", secret: map[string]string{".dockerconfigjson": "{}"}},
		"NoPassword": {reason: "half a credential is a mistake", url: "https://x/y", secret: map[string]string{"username": "a"}, says: "failed to get authentication secret 'n/s': "},
		"NoUser":     {reason: "and so is the other half", url: "https://x/y", secret: map[string]string{"password": "b"}, says: "failed to get authentication secret 'n/s': "},
		"OldKey":     {reason: "old keys for TLS are checked as new ones", url: "https://x/y", secret: map[string]string{"certFile": "c"}, says: "has only one of"},
		"OldCA":      {reason: "and so is an old authority", url: "https://x/y", secret: map[string]string{"caFile": "c"}, says: "caFile"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{}}
			for key, value := range tc.secret {
				secret.Data[key] = []byte(value)
			}
			request := auth.HelmRequest{Namespace: "n", URL: tc.url}
			if tc.secret != nil {
				request.SecretName = "s"
			}
			login, clean, err := auth.New(fake.NewClientBuilder().WithObjects(secret).Build(), auth.Options{}).Helm(t.Context(), request)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || failure.Of(err).Reason != sourcev1.AuthenticationFailedReason {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if err != nil || clean != "https://x/y" || login.Username != tc.user || login.Password.Reveal() != tc.password {
				t.Errorf("%s: got %q %q, %q, %v", tc.reason, login.Username, login.Password.Reveal(), clean, err)
			}
		})
	}
}
