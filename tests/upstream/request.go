package upstream

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// Kind tells what a git client asks for.
type Kind string

// The kinds of requests. Under protocol v0 and v1 there is no LsRefs: InfoRefs lists the refs.
const (
	InfoRefs Kind = "info/refs" // the advertisement: capabilities (v2) or refs (v0, v1)
	LsRefs   Kind = "ls-refs"   // the list of refs (v2)
	Fetch    Kind = "fetch"     // a pack
	PushRefs Kind = "push refs" // the advertisement for a push
	Push     Kind = "push"      // commands and a pack, from the client
	Other    Kind = "other"     // anything else
)

// Request is what the server saw of one request.
type Request struct {
	Kind   Kind
	Method string
	// URI is the path with the query.
	URI string
	// Authorized says that the request carried an Authorization header, right or wrong.
	Authorized bool
	// Protocol is the Git-Protocol header.
	Protocol string
	// Header holds all headers of the request.
	Header http.Header
	// Body is the body without its Content-Encoding; at most 64 MiB are accepted.
	Body []byte
	// Status is the status of the answer; zero as long as there is none.
	Status int
	// BytesOut counts the bytes of the answer's body so far.
	BytesOut int64
}

const maxRequestBody = 64 << 20

// readRequest reads the whole body, which the CGI program wants with its length, and tells the kind.
func readRequest(w http.ResponseWriter, r *http.Request) (Request, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
	if err != nil {
		return Request{}, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.ContentLength, r.TransferEncoding = int64(len(raw)), nil
	body := raw
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gunzip(raw); err != nil {
			return Request{}, err
		}
	}
	return Request{
		Kind: kindOf(r, body), Method: r.Method, URI: r.URL.RequestURI(),
		Authorized: r.Header.Get("Authorization") != "", Protocol: r.Header.Get("Git-Protocol"),
		Header: r.Header.Clone(), Body: body,
	}, nil
}

func gunzip(raw []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, maxRequestBody))
}

func kindOf(r *http.Request, body []byte) Kind {
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs") && r.URL.Query().Get("service") == "git-receive-pack":
		return PushRefs
	case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
		return Push
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		return InfoRefs
	case !strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		return Other
	// A v2 request starts with a pkt-line that names the command: four digits of length, then the line.
	case len(body) > 4 && bytes.HasPrefix(body[4:], []byte("command=ls-refs")):
		return LsRefs
	default:
		return Fetch
	}
}
