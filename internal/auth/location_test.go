package auth

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		names      []string // of entries, in order
		host, path string
		want       string // name of the entry found; empty for none
	}{
		"host":            {"The plain case.", []string{"r.example"}, "r.example", "a", "r.example"},
		"case":            {"Hosts have no case.", []string{"R.Example"}, "r.eXample", "a", "R.Example"},
		"other host":      {"No part of a host matches.", []string{"r.example", "example"}, "x.r.example", "a", ""},
		"port":            {"Another port is another registry.", []string{"r.example", "r.example:5001"}, "r.example:5000", "a", ""},
		"same port":       {"The port is part of the name.", []string{"r.example", "r.example:5000"}, "r.example:5000", "a", "r.example:5000"},
		"scheme":          {"Old entries have a scheme.", []string{"https://r.example"}, "r.example", "a", "https://r.example"},
		"plain scheme":    {"Either of the two.", []string{"http://r.example/"}, "r.example", "a", "http://r.example/"},
		"version":         {"Old entries name the API.", []string{"https://r.example/v1/"}, "r.example", "a", "https://r.example/v1/"},
		"version 2":       {"With or without the slash.", []string{"r.example/v2"}, "r.example", "a", "r.example/v2"},
		"version, path":   {"The API is no part of the path.", []string{"r.example/v2/team"}, "r.example", "team/a", "r.example/v2/team"},
		"no version":      {"A path that looks alike is a path.", []string{"r.example/v10"}, "r.example", "a", ""},
		"path":            {"The path begins the repository's.", []string{"r.example/team"}, "r.example", "team/a", "r.example/team"},
		"other path":      {"Another team's login is not used.", []string{"r.example/other"}, "r.example", "team/a", ""},
		"longest path":    {"The most specific counts.", []string{"r.example", "r.example/team", "r.example/team/a", "r.example/team/b"}, "r.example", "team/a", "r.example/team/a"},
		"order":           {"The first of two that are alike.", []string{"https://r.example", "r.example"}, "r.example", "a", "https://r.example"},
		"glob":            {"A star is one label.", []string{"*.example"}, "r.example", "a", "*.example"},
		"glob, two":       {"A star is no dot.", []string{"*.example"}, "a.b.example", "a", ""},
		"glob, part":      {"A star may be a part of a label.", []string{"12*.dkr.example"}, "123.dkr.example", "a", "12*.dkr.example"},
		"glob, port":      {"Ports are not matched by stars.", []string{"*.example"}, "r.example:5000", "a", ""},
		"glob with port":  {"Ports are compared.", []string{"*.example:5000"}, "r.example:5000", "a", "*.example:5000"},
		"glob or host":    {"A host is closer than a pattern, whatever its path.", []string{"*.example/team", "r.example"}, "r.example", "team/a", "r.example"},
		"closer glob":     {"Fewer stars are closer.", []string{"*.*.example", "a.*.example"}, "a.b.example", "x", "a.*.example"},
		"bad glob":        {"What is no pattern matches nothing.", []string{"*[.example"}, "r.example", "a", ""},
		"docker hub":      {"The hub has several names.", []string{"https://index.docker.io/v1/"}, "docker.io", "library/a", "https://index.docker.io/v1/"},
		"docker hub's":    {"The hub has several names.", []string{"docker.io/me"}, "registry-1.docker.io", "me/a", "docker.io/me"},
		"docker hub, own": {"The hub has several names.", []string{"registry-1.docker.io"}, "index.docker.io", "me/a", "registry-1.docker.io"},
		"ipv6":            {"An address is a host.", []string{"[::1]:5000"}, "[::1]:5000", "a", "[::1]:5000"},
		"no host":         {"What names nobody matches nobody.", []string{"", "/team"}, "r.example", "team/a", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var entries []entry
			for _, name := range tc.names {
				entries = append(entries, entry{location: parseLocation(name), auth: dockerAuth{Username: name}})
			}
			best, found := lookup(entries, tc.host, tc.path)
			if best.auth.Username != tc.want || found != (tc.want != "") {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, best.auth.Username)
			}
		})
	}
}

// FuzzDockerConfig: whatever stands in a Secret is a login for its host, anonymity, or an error that quotes nothing.
func FuzzDockerConfig(f *testing.F) {
	f.Add(`{"auths":{"r.example":{"auth":"bWU6cHc="}}}`, "r.example")
	f.Add(`{"auths":{"https://*.example:5000/v2/x":{"username":"a","password":"b"}}}`, "r.example:5000")
	f.Add(`{"auths":{"r.example":{"identitytoken":"a"},"R.example/x":null}}`, "r.example")
	f.Add(`{"auths":[]}`, "[::1]:1")
	f.Fuzz(func(t *testing.T, text, host string) {
		s := secret{name: "apps/x", field: fieldSecret, data: map[string][]byte{keyDockerConfig: []byte(text)}}
		got, err := dockerLogin([]secret{s}, host, "x/y")
		if err != nil && !strings.HasPrefix(err.Error(), "secret 'apps/x' has ") {
			t.Errorf("got %v", err)
		}
		if strings.Contains(got.Username, ":") || hasControl(got.Username+got.RegistryToken.Reveal()+got.IdentityToken.Reveal()) {
			t.Errorf("a user or token that cannot be sent: %q", got.Username)
		}
		if err == nil && !json.Valid([]byte(text)) && text != "" {
			t.Error("no JSON, and no error")
		}
	})
}
