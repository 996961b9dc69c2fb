package helmchart

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm/chart"
	"sluice.dev/sluice/internal/source"
)

// Fetch brings the package, or builds it.
func (s *session) Fetch(ctx context.Context, selected source.Selection, _ string) (source.Content, error) {
	built, err := s.from.build(ctx, s.found, s.metadata())
	if err != nil {
		return source.Content{}, explain(err)
	}
	if built.Version != selected.Revision {
		return source.Content{}, failure.Retry(sourcev1.ChartPullErrorReason,
			fmt.Errorf("chart pull error: the package is of version '%s', where its source says '%s'", built.Version, selected.Revision))
	}
	memo, err := json.Marshal(Noted{
		Chart: s.found.Name, ValuesFiles: built.Values, IsPackaged: !built.IsAsItWas, Shape: s.shape, Generation: s.generation(),
	})
	if err != nil {
		return source.Content{}, fmt.Errorf("encode what is noted of the chart: %w", err)
	}
	return source.Content{
		Memo: string(memo), Title: summary(s.found.Name, built),
		Make: func(ctx context.Context, to io.Writer) ([]byte, error) { return nil, built.Write(ctx, to) },
	}, nil
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
