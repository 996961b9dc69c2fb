package registry

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for url, test := range map[string]struct {
		reason, host, name string
	}{
		"oci://ghcr.io/org/app":                      {"the usual form", "ghcr.io", "org/app"},
		"oci://localhost:5000/app":                   {"a port", "localhost:5000", "app"},
		"oci://[::1]:5000/app":                       {"an IPv6 address", "[::1]:5000", "app"},
		"oci://[::1]/app":                            {"an IPv6 address without port", "[::1]", "app"},
		"oci://GHCR.io/org/app":                      {"host names ignore case", "ghcr.io", "org/app"},
		"oci://docker.io/nginx":                      {"the host stays as written: credentials are found by it", "docker.io", "nginx"},
		"oci://r.io/a/b__c/d-e.f/g--h":               {"all separators", "r.io", "a/b__c/d-e.f/g--h"},
		"oci://registry/app":                         {"a host in the cluster", "registry", "app"},
		"oci://r.io/" + strings.Repeat("a", 255):     {"the longest name", "r.io", strings.Repeat("a", 255)},
		"oci://r.io/" + strings.Repeat("a", 256):     {"a name too long", "", ""},
		"https://ghcr.io/org/app":                    {"another scheme", "", ""},
		"OCI://ghcr.io/org/app":                      {"the scheme is in lower case", "", ""},
		"oci://ghcr.io":                              {"no repository", "", ""},
		"oci://ghcr.io/":                             {"no repository", "", ""},
		"oci:///app":                                 {"no host", "", ""},
		"oci://:5000/app":                            {"no host", "", ""},
		"oci://ghcr.io/org/app:v1":                   {"a tag", "", ""},
		"oci://ghcr.io/org/app@sha256:abc":           {"a digest", "", ""},
		"oci://user:secret-word@ghcr.io/org/app":     {"a user", "", ""},
		"oci://ghcr.io/org/app?x=1":                  {"a query", "", ""},
		"oci://ghcr.io/org/app#x":                    {"a fragment", "", ""},
		"oci://ghcr.io/org//app":                     {"an empty part", "", ""},
		"oci://ghcr.io/org/app/":                     {"a slash at the end", "", ""},
		"oci://ghcr.io/Org/app":                      {"capitals", "", ""},
		"oci://ghcr.io/../app":                       {"dots", "", ""},
		"oci://ghcr.io/%61pp":                        {"escapes", "", ""},
		"oci://ghcr.io:99999/app":                    {"no such port", "", ""},
		"oci://ghcr.io:0/app":                        {"no such port", "", ""},
		"oci://ghcr.io:/app":                         {"an empty port", "", ""},
		"oci://gh cr.io/app":                         {"white space", "", ""},
		"oci://ghcr.io\n/app":                        {"a line break", "", ""},
		"oci://[::1/app":                             {"half an address", "", ""},
		"oci://[fe80::1%25eth0]/app":                 {"a zone", "", ""},
		"oci://-a.io/app":                            {"no host name", "", ""},
		"oci://" + strings.Repeat("a.", 130) + "a/b": {"a host too long", "", ""},
		"": {"nothing", "", ""},
	} {
		host, repository, err := Parse(url)
		if host != test.host || repository != test.name {
			t.Errorf("%s: Parse(%q) = %q, %q, %v", test.reason, url, host, repository, err)
		}
		if wrong := test.host == ""; wrong != errors.Is(err, ErrURL) {
			t.Errorf("%s: Parse(%q): %v", test.reason, url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s: the error shows a password: %v", test.reason, err)
		}
	}
}

func TestDockerHubIsAskedAtItsRegistry(t *testing.T) {
	t.Parallel()
	for host, name := range map[string][3]string{
		"docker.io":            {"nginx", "registry-1.docker.io", "library/nginx"},
		"index.docker.io":      {"org/app", "registry-1.docker.io", "org/app"},
		"registry-1.docker.io": {"nginx", "registry-1.docker.io", "library/nginx"},
		"mirror.docker.io":     {"nginx", "mirror.docker.io", "nginx"},
		"ghcr.io":              {"nginx", "ghcr.io", "nginx"},
	} {
		if at, path := endpoint(host, name[0]); at != name[1] || path != name[2] {
			t.Errorf("endpoint(%q, %q) = %q, %q", host, name[0], at, path)
		}
	}
}
