package bucket

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/tree"
)

// printable makes a key fit for a message.
func printable(key string) string { return transport.Printable(key) }

// checkKeys refuses keys that are no paths of files, and those that would have to be a file and a folder at once. See
// docs/adr/0041-keys-that-are-no-paths.md.
func checkKeys(objects []bucket.Object) error {
	names := make(map[string]bool, len(objects))
	for _, o := range objects {
		if !fs.ValidPath(o.Key) || o.Key == tree.Root || strings.ContainsRune(o.Key, 0) {
			return fmt.Errorf("%w: key '%s' is no path of a file: rename the object, or leave it out with spec.ignore", archive.ErrUnsafe, printable(o.Key))
		}
		names[o.Key] = true
	}
	for _, o := range objects {
		for at, c := range []byte(o.Key) {
			if c == '/' && names[o.Key[:at]] {
				return fmt.Errorf("%w: key '%s' is a file, and the folder of key '%s': rename one of the objects, or leave it out with spec.ignore",
					archive.ErrUnsafe, printable(o.Key[:at]), printable(o.Key))
			}
		}
	}
	return nil
}

// plant makes a tree of files whose keys checkKeys has passed. Nodes of the same ID hold the same.
func plant(files []file) (*tree.Node, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.object.Key, b.object.Key) })
	return folder(tree.Root, 0, files)
}

// folder makes the node of a folder with the files, whose keys begin with the same depth bytes. They are in order, so that
// those of one folder are in a row.
func folder(name string, depth int, files []file) (*tree.Node, error) {
	n := &tree.Node{Name: name, Mode: fs.ModeDir | 0o755}
	for len(files) > 0 {
		base, _, deeper := strings.Cut(files[0].object.Key[depth:], "/")
		if !deeper {
			f := files[0]
			n.Children = append(n.Children, &tree.Node{
				Name: base, Mode: 0o644, Size: f.object.Size, ID: f.digest.Encoded(), Source: place{f.source, f.object.Key},
			})
			files = files[1:]
			continue
		}
		end := slices.IndexFunc(files, func(f file) bool { return !strings.HasPrefix(f.object.Key[depth:], base+"/") })
		if end < 0 {
			end = len(files)
		}
		inside, err := folder(base, depth+len(base)+1, files[:end])
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, inside)
		files = files[end:]
	}
	slices.SortFunc(n.Children, tree.Compare)
	facts, err := tree.Sum(n.Children)
	n.Known = &facts
	n.ID = idOf(n.Children)
	return n, err
}

// idOf names what is beneath a folder.
func idOf(children []*tree.Node) string {
	hash := sha256.New()
	for _, c := range children {
		fmt.Fprintf(hash, "%q %t %s\n", c.Name, c.Mode.IsDir(), c.ID)
	}
	return digest.NewDigest(digest.SHA256, hash).Encoded()
}

// place gives a source the key of what it is asked for.
type place struct {
	source tree.Source
	key    string
}

// Open implements tree.Source.
func (p place) Open(n *tree.Node) (io.ReadCloser, error) {
	asked := *n
	asked.Name = p.key
	return p.source.Open(&asked)
}

// fetched is a body that is at hand.
type fetched struct{ body bucket.Body }

// Open implements tree.Source.
func (f fetched) Open(*tree.Node) (io.ReadCloser, error) { return f.body.Open(), nil }
