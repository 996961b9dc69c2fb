package function

import (
	"cmp"
	"regexp"
	"strings"
)

// image is a reference to one: registry.example.com:5000/shop/web:1.2@sha256:….
type image struct{ name, tag, digest string }

// cutImage takes a reference apart. A colon before the last slash is that of a registry's port.
func cutImage(reference string) image {
	made := image{}
	reference, made.digest, _ = strings.Cut(reference, "@")
	made.name = reference
	if at := strings.LastIndexByte(reference, ':'); at > strings.LastIndexByte(reference, '/') {
		made.name, made.tag = reference[:at], reference[at+1:]
	}
	return made
}

// String is the reference.
func (i image) String() string {
	out := i.name
	if i.tag != "" {
		out += ":" + i.tag
	}
	if i.digest != "" {
		out += "@" + i.digest
	}
	return out
}

// with is the image after the change. A tag and a digest say which one is meant, both together: a digest that is left from
// before would win over a new tag, and a tag over nothing.
func (i image) with(change imageChange) image {
	i.name = cmp.Or(change.NewName, i.name)
	if change.NewTag != "" || change.Digest != "" {
		i.tag, i.digest = change.NewTag, change.Digest
	}
	return i
}

// What the specification of OCI's distribution takes for tags and digests.
var (
	tagPattern    = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
)

func isTag(tag string) bool       { return tagPattern.MatchString(tag) }
func isDigest(digest string) bool { return digestPattern.MatchString(digest) }
