package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/tree"
)

// maxAsked is how many files are asked for one by one.
const maxAsked = 100_000

// errNotKept says that files have come, and that the cache cannot take them.
var errNotKept = errors.New("keep files")

// leavesOut tells whether an entry of the root is not needed. A submodule is a folder.
func (w Want) leavesOut(entry treeEntry) bool {
	return w.Keep != nil && !w.Keep(entry.name, entry.mode&(fs.ModeDir|fs.ModeIrregular) != 0)
}

// isNarrow tells whether much of a commit may not be needed.
func (w Want) isNarrow() bool { return !tree.Select(w.Paths).Whole() || w.Keep != nil }

// fetchNarrow fetches the trees of a commit first, and then the files that are wanted of it. Nil where that is not possible,
// or where the whole commit costs less because one before it is there.
func (c *Client) fetchNarrow(ctx context.Context, remote Remote, m *meter, want Want, h *held) (*Commit, error) {
	if !want.isNarrow() || !h.trusted() {
		return nil, nil
	}
	k, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	k.close(ctx)
	if len(k.haves(false)) > 0 {
		return nil, nil
	}
	hash := plumbing.NewHash(want.Hash)
	if want.Ref == "" || !k.has(hash, true) {
		trees := request{Want: want, held: h, filter: allFiles}
		_, err := fetchWith(ctx, c, remote, m, trees, func(_ context.Context, p *pack, _ plumbing.Hash) (struct{}, error) {
			return struct{}{}, p.Close()
		})
		if err != nil {
			return nil, err
		}
	}
	commit, files, err := c.recall(ctx, remote, want, h, Selected)
	if err != nil || len(files) == 0 || len(files) > maxAsked {
		return commit, err
	}
	err = c.fetchFiles(ctx, remote, m, h, hash, files)
	var refusal *remoteError
	switch {
	case errors.Is(err, errNotKept):
		c.options.CacheFailed(fmt.Errorf("of commit %s: %w", want.Hash, err))
		return nil, nil
	case errors.As(err, &refusal), errors.Is(err, errDamaged):
		return nil, nil // It does not give out files by themselves, or there are no trees any more.
	}
	if err != nil {
		return nil, conclude(ctx, "fetch files of "+want.Hash+" from", remote, err)
	}
	commit, _, err = c.recall(ctx, remote, want, h, Selected)
	return commit, err
}

// fetchFiles asks for files by their ids.
func (c *Client) fetchFiles(ctx context.Context, remote Remote, m *meter, h *held, commit plumbing.Hash, ids []string) error {
	return c.converse(ctx, remote, m, func(p peer) error {
		earlier, err := h.load(ctx)
		if err != nil {
			return err
		}
		q := question{wants: ids, bytes: c.options.MaxPackBytes}
		files, err := c.receive(ctx, p, q, c.options.packLimits(), h, earlier)
		if err != nil {
			return err
		}
		if err = h.keep(ctx, files, earlier, tip{commit, true}); err != nil {
			err = fmt.Errorf("%w: %w", errNotKept, err)
		}
		return errors.Join(err, files.Close())
	})
}

// missing walks through the trees of a commit as far as they lead to what is wanted, and returns the files that are not
// there, one more than are asked for at most.
func (p *pack) missing(ctx context.Context, commit plumbing.Hash, want Want) ([]string, error) {
	header, err := p.loadCommit(ctx, commit)
	if err != nil {
		return nil, err
	}
	w := &search{pack: p, seen: map[branch]bool{}, asked: map[plumbing.Hash]bool{}}
	err = w.reach(header.tree, tree.Select(want.Paths))
	for root := true; err == nil && len(w.places) > 0 && len(w.files) <= maxAsked; root = false {
		next := w.places[len(w.places)-1]
		w.places = w.places[:len(w.places)-1]
		err = p.eachEntry(ctx, next.tree, func(entry treeEntry) error {
			wanted := next.In(entry.name)
			switch {
			case wanted == nil || root && want.leavesOut(entry):
				return nil
			case entry.mode.IsDir():
				return w.reach(entry.hash, wanted)
			}
			w.ask(entry.hash)
			return nil
		})
	}
	return w.files, err
}

// branch is a tree, and what is wanted of it.
type branch struct {
	tree int32
	*tree.Selection
}

// search looks for files that are missing.
type search struct {
	*pack

	places []branch
	seen   map[branch]bool
	files  []string
	asked  map[plumbing.Hash]bool
}

// reach comes upon a tree, which is looked into once.
func (w *search) reach(hash plumbing.Hash, wanted *tree.Selection) error {
	index, err := w.find(hash, plumbing.TreeObject)
	if at := (branch{index, wanted}); err == nil && !w.seen[at] {
		w.seen[at] = true
		w.places = append(w.places, at)
	}
	return err
}

// ask adds a file unless it is there or was added before.
func (w *search) ask(file plumbing.Hash) {
	if _, ok := w.lookUp(file); !ok && !w.asked[file] {
		w.asked[file] = true
		w.files = append(w.files, file.String())
	}
}
