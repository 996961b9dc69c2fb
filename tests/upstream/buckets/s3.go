package buckets

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Refuse answers as S3 does when it says no.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

func (f *Fake) missing(w http.ResponseWriter, _ Request) {
	Refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
}

func (f *Fake) location(w http.ResponseWriter, r Request) {
	if !strings.HasPrefix(r.URL.Path, "/"+Bucket) {
		f.missing(w, r)
		return
	}
	fmt.Fprint(w, `<?xml version="1.0"?><LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`)
}

// Entry is an object as a listing of S3 has it.
type Entry struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
}

// Listing is a page of S3.
type Listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	EncodingType          string
	Contents              []Entry
}

// WriteListing answers with a page.
func WriteListing(w http.ResponseWriter, page Listing) {
	page.Name, page.EncodingType = Bucket, "url"
	for i := range page.Contents {
		page.Contents[i].Key = url.QueryEscape(page.Contents[i].Key)
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}

func (f *Fake) s3List(w http.ResponseWriter, r Request) {
	query := r.URL.Query()
	most, _ := strconv.Atoi(query.Get("max-keys"))
	keys, more := f.page(query.Get("prefix"), query.Get("continuation-token"), most)
	page := Listing{IsTruncated: more}
	for _, key := range keys {
		o, _ := f.object(key)
		page.Contents = append(page.Contents, Entry{Key: key, LastModified: "2024-01-01T00:00:00.000Z", ETag: `"` + o.ETag + `"`, Size: len(o.Body)})
	}
	if more {
		page.NextContinuationToken = keys[len(keys)-1]
	}
	WriteListing(w, page)
}

func (f *Fake) s3Get(w http.ResponseWriter, r Request) {
	o, ok := f.object(r.Key)
	if !ok {
		Refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	if want := strings.Trim(r.Header.Get("If-Match"), `"`); want != "" && want != o.ETag {
		Refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	}
	WriteObject(w, o.ETag, o.Body)
}

// WriteObject answers with an object of S3.
func WriteObject(w http.ResponseWriter, etag, body string) {
	w.Header().Set("ETag", `"`+etag+`"`)
	w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	fmt.Fprint(w, body)
}
