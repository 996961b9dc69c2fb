package registry

import (
	"net/http"
	"strings"
)

// Kind tells what a client asks for.
type Kind string

// The kinds of requests.
const (
	Ping         Kind = "ping"          // GET /v2/
	ManifestHEAD Kind = "manifest-head" // HEAD of a manifest
	ManifestGET  Kind = "manifest-get"  // GET of a manifest
	BlobHEAD     Kind = "blob-head"     // HEAD of a blob
	Blob         Kind = "blob"          // GET of a blob
	Tags         Kind = "tags"          // a page of the tag list
	Referrers    Kind = "referrers"     // a page of the referrers API
	Token        Kind = "token"         // the token server
	Push         Kind = "push"          // anything that writes: uploads, manifests, deletions
	Other        Kind = "other"         // anything else
)

// Request is what the server saw of one request.
type Request struct {
	Kind   Kind
	Method string
	// URI is the path with the query.
	URI string
	// Host is the Host header.
	Host string
	// Repository is the name of the repository, and Reference the tag or digest asked for; empty where there is none.
	Repository, Reference string
	// Authorized says that the request carried an Authorization header, right or wrong.
	Authorized bool
	// Header holds all headers of the request.
	Header http.Header
	// Status is the status of the answer; zero as long as there is none.
	Status int
	// BytesOut counts the bytes of the answer's body so far.
	BytesOut int64
}

func readRequest(r *http.Request) Request {
	kind, repository, reference := locate(r.URL.Path)
	switch {
	case kind == Token:
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		kind = Push
	case r.Method == http.MethodHead && kind == ManifestGET:
		kind = ManifestHEAD
	case r.Method == http.MethodHead && kind == Blob:
		kind = BlobHEAD
	}
	return Request{
		Kind: kind, Method: r.Method, URI: r.URL.RequestURI(), Host: r.Host, Repository: repository, Reference: reference,
		Authorized: r.Header.Get("Authorization") != "", Header: r.Header.Clone(),
	}
}

// locate reads a path of the distribution specification, taking the method for GET.
func locate(path string) (kind Kind, repository, reference string) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	switch {
	case path == tokenPath:
		return Token, "", ""
	case path == "/v2" || ok && rest == "":
		return Ping, "", ""
	case !ok:
		return Other, "", ""
	}
	if name, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return Tags, name, ""
	}
	if name, upload, ok := strings.Cut(rest, "/blobs/uploads/"); ok {
		return Push, name, upload
	}
	for word, kind := range map[string]Kind{"/manifests/": ManifestGET, "/blobs/": Blob, "/referrers/": Referrers} {
		if at := strings.LastIndex(rest, word); at > 0 && !strings.Contains(rest[at+len(word):], "/") {
			return kind, rest[:at], rest[at+len(word):]
		}
	}
	return Other, "", ""
}
