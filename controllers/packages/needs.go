package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// needs are the tags and commits that objects of the cluster and packages name. A commit is needed in each repository that has it. A tag
// is needed in the repository that is meant: a tag of the same name elsewhere is another one, unless both lead to the same commit, as
// one repository may have several addresses.
type needs struct {
	commits map[string]bool
	// tags are by their whole names, and releases by the ends of such: a package's path below a directory that is not known, and its
	// revision.
	tags, releases map[string][]namedTag
}

// namedTag is a tag that an object names: the repository's URL, and the commit of the tag. Unknown parts are empty.
type namedTag struct{ url, commit string }

// has tells whether a tag of a repository is needed, or the commit that it leads to.
func (n *needs) has(url, tag, commit string) bool {
	if n == nil || n.commits[commit] {
		return true
	}
	isMeant := func(p namedTag) bool {
		return p.url == "" || p.commit == "" || p.commit == commit || variant.SameRepository(p.url, url)
	}
	for rest, more := tag, true; more; _, rest, more = strings.Cut(rest, "/") {
		if slices.ContainsFunc(n.releases[rest], isMeant) {
			return true
		}
	}
	return slices.ContainsFunc(n.tags[tag], isMeant)
}

// errUnread says that nobody knows yet what is needed: a Repository was not read so far, though it may well be.
var errUnread = errors.New("what packages of other Repositories were made of is not known yet")

// needs asks the cluster for them.
func (k *repositories) needs(ctx context.Context) (*needs, error) {
	n := &needs{tags: map[string][]namedTag{}, releases: map[string][]namedTag{}, commits: map[string]bool{}}
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
		n.addUpstream(v.Spec.Upstream, k.shared.mirrors.get(in(v, v.Spec.Upstream.Repo)))
		if found := v.Status.Upstream; found != nil {
			n.commits[found.Commit] = true
		}
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		n.addUpstream(set.Spec.Upstream, k.shared.mirrors.get(in(set, set.Spec.Upstream.Repo)))
	}
	for i := range revisions.Items {
		if lock := revisions.Items[i].Status.UpstreamLock; lock != nil {
			n.commits[lock.Commit] = true
		}
	}
	for i := range sources.Items {
		n.addSource(&sources.Items[i])
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

// addSource adds the tags that a GitRepository names.
func (n *needs) addSource(source *sourcev1.GitRepository) {
	ref := source.Spec.Reference
	if ref == nil {
		return
	}
	n.commits[ref.Commit] = true
	p := namedTag{}
	if clean, _, err := auth.SplitURL(source.Spec.URL); err == nil {
		p.url = clean
	}
	if stored := source.Status.Artifact; stored != nil && source.Status.ObservedGeneration == source.Generation {
		_, p.commit, _ = strings.Cut(stored.Revision, "sha1:")
	}
	for _, tag := range []string{ref.Tag, strings.TrimPrefix(ref.Name, "refs/tags/")} {
		n.tags[tag] = append(n.tags[tag], p)
	}
}

// addUpstream adds the tag that a spec names in a Repository, which is nil until the first read.
func (n *needs) addUpstream(up packagesv1.Upstream, m *mirror) {
	n.commits[up.Commit] = true
	var names []string
	if up.Revision != 0 {
		names = append(names, fmt.Sprintf("%s/v%d", up.Package, up.Revision))
	}
	if up.Tag != "" {
		names = append(names, up.Package+"/"+up.Tag)
		n.tags[up.Tag] = append(n.tags[up.Tag], m.named(up.Tag))
	}
	for _, name := range names {
		if m == nil {
			n.releases[name] = append(n.releases[name], namedTag{})
			continue
		}
		whole := path.Join(m.directory, name)
		n.tags[whole] = append(n.tags[whole], m.named(whole))
	}
}

// named is a tag of the repository.
func (m *mirror) named(tag string) namedTag {
	if m == nil || m.Snapshot() == nil {
		return namedTag{}
	}
	return namedTag{m.url, cmp.Or(m.Snapshot().Refs["refs/tags/"+tag].Target(), "absent")}
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
