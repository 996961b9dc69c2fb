package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

func TestOCIHostileLayersAreNotServed(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t, "--oci-max-layer-bytes=100000", "--oci-max-manifest-bytes=20000", "--archive-max-bytes=1000000", "--archive-max-files=500")
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	good := repository.PushFlux("good", module(1), nil)

	layers, err := registry.Hostile()
	if err != nil {
		t.Fatal(err)
	}
	// These do nothing to whom unpacks the artifact: they are odd names, or say what an artifact does not keep.
	kept := upstream.File{Mode: upstream.Regular, Content: "good: true\n"}
	harmless := map[string]upstream.Files{
		"setuid":                   {"good.yaml": kept, "setuid": {Mode: upstream.Executable, Content: "owned"}},
		"whiteout of another file": {"good.yaml": kept, ".wh.good.yaml": {Mode: upstream.Regular}},
		"control characters":       {"good.yaml": kept, "a\nb\x1b[2J": {Mode: upstream.Regular, Content: "owned"}},
	}
	// Links are left out, which an event tells. Under their names other things may stand.
	owned := upstream.File{Mode: upstream.Regular, Content: "owned"}
	linked := map[string]upstream.Files{
		"symlink out":     {"good.yaml": kept, "link/passwd": owned},
		"symlink up":      {"good.yaml": kept, "link/owned": owned},
		"symlink inside":  {"good.yaml": kept},
		"hardlink out":    {"good.yaml": kept},
		"hardlink inside": {"good.yaml": kept},
		"pax link":        {"good.yaml": kept},
	}
	maps.Copy(harmless, linked)
	bomb, err := registry.Bomb(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var many []registry.Entry
	for i := range 600 {
		many = append(many, registry.File(fmt.Sprint(i), ""))
	}
	if layers["more files than allowed"], err = registry.TarGzip(many...); err != nil {
		t.Fatal(err)
	}
	layers["no archive"] = []byte(strings.Repeat("no archive ", 100))
	layers["empty"] = nil

	names := map[string]string{} // of objects, by what their layers try
	hostile := func(try string, layer []byte) {
		name := fmt.Sprintf("hostile-%02d", len(names))
		names[try] = name
		repository.PushORAS(name, registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: layer})
		s.create(name, r.URL("team/app"), ociTag("good"))
	}
	for try, layer := range layers {
		hostile(try, layer)
	}
	hostile("bomb", bomb)
	for _, name := range names {
		s.ready(name, at("good", good))
		s.change(name, ociTag(name))
	}
	for try, name := range names {
		t.Run(try, func(t *testing.T) {
			s := s.in(t)
			if want, ok := harmless[try]; ok {
				manifest, err := repository.Resolve(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				s.holds(s.ready(name, at(name, manifest)).Status.Artifact, want)
				if linked[try] != nil {
					s.told(name, "Normal", sourcev1.LinksSkippedReason, `links left out of the artifact: 1, the first is "link"`)
				}
				return
			}
			bad := s.failing(name, layerFailed(""))
			if bad.Status.Artifact.Revision != at("good", good) {
				t.Errorf("it is served: %s", asJSON(bad.Status))
			}
			s.holds(bad.Status.Artifact, files(module(1)))
		})
	}
	s.eventually("nothing is left of the attempts", func(context.Context) (bool, string) {
		found, wrong := readDisk(s.storage)
		left := append(found.strays(), wrong...)
		return len(left) == 0, strings.Join(left, "\n")
	})
}

func TestOCIWhatExceedsALimitIsNotAskedFor(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t, "--oci-max-layer-bytes=10000", "--oci-max-manifest-bytes=20000", "--oci-max-tags=50", "--artifact-max-bytes=5000")
	cases := map[string]struct {
		reason  string
		changes []ociChange
		want    trouble
		push    func(r *registry.Fixture, repository *registry.Edited)
	}{
		"layer": {
			"A layer says how large it is.", nil, layerFailed("limit exceeded"),
			func(_ *registry.Fixture, repository *registry.Edited) {
				repository.PushORAS("latest", registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: []byte(noise(20000, 1))})
			},
		},
		"copied-layer": {
			"It does not matter what becomes of it.",
			[]ociChange{ociLayer("", "copy")},
			layerFailed("limit exceeded"),
			func(_ *registry.Fixture, repository *registry.Edited) {
				repository.PushORAS("latest", registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: []byte(noise(20000, 2))})
			},
		},
		"artifact": {
			"An artifact has a limit of its own.",
			[]ociChange{ociLayer("", "copy")},
			trouble{sourcev1.StorageOperationFailedCondition, sourcev1.ArchiveOperationFailedReason, "5000"},
			func(_ *registry.Fixture, repository *registry.Edited) {
				repository.PushORAS("latest", registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: []byte(noise(8000, 3))})
			},
		},
		"manifest": {
			"A manifest is small.", nil, pullFailed("limit exceeded"),
			func(_ *registry.Fixture, repository *registry.Edited) {
				repository.PushFlux("latest", module(2), map[string]string{"org.example.long": noise(30000, 4)})
			},
		},
		"tags": {
			"A list of tags ends.",
			[]ociChange{ociSemver("*")},
			listFailed("limit exceeded"),
			func(_ *registry.Fixture, repository *registry.Edited) {
				pushed := repository.PushFlux("1.0.0", module(2), nil)
				for i := range 60 {
					repository.Tag(fmt.Sprintf("1.0.%d", i), pushed)
				}
			},
		},
		"tag-pages": {
			"Also one whose pages name themselves.",
			[]ociChange{ociSemver("*")},
			listFailed(""),
			func(r *registry.Fixture, repository *registry.Edited) {
				repository.PushFlux("1.0.0", module(2), nil)
				r.Always(registry.LinkLoop().On(registry.Tags))
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			r := registry.ForTest(t, registry.Options{})
			repository := r.Repository("team/app")
			first := repository.PushFlux("latest", module(1), nil)
			s.create(name, r.URL("team/app"))
			good := s.ready(name, at("latest", first))
			r.Reset()
			c.push(r, repository)
			s.change(name, c.changes...)
			s.request(name)
			s.keeps(good, s.failing(name, c.want))
			if name != "artifact" && blobs(r) != 0 {
				t.Errorf("what is too large was asked for: %+v", r.Requests())
			}
			s.holds(good.Status.Artifact, files(module(1)))
		})
	}
}
