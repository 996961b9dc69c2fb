package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"
)

const (
	trustedRootTarget = "trusted_root.json"
	// maxTUFFile bounds each file of a TUF repository; the metadata bounds most of them further.
	maxTUFFile = 8 << 20
)

// tufState is what one fetch of a TUF repository came to.
type tufState struct {
	root     root.TrustedMaterial
	fetched  time.Time
	expires  time.Time
	versions [4]int64
}

// fetch runs the TUF client workflow from the initial root, in memory only.
func (r *TUFRoots) fetch(ctx context.Context, now time.Time) (state *tufState, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			state, err = nil, fmt.Errorf("reading the repository broke off: %v", cause)
		}
	}()
	settings, err := config.New(r.options.Mirror, r.options.InitialRoot)
	if err != nil {
		return nil, err
	}
	settings.DisableLocalCache = true
	settings.Fetcher = &tufFetcher{ctx: ctx, client: r.options.Client, origin: r.mirror}
	update, err := updater.New(settings)
	if err != nil {
		return nil, err
	}
	// The library reads the system's clock otherwise.
	update.UnsafeSetRefTime(now)
	if err := update.Refresh(); err != nil {
		return nil, err
	}
	target, err := update.GetTargetInfo(trustedRootTarget)
	if err != nil {
		return nil, err
	}
	_, content, err := update.DownloadTarget(target, "", "")
	if err != nil {
		return nil, err
	}
	trusted, err := parseTrustedRoot(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", trustedRootTarget, err)
	}
	return stateOf(update.GetTrustedMetadataSet(), trusted, now), nil
}

func stateOf(set trustedmetadata.TrustedMetadata, trusted root.TrustedMaterial, now time.Time) *tufState {
	targets := set.Targets[metadata.TARGETS].Signed
	state := &tufState{
		root: trusted, fetched: now, expires: set.Root.Signed.Expires,
		versions: [4]int64{
			set.Root.Signed.Version, set.Timestamp.Signed.Version, set.Snapshot.Signed.Version, targets.Version,
		},
	}
	for _, expires := range []time.Time{set.Timestamp.Signed.Expires, set.Snapshot.Signed.Expires, targets.Expires} {
		if expires.Before(state.expires) {
			state.expires = expires
		}
	}
	return state
}

// notOlderThan refuses a repository that was rolled back: every fetch starts from the initial root again, so that
// the library cannot see it.
func (s *tufState) notOlderThan(last *tufState) error {
	if last == nil {
		return nil
	}
	for i, version := range s.versions {
		if version < last.versions[i] {
			return errors.New("the repository is older than before")
		}
	}
	return nil
}

// tufFetcher downloads through the caller's client, within the caller's deadline, from the mirror alone.
type tufFetcher struct {
	ctx    context.Context //nolint:containedctx // The library's interface has no place for it, and a fetcher serves one fetch.
	client *http.Client
	origin *url.URL
}

// DownloadFile returns a file of at most maxLength bytes.
func (f *tufFetcher) DownloadFile(location string, maxLength int64, _ time.Duration) (content []byte, err error) {
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, err
	}
	if parsed.Scheme != f.origin.Scheme || parsed.Host != f.origin.Host {
		return nil, errors.New("a file lies outside the mirror")
	}
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, &metadata.ErrDownloadHTTP{StatusCode: response.StatusCode, URL: location}
	}
	limit := min(maxLength, maxTUFFile)
	content, err = io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, &metadata.ErrDownloadLengthMismatch{Msg: fmt.Sprintf("a file has more than %d bytes", limit)}
	}
	return content, nil
}
