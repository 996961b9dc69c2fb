package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/rebuild"
)

// fromUpstream makes the content of the release anew, as verify does, into a file that is planned with until done is called. Whether
// it is what the controllers have is compared by whoever reads it.
func (p *planner) fromUpstream(ctx context.Context, asked *plan.Request) (done func(), err error) {
	_, release, err := published.Release(ctx, p.WithWatch, asked.Namespace, asked.Chosen)
	if err != nil {
		return nil, explain("read the release", err, catalogueRole)
	}
	const what = "make the content of the release from upstream"
	if release.Source == nil {
		return nil, &CommandError{Code: ExitUnanswered, What: what, Why: "the release does not say where it comes from"}
	}
	source := published.EmptySource(*release.Source)
	if source == nil {
		return nil, &CommandError{Code: ExitUnanswered, What: what, Why: "a " + release.Source.Kind + " cannot be rebuilt from here"}
	}
	if err := p.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Source.Name}, source); err != nil {
		return nil, explain("read "+ref{release.Source.Kind, release.Namespace, release.Source.Name}.String(), err, "sluice-view")
	}
	dir, err := os.MkdirTemp("", "sluice-plan-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	done = func() { _ = os.RemoveAll(dir) }
	asked.Artifact = filepath.Join(dir, "content.tar.gz")
	if err := rebuildInto(ctx, asked.Artifact, source, rebuild.Rebuilder{Reader: p.WithWatch, Dir: dir, AllowLoopback: p.loopback}); err != nil {
		done()
		if ctx.Err() != nil {
			return nil, explain(what, ctx.Err(), "")
		}
		return nil, &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"have the content in a file, and name that with --artifact"}}
	}
	return done, nil
}

func rebuildInto(ctx context.Context, place string, source client.Object, with rebuild.Rebuilder) (err error) {
	made, err := with.Rebuild(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	body, err := made.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	file, err := os.Create(place)
	if err != nil {
		return fmt.Errorf("make a file: %w", err)
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}
