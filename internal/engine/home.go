package engine

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
)

// leaveHome counts members in a namespace that is being deleted as gone, if it is the installation's own: they are the
// namespace controller's to remove, and the rights to do it here go with the namespace's RoleBindings. Without that
// the installation would keep the namespace, and the namespace the installation. It is asked as the controller: that a
// namespace goes is nobody's content. Where that cannot be found out, it is not taken for granted.
func (r *round) leaveHome(ctx context.Context) {
	system, err := r.engine.parts.Connector.As(cluster.Identity{})
	if err != nil {
		return
	}
	home := cluster.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: r.in.Namespace}
	live, err := system.Metadata(ctx, home)
	if err != nil || live.DeletionTimestamp == nil {
		return
	}
	r.homeless = true
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; m.Namespace == r.in.Namespace || r.recordedFacts(m).home {
			r.removed[keyOf(m)] = goes
		}
	}
}

// isOutOfReach says that a deletion can do nothing about an object, by the error, for as long as nobody grants rights, or
// brings its kind back where it only has to let go.
func (r *round) isOutOfReach(err error) bool {
	return r.in.Deleting && (errors.Is(err, cluster.ErrForbidden) || errors.Is(err, cluster.ErrNoKind) && r.out.Deletion.Mode == modulesv1.DeletionOrphan)
}

// withoutRights says what helps where rights are missing for a deletion, and what becomes of it without them.
func (r *round) withoutRights(err error) error {
	if !r.isOutOfReach(err) {
		return err
	}
	r.deprived = true
	left := r.in.patience()
	if since := r.record.Data.DeprivedSince; since != nil {
		left -= r.engine.clock.Now().Sub(since.Time)
	}
	if left > 0 {
		r.out.again(left)
	}
	const end = "what is left once this has lasted for spec.timeout, and for a minute at least, is let go of"
	if r.homeless {
		return fmt.Errorf("%w; the installation's namespace is being deleted, and rights that were bound in it are gone: bind them outside of it, or remove the object by hand; %s", err, end)
	}
	return fmt.Errorf("%w; %s", err, end)
}

// lapsed says that rights have been missing for so long that they are taken for gone, together with the installation.
func (r *round) lapsed() bool {
	since := r.record.Data.DeprivedSince
	return since != nil && !r.engine.clock.Now().Before(since.Add(r.in.patience()))
}

// noteRights writes down since when rights are missing without a break.
func (r *round) noteRights(ctx context.Context) error {
	if !r.in.Deleting || r.record == nil || r.deprived == (r.record.Data.DeprivedSince != nil) {
		return nil
	}
	return r.save(ctx, func(data *modulesv1.InventoryData) {
		data.DeprivedSince = nil
		if r.deprived {
			data.DeprivedSince = &metav1.Time{Time: r.engine.clock.Now()}
		}
	})
}
