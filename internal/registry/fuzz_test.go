package registry

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// checkParsed is what holds for every document that is accepted.
func checkParsed(t *testing.T, document Document) {
	t.Helper()
	if (document.Manifest == nil) == (document.Index == nil) || !known(document.MediaType) {
		t.Fatalf("accepted as %q, manifest %t, index %t", document.MediaType, document.Manifest != nil, document.Index != nil)
	}
	var all []ocispec.Descriptor
	if document.Manifest != nil {
		all = document.Manifest.Layers
	} else {
		all = document.Index.Manifests
	}
	if len(all) > maxEntries {
		t.Errorf("%d entries", len(all))
	}
	for _, one := range all {
		if checkDigest(one.Digest) != nil || one.Size < 0 || len(one.Annotations) > maxAnnotations {
			t.Errorf("accepted %+v", one)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(ociImage, []byte(manifestWith("")))
	f.Add("", []byte(emptyManifest))
	f.Add(dockerManifest, []byte(manifestWith(`,"subject":`+descriptor)))
	f.Add(ociArtifact, []byte(`{"artifactType":"a/b","blobs":[`+descriptor+`]}`))
	f.Add(ociImage, []byte(manifestWith(`,"Layers":[],"manifests":null`)))
	f.Add(dockerSchema1, []byte(`{"schemaVersion":1,"fsLayers":[]}`))
	f.Fuzz(func(t *testing.T, contentType string, raw []byte) {
		document, err := parseDocument(contentType, raw, testBounds())
		if err != nil {
			return
		}
		checkParsed(t, document)
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(raw, &keys); err != nil {
			t.Fatal(err)
		}
		_, layers := keys["layers"]
		if _, manifests := keys["manifests"]; layers && manifests {
			t.Error("accepted a document with layers and manifests")
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(indexWith("")))
	f.Add([]byte(indexWith(`,"annotations":{"a":"b"},"subject":` + descriptor)))
	f.Add([]byte(indexWith(`,"layers":[]`)))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"platform":{"os":"linux","architecture":"amd64"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, contentType := range []string{ociIndex, dockerList} {
			document, err := parseDocument(contentType, raw, testBounds())
			if err != nil {
				continue
			}
			checkParsed(t, document)
			if document.Index == nil {
				t.Error("an index is no index")
			}
		}
	})
}

func FuzzAnnotations(f *testing.F) {
	f.Add([]byte(`{"org.opencontainers.image.created":"2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"a":"1","a":"2"}`))
	f.Add([]byte(`{"":"x"}`))
	f.Add([]byte(`{"Layers":"x","\u0000":"\ud800"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		document, err := parseDocument(ociImage, []byte(manifestWith(`,"annotations":`+string(raw))), testBounds())
		if err != nil {
			return
		}
		total := 0
		for key, value := range document.Manifest.Annotations {
			if total += len(key) + len(value); key == "" {
				t.Error("accepted an annotation without a name")
			}
		}
		if len(document.Manifest.Annotations) > maxAnnotations || total > maxAnnotationBytes {
			t.Errorf("accepted %d annotations with %d bytes", len(document.Manifest.Annotations), total)
		}
	})
}

func FuzzTagList(f *testing.F) {
	f.Add(`{"name":"a","tags":["v1","latest","-x"]}`)
	f.Add(`{"tags":null}`)
	f.Add(`{"x":[{"tags":[1]}],"tags":["a","a"]}`)
	f.Fuzz(func(t *testing.T, page string) {
		seen := 0
		list := &tagReader{maxTags: 3, maxBytes: 1 << 10, see: func(tag string) {
			if seen++; !IsTag(tag) {
				t.Errorf("accepted the tag %q", tag)
			}
		}}
		if err := list.read(strings.NewReader(page)); err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		if seen > 3 {
			t.Errorf("%d tags", seen)
		}
	})
}

func FuzzLink(f *testing.F) {
	f.Add(`</v2/a/tags/list?n=1&last=b>; rel="next"`)
	f.Add(`<x>; rel=prev, <y>; REL = next`)
	f.Fuzz(func(t *testing.T, header string) {
		if target, ok := nextLink(http.Header{"Link": {header}}); ok && !strings.Contains(header, "<"+target+">") {
			t.Errorf("found %q in %q", target, header)
		}
	})
}
