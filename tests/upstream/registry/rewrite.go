package registry

import (
	"net/http"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// place is a tag or digest in a repository.
type place struct{ repository, reference string }

// rewrite is another answer than the stored one for the manifest of a place.
type rewrite struct {
	mu    sync.Mutex
	turn  int
	turns []digest.Digest

	described ocispec.Descriptor
	content   []byte
}

// Alternate makes the tag name the digests in turn, one for each request: a tag that moves between any two
// requests. Without digests the tag is what was pushed again.
func (r *Registry) Alternate(repository, tag string, turns ...digest.Digest) {
	r.rewrite(place{repository, tag}, &rewrite{turns: turns}, len(turns) > 0)
}

// Serve answers requests for the manifest of a tag or digest with these bytes, which Distribution might refuse to
// store: of another media type, larger than it allows, or no manifest at all. Nil content takes that away.
func (r *Registry) Serve(repository, reference, mediaType string, content []byte) ocispec.Descriptor {
	described := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	r.rewrite(place{repository, reference}, &rewrite{described: described, content: content}, content != nil)
	return described
}

func (r *Registry) rewrite(at place, change *rewrite, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rewrites, at)
	if on {
		r.rewrites[at] = change
	}
}

func (r *Registry) rewriteOf(request Request) *rewrite {
	if request.Kind != ManifestHEAD && request.Kind != ManifestGET {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rewrites[place{request.Repository, request.Reference}]
}

func (c *rewrite) answer(w http.ResponseWriter, r *http.Request, request Request, app *application) {
	if len(c.turns) > 0 {
		app.get(w, r, "/v2/"+request.Repository+"/manifests/"+c.next().String())
		return
	}
	describe(w.Header(), c.described)
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(c.content) // A client that has gone needs no manifest.
	}
}

func (c *rewrite) next() digest.Digest {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	return c.turns[(c.turn-1)%len(c.turns)]
}
