package auth

import (
	"cmp"
	"net"
	"path"
	"slices"
	"strings"
)

// location is where an entry of a docker config counts, read as the kubelet does: see "Interpretation of config.json"
// in the documentation of Kubernetes.
type location struct {
	host string // host[:port]; labels of the host may be patterns
	path string // beginning of the repository's path, with a leading slash; empty for all
}

// parseLocation reads [scheme://]host[:port][/path]. The version of the API that old entries end with says nothing.
func parseLocation(name string) location {
	for _, scheme := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, scheme)
	}
	host, rest, _ := strings.Cut(name, "/")
	rest = "/" + rest
	for _, version := range []string{"/v1", "/v2"} {
		if rest == version || strings.HasPrefix(rest, version+"/") {
			rest = strings.TrimPrefix(rest, version)
			break
		}
	}
	if rest == "/" {
		rest = ""
	}
	return location{host: canonicalHost(host), path: rest}
}

// canonicalHost gives Docker Hub's names one spelling.
func canonicalHost(host string) string {
	host = strings.ToLower(host)
	switch host {
	case "docker.io", "registry-1.docker.io":
		return "index.docker.io"
	}
	return host
}

// isPattern tells whether more than one host matches.
func (l location) isPattern() bool { return strings.ContainsAny(l.host, "*?") }

// contains tells whether the entry counts for the repository of the host, which is canonical.
func (l location) contains(host, repository string) bool {
	if !strings.HasPrefix("/"+repository, l.path) {
		return false
	}
	return l.host == host || l.isPattern() && matchHost(l.host, host)
}

// matchHost compares label by label, so that a star never stands for a dot. Ports are compared as they are.
func matchHost(pattern, host string) bool {
	pattern, patternPort := splitPort(pattern)
	host, port := splitPort(host)
	patterns, labels := strings.Split(pattern, "."), strings.Split(host, ".")
	if patternPort != port || len(patterns) != len(labels) {
		return false
	}
	for i, label := range labels {
		if matched, err := path.Match(patterns[i], label); err != nil || !matched {
			return false
		}
	}
	return true
}

func splitPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, ""
	}
	return host, port
}

// lookup returns the most specific entry for the repository: a host before a pattern, then the longer path, then the
// entry that comes first.
func lookup(entries []entry, host, repository string) (best entry, found bool) {
	host = canonicalHost(host)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !e.contains(host, repository) })
	if len(entries) == 0 {
		return entry{}, false
	}
	return slices.MinFunc(entries, func(a, b entry) int {
		return cmp.Or(
			cmp.Compare(strings.Count(a.host, "*")+strings.Count(a.host, "?"), strings.Count(b.host, "*")+strings.Count(b.host, "?")),
			cmp.Compare(len(b.path), len(a.path)),
		)
	}), true
}
