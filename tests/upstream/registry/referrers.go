package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxManifest is what Distribution takes as a manifest.
const maxManifest = 4 << 20

// referrers is the referrers API, which Distribution lacks: it watches manifests being pushed and deleted, and
// lists those with a subject (OCI distribution specification 1.1, "Listing Referrers").
type referrers struct {
	app *application

	mu   sync.Mutex
	list map[place][]ocispec.Descriptor // by repository and subject, in the order of their arrival
}

func newReferrers(app *application) *referrers {
	return &referrers{app: app, list: map[place][]ocispec.Descriptor{}}
}

// watch serves Distribution and watches what is pushed.
func (s *referrers) watch() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if request := readRequest(r); request.Kind == Push {
			s.observe(w, r, request, true)
			return
		}
		s.app.ServeHTTP(w, r)
	})
}

// observe serves a request that writes, and notes what it did. With announce the answer tells the client that its
// subject was understood.
func (s *referrers) observe(w http.ResponseWriter, r *http.Request, request Request, announce bool) {
	kind, _, reference := locate(r.URL.Path)
	switch {
	case kind == ManifestGET && r.Method == http.MethodPut:
		s.put(w, r, request.Repository, announce)
	case kind == ManifestGET && r.Method == http.MethodDelete:
		out := &status{ResponseWriter: w}
		s.app.ServeHTTP(out, r)
		if out.code == http.StatusAccepted {
			s.forget(request.Repository, digest.Digest(reference))
		}
	default:
		s.app.ServeHTTP(w, r)
	}
}

func (s *referrers) put(w http.ResponseWriter, r *http.Request, repository string, announce bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest+1))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	var manifest struct {
		ArtifactType string              `json:"artifactType"`
		Config       *ocispec.Descriptor `json:"config"`
		Subject      *ocispec.Descriptor `json:"subject"`
		Annotations  map[string]string   `json:"annotations"`
	}
	if json.Unmarshal(raw, &manifest) != nil || manifest.Subject == nil {
		// What it is worth is for Distribution to say.
		s.app.ServeHTTP(w, r)
		return
	}
	if manifest.ArtifactType == "" && manifest.Config != nil {
		manifest.ArtifactType = manifest.Config.MediaType
	}
	if announce {
		w = edited(w, func(h http.Header) { h.Set("OCI-Subject", manifest.Subject.Digest.String()) })
	}
	// It is listed before the client hears that it was stored.
	out := &status{ResponseWriter: w, created: func() {
		s.add(place{repository, manifest.Subject.Digest.String()}, ocispec.Descriptor{
			MediaType: r.Header.Get("Content-Type"), Digest: digest.FromBytes(raw), Size: int64(len(raw)),
			ArtifactType: manifest.ArtifactType, Annotations: manifest.Annotations,
		})
	}}
	s.app.ServeHTTP(out, r)
}

func (s *referrers) add(subject place, referrer ocispec.Descriptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := func(d ocispec.Descriptor) bool { return d.Digest == referrer.Digest }
	if !slices.ContainsFunc(s.list[subject], known) {
		s.list[subject] = append(s.list[subject], referrer)
	}
}

func (s *referrers) forget(repository string, gone digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject := range s.list {
		if subject.repository == repository {
			s.list[subject] = slices.DeleteFunc(s.list[subject], func(d ocispec.Descriptor) bool { return d.Digest == gone })
		}
	}
}

// serve answers with a page of at most limit entries; zero is all of them. The page asked for is the parameter
// "after", which only our own links carry.
func (s *referrers) serve(w http.ResponseWriter, r *http.Request, request Request, limit int) {
	if digest.Digest(request.Reference).Validate() != nil {
		writeError(w, http.StatusBadRequest)
		return
	}
	query := r.URL.Query()
	artifactType := query.Get("artifactType")
	s.mu.Lock()
	matching := slices.Clone(s.list[place{request.Repository, request.Reference}])
	s.mu.Unlock()
	if artifactType != "" {
		matching = slices.DeleteFunc(matching, func(d ocispec.Descriptor) bool { return d.ArtifactType != artifactType })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	from, err := strconv.Atoi(query.Get("after"))
	if err == nil {
		matching = matching[min(max(0, from), len(matching)):]
	}
	if limit > 0 && len(matching) > limit {
		matching = matching[:limit]
		query.Set("after", strconv.Itoa(from+limit))
		w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", r.URL.Path, query.Encode()))
	}
	if matching == nil {
		matching = []ocispec.Descriptor{}
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(w).Encode(ocispec.Index{ // A client that has gone needs no list.
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: matching,
	})
}

// status remembers the status of an answer, and acts before one that says that something was created.
type status struct {
	http.ResponseWriter
	code    int
	created func()
}

func (s *status) WriteHeader(code int) {
	s.code = code
	if code == http.StatusCreated && s.created != nil {
		s.created()
	}
	s.ResponseWriter.WriteHeader(code)
}
