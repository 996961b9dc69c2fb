package auth

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/tests/testenv"
)

// TestTokenOfAnAccount asks a real API server: only there does it show whether the request is the right one.
func TestTokenOfAnAccount(t *testing.T) {
	env, err := testenv.Start(testenv.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	namespace := env.NewNamespace(t)
	must(t, env.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "apps"}}))

	found, err := New(env.Client, Options{}).account(t.Context(), namespace, "apps")
	must(t, err)
	token, err := issueToken(t.Context(), env.Client, found, []string{"sts.example"})
	must(t, err)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal("the token is no JSON web token")
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var got struct {
		Audiences []string `json:"aud"`
		Subject   string   `json:"sub"`
	}
	must(t, json.Unmarshal(claims, &got))
	if diff := cmp.Diff([]string{"sts.example"}, got.Audiences); diff != "" || got.Subject != "system:serviceaccount:"+namespace+":apps" {
		t.Errorf("the token is for %s, -want +got:\n%s", got.Subject, diff)
	}

	found.Name = "absent"
	if _, err := issueToken(t.Context(), env.Client, found, nil); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v", err)
	}
}
