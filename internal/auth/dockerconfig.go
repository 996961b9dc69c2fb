package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/credential"
)

// The keys of a Secret with a docker config, and their formats: see corev1.SecretTypeDockerConfigJson and
// corev1.SecretTypeDockercfg.
const (
	keyDockerConfig    = ".dockerconfigjson"
	keyOldDockerConfig = ".dockercfg"

	remedyDockerConfig = "create the Secret with kubectl create secret docker-registry"
)

// dockerAuth is an entry of a docker config.
type dockerAuth struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// entry is a login and where it counts.
type entry struct {
	location
	secret secret
	key    string
	auth   dockerAuth
}

// dockerLogin finds the repository's login in the docker configs; without one it is anonymous.
func dockerLogin(configs []secret, host, repository string) (credential.Registry, error) {
	var all []entry
	for _, config := range configs {
		entries, err := dockerEntries(config)
		if err != nil {
			return credential.Registry{}, err
		}
		all = append(all, entries...)
	}
	best, found := lookup(all, host, repository)
	if !found {
		return credential.Registry{}, nil
	}
	return best.login(host)
}

// dockerEntries reads all entries of a docker config that have something to log in with, ordered by name.
// The parser's error is not passed on: it may quote what it stumbled over.
func dockerEntries(s secret) ([]entry, error) {
	key := keyDockerConfig
	if !s.has(key) {
		key = keyOldDockerConfig
	}
	if !s.has(key) {
		return nil, s.errorf("has no '%s'; %s, or name another one in %s", keyDockerConfig, remedyDockerConfig, s.field)
	}
	text, err := s.take(key, maxValue)
	if err != nil {
		return nil, err
	}
	var config struct {
		Auths map[string]*dockerAuth `json:"auths"`
	}
	if key == keyDockerConfig {
		err = json.Unmarshal(text, &config)
	} else {
		err = json.Unmarshal(text, &config.Auths)
	}
	if err != nil {
		return nil, s.bad(key, "is not a docker config in JSON", remedyDockerConfig)
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(config.Auths)) {
		if auth := config.Auths[name]; auth != nil && *auth != (dockerAuth{}) {
			entries = append(entries, entry{location: parseLocation(name), secret: s, key: key, auth: *auth})
		}
	}
	return entries, nil
}

// login decodes the entry. As with docker, auth wins over username and password.
func (e entry) login(host string) (credential.Registry, error) {
	username, password := e.auth.Username, e.auth.Password
	if e.auth.Auth != "" {
		var ok bool
		if username, password, ok = decodeAuth(e.auth.Auth); !ok {
			return credential.Registry{}, e.bad(host, "an auth that is not the base64 of user:password")
		}
	}
	tooLong := len(username) > maxName
	for _, value := range []string{password, e.auth.IdentityToken, e.auth.RegistryToken} {
		tooLong = tooLong || len(value) > maxPassword
	}
	switch {
	case tooLong:
		return credential.Registry{}, e.bad(host, fmt.Sprintf("a user of more than %d or a password or token of more than %d bytes",
			maxName, maxPassword))
	case strings.Contains(username, ":"):
		return credential.Registry{}, e.bad(host, "a colon in the user, which basic authentication cannot send")
	case username == "" && password != "":
		return credential.Registry{}, e.bad(host, "a password but no user")
	case hasControl(username + e.auth.IdentityToken + e.auth.RegistryToken), endsLine(password):
		return credential.Registry{}, e.bad(host, "a line break or control character in its user, password or token")
	}
	return credential.Registry{
		Username:      username,
		Password:      credential.NewSecret(password),
		IdentityToken: credential.NewSecret(e.auth.IdentityToken),
		RegistryToken: credential.NewSecret(e.auth.RegistryToken),
	}, nil
}

// bad names the registry instead of the entry: what stands in the place of a name may be anything.
func (e entry) bad(host, problem string) error {
	return e.secret.bad(e.key, fmt.Sprintf("has for '%s' %s", host, problem), remedyDockerConfig)
}

// decodeAuth takes both spellings of base64, with and without padding.
func decodeAuth(text string) (username, password string, ok bool) {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	if err != nil {
		return "", "", false
	}
	username, password, ok = strings.Cut(string(decoded), ":")
	return username, strings.Trim(password, "\x00"), ok
}

// endsLine finds the line break that an editor or echo left behind a password. Passwords of several lines exist: some
// registries take a whole key file for one.
func endsLine(password string) bool {
	trimmed := strings.TrimRight(password, "\r\n")
	return trimmed != password && !hasControl(trimmed)
}
