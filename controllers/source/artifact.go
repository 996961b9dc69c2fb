package source

import (
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/storage"
)

// Address is where consumers reach the artifact server: host[:port], or a URL with its scheme.
type Address string

// URL is the address of the artifact under a path.
func (a Address) URL(p string) string {
	host := strings.TrimRight(string(a), "/")
	if !strings.HasPrefix(host, "http://") && !strings.HasPrefix(host, "https://") {
		host = "http://" + host
	}
	return host + path.Join("/", p)
}

// published is an artifact as status shows it.
func (s Shared) published(stored storage.Artifact) *meta.Artifact {
	return &meta.Artifact{
		Path:           stored.Path,
		URL:            s.Address.URL(stored.Path),
		Revision:       stored.Revision,
		Digest:         stored.Digest.String(),
		LastUpdateTime: metav1.NewTime(stored.StoredAt),
		Size:           new(stored.Size),
		Metadata:       stored.Metadata,
	}
}
