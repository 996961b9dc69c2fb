package packages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/variant"
)

// errNoSource says that no Repository of the namespace has what a lock names.
var errNoSource = errors.New("no Repository has it")

// locked is the upstream package that a lock names, from the first Repository of the namespace that can read it. Only if none can, one
// that was not read yet is waited for.
func (s Shared) locked(ctx context.Context, namespace string, lock *kpt.Lock) (kpt.Package, error) {
	var list packagesv1.RepositoryList
	if err := s.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Repositories: %w", err)
	}
	failed := errNoSource
	for i := range list.Items {
		repository := &list.Items[i]
		pkg, ok := below(repository.Spec.Directory, lock.Directory)
		if !ok || !variant.SameRepository(s.urlOf(ctx, repository), lock.Repo) {
			continue
		}
		m := s.mirrors.get(client.ObjectKeyFromObject(repository))
		err := notRead(repository.Name)
		if m != nil {
			var found kpt.Package
			if found, err = m.Read(ctx, lock.Commit, pkg); err == nil || ctx.Err() != nil || errors.Is(err, memory.ErrShortage) {
				return found, err
			}
		}
		// All of them are one Git repository: if one says that the commit is gone, it is.
		if errors.Is(failed, errNoSource) || isGone(err) {
			failed = err
		}
	}
	return nil, failed
}

// urlOf is where a Repository is, without credentials; empty where nobody knows.
func (s Shared) urlOf(ctx context.Context, repository *packagesv1.Repository) string {
	var source sourcev1.GitRepository
	key := types.NamespacedName{Namespace: repository.Namespace, Name: repository.Spec.GitRepositoryRef.Name}
	if err := s.Client.Get(ctx, key, &source); err != nil {
		return ""
	}
	clean, _, err := auth.SplitURL(source.Spec.URL)
	if err != nil {
		return ""
	}
	return clean
}

// below is the path below a repository's directory.
func below(directory, whole string) (pkg string, ok bool) {
	whole, directory = path.Join("/", whole), path.Join("/", directory)
	if directory == "/" {
		return strings.TrimPrefix(whole, "/"), true
	}
	return strings.CutPrefix(whole, directory+"/")
}
