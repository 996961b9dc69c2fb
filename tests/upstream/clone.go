package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrTaken says that a branch has moved on, or is gone, since it was looked at: somebody else was first.
var ErrTaken = errors.New("somebody else was first")

// Clone is a working copy of somebody who edits a repository with the git program, through a server as everybody does.
// It is for one goroutine.
type Clone struct {
	ctx context.Context // It bounds the life of the whole clone.
	dir string
	env []string
}

// NewClone makes a working copy in dir of what is served at the URL, which may hold credentials. The environment variables,
// as name=value, are those of every command.
func NewClone(ctx context.Context, dir, url string, env ...string) (*Clone, error) {
	if _, err := Git(ctx, filepath.Dir(dir), env, "clone", "--quiet", "--no-checkout", url, dir); err != nil {
		return nil, fmt.Errorf("clone: %w", err)
	}
	return &Clone{ctx: ctx, dir: dir, env: env}, nil
}

// Run runs git in the working copy and returns what it printed, without the white space around it.
func (c *Clone) Run(args ...string) (string, error) {
	out, err := Git(c.ctx, c.dir, c.env, args...)
	return strings.TrimSpace(string(out)), err
}

// Branches are the names of the branches that begin with the prefix, as the server has them now.
func (c *Clone) Branches(prefix string) ([]string, error) {
	if err := c.fetch(); err != nil {
		return nil, err
	}
	out, err := c.Run("for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes/origin/"+prefix)
	return strings.Fields(out), err
}

func (c *Clone) fetch() error {
	_, err := c.Run("fetch", "--quiet", "--prune", "origin")
	return err
}

// Edit fetches the branch, lets edit change the files in it, commits everything, and pushes that. The commit that it returns
// was accepted. ErrTaken when the branch is not there, or has moved meanwhile, so that the server refused; nothing is left of
// the edit then.
func (c *Clone) Edit(branch, message string, edit func(root *os.Root) error) (commit string, err error) {
	if err := c.fetch(); err != nil {
		return "", err
	}
	if _, err := c.Run("checkout", "--quiet", "--force", "-B", "work", "refs/remotes/origin/"+branch); err != nil {
		return "", fmt.Errorf("%w: %w", ErrTaken, err)
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return "", err
	}
	if err := errors.Join(edit(root), root.Close()); err != nil {
		return "", fmt.Errorf("edit branch %q: %w", branch, err)
	}
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--message=" + message}} {
		if _, err := c.Run(args...); err != nil {
			return "", err
		}
	}
	if commit, err = c.Run("rev-parse", "HEAD"); err != nil {
		return "", err
	}
	// The lease keeps a branch from being made again that went meanwhile.
	before, err := c.Run("rev-parse", "HEAD^")
	if err != nil {
		return "", err
	}
	if out, err := c.Run("push", "--porcelain", "--force-with-lease="+branch+":"+before, "origin", "work:refs/heads/"+branch); err != nil {
		if isRefusal(out) {
			return "", fmt.Errorf("%w: %w", ErrTaken, err)
		}
		return "", err
	}
	return commit, nil
}

// isRefusal tells whether the report of a push has a line of a ref that was refused.
func isRefusal(report string) bool {
	for line := range strings.Lines(report) {
		if strings.HasPrefix(line, "!\t") {
			return true
		}
	}
	return false
}
