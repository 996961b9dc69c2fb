package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestPanicsAreNotVerified(t *testing.T) {
	t.Parallel()
	signature := Signature{Content: []byte("x")}
	for _, cause := range []any{"words\n\x1b[31m" + strings.Repeat("x", 10_000), errors.New("failed"), 7} {
		signer, err := guarded(t.Context(), signature, func() (Signer, error) { panic(cause) })
		if signer != (Signer{}) || !errors.Is(err, ErrSignature) {
			t.Errorf("guarded = %+v, %v, want ErrSignature", signer, err)
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 500 {
			t.Errorf("the error is not fit to be shown: %q", err)
		}
	}
}

func TestDeadlinesAreNoVerdict(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	signature := Signature{Content: []byte("x")}
	_, err := guarded(ctx, signature, func() (Signer, error) {
		cancel()
		return Signer{}, refuse("revocation is unknown")
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrSignature) {
		t.Errorf("guarded = %v, want the context's error", err)
	}
	_, err = guarded(ctx, signature, func() (Signer, error) {
		t.Error("verified after the deadline")
		return Signer{}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("guarded = %v, want the context's error", err)
	}
}

func TestLimitsComeFirst(t *testing.T) {
	t.Parallel()
	for name, signature := range map[string]Signature{
		"empty":       {},
		"content":     {Content: make([]byte, MaxSignatureBytes+1)},
		"annotations": {Content: []byte("x"), Annotations: map[string]string{"a": strings.Repeat("x", maxAnnotationBytes)}},
	} {
		_, err := guarded(t.Context(), signature, func() (Signer, error) {
			t.Errorf("%s: verified", name)
			return Signer{}, nil
		})
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v, want ErrSignature", name, err)
		}
	}
}

func TestRepositoriesAreComparedInOneWriting(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"registry.example/team/app":                 "registry.example/team/app",
		"REGISTRY.example/team/app":                 "registry.example/team/app",
		"registry.example:5000/team/app:v1":         "registry.example:5000/team/app",
		"registry.example:5000/app@sha256:00":       "registry.example:5000/app",
		"registry.example/app:v1@sha256:00":         "registry.example/app",
		"localhost/app":                             "localhost/app",
		"localhost:5000/app":                        "localhost:5000/app",
		"[::1]:5000/app:v1":                         "[::1]:5000/app",
		"app":                                       "docker.io/library/app",
		"app:v1":                                    "docker.io/library/app",
		"team/app":                                  "docker.io/team/app",
		"docker.io/app":                             "docker.io/library/app",
		"index.docker.io/library/app":               "docker.io/library/app",
		"registry-1.docker.io/team/app:v1@sha256:0": "docker.io/team/app",
		"registry.example/library/app":              "registry.example/library/app",
	} {
		if got := canonicalRepository(name); got != want {
			t.Errorf("canonicalRepository(%q) = %q, want %q", name, got, want)
		}
	}
}
