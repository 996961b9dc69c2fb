package credential_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
)

const canary = "s3cr3t-canary"

func TestSecretNeverPrintsItself(t *testing.T) {
	t.Parallel()
	type holder struct {
		Token   credential.Secret
		Pointer *credential.Secret
	}
	secret := credential.NewSecret(canary)
	values := map[string]any{
		"value": secret, "pointer": &secret, "struct": holder{Token: secret, Pointer: &secret},
		"slice": []credential.Secret{secret}, "map": map[string]credential.Secret{"k": secret},
		"git": credential.Git{
			Username: "u", Password: secret, BearerToken: secret, TLS: credential.TLS{Key: secret},
			SSH: &credential.SSH{PrivateKey: secret, Passphrase: secret},
		},
		"registry": credential.Registry{
			Username: "u", Password: secret, IdentityToken: secret, RegistryToken: secret, TLS: credential.TLS{Key: secret},
			Proxy: credential.Proxy{Username: "u", Password: secret},
		},
	}
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s", "%w"} {
			if text := fmt.Sprintf(verb, value); leaks(text) {
				t.Errorf("%s with %s leaks: %s", name, verb, text)
			}
		}
		encoded, err := json.Marshal(value)
		if err != nil || leaks(string(encoded)) {
			t.Errorf("%s as JSON: %s, %v", name, encoded, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
		if leaks(log.String()) {
			t.Errorf("%s in a log: %s", name, log.String())
		}
	}
	if text, err := secret.MarshalText(); err != nil || string(text) != "[redacted]" {
		t.Errorf("text: %s, %v", text, err)
	}
	if secret.Reveal() != canary {
		t.Error("Reveal must return the value")
	}
	if !secret.Equal(credential.NewSecret([]byte(canary))) || secret.Equal(credential.Secret{}) {
		t.Error("Equal must compare values")
	}
	if zero := (credential.Secret{}); zero.String() != "" || !zero.IsZero() {
		t.Error("an empty secret must print as nothing")
	}
}

func leaks(text string) bool {
	return strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) ||
		strings.Contains(text, fmt.Sprintf("%X", canary)) || strings.Contains(text, fmt.Sprintf("%v", []byte(canary)))
}
