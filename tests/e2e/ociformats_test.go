package e2e

import (
	"maps"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/tests/upstream/registry"
)

const zstdLayer = "application/vnd.oci.image.layer.v1.tar+zstd"

func TestOCIEveryFormatThatPeoplePushIsTaken(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("team/app")
	must := func(content []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	wanted, other := module(1), module(2)
	packed, unpacked := s.gzipped(wanted), must(registry.Tar(registry.Files(wanted)...))
	otherLayer := registry.Layer{MediaType: ocispec.MediaTypeImageLayerGzip, Content: s.gzipped(other)}
	layer := registry.Layer{MediaType: ocispec.MediaTypeImageLayerGzip, Content: packed}
	second := registry.Layer{MediaType: "application/vnd.example.second", Content: packed}
	inChart := map[string]string{"templates/app.yaml": "kind: ConfigMap\n"}
	chart := must(registry.Chart("app", "1.0.0+build.7", inChart))
	chartFiles := map[string]string{
		"app/Chart.yaml":         "apiVersion: v2\nname: app\nversion: \"1.0.0+build.7\"\ntype: application\n",
		"app/templates/app.yaml": inChart["templates/app.yaml"],
	}

	repository.PushFlux("flux", wanted, nil)
	repository.PushORAS("oras", otherLayer, second)
	repository.PushHelm("1.0.0_build.7", chart)
	repository.PushDocker("docker", registry.Layer{Content: packed})
	repository.PushORAS("zstd", registry.Layer{MediaType: zstdLayer, Content: must(registry.Zstd(unpacked))})
	repository.PushORAS("tar", registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: unpacked})
	repository.PushWithSubject("subject", repository.PushORAS("", otherLayer), registry.Manifest{Layers: []registry.Layer{layer}})
	arm := repository.PushORAS("", otherLayer)
	amd := repository.Push("", registry.Manifest{Layers: []registry.Layer{layer}, Annotations: map[string]string{"org.example": "amd64"}})
	repository.PushIndex("index", registry.OnPlatform("linux/arm64/v8", arm), registry.OnPlatform("windows/amd64", arm), registry.OnPlatform("linux/amd64", amd))
	list := repository.PushDocker("", registry.Layer{Content: packed})
	repository.PushDockerList("list", registry.OnPlatform("linux/s390x", arm), registry.OnPlatform("linux/amd64", list))

	cases := map[string]struct {
		reason  string
		changes []ociChange
		tag     string
		want    map[string]string // the files, or
		copied  []byte            // the bytes
	}{
		"flux":         {reason: "What flux push makes.", tag: "flux", want: wanted},
		"oras-first":   {reason: "The first layer is meant when none is named.", tag: "oras", want: other},
		"oras-second":  {reason: "A layer is named by its type.", tag: "oras", changes: []ociChange{ociLayer("application/vnd.example.second", "")}, want: wanted},
		"oras-copy":    {reason: "A layer is copied as it is.", tag: "oras", changes: []ociChange{ociLayer("application/vnd.example.second", "copy")}, copied: packed},
		"helm-copy":    {reason: "A chart stays the file that was pushed.", tag: "1.0.0_build.7", changes: []ociChange{ociLayer(registry.HelmContent, "copy")}, copied: chart},
		"helm-extract": {reason: "A chart is files, too.", tag: "1.0.0_build.7", changes: []ociChange{ociLayer(registry.HelmContent, "extract")}, want: chartFiles},
		"docker":       {reason: "What docker push makes.", tag: "docker", want: wanted},
		"zstd":         {reason: "A layer packed with zstandard.", tag: "zstd", want: wanted},
		"tar":          {reason: "A layer that is not packed.", tag: "tar", want: wanted},
		"subject":      {reason: "What refers to something else is an artifact, too.", tag: "subject", want: wanted},
		"index":        {reason: "Of an index, linux/amd64 is meant.", tag: "index", want: wanted},
		"list":         {reason: "Docker's lists are indexes.", tag: "list", want: wanted},
	}
	for name, c := range cases {
		s.create(name, r.URL("team/app"), append(c.changes, ociTag(c.tag))...)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			resolved, err := repository.Resolve(t.Context(), c.tag)
			if err != nil {
				t.Fatal(err)
			}
			artifact := s.ready(name, at(c.tag, resolved)).Status.Artifact
			if c.copied == nil {
				s.holds(artifact, files(c.want))
				return
			}
			if want := digest.FromBytes(c.copied).String(); artifact.Digest != want || string(s.download(artifact)) != string(c.copied) {
				t.Errorf("the copy has the digest %s, the layer %s", artifact.Digest, want)
			}
		})
	}
	if got := s.get("index").Status.Artifact.Metadata; !maps.Equal(got, map[string]string{"org.example": "amd64"}) {
		t.Errorf("metadata of an index's manifest is %v", got)
	}
}

func TestOCIAChartsVersionsHaveBuildMetadata(t *testing.T) {
	t.Parallel()
	s := newOCIScene(t)
	r := registry.ForTest(t, registry.Options{})
	repository := r.Repository("charts/app")
	pushed := map[string]ocispec.Descriptor{}
	for _, version := range []string{"1.0.0", "1.1.0+build.1", "1.1.0+build.2", "1.2.0-rc.1+build.9"} {
		chart, err := registry.Chart("app", version, map[string]string{"values.yaml": "version: " + version})
		if err != nil {
			t.Fatal(err)
		}
		pushed[version] = repository.PushHelm(helmTag(version), chart)
	}
	s.create("app", r.URL("charts/app"), ociSemver("1.x"), ociLayer(registry.HelmContent, "copy"))
	s.ready("app", at("1.1.0_build.2", pushed["1.1.0+build.2"]))
	s.change("app", ociSemver("1.0.x"))
	s.ready("app", at("1.0.0", pushed["1.0.0"]))
}

// helmTag is a version as Helm writes it in a tag, where no '+' may stand.
func helmTag(version string) string {
	tag := []byte(version)
	for i, char := range tag {
		if char == '+' {
			tag[i] = '_'
		}
	}
	return string(tag)
}
