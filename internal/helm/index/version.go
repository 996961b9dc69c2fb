package index

import (
	"errors"
	"fmt"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// Version is one version of a chart as an index describes it. Its fields and their order are those of Helm's own type,
// https://helm.sh/docs/topics/chart_repository/#the-index-file, and so decide which fields an index may have.
type Version struct {
	*chart.Metadata

	// URLs are where the package is, absolute or relative to the index.
	URLs    []string  `json:"urls"`
	Created time.Time `json:"created"`
	Removed bool      `json:"removed,omitempty"`
	// Digest is the SHA-256 of the package in hexadecimal, with or without "sha256:" before it; empty in some indexes.
	Digest string `json:"digest,omitempty"`

	// What follows was dropped by Helm 3. An index may still have it, and it is kept.
	Checksum      string `json:"checksum,omitempty"`
	Engine        string `json:"engine,omitempty"`
	TillerVersion string `json:"tillerVersion,omitempty"`
	URL           string `json:"url,omitempty"`
}

// file is an index as a whole, with the fields of Helm's own type.
type file struct {
	ServerInfo  map[string]any        `json:"serverInfo,omitempty"`
	APIVersion  string                `json:"apiVersion"`
	Generated   time.Time             `json:"generated"`
	Entries     map[string][]*Version `json:"entries"`
	PublicKeys  []string              `json:"publicKeys,omitempty"`
	Annotations map[string]string     `json:"annotations,omitempty"`
}

// admit completes a version, and tells whether it counts: Helm drops those that do not describe a chart, and so do we.
func admit(v *Version) bool {
	if v == nil {
		return false
	}
	if v.Metadata == nil {
		v.Metadata = &chart.Metadata{}
	}
	if v.APIVersion == "" {
		v.APIVersion = chart.APIVersionV1
	}
	err := v.Validate()
	if invalid, ok := errors.AsType[chart.ValidationError](err); ok {
		// Some servers strip the alias of dependencies, https://github.com/helm/helm/issues/12748.
		return strings.HasPrefix(invalid.Error(), "validation: more than one dependency with name or alias")
	}
	return err == nil
}

// ErrIndex says that a document is no index, or that an index is not as it has to be. The error that wraps it says where.
var ErrIndex = errors.New("not a valid index")

// errNoAPIVersion is about an index without its first field.
var errNoAPIVersion = fmt.Errorf("%w: no API version specified", ErrIndex)
