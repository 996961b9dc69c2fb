// Package bucket speaks to object storages: S3, Google Cloud Storage and Azure Blob Storage. A file each has what is
// special to one of them; a further one is a further Bucket, and a line in open.go.
// It does not know where credentials come from, nor what becomes of the objects.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var (
	// ErrNoBucket says that the storage has no bucket of the name.
	ErrNoBucket = errors.New("bucket not found")
	// ErrNoObject says that the bucket has no object of the key any more.
	ErrNoObject = errors.New("object not found")
	// ErrChanged says that the object is another one than was listed.
	ErrChanged = errors.New("object has changed since it was listed")
	// ErrChecksum says that a body is not what the storage's checksum says.
	ErrChecksum = errors.New("body does not match its checksum")
	// ErrLimit says that an answer or a listing is larger than is taken.
	ErrLimit = errors.New("limit exceeded")
	// ErrListing says that a listing cannot be right: it repeats itself, or has no end.
	ErrListing = errors.New("listing is not usable")
)

// errNoListing says that an answer is something else: whoever stands before a storage may say in its place that all is well. It is
// not taken for a bucket that is empty.
var errNoListing = fmt.Errorf("%w: the answer is none", ErrListing)

// Object is one object as a listing has it.
type Object struct {
	Key string
	// ETag is the storage's name for what the object is now, without quotes.
	ETag string
	// Generation names the content alone, where the etag is about more than that; else it is empty.
	Generation string
	Size       int64
}

// Content names what the object holds: as long as it stays, so does the body.
func (o Object) Content() string {
	if o.Generation != "" {
		return o.Generation
	}
	return o.ETag
}

// Listing asks for a page of the objects whose keys begin with the prefix.
type Listing struct {
	Prefix string
	// Token is what the page before ended with; empty for the first one.
	Token string
	// Most is how many objects the page may have; zero leaves that to the storage.
	Most int
}

// Page is a part of a listing.
type Page struct {
	Objects []Object
	// Next is the token of the page that follows; empty on the last one.
	Next string
}

// Bucket is one bucket, as one identity sees it. It is safe for concurrent use.
type Bucket interface {
	// List gives a page. ErrNoBucket where there is no such bucket.
	List(ctx context.Context, listing Listing) (Page, error)
	// Get opens the object, if it is still the one that was listed: else the error is ErrChanged or ErrNoObject. Reading the
	// body ends with ErrChecksum where it is not what the storage says that it is, and after Size bytes with ErrChanged.
	Get(ctx context.Context, object Object) (io.ReadCloser, error)
	// Close lets go of what the bucket holds beside connections, which others share. Calls under way end by themselves.
	Close()
}

// StatusError is an answer that says no.
type StatusError struct {
	Status int
	// Code is the storage's word for what is wrong; it may be empty.
	Code string
	// RetryAfter is how long the storage asks to be left alone; zero where it does not say.
	RetryAfter time.Duration

	text string
	kind error
}

// Error says what the storage said.
func (e *StatusError) Error() string { return e.text }

// Is tells the sentinel that the answer means.
func (e *StatusError) Is(target error) bool { return e.kind != nil && target == e.kind }
