package registry

import (
	// The digests that descriptors may have are computed with these.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"strconv"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"sluice.dev/sluice/internal/transport"
)

const (
	// maxEntries is how many layers or manifests a document may list.
	maxEntries         = 1000
	maxAnnotations     = 256
	maxAnnotationBytes = 256 << 10
	maxMediaType       = 255
)

// limit is a limit of Options.
type limit struct {
	name  string
	bytes int64
}

// checkDigest wants algorithm:hex with sha256, sha384 or sha512.
func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%s is not a digest with sha256, sha384 or sha512: %w", transport.PrintableQuoted(d.String()), err)
	}
	switch d.Algorithm() {
	case digest.SHA256, digest.SHA384, digest.SHA512:
		return nil
	}
	return fmt.Errorf("%s is not a digest with sha256, sha384 or sha512", transport.PrintableQuoted(d.String()))
}

func checkDescriptors(kind string, all []ocispec.Descriptor, limit limit) error {
	for i, one := range all {
		if err := checkDescriptor(kind+" "+strconv.Itoa(i), one, limit); err != nil {
			return err
		}
	}
	return nil
}

// checkDescriptor judges a descriptor by itself; limit is for the size that it states.
func checkDescriptor(name string, d ocispec.Descriptor, limit limit) error {
	if err := checkDigest(d.Digest); err != nil {
		return manifestErrorf("%s: %w", name, err)
	}
	switch {
	case d.MediaType == "" || len(d.MediaType) > maxMediaType:
		return manifestErrorf("%s: media type is missing or longer than %d characters", name, maxMediaType)
	case d.Size < 0:
		return manifestErrorf("%s: size is %d", name, d.Size)
	case d.Size > limit.bytes:
		return limitErrorf("%s: size is %d bytes, more than %d (%s)", name, d.Size, limit.bytes, limit.name)
	case d.Data != nil && (int64(len(d.Data)) != d.Size || d.Digest.Algorithm().FromBytes(d.Data) != d.Digest):
		return manifestErrorf("%s: the data in it is not what its digest is of", name)
	}
	return checkAnnotations(name, d.Annotations)
}

func checkAnnotations(name string, annotations map[string]string) error {
	total := 0
	for key, value := range annotations {
		if key == "" {
			return manifestErrorf("%s: %w", name, errors.New("annotation without a name"))
		}
		total += len(key) + len(value)
	}
	if len(annotations) > maxAnnotations || total > maxAnnotationBytes {
		return limitErrorf("%s: %d annotations with %d bytes are more than %d or %d",
			name, len(annotations), total, maxAnnotations, maxAnnotationBytes)
	}
	return nil
}
