package auth

import (
	"errors"
	"net/url"
	"strings"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
)

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
	schemeSSH   = "ssh"
)

// SplitURL takes the user and password out of a Git URL. The user is nil when there is none. Only http, https and ssh
// URLs with a host are taken; the error stalls with reason URLInvalid and quotes nothing of the URL.
func SplitURL(raw string) (clean string, user *url.Userinfo, err error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		// The parser's error quotes what it stumbles over, which may be a piece of a password.
		return "", nil, badURL("is not a URL: write it as https://host/path or ssh://user@host/path, " +
			"with special characters in user and password percent-encoded")
	}
	switch parsed.Scheme {
	case schemeHTTP, schemeHTTPS, schemeSSH:
	default:
		return "", nil, badURL("has a scheme other than http, https and ssh")
	}
	if parsed.Hostname() == "" {
		return "", nil, badURL("names no host")
	}
	user, parsed.User = parsed.User, nil
	if password, _ := user.Password(); hasControl(user.Username()) || hasControl(password) {
		return "", nil, badURL("has a line break or control character in its user or password: remove it")
	}
	if parsed.Scheme != schemeSSH && strings.Contains(user.Username(), ":") {
		return "", nil, badURL("has a colon in its user name, which basic authentication cannot send")
	}
	return parsed.String(), user, nil
}

func badURL(text string) error {
	return failure.Stall(sourcev1.URLInvalidReason, errors.New("spec.url "+text))
}

// schemeOf is the scheme of a URL that SplitURL returned.
func schemeOf(clean string) string {
	scheme, _, _ := strings.Cut(clean, "://")
	return scheme
}

// hasControl finds what header fields and command lines cannot carry, most often the line break that an editor or
// echo left at the end of a value.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
