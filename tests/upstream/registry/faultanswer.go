package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream"
)

// Status answers with the status and an error in the form of the distribution specification.
func Status(code int) Fault { return answers(code, nil) }

// Answer answers with exactly this.
func Answer(code int, mediaType, body string) Fault {
	return Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // A client that has gone has what it deserves.
	})
}

// RetryLater answers with the code, 429 or 503, and Retry-After in whole seconds.
func RetryLater(code int, after time.Duration) Fault {
	return answers(code, http.Header{"Retry-After": {fmt.Sprint(int(after / time.Second))}})
}

// RetryAt answers with the code and Retry-After as a date.
func RetryAt(code int, at time.Time) Fault {
	return answers(code, http.Header{"Retry-After": {at.UTC().Format(http.TimeFormat)}})
}

// Challenge answers 401 with this WWW-Authenticate header.
func Challenge(header string) Fault {
	return answers(http.StatusUnauthorized, http.Header{"Www-Authenticate": {header}})
}

// ForeignRealm answers 401 and sends the client to this URL for a token. It strikes before the access check.
func ForeignRealm(realm string) Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		request := readRequest(r)
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q,scope=%q",
			realm, r.Host, "repository:"+request.Repository+":pull"))
		writeError(w, http.StatusUnauthorized)
	}).Early()
}

// NoReferrers is a registry without the referrers API: 404.
func NoReferrers() Fault { return Status(http.StatusNotFound).On(Referrers) }

// NoHEAD is a registry that answers 405 to every HEAD of a manifest.
func NoHEAD() Fault { return Status(http.StatusMethodNotAllowed).On(ManifestHEAD) }

// Redirect answers with the code and exactly this location.
func Redirect(code int, location string) Fault {
	return Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	})
}

// RedirectLoop answers 307 with the URL that was asked for.
func RedirectLoop() Fault {
	return Custom(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Location", r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
}

// HTML answers 200 with a log-in page.
func HTML() Fault { return From(upstream.HTML()) }

// Drop closes the connection without an answer.
func Drop() Fault { return From(upstream.Drop()) }

// Hang never answers, until the client goes away or the registry is closed.
func Hang() Fault { return From(upstream.Hang()) }

// GarbageJSON answers 200 with the content type of an image manifest and JSON that breaks off.
func GarbageJSON() Fault {
	return Answer(http.StatusOK, ocispec.MediaTypeImageManifest, `{"schemaVersion":2,"tags":["v1.0.0",],"manifests":{"layers":[{"digest":`)
}

// Huge answers 200 with well-formed JSON of at least n bytes, as a manifest, tag list or index may be.
func Huge(n int64) Fault {
	return Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		padding := strings.Repeat(" ", 1<<15)
		if _, err := io.WriteString(w, `{"schemaVersion":2,`); err != nil {
			return
		}
		for sent := int64(0); sent < n; sent += int64(len(padding)) {
			if _, err := io.WriteString(w, padding); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"tags":[],"manifests":[],"layers":[]}`) // As above.
	})
}

func answers(code int, header http.Header) Fault {
	return Custom(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for name := range header {
			w.Header().Set(name, header.Get(name))
		}
		writeError(w, code)
	})
}

// writeError answers in the form of the specification (OCI distribution specification, "Error Codes").
func writeError(w http.ResponseWriter, code int) {
	type entry struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	text := http.StatusText(code)
	body, err := json.Marshal(map[string][]entry{
		"errors": {{Code: strings.ToUpper(strings.ReplaceAll(text, " ", "")), Message: text}},
	})
	if err != nil {
		panic(err) // Two strings can be encoded.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // A client that has gone needs no error.
}
