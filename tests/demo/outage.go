package main

import (
	"context"
	"net/http"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"sluice.dev/sluice/tests/upstream"
)

// outage shows that a failing upstream is told, that the last good artifact stays served meanwhile, and that the
// object heals by itself.
func (d *demo) outage(ctx context.Context) error {
	before, err := d.app(ctx)
	if err != nil {
		return err
	}
	d.server.Always(upstream.Status(http.StatusServiceUnavailable))
	d.say("the Git server answers 503 from now on")
	if err := eventually(ctx, "the outage is told", func(ctx context.Context) (bool, error) {
		obj, err := d.app(ctx)
		return err == nil && conditions.IsFalse(obj, meta.ReadyCondition), err
	}); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "gitrepository", "app"); err != nil {
		return err
	}
	if _, err := d.body(ctx, before.Status.Artifact); err != nil {
		return err
	}
	d.say("the last artifact is still served")

	d.server.Heal()
	d.say("the Git server works again")
	if _, err := d.wait(ctx, "app", "is ready again", func(a *meta.Artifact) bool { return a.Digest == before.Status.Artifact.Digest }); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "gitrepositories"); err != nil {
		return err
	}
	return d.kubectl(ctx, "", "get", "events", "--field-selector=involvedObject.name=app", "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message")
}
