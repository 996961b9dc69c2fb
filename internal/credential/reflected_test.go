package credential

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestReflectedSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const password = `CANARY"pass` + "\tword"
	git := Git{Username: "user", Password: NewSecret(password)}
	tokenAsUser := Git{Username: "CANARYtoken"}
	proxied := Registry{Username: "CANARYuser", Proxy: Proxy{Username: "out", Password: NewSecret("CANARYway")}}
	tokens := Registry{Username: "user", IdentityToken: NewSecret("CANARYid"), RegistryToken: NewSecret("CANARYbearer")}
	signed := Bucket{Query: NewSecret("?sv=1&sig=CANARYsig%2Bmore%3D")}
	cases := map[string]struct {
		reason string
		from   interface{ Secrets() []Secret }
		text   string
	}{
		"Plain":       {"as it is", git, password},
		"Quoted":      {"between quotes that a server's words are shown in", git, `server says "CANARY\"pass\tword"`},
		"GoQuoted":    {"as %q prints it", git, `"CANARY\"pass\tword"`},
		"Basic":       {"as basic authentication sends it", git, "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))},
		"Cut":         {"cut short by whoever shows the text", git, `server says "CANARY\"pass…"`},
		"TokenAsUser": {"a token in the place of the user name", tokenAsUser, "no access for CANARYtoken"},
		"TokenBasic":  {"the same as basic authentication sends it", tokenAsUser, base64.StdEncoding.EncodeToString([]byte("CANARYtoken:"))},
		"Proxy":       {"as a proxy is given it", proxied, "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("out:CANARYway"))},
		"ProxyPlain":  {"the proxy's password as it is", proxied, "no CANARYway"},
		"LoginUser":   {"a token in the place of a registry's user", proxied, "no CANARYuser"},
		"Identity":    {"a token to be exchanged", tokens, "grant_type=refresh_token&refresh_token=CANARYid"},
		"Bearer":      {"a token for the registry", tokens, `Bearer "CANARYbearer"`},
		"Signature":   {"a signature without what it signs", signed, "bad sig: CANARYsig%2Bmore%3D"},
		"Unescaped":   {"the same as it was made", signed, "bad sig: CANARYsig+more="},
		"TokenCut":    {"the same cut short", tokenAsUser, "no access for CANARYt… and more…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Redact(tc.text, tc.from.Secrets()...)
			if strings.Contains(got, "CANARY") || !strings.Contains(got, redacted) {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

func TestTextWithoutSecretsStays(t *testing.T) {
	t.Parallel()
	const text = "the server cut this… and that…"
	if got := Redact(text, Git{Username: "user", Password: NewSecret("another")}.Secrets()...); got != text {
		t.Errorf("got %q", got)
	}
}
