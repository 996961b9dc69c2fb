package helmchart

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
)

// indexed is a repository that is a server of files, with its index as it is stored.
type indexed struct {
	opener *Opener
	object *sourcev1.HelmChart
	index  storage.Artifact
	login  credential.Login
	url    string // without user and password
	// isGenerous says that other origins get the credentials as well.
	isGenerous bool
}

func (o *Opener) indexOrigin(
	ctx context.Context, obj *sourcev1.HelmChart, repository *sourcev1.HelmRepository, stored storage.Artifact,
) (origin, error) {
	login, clean, err := o.login(ctx, repository)
	if err != nil {
		return nil, err
	}
	return &indexed{opener: o, object: obj, index: stored, login: login, url: clean, isGenerous: repository.Spec.PassCredentials}, nil
}

// login reads the credentials of a repository that is a server of files.
func (o *Opener) login(ctx context.Context, repository *sourcev1.HelmRepository) (credential.Login, string, error) {
	request := auth.HelmRequest{Namespace: repository.Namespace, URL: repository.Spec.URL}
	if repository.Spec.SecretRef != nil {
		request.SecretName = repository.Spec.SecretRef.Name
	}
	if repository.Spec.CertSecretRef != nil {
		request.CertSecretName = repository.Spec.CertSecretRef.Name
	}
	return o.Credentials.Helm(ctx, request)
}

// look implements origin: of the index, the chart's own part is read.
func (x *indexed) look(ctx context.Context) (found, bool, error) {
	f, err := x.find(ctx)
	return f, err == nil, err
}

func (x *indexed) find(ctx context.Context) (found, error) {
	spec := x.object.Spec
	// Relative URLs are those of the repository: two with the same index have other packages.
	key := strings.Join([]string{x.index.Digest.String(), x.url, spec.Chart, spec.GetVersion()}, "\n")
	f, ok := x.opener.known.Get(key)
	if ok {
		x.opener.saw(x.object, f.entries)
		return f, nil
	}
	versions, entries, err := x.opener.versions(ctx, x.index, spec.Chart)
	if err == nil || errors.Is(err, index.ErrNoChart) {
		x.opener.saw(x.object, entries)
	}
	var chosen index.Version
	if err == nil {
		chosen, err = helm.Choose(versions, spec.GetVersion())
	}
	switch {
	case errors.Is(err, index.ErrNoChart), errors.Is(err, helm.ErrNoVersion), errors.Is(err, revision.ErrInvalidRange):
		return found{}, failure.Stall(sourcev1.InvalidChartReferenceReason,
			fmt.Errorf("%w: failed to get chart version for remote reference: '%s' version '%s': %w", chart.ErrReference, spec.Chart, spec.GetVersion(), err))
	case err != nil:
		return found{}, err
	}
	if f, err = x.packaged(chosen); err == nil {
		f.entries = entries
		x.opener.known.Add(key, f)
	}
	return f, err
}

// versions reads those of a chart from a stored index, and what names them all. ErrNoChart where it has none.
func (o *Opener) versions(ctx context.Context, stored storage.Artifact, name string) (versions []index.Version, entries index.Hash, err error) {
	artifact, err := o.Store.Open(ctx, stored.Path)
	if err != nil {
		return nil, entries, fmt.Errorf("open the index: %w", err)
	}
	defer func() { _ = artifact.Close() }() // It was only read.
	text, isAt := artifact.(io.ReaderAt)
	if !isAt || artifact.Stat().Digest != stored.Digest {
		return nil, entries, fmt.Errorf("open the index: %w", storage.ErrNotFound)
	}
	err = o.table(ctx, stored, func(table io.ReaderAt) error {
		if entries, err = index.EntriesHash(table, name); err == nil {
			versions, err = index.Lookup(ctx, text, table, name)
		}
		return err
	})
	return versions, entries, err
}

// table opens the table of a stored index for as long as it is used.
func (o *Opener) table(ctx context.Context, stored storage.Artifact, use func(table io.ReaderAt) error) error {
	table, err := o.Store.Open(ctx, stored.CompanionPath())
	if err != nil {
		return fmt.Errorf("open the table of the index: %w", err)
	}
	defer func() { _ = table.Close() }() // It was only read.
	places, isAt := table.(io.ReaderAt)
	if !isAt {
		return fmt.Errorf("open the table of the index: %w", storage.ErrNotFound)
	}
	return use(places)
}

// packaged is a version as its package is to be had.
func (x *indexed) packaged(v index.Version) (found, error) {
	if len(v.URLs) == 0 {
		return found{}, pullError(fmt.Errorf("the index has no URL for chart '%s' version '%s'", v.Name, v.Version))
	}
	address, err := resolveURL(x.url, v.URLs[0])
	if err != nil {
		return found{}, pullError(fmt.Errorf("the index's URL for chart '%s' version '%s' is invalid", v.Name, v.Version))
	}
	sum := strings.ToLower(strings.TrimPrefix(v.Digest, digest.SHA256.String()+":"))
	if decoded, err := hex.DecodeString(sum); err != nil || len(decoded) != digest.SHA256.Size() {
		sum = "" // A digest of another kind says nothing that could be compared.
	}
	f := found{Identity: chart.Identity{Name: v.Name, Version: v.Version}, URL: address, Digest: sum}
	f.Content = f.Digest
	if f.Content == "" {
		f.Content = digest.FromString(address).String()
	}
	return f, nil
}

