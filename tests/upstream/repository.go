package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	identityName = "Ada Upstream"
	identityMail = "ada@upstream.example"
	// firstDate is the date of every commit without a parent: 2024-01-01T00:00:00Z. Each commit is a minute
	// later than its parent, so that equal steps give equal commit ids on every run and machine.
	firstDate = 1704067200
	stepDate  = 60
)

// Repository is a bare repository that is edited by the git program itself. Its commits depend on nothing but
// the calls: same calls, same ids. It may be used by several goroutines; edits are made one at a time.
type Repository struct {
	ctx  context.Context // It bounds the life of the whole repository, as a server's bounds the server.
	dir  string
	name string
	mu   sync.Mutex
}

// NewRepository makes the empty bare repository <dir>/<name>.git whose HEAD names the branch main. The name may
// hold slashes. initArgs go to git init (say, --object-format=sha256). No git command outlives ctx.
func NewRepository(ctx context.Context, dir, name string, initArgs ...string) (*Repository, error) {
	path := filepath.Join(dir, filepath.FromSlash(name)+".git")
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("create repository %q: %w", name, err)
	}
	r := &Repository{ctx: ctx, dir: path, name: name}
	args := append([]string{"init", "--bare", "--quiet", "--template=", "--initial-branch=main"}, initArgs...)
	if _, err := r.Raw(args...); err != nil {
		return nil, fmt.Errorf("create repository %q: %w", name, err)
	}
	// Nothing may run by itself: it would race with the end of a test.
	if _, err := r.Raw("config", "gc.auto", "0"); err != nil {
		return nil, err
	}
	return r, nil
}

// Dir is the repository's folder.
func (r *Repository) Dir() string { return r.dir }

// Name is the name it was made with; servers serve it as /<name>.git.
func (r *Repository) Name() string { return r.name }

// AcceptPushes lets everybody push to it over HTTP, where git http-backend wants that said.
func (r *Repository) AcceptPushes() error {
	_, err := r.Raw("config", "http.receivepack", "true")
	return err
}

// Hook makes the shell script the repository's hook of that name, see githooks(5).
func (r *Repository) Hook(name, script string) error {
	folder := filepath.Join(r.dir, "hooks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o755)
}

// Raw runs git in the repository and returns what it printed, without the white space around it.
func (r *Repository) Raw(args ...string) (string, error) { return r.RawInput(nil, args...) }

// RawInput is Raw with a standard input.
func (r *Repository) RawInput(stdin []byte, args ...string) (string, error) {
	out, err := run(Command(r.ctx, r.dir, nil, args...), stdin)
	return strings.TrimSpace(string(out)), err
}

// Resolve gives the id of the object that a ref or any other revision expression names.
func (r *Repository) Resolve(revision string) (string, error) {
	return r.Raw("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
}

// SetRef makes any ref (refs/heads/…, refs/pull/1/head) name the object.
func (r *Repository) SetRef(ref, hash string) error {
	_, err := r.Raw("update-ref", ref, hash)
	return err
}

// DeleteRef removes a ref. It is no error when there is none.
func (r *Repository) DeleteRef(ref string) error {
	_, err := r.Raw("update-ref", "-d", ref)
	return err
}

// SetHead makes HEAD name another branch, which need not exist.
func (r *Repository) SetHead(branch string) error {
	_, err := r.Raw("symbolic-ref", "HEAD", "refs/heads/"+branch)
	return err
}

// Tag makes the tag name the object, also when the tag named another one before. An annotated tag is an object
// of its own, whose id is returned; a lightweight tag gives the hash back. The tagger's date is the commit's.
func (r *Repository) Tag(name, hash string, annotated bool) (string, error) {
	if !annotated {
		return hash, r.SetRef("refs/tags/"+name, hash)
	}
	date, err := r.date(hash)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger %s <%s> %d +0000\n\n%s\n",
		hash, name, identityName, identityMail, date, name)
	id, err := r.Object("tag", []byte(text))
	if err != nil {
		return "", err
	}
	return id, r.SetRef("refs/tags/"+name, id)
}

// date is the committer's date of a commit in seconds.
func (r *Repository) date(commit string) (int64, error) {
	out, err := r.Raw("show", "--no-patch", "--format=%ct", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(out, 10, 64)
}
