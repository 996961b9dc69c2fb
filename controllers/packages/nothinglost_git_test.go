package packages_test

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// bareRepository reads a bare repository from its files. It shares no code with the product, and starts no process. Objects are never
// packed in it. It is for one goroutine.
type bareRepository struct {
	dir     string
	commits map[string]gitCommit
	trees   map[string]map[string]string
	blobs   map[string]string
}

// gitCommit is a commit without its author.
type gitCommit struct {
	tree    string
	parents []string
	message string
}

func readBare(dir string) *bareRepository {
	return &bareRepository{dir: dir, commits: map[string]gitCommit{}, trees: map[string]map[string]string{}, blobs: map[string]string{}}
}

// refs are all branches and tags with their objects. Other programs write meanwhile: a ref that moves to another name may be missing.
func (b *bareRepository) refs() (map[string]string, error) {
	found := map[string]string{}
	packed, err := os.ReadFile(filepath.Join(b.dir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && len(id) == 40 {
			found[name] = id
		}
	}
	err = filepath.WalkDir(filepath.Join(b.dir, "refs"), func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (entry.IsDir() || strings.HasSuffix(file, ".lock")) {
			return nil
		}
		if err != nil {
			return err
		}
		id, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if name, relErr := filepath.Rel(b.dir, file); relErr == nil && len(bytes.TrimSpace(id)) == 40 {
			found[name] = string(bytes.TrimSpace(id))
		}
		return err
	})
	return found, err
}

// object is the content of a loose object.
func (b *bareRepository) object(id string) (kind string, content []byte, err error) {
	if len(id) != 40 {
		return "", nil, fmt.Errorf("%q is no object", id)
	}
	file, err := os.Open(filepath.Join(b.dir, "objects", id[:2], id[2:]))
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = file.Close() }()
	inflated, err := zlib.NewReader(file)
	if err != nil {
		return "", nil, fmt.Errorf("inflate %s: %w", id, err)
	}
	all, err := io.ReadAll(inflated)
	if err != nil {
		return "", nil, fmt.Errorf("inflate %s: %w", id, err)
	}
	head, content, _ := bytes.Cut(all, []byte{0})
	kind, _, _ = strings.Cut(string(head), " ")
	return kind, content, nil
}

// commit is the commit of the id.
func (b *bareRepository) commit(id string) (gitCommit, error) {
	if known, ok := b.commits[id]; ok {
		return known, nil
	}
	kind, content, err := b.object(id)
	if err != nil || kind != "commit" {
		return gitCommit{}, fmt.Errorf("read commit %s: %s %w", id, kind, err)
	}
	head, message, _ := strings.Cut(string(content), "\n\n")
	c := gitCommit{message: message}
	for line := range strings.Lines(head) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		}
	}
	b.commits[id] = c
	return c, nil
}

// files are the blobs of a tree, by their path.
func (b *bareRepository) files(tree string) (map[string]string, error) {
	if known, ok := b.trees[tree]; ok {
		return known, nil
	}
	kind, content, err := b.object(tree)
	if err != nil || kind != "tree" {
		return nil, fmt.Errorf("read tree %s: %s %w", tree, kind, err)
	}
	found := map[string]string{}
	for len(content) > 0 {
		head, rest, _ := bytes.Cut(content, []byte{0})
		mode, name, _ := strings.Cut(string(head), " ")
		id := hex.EncodeToString(rest[:20])
		content = rest[20:]
		if mode != "40000" {
			found[name] = id
			continue
		}
		below, err := b.files(id)
		if err != nil {
			return nil, err
		}
		for at, blob := range below {
			found[path.Join(name, at)] = blob
		}
	}
	b.trees[tree] = found
	return found, nil
}

// filesOf are the files of a commit; none for no commit.
func (b *bareRepository) filesOf(commit string) (map[string]string, error) {
	if commit == "" {
		return nil, nil
	}
	c, err := b.commit(commit)
	if err != nil {
		return nil, err
	}
	return b.files(c.tree)
}

// content is the content of a blob.
func (b *bareRepository) content(blob string) (string, error) {
	if known, ok := b.blobs[blob]; ok || blob == "" {
		return known, nil
	}
	_, content, err := b.object(blob)
	if err != nil {
		return "", err
	}
	b.blobs[blob] = string(content)
	return b.blobs[blob], nil
}

// reach are the commits that the history of these has, with themselves.
func (b *bareRepository) reach(from ...string) (map[string]bool, error) {
	found := map[string]bool{}
	for len(from) > 0 {
		id := from[len(from)-1]
		from = from[:len(from)-1]
		if found[id] {
			continue
		}
		found[id] = true
		c, err := b.commit(id)
		if err != nil {
			return nil, err
		}
		from = append(from, c.parents...)
	}
	return found, nil
}

// firstParent is the commit that one was made on; empty for the first one.
func (b *bareRepository) firstParent(id string) (string, error) {
	c, err := b.commit(id)
	if err != nil || len(c.parents) == 0 {
		return "", err
	}
	return c.parents[0], nil
}

// packageFolders are the folders with a Kptfile.
func packageFolders(files map[string]string) map[string]bool {
	found := map[string]bool{}
	for file := range files {
		if path.Base(file) == "Kptfile" {
			found[path.Dir(file)] = true
		}
	}
	return found
}

// packageOf is the innermost of the folders that the file is in; empty for none.
func packageOf(file string, folders ...map[string]bool) string {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		for _, known := range folders {
			if known[dir] {
				return dir
			}
		}
	}
	return ""
}

// ownFiles are the files of a package, by their path in it, without those of packages inside it.
func ownFiles(files map[string]string, pkg string) map[string]string {
	own, folders := map[string]string{}, packageFolders(files)
	for file, blob := range files {
		if below, isBelow := strings.CutPrefix(file, pkg+"/"); isBelow && packageOf(file, folders) == pkg {
			own[below] = blob
		}
	}
	return own
}

// settings are the values of the only ConfigMap of a package, by their keys.
func settings(text string) map[string]string {
	found, isData := map[string]string{}, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			isData = line == "data:"
			continue
		}
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); isData && ok {
			found[key] = value
		}
	}
	return found
}

// lockedCommit is the upstream commit that a Kptfile names.
func lockedCommit(kptfile string) string {
	_, lock, _ := strings.Cut(kptfile, "upstreamLock:")
	_, rest, _ := strings.Cut(lock, "commit: ")
	commit, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(strings.TrimSpace(commit), `"'`)
}
