package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"sluice.dev/sluice/internal/transport"
)

const (
	maxErrorBody   = 16 << 10
	maxErrorCode   = 64
	maxErrorsShown = 3
)

// refusal is the answer of a registry.
func refusal(now clock.PassiveClock, response *http.Response, remedies *Remedies, anonymous bool) *StatusError {
	remedy := remedies.Refused
	if anonymous {
		remedy = remedies.Anonymous
	}
	e, codes := statusError(now, response, "registry")
	switch {
	case e.kind != nil:
	case e.Status == http.StatusNotFound || e.Status == http.StatusGone:
		e.kind, remedy = ErrNotFound, lookAt(codes, remedies)
	default:
		return e
	}
	e.text = fmt.Sprintf("%s: %s: %s", e.kind, e.text, remedy)
	return e
}

// tokenError is the answer of a token server. What it does not find says nothing about the repository.
func tokenError(now clock.PassiveClock, response *http.Response, host string, remedies *Remedies) *StatusError {
	e, _ := statusError(now, response, "token server "+host)
	if e.kind != nil {
		e.text = fmt.Sprintf("%s: %s: %s", e.kind, e.text, remedies.Refused)
	}
	return e
}

// statusError reads what the server says about the status.
func statusError(now clock.PassiveClock, response *http.Response, server string) (e *StatusError, codes []string) {
	said, codes := words(response)
	e = &StatusError{Status: response.StatusCode, RetryAfter: transport.RetryAfter(now.Now(), response.Header)}
	e.text = fmt.Sprintf("%s answers %d %s%s", server, e.Status, http.StatusText(e.Status), said)
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		e.kind = ErrAuthentication
	case e.Status == http.StatusTooManyRequests:
		e.text += ": it has had too many requests"
	case e.Status >= 300 && e.Status < 400:
		e.text += ": the redirect is not followed"
	}
	return e, codes
}

// lookAt is the field to check when something is not there.
func lookAt(codes []string, remedies *Remedies) string {
	switch {
	case slices.Contains(codes, errcode.ErrorCodeNameUnknown) || slices.Contains(codes, errcode.ErrorCodeNameInvalid):
		return "the registry shows no such repository: " + remedies.Repository
	case slices.Contains(codes, errcode.ErrorCodeManifestUnknown):
		return "the repository has no such tag or digest: " + remedies.Reference
	case slices.Contains(codes, errcode.ErrorCodeBlobUnknown):
		return "the manifest names a blob that the registry does not have: push the artifact again"
	}
	return remedies.Place
}

// words is what an error page says: the codes and messages of the distribution protocol, or the beginning of a text.
func words(response *http.Response) (said string, codes []string) {
	media := mediaType(response.Header)
	switch {
	case response.Body == nil:
		return "", nil
	case media == "text/html":
		return " with a web page: is the host a registry?", nil
	case media != "text/plain" && !isJSON(media):
		return "", nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return "", nil
	}
	var page struct {
		Errors  errcode.Errors `json:"errors"`
		Details string         `json:"details"`
	}
	if json.Unmarshal(body, &page) != nil {
		if text := strings.TrimSpace(string(body)); text != "" && media == "text/plain" {
			return ": " + transport.PrintableQuoted(text), nil
		}
		return "", nil
	}
	var texts []string
	for _, one := range page.Errors[:min(len(page.Errors), maxErrorsShown)] {
		code := one.Code[:min(len(one.Code), maxErrorCode)]
		codes = append(codes, code)
		texts = append(texts, transport.Printable(code)+" "+transport.PrintableQuoted(one.Message))
	}
	if len(texts) == 0 && page.Details != "" {
		texts = append(texts, transport.PrintableQuoted(page.Details)) // A token server's.
	}
	if len(texts) == 0 {
		return "", nil
	}
	return ": " + strings.Join(texts, ", "), codes
}

// mediaType is the content type without parameters, or empty when there is none that can be read.
func mediaType(header http.Header) string {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// wrongType is the error for an answer that is something else than was asked for.
func wrongType(kind error, response *http.Response, want string) error {
	got := response.Header.Get("Content-Type")
	hint := ""
	if mediaType(response.Header) == "text/html" {
		hint = ": this is a web page, is the host a registry?"
	}
	return fmt.Errorf("%w: registry answers with content type %s where %s belongs%s",
		kind, transport.PrintableQuoted(got), want, hint)
}
