package engine

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine/cluster"
)

// leaveHome counts members in a namespace that is being deleted as gone, if it is the installation's own: they are the
// namespace controller's to remove, and the rights to do it here go with the namespace's RoleBindings. Without that
// the installation would keep the namespace, and the namespace the installation. It is asked as the controller: that a
// namespace goes is nobody's content. Where that cannot be found out, it is not taken for granted.
func (r *round) leaveHome(ctx context.Context) {
	if r.homeAsked {
		return
	}
	r.homeAsked = true
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
		if m := &r.record.Data.Members[i]; m.Namespace == r.in.Namespace || r.isHome(m) {
			r.forget(keyOf(m))
		}
	}
	if made := r.record.Data.DefaultConfigCreated; made != nil && made.Namespace == r.in.Namespace {
		r.defaulted = true
	}
}

// withoutRights says what helps where rights have gone with the namespace.
func (r *round) withoutRights(err error) error {
	if !r.homeless || !errors.Is(err, cluster.ErrForbidden) {
		return err
	}
	return fmt.Errorf("%w; the installation's namespace is being deleted, and rights that were bound in it are gone: bind them outside of it, or remove the object by hand", err)
}
