package source_test

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
)

// moving is a source whose selection is not to be had any more when it is fetched.
type moving struct{}

func (moving) Resolve(context.Context) (source.Selection, error) {
	return source.Selection{Revision: "old", Name: "old", Extension: ".tar.gz", ConfigChecksum: "c"}, nil
}

func (moving) Share(context.Context, source.Selection) string { return "for all" }

func (moving) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	tree := fstest.MapFS{".git/x": {Data: []byte("new")}}
	return source.Content{Tree: tree, Whole: true, Revision: "new", Name: "new"}, nil
}

// TestWhatWasBroughtNamesTheArtifact: also for who shares it.
func TestWhatWasBroughtNamesTheArtifact(t *testing.T) {
	t.Parallel()
	store := localtest.Open(t, local.Options{})
	pipeline := &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
	for _, name := range []string{"one", "other"} {
		subject := source.Subject{Object: storage.Object{Kind: "thing", Namespace: "n", Name: name}, UID: "u", Timeout: time.Minute}
		open := func(context.Context) (source.Session, error) { return moving{}, nil }
		outcome, err := pipeline.Run(t.Context(), subject, open, nil)
		if err != nil {
			t.Fatal(err)
		}
		if current := outcome.Record.Current; current.Revision != "new" || current.Path != "thing/n/"+name+"/new.tar.gz" || outcome.Selected.Revision != "new" {
			t.Errorf("got %+v, selected %+v", current, outcome.Selected)
		}
	}
}
