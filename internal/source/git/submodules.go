package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/tree"
)

const (
	modulesFile = ".gitmodules"
	// maxModulesBytes bounds that file.
	maxModulesBytes = 1 << 20
	// maxSections bounds the sections in it: to find one costs as much as there are others.
	maxSections = 2 * git.MaxSubmodules
	// maxNesting is how deep submodules go, as in Flux.
	maxNesting = 10
)

// forest is a commit's tree with those of its submodules.
type forest struct {
	session *session
	// home is the object's own repository. Its credential is for its own origin alone.
	home    git.Remote
	wanted  *tree.Selection
	closers *[]func() error
	// grown are the trees by URL and commit, and by place where not all of them is wanted.
	grown map[string]*tree.Tree
}

// withSubmodules puts the files of submodules in their places. Of those that spec.sparseCheckout leaves out nothing is
// fetched.
func (s *session) withSubmodules(ctx context.Context, remote git.Remote, commit *git.Commit, closers *[]func() error) (*tree.Tree, error) {
	f := &forest{session: s, home: remote, wanted: tree.Select(s.spec.SparseCheckout), closers: closers, grown: map[string]*tree.Tree{}}
	return f.grow(ctx, commit, remote.URL, "", 0)
}

// grow gives the tree of a commit, which came from the URL and goes to the place, with its submodules.
func (f *forest) grow(ctx context.Context, commit *git.Commit, from, at string, depth int) (*tree.Tree, error) {
	grown := *commit.Tree()
	modules, err := commit.Submodules()
	if err != nil || len(modules) == 0 {
		return &grown, err
	}
	if len(modules) > git.MaxSubmodules {
		return nil, fmt.Errorf("%w: more than %d submodules", git.ErrLimit, git.MaxSubmodules)
	}
	if depth == maxNesting {
		return nil, fmt.Errorf("%w: submodules are nested deeper than %d", git.ErrLimit, maxNesting)
	}
	urls, err := moduleURLs(commit.Tree())
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		place := path.Join(at, module.Path)
		if f.wanted.At(place) == nil {
			continue
		}
		inside, err := f.module(ctx, urls[module.Path], from, module.Hash, place, depth)
		if err != nil {
			return nil, fmt.Errorf("submodule %.255q: %w", module.Path, err)
		}
		if grown.Root, err = tree.Graft(grown.Root, module.Path, inside.Root); err != nil {
			return nil, err
		}
	}
	return &grown, nil
}

// module brings a submodule, once.
func (f *forest) module(ctx context.Context, given, from, hash, place string, depth int) (*tree.Tree, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	address, err := moduleURL(from, given)
	if err != nil {
		return nil, err
	}
	key := address + "\x00" + hash
	if !f.wanted.At(place).Whole() {
		key += "\x00" + place
	}
	if known := f.grown[key]; known != nil {
		return known, nil
	}
	if len(f.grown) >= git.MaxSubmodules {
		return nil, fmt.Errorf("%w: more than %d submodules in all", git.ErrLimit, git.MaxSubmodules)
	}
	remote, err := f.remote(ctx, address)
	if err != nil {
		return nil, err
	}
	commit, err := f.session.opener.Client.Fetch(ctx, remote, git.Want{Hash: hash})
	if home := origin(f.home.URL); origin(address) != home && (errors.Is(err, git.ErrAuthentication) || errors.Is(err, git.ErrCredential)) {
		return nil, failure.Retry(sourcev1.GitOperationFailedReason, fmt.Errorf("%w; spec.secretRef is for %s alone: give the submodule a relative url", err, home))
	}
	if err != nil {
		return nil, err
	}
	*f.closers = append(*f.closers, commit.Close)
	grown, err := f.grow(ctx, commit, address, place, depth+1)
	if err == nil {
		f.grown[key] = grown
	}
	return grown, err
}

// remote is where a submodule is, with the credential where that is for it.
func (f *forest) remote(ctx context.Context, address string) (git.Remote, error) {
	remote := git.Remote{URL: address}
	switch {
	case origin(address) != origin(f.home.URL):
		remote.Credential.Proxy = f.home.Credential.Proxy
	case f.session.spec.Provider == sourcev1.GitProviderAWS:
		// CodeCommit's password is a signature of one URL.
		return f.signed(ctx, address)
	default:
		remote.Credential = f.home.Credential
	}
	return remote, nil
}

// signed is a submodule at CodeCommit, with a credential of its own. Its URL is not the spec's: another commit may mend it.
func (f *forest) signed(ctx context.Context, address string) (git.Remote, error) {
	remote, err := f.session.remoteAt(ctx, address)
	if bad := failure.Of(err); bad != nil && bad.Disposition == failure.Stalls {
		err = failure.Retry(bad.Reason, err)
	}
	return remote, err
}

// moduleURLs reads where the submodules of a tree come from, by their paths.
func moduleURLs(t *tree.Tree) (map[string]string, error) {
	file, err := t.Open(modulesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there are submodules, but no %s", modulesFile)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // Reading told whether the data was good.
	content, err := io.ReadAll(io.LimitReader(file, maxModulesBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxModulesBytes {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", git.ErrLimit, modulesFile, maxModulesBytes)
	}
	if bytes.Count(content, []byte("[")) > maxSections {
		return nil, fmt.Errorf("%w: %s has more than %d sections", git.ErrLimit, modulesFile, maxSections)
	}
	modules := config.NewModules()
	if err := modules.Unmarshal(content); err != nil {
		return nil, fmt.Errorf("read %s: %w", modulesFile, err)
	}
	urls := make(map[string]string, len(modules.Submodules))
	for _, name := range slices.Sorted(maps.Keys(modules.Submodules)) {
		urls[path.Clean(modules.Submodules[name].Path)] = modules.Submodules[name].URL
	}
	return urls, nil
}

// moduleURL is the URL of a submodule as gitmodules(5) has it: relative to the repository that names it, in the short form
// for SSH, or a URL.
func moduleURL(from, given string) (string, error) {
	before, after, short := strings.Cut(given, ":")
	switch {
	case given == "":
		return "", fmt.Errorf("%s has no url for it", modulesFile)
	case strings.HasPrefix(given, "./") || strings.HasPrefix(given, "../"):
		return relativeURL(from, given)
	case short && !strings.Contains(before, "/") && !strings.HasPrefix(after, ":") && !strings.HasPrefix(after, "//"):
		given = "ssh://" + before + "/" + strings.TrimLeft(after, "/")
	}
	if err := git.ValidateURL(given); err != nil {
		return "", fmt.Errorf("its url in %s: %w", modulesFile, err)
	}
	return given, nil
}

// relativeURL goes up from a repository's URL, and not beyond its host.
func relativeURL(from, given string) (string, error) {
	scheme, rest, _ := strings.Cut(strings.TrimRight(from, "/"), "://")
	host, place, _ := strings.Cut(rest, "/")
	for {
		switch {
		case strings.HasPrefix(given, "./"):
			given = given[2:]
		case strings.HasPrefix(given, "../") && place == "":
			return "", fmt.Errorf("its url in %s leads out of the host", modulesFile)
		case strings.HasPrefix(given, "../"):
			given = given[3:]
			place = place[:max(strings.LastIndexByte(place, '/'), 0)]
		default:
			found := scheme + "://" + host + "/" + strings.TrimPrefix(place+"/"+given, "/")
			return found, git.ValidateURL(found)
		}
	}
}

// origin is scheme, host and port of a URL; empty for none.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
