package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/pkgrepo"
)

// needs are the tags and commits that objects of the cluster and packages name, in whatever repository: of repositories that have
// the same by several addresses nobody knows that they are one, and a tag too many does no harm.
type needs struct {
	// tags are whole names, and releases the ends of such: a package's path below some directory, and its revision.
	tags, releases, commits map[string]bool
}

// has tells whether a tag is needed, or the commit that it leads to.
func (n *needs) has(tag, commit string) bool {
	if n == nil || n.commits[commit] || n.tags[tag] || n.releases[tag] {
		return true
	}
	for at, r := range tag {
		if r == '/' && n.releases[tag[at+1:]] {
			return true
		}
	}
	return false
}

// errUnread says that nobody knows yet what is needed: a Repository was not read so far, though it may well be.
var errUnread = errors.New("what packages of other Repositories were made of is not known yet")

// needs asks the cluster for them.
func (k *repositories) needs(ctx context.Context) (*needs, error) {
	n := &needs{tags: map[string]bool{}, releases: map[string]bool{}, commits: map[string]bool{}}
	var variants packagesv1.PackageVariantList
	var sets packagesv1.PackageVariantSetList
	var revisions packagesv1.PackageRevisionList
	var sources sourcev1.GitRepositoryList
	var repositories packagesv1.RepositoryList
	var errs []error
	for _, list := range []client.ObjectList{&variants, &sets, &revisions, &sources, &repositories} {
		if err := k.shared.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			errs = append(errs, fmt.Errorf("find out which tags are needed: %w", err))
		}
	}
	for i := range variants.Items {
		v := &variants.Items[i]
		n.addUpstream(v.Spec.Upstream)
		if found := v.Status.Upstream; found != nil {
			n.commits[found.Commit] = true
		}
	}
	for i := range sets.Items {
		n.addUpstream(sets.Items[i].Spec.Upstream)
	}
	for i := range revisions.Items {
		if lock := revisions.Items[i].Status.UpstreamLock; lock != nil {
			n.commits[lock.Commit] = true
		}
	}
	for i := range sources.Items {
		if ref := sources.Items[i].Spec.Reference; ref != nil {
			n.tags[ref.Tag], n.tags[strings.TrimPrefix(ref.Name, "refs/tags/")], n.commits[ref.Commit] = true, true, true
		}
	}
	for i := range repositories.Items {
		// One that cannot be read does not hold up those of others: what is known of its packages is in their PackageRevisions.
		one := &repositories.Items[i]
		if !one.Spec.Suspend && one.DeletionTimestamp.IsZero() && !conditions.IsFalse(one, meta.ReadyCondition) && k.shared.mirrors.get(client.ObjectKeyFromObject(one)) == nil {
			errs = append(errs, errUnread)
		}
	}
	for _, s := range k.shared.mirrors.snapshots() {
		n.addLocks(s)
	}
	return n, errors.Join(errs...)
}

// addUpstream adds what a spec names.
func (n *needs) addUpstream(up packagesv1.Upstream) {
	n.commits[up.Commit] = true
	if up.Revision != 0 {
		n.releases[fmt.Sprintf("%s/v%d", up.Package, up.Revision)] = true
	}
	if up.Tag != "" {
		n.tags[up.Tag], n.releases[up.Package+"/"+up.Tag] = true, true
	}
}

// addLocks adds what packages were made of.
func (n *needs) addLocks(s *pkgrepo.Snapshot) {
	add := func(r *pkgrepo.Revision) {
		if r.Facts.Lock != nil {
			n.commits[r.Facts.Lock.Commit] = true
		}
	}
	for _, pkg := range s.Packages {
		if pkg.Branch != nil {
			add(pkg.Branch)
		}
		for i := range pkg.Open {
			add(&pkg.Open[i])
		}
	}
}
