// Package buckets has object storages for tests: a real S3 server, an emulator of Google's storage, and a fake that speaks just
// enough of S3, Google's and Azure's protocols to do what no real one does.
// It does not know who asks.
package buckets

import (
	"crypto/md5"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/tests/upstream"
)

// Bucket is the name of the one bucket that a Fake has.
const Bucket = "objects"

// Request is what a Fake was asked.
type Request struct {
	// Kind is list, get or other.
	Kind string
	Key  string
	*http.Request
}

// Fake is a bucket in memory with faults. What it does not check are signatures.
type Fake struct {
	server *httptest.Server

	mu       sync.Mutex
	objects  map[string]Object
	requests []Request
	pageSize int
	fault    Fault
}

// Object is one of a Fake.
type Object struct {
	Body string
	// ETag is the MD5 of the body where it is empty.
	ETag string
}

// Fault answers in the place of the Fake, and tells whether it did.
type Fault func(w http.ResponseWriter, r Request) bool

// New starts a fake. It speaks TLS if it is told to, with a certificate that httptest's client trusts.
func New(t upstream.TB) *Fake {
	t.Helper()
	f := &Fake{objects: map[string]Object{}, pageSize: 1000}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

// Endpoint is the host and port.
func (f *Fake) Endpoint() string { return strings.TrimPrefix(f.server.URL, "http://") }

// URL is the endpoint as a URL.
func (f *Fake) URL() string { return f.server.URL }

// Put makes objects of bodies.
func (f *Fake) Put(bodies map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, body := range bodies {
		f.objects[key] = Object{Body: body}
	}
}

// Set makes one object.
func (f *Fake) Set(key string, object Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = object
}

// Delete removes an object.
func (f *Fake) Delete(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// Clear removes all objects.
func (f *Fake) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.objects)
}

// PageSize sets how many objects a page has at most.
func (f *Fake) PageSize(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pageSize = n
}

// Always answers by the fault until Heal.
func (f *Fake) Always(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Heal ends the fault.
func (f *Fake) Heal() { f.Always(nil) }

// Take gives the requests since the last call, as "kind key".
func (f *Fake) Take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, r := range f.requests {
		all = append(all, strings.TrimSpace(r.Kind+" "+r.Key))
	}
	f.requests = nil
	return all
}

// Requests are all since the last Take.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Count tells how many requests of the kind there were since the last Take.
func (f *Fake) Count(kind string) (n int) {
	for _, r := range f.Requests() {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler: which protocol is spoken is seen from the path and the headers.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, serve := f.read(r)
	f.mu.Lock()
	f.requests = append(f.requests, request)
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, request) {
		return
	}
	serve(w, request)
}

// Answer answers as the Fake would without a fault.
func (f *Fake) Answer(w http.ResponseWriter, r Request) {
	_, serve := f.read(r.Request)
	serve(w, r)
}

func (f *Fake) read(r *http.Request) (Request, func(http.ResponseWriter, Request)) {
	const google = "/storage/v1/b/" + Bucket + "/o"
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/storage/v1/b/"):
		if path == google {
			return Request{Kind: "list", Request: r}, f.googleList
		}
		return Request{Kind: "get", Key: strings.TrimPrefix(path, google+"/"), Request: r}, f.googleGet
	case r.Header.Get("X-Ms-Version") != "":
		if r.URL.Query().Get("comp") == "list" {
			return Request{Kind: "list", Request: r}, f.azureList
		}
		return Request{Kind: "get", Key: strings.TrimPrefix(path, "/"+Bucket+"/"), Request: r}, f.azureGet
	case r.URL.Query().Has("location"):
		return Request{Kind: "location", Request: r}, f.location
	case path == "/"+Bucket+"/" && r.Method == http.MethodGet:
		return Request{Kind: "list", Request: r}, f.s3List
	case strings.HasPrefix(path, "/"+Bucket+"/") && r.Method == http.MethodGet:
		return Request{Kind: "get", Key: strings.TrimPrefix(path, "/"+Bucket+"/"), Request: r}, f.s3Get
	}
	return Request{Kind: "other", Key: r.Method + " " + path, Request: r}, f.missing
}

// page gives the keys with a prefix that follow one, and whether there are more.
func (f *Fake) page(prefix, after string, most int) (keys []string, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if most <= 0 || most > f.pageSize {
		most = f.pageSize
	}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if key > after && strings.HasPrefix(key, prefix) {
			if len(keys) == most {
				return keys, true
			}
			keys = append(keys, key)
		}
	}
	return keys, false
}

func (f *Fake) object(key string) (Object, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if o.ETag == "" {
		o.ETag = fmt.Sprintf("%x", md5.Sum([]byte(o.Body)))
	}
	return o, ok
}