// resolveURL is a package's URL as Helm understands it: relative to the folder of the index, and with its query.
func resolveURL(repository, reference string) (string, error) {
	at, err := url.Parse(reference)
	if err != nil {
		return "", err
	}
	if at.IsAbs() {
		return at.String(), nil
	}
	base, err := url.Parse(repository)
	if err != nil {
		return "", err
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	if base.RawPath != "" { // A slash in a name is written as %2F, and stays so.
		base.RawPath = strings.TrimSuffix(base.RawPath, "/") + "/"
	}
	resolved := base.ResolveReference(at)
	resolved.RawQuery = base.RawQuery
	return resolved.String(), nil
}

// loginFor is what of the credentials the origin of a URL may see: all of it where it is that of the repository, or where the
// spec passes them on; but never a password, or a client's certificate, to whoever listens on the way.
func (x *indexed) loginFor(address string) credential.Login {
	theirs, err := url.Parse(address)
	ours, err2 := url.Parse(x.url)
	if err == nil && err2 == nil {
		isSame := transport.Origin(theirs) == transport.Origin(ours)
		isDowngrade := ours.Scheme == "https" && theirs.Scheme != "https"
		if isSame || x.isGenerous && !isDowngrade {
			return x.login
		}
	}
	return credential.Login{TLS: credential.TLS{CA: x.login.TLS.CA}}
}

// build implements origin.
func (x *indexed) build(ctx context.Context, f found, metadata string) (*chart.Built, error) {
	spec := x.object.Spec
	body, err := x.opener.pull(ctx, f, x.loginFor(f.URL))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // It was only read.
	return x.opener.rebuild(ctx, body, f, spec, metadata)
}

// share implements origin: who has been shown the digest of a package, and asks for it by the same URL with the same credentials,
// would be given the very same.
func (x *indexed) share(f found) string {
	if f.Digest == "" {
		return ""
	}
	return strings.Join([]string{x.loginFor(f.URL).Identity(), f.URL, f.Digest}, " ")
}

// pull downloads a package to a temporary file, and compares it with what the index says of it.
func (o *Opener) pull(ctx context.Context, f found, login credential.Login) (*helm.File, error) {
	if scheme, _, _ := strings.Cut(f.URL, ":"); scheme != "http" && scheme != "https" {
		return nil, pullError(fmt.Errorf("the index's URL for chart '%s' version '%s' is neither http nor https", f.Name, f.Version))
	}
	answer, err := o.Files.Get(ctx, helm.Request{URL: f.URL, Login: login, Limit: o.maxPackage()})
	var file *helm.File
	if err == nil {
		file, err = helm.Save(ctx, answer, o.Limits.TempDir)
	}
	if err != nil {
		return nil, pulling(fmt.Errorf("failed to fetch %s : %w", credential.CleanURL(f.URL), err))
	}
	if got := file.Digest.Encoded(); f.Digest != "" && got != f.Digest {
		err := fmt.Errorf("chart '%s' version '%s': the index says sha256:%s, and the package is sha256:%s: make the index anew, or publish the package again",
			f.Name, f.Version, f.Digest, got)
		return nil, errors.Join(pullError(err), file.Close())
	}
	return file, nil
}

func (o *Opener) maxPackage() int64 {
	if o.Limits.MaxPackage > 0 {
		return o.Limits.MaxPackage
	}
	return chart.DefaultMaxPackage
}

// rebuild makes of a package what the spec asks for, if it is the chart that it was promised to be.
func (o *Opener) rebuild(ctx context.Context, content io.Reader, f found, spec sourcev1.HelmChartSpec, metadata string) (*chart.Built, error) {
	built, err := chart.Rebuild(ctx, chart.Package{
		Content: content, ValuesFiles: spec.GetValuesFiles(), IgnoreMissing: spec.IgnoreMissingValuesFiles, Metadata: metadata, Limits: o.Limits,
	})
	if errors.Is(err, chart.ErrPackage) {
		err = pullError(err)
	}
	if err == nil && built.Original != f.Identity {
		err = pullError(fmt.Errorf("the package is chart '%s' version '%s', where its source says '%s' version '%s'",
			transport.Printable(built.Original.Name), transport.Printable(built.Original.Version), f.Name, f.Version))
	}
	return built, err
}

// pullError says that a package is not to be had.
func pullError(err error) error {
	return failure.Retry(sourcev1.ChartPullErrorReason, fmt.Errorf("chart pull error: %w", err))
}

// pulling gives an error of a server its reason: it refuses whoever asks, or something else is the matter.
func pulling(err error) error {
	status, ok := errors.AsType[*helm.StatusError](err)
	switch {
	case ok && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden), transport.IsTLS(err):
		return failure.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf("chart pull error: %w", err))
	case ok && status.RetryAfter > 0:
		return failure.RetryAfter(sourcev1.ChartPullErrorReason, status.RetryAfter, fmt.Errorf("chart pull error: %w", err))
	}
	return pullError(err)
}
