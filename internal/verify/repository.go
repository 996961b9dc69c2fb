package verify

import (
	"slices"
	"strings"
)

// dockerHub is the name under which Docker Hub's repositories are compared.
const dockerHub = "docker.io"

// dockerHubHosts are the hosts that serve Docker Hub's repositories.
func dockerHubHosts() []string { return []string{dockerHub, "index.docker.io", "registry-1.docker.io"} }

// canonicalRepository writes a reference's repository in one way: a tag and a digest are dropped, the host is lower
// case, Docker Hub has one name and its official images are under library/, as the Docker CLI reads references.
func canonicalRepository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		reference = reference[:colon]
	}
	host, path, found := strings.Cut(reference, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, path = dockerHub, reference
	}
	host = strings.ToLower(host)
	if isDockerHub(host) {
		host = dockerHub
		if !strings.Contains(path, "/") {
			path = "library/" + path
		}
	}
	return host + "/" + path
}

func isDockerHub(host string) bool {
	return slices.Contains(dockerHubHosts(), host)
}

// repositoryNames are the ways in which a policy may write the repository; the first is the one it was given in.
func repositoryNames(repository string) []string {
	names := []string{repository}
	path, found := strings.CutPrefix(canonicalRepository(repository), dockerHub+"/")
	if !found {
		return names
	}
	for _, host := range dockerHubHosts() {
		names = append(names, host+"/"+path)
	}
	return names
}
