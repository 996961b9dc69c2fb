package storage

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrInvalidPath says that an object or a path cannot name an artifact, whatever is stored.
var ErrInvalidPath = errors.New("not a valid artifact path")

// maxSegment is the longest name that common file systems take, in bytes.
const maxSegment = 255

// LatestFile is the file name that stands for whatever artifact of an object is current. Status names it in its url; no
// artifact is ever published under it.
const LatestFile = "latest.tar.gz"

// LatestIndex is LatestFile for objects whose artifacts are indexes.
const LatestIndex = "index.yaml"

// IsLatest tells whether a file name stands for whatever artifact is current.
func IsLatest(file string) bool { return file == LatestFile || file == LatestIndex }

// ParsePath splits <kind>/<namespace>/<name>/<file>. It looks at the letters alone and accepts nothing that could
// mean another place: no empty, hidden, relative or over-long segment, no backslash, no control character.
// Anything else is ErrInvalidPath.
func ParsePath(p string) (object Object, file string, err error) {
	segments := strings.Split(p, "/")
	if len(segments) != 4 {
		return Object{}, "", fmt.Errorf("%w: %q does not have four segments", ErrInvalidPath, p)
	}
	for _, segment := range segments {
		if err := checkSegment(segment); err != nil {
			return Object{}, "", fmt.Errorf("%w: %q: %w", ErrInvalidPath, p, err)
		}
	}
	return Object{Kind: segments[0], Namespace: segments[1], Name: segments[2]}, segments[3], nil
}

// Validate tells whether the object can own artifacts: each part has to be one plain path segment.
// The error is ErrInvalidPath.
func (o Object) Validate() error {
	for _, segment := range []string{o.Kind, o.Namespace, o.Name} {
		if err := checkSegment(segment); err != nil {
			return fmt.Errorf("%w: object %q: %w", ErrInvalidPath, o.Kind+"/"+o.Namespace+"/"+o.Name, err)
		}
	}
	return nil
}

// CheckPath tells whether p names a file in the object's folder. The error is ErrInvalidPath.
func (o Object) CheckPath(p string) error {
	if IsLatest(path.Base(p)) {
		return fmt.Errorf("%w: %q stands for other files", ErrInvalidPath, p)
	}
	owner, _, err := ParsePath(p)
	if err != nil {
		return err
	}
	if owner != o {
		return fmt.Errorf("%w: %q is not in the folder of %s", ErrInvalidPath, p, o)
	}
	return nil
}

// File is the path of a file of that name in the object's folder.
func (o Object) File(name string) string { return path.Join(o.Dir(), name) }

func checkSegment(segment string) error {
	switch {
	case segment == "":
		return errors.New("a segment is empty")
	case len(segment) > maxSegment:
		return fmt.Errorf("a segment is longer than %d bytes", maxSegment)
	case segment[0] == '.':
		return errors.New("a segment starts with a dot")
	case strings.ContainsAny(segment, `/\`):
		return errors.New("a segment holds a slash or backslash")
	case !utf8.ValidString(segment):
		return errors.New("a segment is not UTF-8")
	case strings.ContainsFunc(segment, unicode.IsControl):
		return errors.New("a segment holds a control character")
	}
	return nil
}
