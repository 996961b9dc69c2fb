package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Provider is the kind of a forge.
type Provider string

// The kinds of forges.
const (
	GitHub Provider = "github"
	GitLab Provider = "gitlab"
	Gitea  Provider = "gitea"
)

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	githubHost  = "github.com"
	githubAPI   = "https://api.github.com"
)

// Place is where the API of a repository is.
type Place struct {
	Provider Provider
	// Endpoint is where the API begins, without a slash at its end.
	Endpoint *url.URL
	// Repository is its path on the forge: owner/name, and in GitLab any number of groups and a name.
	Repository string
}

// version is where the API begins on a server of one's own.
func (p Provider) version() string {
	return map[Provider]string{GitHub: "/api/v3", GitLab: "/api/v4", Gitea: "/api/v1"}[p]
}

// Locate finds the API of the repository with the Git URL. The endpoint is for forges that are not at the root of the host that
// Git is served by; empty for all others. A repository that is read over http has its API there as well, and all others over https.
func Locate(provider Provider, gitURL, endpoint string) (Place, error) {
	if provider.version() == "" {
		return Place{}, fmt.Errorf("there is no forge %q; there are %s, %s and %s", provider, GitHub, GitLab, Gitea)
	}
	git, err := url.Parse(gitURL)
	if err != nil || git.Hostname() == "" {
		return Place{}, errors.New("the repository's URL names no host")
	}
	at, err := endpointOf(provider, git, endpoint)
	if err != nil {
		return Place{}, err
	}
	path := strings.TrimSuffix(strings.Trim(git.Path, "/"), ".git")
	if below := strings.Trim(strings.TrimSuffix(at.Path, provider.version()), "/"); below != "" {
		path = strings.TrimPrefix(path, below+"/")
	}
	parts := strings.Split(path, "/")
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return Place{}, fmt.Errorf("the repository's URL has no path that %s could have", provider)
		}
	}
	if isPair := len(parts) == 2; !isPair && (provider != GitLab || len(parts) < 2) {
		return Place{}, fmt.Errorf("the repository's URL has a path of %d parts; %s wants an owner and a name", len(parts), provider)
	}
	return Place{Provider: provider, Endpoint: at, Repository: path}, nil
}

func endpointOf(provider Provider, git *url.URL, endpoint string) (*url.URL, error) {
	if endpoint != "" {
		at, err := url.Parse(strings.TrimRight(endpoint, "/"))
		if err != nil || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" ||
			at.Scheme != schemeHTTPS && (at.Scheme != schemeHTTP || git.Scheme != schemeHTTP) {
			return nil, fmt.Errorf("the endpoint is no https URL without user and query; write it as https://host%s", provider.version())
		}
		return at, nil
	}
	if provider == GitHub && strings.EqualFold(git.Hostname(), githubHost) {
		return url.Parse(githubAPI)
	}
	at := &url.URL{Scheme: schemeHTTPS, Host: git.Host, Path: provider.version()}
	switch git.Scheme {
	case schemeHTTP:
		at.Scheme = schemeHTTP
	case schemeHTTPS:
	default:
		at.Host = git.Hostname() // A port of SSH is none of the API's.
		if strings.Contains(at.Host, ":") {
			at.Host = "[" + at.Host + "]"
		}
	}
	return at, nil
}
