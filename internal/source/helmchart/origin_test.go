package helmchart

import (
	"testing"

	"sluice.dev/sluice/internal/credential"
)

// TestOriginsAreComparedWithTheirPorts: written or not, and whatever the case.
func TestOriginsAreComparedWithTheirPorts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		repository, address string
		want                bool
	}{
		{"https://charts.example.com/a", "https://charts.example.com/b/app.tgz", true},
		{"https://charts.example.com", "https://Charts.Example.com:443/app.tgz", true},
		{"http://charts.example.com:80", "http://charts.example.com/app.tgz", true},
		{"https://charts.example.com", "https://charts.example.com:8443/app.tgz", false},
		{"https://charts.example.com", "http://charts.example.com:443/app.tgz", false},
		{"https://charts.example.com", "https://charts.example.com.evil.example/app.tgz", false},
		{"https://charts.example.com", "https://charts.example.com@evil.example/app.tgz", false},
		{"https://charts.example.com", "file:///etc/passwd", false},
	} {
		x := &indexed{url: tc.repository, login: credential.Login{Username: "u", Password: credential.NewSecret("p")}}
		if login := x.loginFor(tc.address); (login.Username != "") != tc.want || login.Password.IsZero() == tc.want {
			t.Errorf("%s, asked for by %s, is shown credentials: %t", tc.address, tc.repository, !tc.want)
		}
	}
}
