package git

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// maxURLBytes is the longest URL that is looked at.
const maxURLBytes = 2048

// endpoint is a checked URL. The url inside has no userinfo.
type endpoint struct {
	url      *url.URL
	username string
	password string
}

// parseEndpoint accepts http, https and ssh URLs with a host and without surprises. Errors do not repeat the URL.
func parseEndpoint(raw string) (endpoint, error) {
	refuse := func(why string) (endpoint, error) { return endpoint{}, fmt.Errorf("%w: %s", ErrURL, why) }
	if len(raw) > maxURLBytes {
		return refuse("longer than 2048 bytes")
	}
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return refuse("contains control characters")
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return refuse("cannot be parsed")
	}
	switch parsed.Scheme {
	case "http", "https", "ssh":
	default:
		return refuse("scheme must be http, https or ssh")
	}
	e := endpoint{username: parsed.User.Username()}
	e.password, _ = parsed.User.Password()
	path := parsed.Path
	switch {
	case parsed.Opaque != "" || parsed.Hostname() == "":
		return refuse("has no host")
	case strings.HasPrefix(parsed.Hostname(), "-") || strings.HasPrefix(e.username, "-"):
		return refuse("host and user must not begin with a dash")
	case strings.ContainsFunc(parsed.Hostname()+e.username+e.password+path, unicode.IsControl):
		return refuse("contains escaped control characters")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return refuse("must not have a query or a fragment")
	case strings.Trim(path, "/") == "":
		return refuse("has no path to a repository")
	case parsed.Scheme == "ssh" && e.password != "":
		return refuse("an ssh url must not have a password")
	}
	parsed.User = nil
	e.url = parsed
	return e, nil
}

// repositoryPath is the path as an SSH server wants it: a home directory is written without the leading slash.
func (e endpoint) repositoryPath() string {
	if strings.HasPrefix(e.url.Path, "/~") {
		return e.url.Path[1:]
	}
	return e.url.Path
}

// shellQuote quotes as Git's sq_quote_buf does: the server's shell, or what stands for it, takes the text as one
// word and literally.
func shellQuote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}
