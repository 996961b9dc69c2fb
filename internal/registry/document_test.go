package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	fixture "sluice.dev/sluice/tests/upstream/registry"
)

const (
	hex64      = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
	descriptor = `{"mediaType":"application/vnd.oci.empty.v1+json","size":2,"digest":"sha256:` + hex64 + `"}`
	ociIndex   = ocispec.MediaTypeImageIndex
	ociImage   = ocispec.MediaTypeImageManifest
)

// manifestWith is an image manifest with more members.
func manifestWith(members string) string {
	return `{"schemaVersion":2,"config":` + descriptor + `,"layers":[` + descriptor + `]` + members + `}`
}

func indexWith(members string) string {
	return `{"schemaVersion":2,"manifests":[` + descriptor + `]` + members + `}`
}

func layers(change ...string) string {
	return `{"schemaVersion":2,"config":` + descriptor + `,"layers":[` + strings.NewReplacer(change...).Replace(descriptor) + `]}`
}

func testBounds() bounds { return Options{}.withDefaults().bounds() }

func TestParseDocument(t *testing.T) {
	t.Parallel()
	many := strings.TrimSuffix(strings.Repeat(descriptor+",", maxEntries+1), ",")
	for reason, test := range map[string]struct {
		contentType, raw string
		want             error
	}{
		"an image manifest":                    {ociImage, manifestWith(""), nil},
		"with its own media type":              {ociImage, manifestWith(`,"mediaType":"` + ociImage + `"`), nil},
		"with its own media type alone":        {"", manifestWith(`,"mediaType":"` + ociImage + `"`), nil},
		"Docker's":                             {dockerManifest, manifestWith(`,"mediaType":"` + dockerManifest + `"`), nil},
		"an index":                             {ociIndex, indexWith(""), nil},
		"Docker's list":                        {dockerList, indexWith(`,"mediaType":"` + dockerList + `"`), nil},
		"an artifact manifest":                 {ociArtifact, `{"mediaType":"` + ociArtifact + `","artifactType":"a/b","blobs":[` + descriptor + `],"subject":` + descriptor + `}`, nil},
		"an artifact manifest without blobs":   {ociArtifact, `{"artifactType":"a/b"}`, nil},
		"a subject, unknown keys, annotations": {ociImage, manifestWith(`,"subject":` + descriptor + `,"x":{"y":[1]},"annotations":{"Layers":"free","size":"1"}`), nil},
		"data that fits":                       {ociImage, layers(`"size":2`, `"size":2,"data":"e30="`), nil},
		"sha512":                               {ociImage, layers("sha256:"+hex64, digest.SHA512.FromString("x").String()), nil},

		"two media types":                  {ociImage, manifestWith(`,"mediaType":"` + dockerManifest + `"`), ErrManifest},
		"a manifest said to be an index":   {ociIndex, manifestWith(""), ErrManifest},
		"an index said to be a manifest":   {ociImage, indexWith(""), ErrManifest},
		"layers and manifests":             {ociImage, manifestWith(`,"manifests":[]`), ErrManifest},
		"layers and manifests, null":       {ociImage, manifestWith(`,"manifests":null`), ErrManifest},
		"manifests and layers":             {ociIndex, indexWith(`,"layers":[]`), ErrManifest},
		"an index with a config":           {ociIndex, indexWith(`,"config":` + descriptor), ErrManifest},
		"a manifest with blobs":            {ociImage, manifestWith(`,"blobs":[]`), ErrManifest},
		"an artifact manifest with layers": {ociArtifact, `{"blobs":[],"layers":[]}`, ErrManifest},
		"Docker's schema 1":                {dockerSchema1, `{"schemaVersion":1,"fsLayers":[]}`, ErrManifest},
		"Docker's schema 1, signed":        {dockerSchema1JWS, `{"schemaVersion":1}`, ErrManifest},
		"Docker's schema 1 in disguise":    {ociImage, manifestWith(`,"fsLayers":[]`), ErrManifest},
		"schema version 1":                 {ociImage, strings.Replace(manifestWith(""), `:2`, `:1`, 1), ErrManifest},
		"no schema version":                {ociImage, strings.Replace(manifestWith(""), `"schemaVersion":2,`, ``, 1), ErrManifest},
		"an unknown type":                  {"application/vnd.example+json", manifestWith(""), ErrManifest},
		"no type":                          {"", manifestWith(""), ErrManifest},
		"no config":                        {ociImage, `{"schemaVersion":2,"layers":[]}`, ErrManifest},
		"a key twice":                      {ociImage, manifestWith(`,"layers":[]`), ErrManifest},
		"a key in other letters":           {ociImage, manifestWith(`,"Layers":[]`), ErrManifest},
		"a key with a long s":              {ociImage, manifestWith(`,"layerſ":[]`), ErrManifest},
		"an escaped key twice":             {ociImage, manifestWith(`,"\u006cayers":[]`), ErrManifest},
		"an annotation twice":              {ociImage, manifestWith(`,"annotations":{"a":"1","a":"2"}`), ErrManifest},
		"more behind the end":              {ociImage, manifestWith("") + "{}", ErrManifest},
		"no JSON":                          {ociImage, "<html>", ErrManifest},
		"a list":                           {ociImage, "[]", ErrManifest},
		"null":                             {ociImage, "null", ErrManifest},
		"nothing":                          {ociImage, "", ErrManifest},
		"half":                             {ociImage, manifestWith("")[:90], ErrManifest},
		"invalid UTF-8":                    {ociImage, manifestWith(`,"x":"` + "\xff" + `"`), ErrManifest},
		"deep":                             {ociImage, manifestWith(`,"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), ErrManifest},
		"a negative size":                  {ociImage, layers(`"size":2`, `"size":-1`), ErrManifest},
		"a size with a fraction":           {ociImage, layers(`"size":2`, `"size":1.5`), ErrManifest},
		"a size beyond all numbers":        {ociImage, layers(`"size":2`, `"size":99999999999999999999`), ErrManifest},
		"a size of 2^62 nobody reads":      {ociImage, layers(`"size":2`, `"size":4611686018427387904`), nil},
		"a size as text":                   {ociImage, layers(`"size":2`, `"size":"2"`), ErrManifest},
		"a manifest of 33 MiB":             {ociIndex, strings.Replace(indexWith(""), `"size":2`, `"size":34603008`, 1), ErrTooLarge},
		"a digest that is a path":          {ociImage, layers("sha256:"+hex64, "../../../etc/passwd"), ErrManifest},
		"a digest too short":               {ociImage, layers(hex64, hex64[1:]), ErrManifest},
		"a digest in capitals":             {ociImage, layers(hex64, strings.ToUpper(hex64)), ErrManifest},
		"md5":                              {ociImage, layers("sha256:"+hex64, "md5:"+hex64[:32]), ErrManifest},
		"no digest":                        {ociImage, layers("sha256:"+hex64, ""), ErrManifest},
		"no media type of a layer":         {ociImage, layers("application/vnd.oci.empty.v1+json", ""), ErrManifest},
		"a long media type":                {ociImage, layers("application/vnd.oci.empty.v1+json", strings.Repeat("a", 256)), ErrManifest},
		"data that does not fit":           {ociImage, layers(`"size":2`, `"size":2,"data":"W10="`), ErrManifest},
		"data that is no base64":           {ociImage, layers(`"size":2`, `"size":2,"data":"?"`), ErrManifest},
		"a subject without a digest":       {ociImage, manifestWith(`,"subject":{}`), ErrManifest},
		"a subject of an index":            {ociIndex, indexWith(`,"subject":{}`), ErrManifest},
		"too many layers":                  {ociImage, `{"schemaVersion":2,"config":` + descriptor + `,"layers":[` + many + `]}`, ErrTooLarge},
		"too many manifests":               {ociIndex, `{"schemaVersion":2,"manifests":[` + many + `]}`, ErrTooLarge},
		"too many annotations":             {ociImage, manifestWith(`,"annotations":` + annotations(maxAnnotations+1, 1)), ErrTooLarge},
		"too long annotations":             {ociImage, manifestWith(`,"annotations":` + annotations(2, maxAnnotationBytes/2)), ErrTooLarge},
		"too many annotations of a layer":  {ociImage, layers(`"size":2`, `"size":2,"annotations":`+annotations(maxAnnotations+1, 1)), ErrTooLarge},
		"an annotation without a name":     {ociImage, manifestWith(`,"annotations":{"":"x"}`), ErrManifest},
		"an annotation that is no text":    {ociImage, manifestWith(`,"annotations":{"a":1}`), ErrManifest},
		"annotations that are no object":   {ociImage, manifestWith(`,"annotations":["a"]`), ErrManifest},
	} {
		document, err := parseDocument(test.contentType, []byte(test.raw), testBounds())
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", reason, err)
		}
		if err == nil && (document.Manifest == nil) == (document.Index == nil) {
			t.Errorf("%s: not exactly one of manifest and index", reason)
		}
	}
}

func annotations(count, size int) string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf("k%d", i)] = strings.Repeat("v", size)
	}
	raw, _ := json.Marshal(all)
	return string(raw)
}

func TestAnArtifactManifestIsAManifest(t *testing.T) {
	t.Parallel()
	document, err := parseDocument(ociArtifact, []byte(`{"artifactType":"a/b","blobs":[`+descriptor+`]}`), testBounds())
	if err != nil || document.ArtifactType != "a/b" || len(document.Manifest.Layers) != 1 {
		t.Errorf("%+v, %v", document, err)
	}
}

func TestManifestAnswers(t *testing.T) {
	t.Parallel()
	d := digest.FromString(emptyManifest)
	for reason, test := range map[string]struct {
		digest      digest.Digest
		contentType string
		encoding    string
		body        string
		want        error
		says        string
	}{
		"right":                {d, ociImage, "", emptyManifest, nil, ""},
		"type with parameters": {d, ociImage + "; charset=utf-8", "", emptyManifest, nil, ""},
		"no type":              {d, "", "", emptyManifest, nil, ""},
		"other bytes":          {d, ociImage, "", emptyManifest + " ", ErrDigest, "sha256:"},
		"cut":                  {d, ociImage, "", emptyManifest[:40], ErrDigest, "40 bytes"},
		"a web page":           {d, "text/html", "", "<html>", ErrDigest, "web page"},
		"another type":         {d, "application/json", "", emptyManifest, ErrManifest, `content type "application/json"`},
		"too large":            {d, ociImage, "", emptyManifest + strings.Repeat(" ", 4<<20), ErrTooLarge, "MaxManifestBytes"},
		"encoded":              {d, ociImage, "br", emptyManifest, ErrProtocol, `content encoding "br"`},
		"md5":                  {"md5:d41d8cd98f00b204e9800998ecf8427e", ociImage, "", emptyManifest, ErrManifest, "md5"},
		"not a digest":         {"v1", ociImage, "", emptyManifest, ErrManifest, "digest"},
	} {
		r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if test.encoding != "" {
				w.Header().Set("Content-Encoding", test.encoding)
			}
			w.Header()["Content-Type"] = nil
			if test.contentType != "" {
				w.Header().Set("Content-Type", test.contentType)
			}
			_, _ = w.Write([]byte(test.body))
		})
		client, _ := newClient(t, nil)
		document, err := client.Manifest(t.Context(), r, test.digest)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
		if err == nil && (string(document.Raw) != emptyManifest || document.Digest != d ||
			document.Size != int64(len(emptyManifest)) || document.MediaType != ociImage) {
			t.Errorf("%s: %+v", reason, document)
		}
	}
}

func TestManifestsThatPeoplePush(t *testing.T) {
	t.Parallel()
	site, r := distribution(t, fixture.None)
	repository := site.Repository(name)
	flux := repository.PushFlux("flux", map[string]string{"a.yaml": "a"}, map[string]string{"org.opencontainers.image.source": "s"})
	helm := repository.PushHelm("helm", need(fixture.Chart("app", "1.0.0", nil))(t))
	docker := repository.PushDocker("docker", layer("x"))
	index := repository.PushIndex("index", flux, helm)
	list := repository.PushDockerList("list", docker)
	client, _ := newClient(t, nil)
	for tag, pushed := range map[string]ocispec.Descriptor{
		"flux": flux, "helm": helm, "docker": docker, "index": index, "list": list,
	} {
		found, err := client.Resolve(t.Context(), r, tag)
		if err != nil || found.Digest != pushed.Digest {
			t.Fatalf("%s: %+v, %v", tag, found, err)
		}
		document, err := client.Manifest(t.Context(), r, found.Digest)
		if err != nil || document.MediaType != pushed.MediaType || (document.Index != nil) != isIndex(pushed.MediaType) {
			t.Errorf("%s: %+v, %v", tag, document.Descriptor, err)
		}
	}
}

// TestADocumentTakesNoMultipleOfItsBytes: an empty descriptor takes two bytes in a document, and a hundred when it is read.
func TestADocumentTakesNoMultipleOfItsBytes(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	for reason, members := range map[string]string{
		"empty layers": `"config":{},"layers":[` + strings.Repeat("{},", 1<<20) + `{}]`,
		"empty names":  `"config":{"urls":[` + strings.Repeat(`"",`, 1<<20) + `""]},"layers":[]`,
		"unknown keys": `"config":{},"layers":[],"x":{` + strings.Repeat(`"x":0,`, 1<<19) + `"y":0}`,
	} {
		raw := []byte(`{"schemaVersion":2,` + members + `}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseDocument(ociImage, raw, testBounds())
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; err == nil || taken > 4<<20 {
			t.Errorf("%s: %d bytes took %d: %v", reason, len(raw), taken, err)
		}
	}
}
