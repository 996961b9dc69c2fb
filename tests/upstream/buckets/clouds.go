package buckets

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
)

// generation names the content of an object, as Google does; the etag is about more than that.
func (o Object) generation() string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(o.Body)))+1, 10)
}

func (f *Fake) googleList(w http.ResponseWriter, r Request) {
	query := r.URL.Query()
	most, _ := strconv.Atoi(query.Get("maxResults"))
	keys, more := f.page(query.Get("prefix"), query.Get("pageToken"), most)
	page := map[string]any{"kind": "storage#objects"}
	var items []map[string]string
	for _, key := range keys {
		o, _ := f.object(key)
		items = append(items, map[string]string{"name": key, "etag": o.ETag, "generation": o.generation(), "size": strconv.Itoa(len(o.Body))})
	}
	page["items"] = items
	if more {
		page["nextPageToken"] = keys[len(keys)-1]
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (f *Fake) googleGet(w http.ResponseWriter, r Request) {
	o, ok := f.object(r.Key)
	switch {
	case !ok:
		http.Error(w, `{"error":{"message":"No such object"}}`, http.StatusNotFound)
	case r.URL.Query().Get("ifGenerationMatch") != o.generation():
		http.Error(w, `{"error":{"message":"conditionNotMet"}}`, http.StatusPreconditionFailed)
	default:
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum([]byte(o.Body), crc32.MakeTable(crc32.Castagnoli)))
		w.Header().Set("X-Goog-Hash", "crc32c="+base64.StdEncoding.EncodeToString(sum))
		w.Header().Set("X-Goog-Generation", o.generation())
		fmt.Fprint(w, o.Body)
	}
}

// azureBlob is an entry of a listing, in the form that the service of version 2023-11-03 answers with.
type azureBlob struct {
	Name       string
	Properties struct {
		ETag   string `xml:"Etag"`
		Length int    `xml:"Content-Length"`
	}
}

func (f *Fake) azureList(w http.ResponseWriter, r Request) {
	if !strings.HasPrefix(r.URL.Path, "/"+Bucket) {
		refuseAzure(w, http.StatusNotFound, "ContainerNotFound")
		return
	}
	query := r.URL.Query()
	most, _ := strconv.Atoi(query.Get("maxresults"))
	keys, more := f.page(query.Get("prefix"), query.Get("marker"), most)
	page := struct {
		XMLName    xml.Name    `xml:"EnumerationResults"`
		Blobs      []azureBlob `xml:"Blobs>Blob"`
		NextMarker string
	}{}
	for _, key := range keys {
		o, _ := f.object(key)
		blob := azureBlob{Name: key}
		blob.Properties.ETag, blob.Properties.Length = o.azureETag(), len(o.Body)
		page.Blobs = append(page.Blobs, blob)
	}
	if more {
		page.NextMarker = keys[len(keys)-1]
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}

// azureETag has no quotes in listings, and quotes in headers.
func (o Object) azureETag() string { return "0x8D" + strings.ToUpper(o.ETag[:12]) }

func (f *Fake) azureGet(w http.ResponseWriter, r Request) {
	o, ok := f.object(r.Key)
	switch {
	case !ok:
		refuseAzure(w, http.StatusNotFound, "BlobNotFound")
	case strings.Trim(r.Header.Get("If-Match"), `"`) != o.azureETag():
		refuseAzure(w, http.StatusPreconditionFailed, "ConditionNotMet")
	default:
		sum := md5.Sum([]byte(o.Body))
		w.Header().Set("ETag", `"`+o.azureETag()+`"`)
		w.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
		fmt.Fprint(w, o.Body)
	}
}

func refuseAzure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>no</Message></Error>", code)
}
