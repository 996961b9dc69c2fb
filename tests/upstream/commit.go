package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Mode is the mode of a tree entry as git writes it.
type Mode string

// The modes that git knows, and the mark for an entry that a commit takes away.
const (
	Regular    Mode = "100644"
	Executable Mode = "100755"
	Symlink    Mode = "120000" // the content is the target
	Submodule  Mode = "160000" // the content is the id of a commit
	Removed    Mode = "removed"
)

// File is an entry of a commit's tree.
type File struct {
	// Mode is Regular when empty.
	Mode Mode
	// Content is the file's content, a link's target, or a submodule's commit.
	Content string
}

// Files are entries by their path, with slashes.
type Files map[string]File

// Text is a tree of plain files.
func Text(contents map[string]string) Files {
	files := make(Files, len(contents))
	for path, content := range contents {
		files[path] = File{Mode: Regular, Content: content}
	}
	return files
}

// Commit puts a commit on top of the branch, which is made when there is none, and returns its id. Files are
// added to the parent's tree, replace its entries or, with the mode Removed, leave it (folders too).
func (r *Repository) Commit(branch, message string, files Files) (string, error) {
	return r.commit(branch, message, files, true)
}

// Rewrite replaces the branch by a commit without parents that holds these files alone, as a forced push does.
func (r *Repository) Rewrite(branch, message string, files Files) (string, error) {
	return r.commit(branch, message, files, false)
}

func (r *Repository) commit(branch, message string, files Files, onTop bool) (string, error) {
	return r.importCommit(branch, message, onTop, func(w *bufio.Writer) error {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			writeFile(w, path, files[path])
		}
		return nil
	})
}

// importCommit makes one commit by git fast-import; write puts the file commands into its stream. What somebody pushes at the same
// time is not lost: the commit is made once more, on top of that.
func (r *Repository) importCommit(branch, message string, onTop bool, write func(*bufio.Writer) error) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		made, err := r.tryImport(branch, message, onTop, write)
		if err == nil || !isMoved(err) {
			return made, err
		}
	}
}

// isMoved tells whether the branch was moved between the two looks at it that git takes.
func isMoved(err error) bool {
	return strings.Contains(err.Error(), "does not contain") || strings.Contains(err.Error(), "cannot lock ref")
}

func (r *Repository) tryImport(branch, message string, onTop bool, write func(*bufio.Writer) error) (string, error) {
	ref, date, parent := "refs/heads/"+branch, int64(firstDate), ""
	if onTop {
		if tip, err := r.Resolve(ref); err == nil {
			before, err := r.date(tip)
			if err != nil {
				return "", fmt.Errorf("commit to %q: %w", branch, err)
			}
			parent, date = tip, before+stepDate
		}
	}

	reader, writer := io.Pipe()
	cmd := Command(r.ctx, r.dir, nil, "fast-import", "--quiet", "--done", "--date-format=raw")
	if !onTop {
		cmd.Args = append(cmd.Args, "--force")
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = reader, &stdout, &stderr
	written := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(writer, 1<<16)
		fmt.Fprintf(out, "commit %s\nmark :1\ncommitter %s <%s> %d +0000\n", ref, identityName, identityMail, date)
		writeData(out, message)
		if parent != "" {
			fmt.Fprintf(out, "from %s\n", parent)
		} else {
			fmt.Fprint(out, "deleteall\n")
		}
		err := write(out)
		if err == nil {
			fmt.Fprint(out, "get-mark :1\ndone\n")
			err = out.Flush()
		}
		written <- err
		writer.CloseWithError(err)
	}()
	err := cmd.Run()
	reader.Close()
	if werr := <-written; werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		return "", fmt.Errorf("commit to %q: %w", branch, werr)
	}
	if err != nil {
		return "", fmt.Errorf("commit to %q: %w", branch, commandError(cmd, err, stderr.Bytes()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

func writeFile(w *bufio.Writer, path string, file File) {
	switch file.Mode {
	case Removed:
		fmt.Fprintf(w, "D %s\n", quote(path))
	case Submodule:
		fmt.Fprintf(w, "M %s %s %s\n", Submodule, file.Content, quote(path))
	default:
		mode := file.Mode
		if mode == "" {
			mode = Regular
		}
		fmt.Fprintf(w, "M %s inline %s\n", mode, quote(path))
		writeData(w, file.Content)
	}
}

func writeData(w *bufio.Writer, content string) {
	fmt.Fprintf(w, "data %d\n%s\n", len(content), content)
}

// quote writes a path as a C string, the only form of fast-import in which a path may hold any byte.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
