package helmchart

import (
	"context"
	"fmt"
	"io"
	"strings"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/source"
)

// Fetch brings the package, or builds it. One that is stored already, and is only to be proven again, is left where it is.
func (s *session) Fetch(ctx context.Context, selected source.Selection, have string) (source.Content, error) {
	content := source.Content{Key: s.key()}
	var err error
	if content.Key != "" && content.Key == have {
		content.Memo, err = s.noted.memo()
		return content, err
	}
	built, err := s.from.build(ctx, s.found, s.metadata())
	if err != nil {
		return source.Content{}, explain(err)
	}
	if built.Version != selected.Revision {
		return source.Content{}, failure.Retry(sourcev1.ChartPullErrorReason,
			fmt.Errorf("chart pull error: the package is of version '%s', where its source says '%s'", built.Version, selected.Revision))
	}
	content.Memo, err = Noted{
		Chart: s.found.Name, ValuesFiles: built.Values, IsPackaged: !built.IsAsItWas, IsLockStale: built.StaleLock, Shape: s.shape, Generation: s.generation(),
		Source: s.found.Source, Version: s.found.Version, Inputs: s.found.Inputs, Commit: s.commit(),
	}.memo()
	content.Title = summary(s.found.Name, built)
	content.Make = func(ctx context.Context, to io.Writer) ([]byte, error) { return nil, explain(built.Write(ctx, to)) }
	return content, err
}

// key names the package, where its source can tell that it is the same.
func (s *session) key() string {
	if s.from.share(s.found) == "" {
		return ""
	}
	return strings.Join([]string{s.found.Content, s.found.Version, s.shape, s.metadata()}, " ")
}

// summary says in Flux's words what was made.
func summary(name string, built *chart.Built) string {
	action := "packaged"
	if built.IsAsItWas {
		action = "pulled"
	}
	text := fmt.Sprintf("%s '%s' chart with version '%s'", action, name, built.Version)
	if len(built.Values) > 0 {
		text += fmt.Sprintf(" and merged values files %v", built.Values)
	}
	return text
}
