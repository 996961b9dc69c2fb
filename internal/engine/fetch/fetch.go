// Package fetch downloads artifacts of sources for their consumers: each digest once, verified, unpacked and kept in a
// bounded cache that all consumers share.
// It does not know what is in an artifact, who asks for it, or that Kubernetes exists.
package fetch

import (
	"cmp"
	"context"
	_ "crypto/sha256" // The algorithms that a digest may have.
	_ "crypto/sha512"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

var (
	// ErrDigest says that what the server gave is not what the source announced.
	ErrDigest = errors.New("content does not have the announced digest")
	// ErrTooLarge says that the server gave more than the source announced, or more than is ever downloaded.
	ErrTooLarge = errors.New("content is too large")
	// ErrStatus says that the server answered with a status that waiting does not change.
	ErrStatus = errors.New("server refuses the download")
	// ErrUnavailable says that the server could not be reached, did not have the artifact, or stopped sending.
	ErrUnavailable = errors.New("artifact is not available")
	// ErrArtifact says that the description of the artifact makes no sense.
	ErrArtifact = errors.New("artifact is not described well enough to fetch it")
	// ErrClosed says that the cache was closed.
	ErrClosed = errors.New("artifact cache is closed")
)

// The reasons of the failures that Acquire returns. None is for good: the source may publish anew at any time.
const (
	// ReasonUnavailable goes with ErrUnavailable and ErrStatus.
	ReasonUnavailable = "ArtifactUnavailable"
	// ReasonMismatch goes with ErrDigest.
	ReasonMismatch = "ArtifactDigestMismatch"
	// ReasonInvalid goes with ErrTooLarge, ErrArtifact and the errors of package archive.
	ReasonInvalid = "ArtifactInvalid"
)

// Artifact is what a source announces in its status.
type Artifact struct {
	// URL is where the tar.gz is served, over http or https.
	URL string
	// Digest is algorithm:hex of the tar.gz: sha256, sha384 or sha512.
	Digest string
	// Size is the length of the tar.gz in bytes; 0 is unknown.
	Size int64
	// Namespace is that of the source: downloads take turns by it. Who asks for what others serve waits for none of their own.
	Namespace string
	// Revision is what people call it. It appears in errors only.
	Revision string
	// Stored is when the source stored it, in UTC. An artifact that was stored anew is asked for without delay, however
	// often it could not be had before.
	Stored time.Time
}

// Observer learns what the cache does. Its methods are called with no lock held, from many goroutines.
type Observer interface {
	// Hit says that nobody had to download for an Acquire: the artifact was there, or on its way.
	Hit()
	// Downloaded says that an attempt ended, after so many bytes of the body, and how.
	Downloaded(bytes int64, err error)
	// Held says how many artifacts the cache holds, and their weight in bytes.
	Held(count int, bytes int64)
}

// Options tune a Cache. Zero values mean the defaults.
type Options struct {
	// Dir is where bodies are kept, in files without a name. Default: the system's folder for temporary files.
	Dir string
	// MaxBytes bounds the unpacked artifacts that are kept while nobody uses them. Default 2 GiB.
	MaxBytes int64
	// MaxCount bounds how many artifacts are kept while nobody uses them. Default 256.
	MaxCount int
	// MaxDownload bounds one tar.gz in bytes. Default 256 MiB.
	MaxDownload int64
	// Limits bound one unpacked artifact.
	Limits archive.Limits
	// Get asks for an artifact where its URL cannot be reached from here; the body is read within the same limits. Default: a
	// request to the URL.
	Get func(context.Context, Artifact) (*http.Response, error)
	// Parallel is how many artifacts are downloaded at once. Default 8.
	Parallel int
	// Attempt bounds one download from request to last byte. Default 2 minutes.
	Attempt time.Duration
	// Patience is how long callers wait for a download that is under way. Default 10 seconds.
	Patience time.Duration
	// Clock is the time that callers wait, and that passes between attempts. Default: the real one.
	Clock clock.Clock
	// Observer may be nil.
	Observer Observer
}

func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), 2<<30)
	o.MaxCount = cmp.Or(max(o.MaxCount, 0), 256)
	o.MaxDownload = cmp.Or(max(o.MaxDownload, 0), 256<<20)
	o.Parallel = cmp.Or(max(o.Parallel, 0), 8)
	o.Attempt = cmp.Or(max(o.Attempt, 0), 2*time.Minute)
	o.Patience = cmp.Or(max(o.Patience, 0), 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Observer == nil {
		o.Observer = blind{}
	}
	return o
}

// blind observes nothing.
type blind struct{}

func (blind) Hit()                    {}
func (blind) Downloaded(int64, error) {}
func (blind) Held(int, int64)         {}

// checkDigest says what is wrong with a digest.
func checkDigest(text string) error {
	algorithm, _, _ := strings.Cut(text, ":")
	switch {
	case !digest.Algorithm(algorithm).Available():
		return fmt.Errorf("%w: digest %s is none of sha256, sha384 and sha512", ErrArtifact, transport.PrintableQuoted(text))
	case digest.Digest(text).Validate() != nil:
		return fmt.Errorf("%w: digest %s is not whole", ErrArtifact, transport.PrintableQuoted(text))
	}
	return nil
}

// explain gives an error of a download its reason, and says what is to be done. An artifact that is not available is
// waited for, and nothing else can be told of it before the given time has passed.
func explain(a Artifact, after time.Duration, err error) error {
	name := ""
	if a.Revision != "" {
		name = " of revision " + transport.PrintableQuoted(a.Revision)
	}
	text := fmt.Errorf("fetch artifact%s from %s: %w", name, transport.PrintableQuoted(credential.CleanURL(a.URL)), err)
	switch {
	case errors.Is(err, ErrDigest):
		return failure.Retry(ReasonMismatch, text)
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrArtifact), isVerdict(err):
		return failure.Retry(ReasonInvalid, text)
	}
	return failure.Wait(ReasonUnavailable, max(after, time.Millisecond), text)
}

// isVerdict tells errors that say something about the archive itself, whoever serves it.
func isVerdict(err error) bool {
	return errors.Is(err, archive.ErrLimit) || errors.Is(err, archive.ErrUnsafe) || errors.Is(err, archive.ErrCorrupt)
}
