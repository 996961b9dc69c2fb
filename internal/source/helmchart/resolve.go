package helmchart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// commitLength is how many digits of a source's revision a version has.
const commitLength = 12

// Noted is what the record of a chart says beside its artifact.
type Noted struct {
	// Chart is the name of the chart.
	Chart string `json:"chart"`
	// ValuesFiles are those that are part of the package.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// IsPackaged says that the package was made here.
	IsPackaged bool `json:"packaged,omitempty"`
	// IsLockStale says that a lock was followed that had been made for other dependencies.
	IsLockStale bool `json:"lockStale,omitempty"`
	// Shape is the checksum of what shapes the package, and Generation that of the spec when it last changed.
	Shape      string `json:"shape"`
	Generation int64  `json:"generation"`
	// Source is the artifact that the chart was found in, and Version the one that it had there.
	Source  digest.Digest `json:"source,omitempty"`
	Version string        `json:"version,omitempty"`
	// Inputs is the digest of all that it was made of, and Commit what the version says of the source's revision at which that
	// changed last.
	Inputs digest.Digest `json:"inputs,omitempty"`
	Commit string        `json:"commit,omitempty"`
}

// NotedIn is what is noted in a record; the zero value where nothing is.
func NotedIn(record storage.Record) (n Noted) {
	_ = json.Unmarshal([]byte(record.Memo), &n) // What cannot be read is made anew.
	return n
}

func (n Noted) memo() (string, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode what is noted of the chart: %w", err)
	}
	return string(text), nil
}

// session is one reconcile of one HelmChart.
type session struct {
	object *sourcev1.HelmChart
	from   origin
	// registered is from where that is a registry; else nil.
	registered *registered
	source     storage.Artifact // that of the source; zero where it has none
	shape      string

	// What was learnt on the way.
	noted Noted
	found found
}

// Remember implements source.Rememberer.
func (s *session) Remember(record storage.Record) { s.noted = NotedIn(record) }

// Resolve finds the chart and its version. Where that takes more than a look, it is for Confirm.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	if s.source.Digest != "" && s.noted.Source == s.source.Digest && s.isShaped() {
		return s.selection(found{
			Identity: chart.Identity{Name: s.noted.Chart, Version: s.noted.Version}, Source: s.noted.Source, Inputs: s.noted.Inputs,
		})
	}
	found, ok, err := s.from.look(ctx)
	if err != nil || !ok {
		return source.Selection{}, err
	}
	return s.selection(found)
}

// isShaped tells whether the package on record is what the spec asks for, as far as that decides alone.
func (s *session) isShaped() bool { return s.noted.Shape == s.shape }

// Confirm implements source.Confirmer.
func (s *session) Confirm(ctx context.Context, seen source.Selection) (source.Selection, error) {
	if seen.Revision != "" {
		return seen, nil
	}
	found, err := s.from.find(ctx)
	if err != nil {
		return source.Selection{}, err
	}
	return s.selection(found)
}

// Verify implements source.Verifier.
func (s *session) Verify(ctx context.Context, _ source.Selection) (string, error) {
	if s.registered == nil {
		return "", nil
	}
	signer, err := s.registered.prove(ctx, s.found)
	if signer != "" {
		signer = s.found.Version // That is what Flux tells.
	}
	return signer, err
}

// Share implements source.Sharer.
func (s *session) Share(context.Context, source.Selection) string {
	by := s.from.share(s.found)
	if by == "" || s.metadata() != "" {
		return ""
	}
	return by + " " + s.shape
}

func (s *session) selection(f found) (source.Selection, error) {
	s.found = f
	version, err := chart.WithMetadata(f.Version, s.metadata())
	if err != nil {
		return source.Selection{}, failure.At(source.StageBuild, failure.Stall(sourcev1.MetadataPatchErrorReason, err))
	}
	trusted := ""
	if s.registered != nil {
		trusted = s.registered.trusted()
	}
	checksum, err := source.ConfigChecksum("helmchart", [...]string{s.shape, trusted})
	selection := source.Selection{
		Proof:    f.Content, // A version that is published again is another one, and its file has the same name where it can.
		Revision: version, Name: path.Base(f.Name) + "-" + version, Extension: ".tgz", ConfigChecksum: checksum,
		News: fmt.Sprintf("new '%s' chart with version '%s'", f.Name, version),
	}
	if s.source.Path != "" {
		selection.Included = []storage.Artifact{s.source}
	}
	return selection, err
}

// generation is that at which what shapes the package changed last: an edit of anything else is no new version.
func (s *session) generation() int64 {
	if s.isShaped() && s.noted.Generation > 0 {
		return s.noted.Generation
	}
	return s.object.Generation
}

// metadata is the build metadata that the version gets: the source's revision and the spec's generation, where they shape the package.
func (s *session) metadata() string {
	var parts []string
	spec := s.object.Spec
	if spec.SourceRef.Kind != sourcev1.HelmRepositoryKind && spec.GetReconcileStrategy() == sourcev1.ReconcileStrategyRevision {
		parts = append(parts, s.commit())
	}
	if len(spec.GetValuesFiles()) > 0 {
		parts = append(parts, strconv.FormatInt(s.generation(), 10))
	}
	return strings.Join(parts, ".")
}

// commit is what a version says of the source's revision: the one of now, or that of the last change.
func (s *session) commit() string {
	if s.found.Inputs != "" && s.found.Inputs == s.noted.Inputs && s.isShaped() {
		return s.noted.Commit
	}
	hash := s.source.Revision[strings.LastIndexByte(s.source.Revision, ':')+1:]
	return hash[:min(len(hash), commitLength)]
}

// explain gives an error of a chart's building the reason and condition under which Flux's users look for it.
func explain(err error) error {
	if _, known := errors.AsType[*failure.Error](err); known || err == nil {
		return err
	}
	switch {
	case errors.Is(err, chart.ErrReference):
		return failure.At(source.StageResolve, failure.Stall(sourcev1.InvalidChartReferenceReason, err))
	case errors.Is(err, chart.ErrMetadata):
		return failure.At(source.StageBuild, failure.Stall(sourcev1.MetadataPatchErrorReason, err))
	case errors.Is(err, chart.ErrValues):
		return failure.At(source.StageBuild, failure.Stall(sourcev1.ValuesFilesErrorReason, err))
	case errors.Is(err, chart.ErrDependency):
		return failure.At(source.StageBuild, failure.Retry(sourcev1.DependencyBuildErrorReason, err))
	case errors.Is(err, chart.ErrPackage):
		return failure.At(source.StageBuild, failure.Retry(sourcev1.ChartPackageErrorReason, err))
	}
	return err
}
