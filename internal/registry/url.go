package registry

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const (
	scheme = "oci://"
	// maxName is what registries allow for the name of a repository.
	maxName = 255
	// maxHost is what the domain name system allows.
	maxHost = 253
	// dockerHub is where Docker Hub's registry answers.
	dockerHub = "registry-1.docker.io"
)

var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Parse splits oci://host[:port]/name. ErrURL when it is anything else: with a tag or digest, which belong beside the
// URL, with user, query or fragment, or with a name that no registry accepts.
func Parse(rawURL string) (host, name string, err error) {
	host, name, err = parse(rawURL)
	if err != nil {
		shown := transport.PrintableQuoted(credential.CleanURL(rawURL))
		return "", "", fmt.Errorf("%w: %s: %w", ErrURL, shown, err)
	}
	return host, name, nil
}

func parse(rawURL string) (host, name string, err error) {
	rest, ok := strings.CutPrefix(rawURL, scheme)
	if !ok {
		return "", "", fmt.Errorf("does not begin with %s", scheme)
	}
	host, name, _ = strings.Cut(rest, "/")
	switch {
	case strings.Contains(host, "@"):
		return "", "", fmt.Errorf("has a user in it: credentials belong in spec.secretRef")
	case strings.ContainsAny(rest, "?#"):
		return "", "", fmt.Errorf("has a query or fragment")
	case strings.Contains(name, "@"):
		return "", "", fmt.Errorf("has a digest in it: that belongs in spec.ref.digest")
	case strings.Contains(name, ":"):
		return "", "", fmt.Errorf("has a tag in it: that belongs in spec.ref.tag")
	}
	host = strings.ToLower(host)
	if err := checkHost(host); err != nil {
		return "", "", err
	}
	return host, name, checkName(name)
}

// IsTag tells whether a registry could have a tag of that name.
func IsTag(name string) bool {
	return registry.Reference{Reference: name}.ValidateReferenceAsTag() == nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("names no repository")
	case len(name) > maxName:
		return fmt.Errorf("repository name is longer than %d characters", maxName)
	case registry.Reference{Repository: name}.ValidateRepository() != nil:
		return fmt.Errorf("repository name is not lower-case letters and digits, separated by single '/', '.', '_' or '-'")
	}
	return nil
}

func checkHost(host string) error {
	name, port := host, ""
	if end := strings.LastIndexByte(host, ']'); strings.HasPrefix(host, "[") && end > 0 {
		address, err := netip.ParseAddr(host[1:end])
		if err != nil || !address.Is6() || address.Zone() != "" {
			return fmt.Errorf("host is not an address")
		}
		name, port = "", host[end+1:]
	} else if colon := strings.IndexByte(host, ':'); colon >= 0 {
		name, port = host[:colon], host[colon:]
		if name == "" {
			return fmt.Errorf("has no host")
		}
	}
	if port != "" {
		number, err := strconv.ParseUint(strings.TrimPrefix(port, ":"), 10, 16)
		if err != nil || number == 0 || port[0] != ':' {
			return fmt.Errorf("port is not a number from 1 to 65535")
		}
	}
	switch {
	case host == "":
		return fmt.Errorf("has no host")
	case name != "" && (len(name) > maxHost || !hostPattern.MatchString(name)):
		return fmt.Errorf("host is not a name or address")
	}
	return nil
}

// endpoint is where the repository is really asked for. Docker Hub is known by other names than its registry's, and
// its official images stand under library/.
func endpoint(host, name string) (at, path string) {
	switch host {
	case "docker.io", "index.docker.io", dockerHub:
		if !strings.Contains(name, "/") {
			name = "library/" + name
		}
		return dockerHub, name
	default:
		return host, name
	}
}
