package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Tree reads a commit's whole tree through git itself: what an artifact is to be compared with. A submodule's
// content is the id of its commit.
func (r *Repository) Tree(commit string) (Files, error) {
	listing, err := run(Command(r.ctx, r.dir, nil, "ls-tree", "-r", "-z", "--full-tree", commit), nil)
	if err != nil {
		return nil, fmt.Errorf("tree of %s: %w", commit, err)
	}
	files := Files{}
	var paths []string
	var wanted bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSuffix(string(listing), "\x00"), "\x00") {
		head, path, found := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !found || len(fields) != 3 {
			continue // The empty tree lists one empty line.
		}
		files[path] = File{Mode: Mode(fields[0]), Content: fields[2]}
		if fields[1] == "blob" {
			paths = append(paths, path)
			wanted.WriteString(fields[2] + "\n")
		}
	}
	blobs, err := run(Command(r.ctx, r.dir, nil, "cat-file", "--batch"), wanted.Bytes())
	if err != nil {
		return nil, fmt.Errorf("tree of %s: %w", commit, err)
	}
	reader := bufio.NewReader(bytes.NewReader(blobs))
	for _, path := range paths {
		content, err := readBlob(reader)
		if err != nil {
			return nil, fmt.Errorf("tree of %s: %q: %w", commit, path, err)
		}
		files[path] = File{Mode: files[path].Mode, Content: content}
	}
	return files, nil
}

// readBlob reads one answer of git cat-file --batch: "<id> blob <size>", the bytes, and a newline.
func readBlob(r *bufio.Reader) (string, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	size, err := strconv.Atoi(strings.TrimSpace(head[strings.LastIndexByte(strings.TrimSpace(head), ' ')+1:]))
	if err != nil {
		return "", fmt.Errorf("unexpected answer %q: %w", head, err)
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(r, content); err != nil {
		return "", err
	}
	return string(content[:size]), nil
}

// Archive is the tar file that git archive makes of the commit.
func (r *Repository) Archive(commit string) ([]byte, error) {
	return run(Command(r.ctx, r.dir, nil, "archive", "--format=tar", commit), nil)
}
