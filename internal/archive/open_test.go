package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
)

func open(tb testing.TB, packed []byte) *archive.Tree {
	tb.Helper()
	tree, err := archive.Open(tb.Context(), bytes.NewReader(packed), tb.TempDir(), archive.Limits{})
	check(tb, err)
	tb.Cleanup(func() { check(tb, tree.Close()) })
	return tree
}

func TestOpenedTreeIsAFileSystem(t *testing.T) {
	t.Parallel()
	tree := open(t, mustPack(t, sample(), nil))
	check(t, fstest.TestFS(tree, "README.md", "deploy/app.yaml", "deploy/run.sh", "deploy.d/z", "empty"))
	body, err := fs.ReadFile(tree, "deploy/app.yaml")
	check(t, err)
	if diff := cmp.Diff("kind: Deployment\n", string(body)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	info, err := tree.Stat("deploy/run.sh")
	check(t, err)
	if info.Mode() != 0o700 {
		t.Errorf("an executable file has mode %v", info.Mode())
	}
}

// TestOpenPartKeepsWhatIsWanted: the rest takes no temporary file, and counts among what the limits bound.
func TestOpenPartKeepsWhatIsWanted(t *testing.T) {
	t.Parallel()
	packed := craft(t, folder("a"), file("a/one"), file("b/two"), folder("b/empty"), file("b/c/three"), file("four"))
	wanted := func(name string) bool { return strings.HasPrefix(name, "b/c/") || name == "a/one" }
	tree, err := archive.OpenPart(t.Context(), bytes.NewReader(packed), t.TempDir(), archive.Limits{}, wanted)
	check(t, err)
	t.Cleanup(func() { check(t, tree.Close()) })
	check(t, fstest.TestFS(tree, "a/one", "b/c/three"))
	for _, name := range []string{"b/two", "b/empty", "four"} {
		if _, err := tree.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	body, err := fs.ReadFile(tree, "b/c/three")
	check(t, err)
	whole, err := fs.ReadFile(open(t, packed), "b/c/three")
	check(t, err)
	if diff := cmp.Diff(string(whole), string(body)); diff != "" {
		t.Errorf("-whole +part:\n%s", diff)
	}
	part := func(ctx context.Context, src io.Reader, dir string, limits archive.Limits) (*archive.Tree, error) {
		return archive.OpenPart(ctx, src, dir, limits, func(string) bool { return false })
	}
	for name, limits := range map[string]archive.Limits{
		"bytes": {MaxBytes: int64(len(whole))}, "files": {MaxFiles: 5}, "depth": {MaxDepth: 2},
	} {
		refuse(t, part, "What is not wanted exceeds the limit of "+name+".", packed, limits, archive.ErrLimit)
	}
	refuse(t, part, "A link that nobody wants.", craft(t, typed("l", tar.TypeSymlink)), archive.Limits{}, archive.ErrUnsafe)
}

func TestOpenMakesUpFolders(t *testing.T) {
	t.Parallel()
	tree := open(t, craft(t, file("a/b/c"), folder("a"), file("./d//e"), folder("x/y/")))
	check(t, fstest.TestFS(tree, "a/b/c", "d/e", "x/y"))
}

func TestOpenTakesArchivesOfOthers(t *testing.T) {
	t.Parallel()
	global := item{Header: tar.Header{Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "c0ffee"}}}
	global.Format = tar.FormatPAX
	raw := expand(t, craft(t, global, file("a")))
	padded := append(raw, make([]byte, 20<<10)...)
	half := len(padded) / 1024 * 512
	members := append(compress(t, padded[:half]), compress(t, padded[half:])...)
	tree := open(t, members)
	check(t, fstest.TestFS(tree, "a"))
}

// hostile are tar streams that neither Open nor OpenLayer takes.
func hostile(tb testing.TB) map[string]hostileCase {
	tb.Helper()
	raw := func(items ...item) []byte { return expand(tb, craft(tb, items...)) }
	whole := raw(file("a"), file("b"))
	global := func(key, value string) item {
		return item{Header: tar.Header{
			Name: "g", Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{key: value},
		}}
	}
	return map[string]hostileCase{
		"Upwards":      {"A path leads out of the tree.", raw(file("../x")), archive.ErrUnsafe},
		"UpwardsDeep":  {"A path leads up and down again.", raw(file("a/../b")), archive.ErrUnsafe},
		"UpwardsDir":   {"A folder is above the tree.", raw(folder("..")), archive.ErrUnsafe},
		"UpwardsLong":  {"A path in an extended header leads out.", raw(file("../" + strings.Repeat("n", 200))), archive.ErrUnsafe},
		"Absolute":     {"A path is absolute.", raw(file("/etc/passwd")), archive.ErrUnsafe},
		"AbsoluteDir":  {"A folder's path is absolute.", raw(folder("/etc/")), archive.ErrUnsafe},
		"Backslash":    {"A path has the slashes of another system.", raw(file(`a\..\b`)), archive.ErrUnsafe},
		"NoName":       {"A file has no name.", nameless(tb), archive.ErrUnsafe},
		"Root":         {"The root is a file.", raw(file(".")), archive.ErrUnsafe},
		"Device":       {"A device.", raw(typed("d", tar.TypeBlock)), archive.ErrUnsafe},
		"Character":    {"Another device.", raw(typed("d", tar.TypeChar)), archive.ErrUnsafe},
		"Pipe":         {"A pipe.", raw(typed("p", tar.TypeFifo)), archive.ErrUnsafe},
		"Contiguous":   {"A kind of file that some readers do not know.", raw(typed("c", tar.TypeCont)), archive.ErrUnsafe},
		"Duplicate":    {"A file comes twice.", raw(file("a"), file("a")), archive.ErrUnsafe},
		"Alias":        {"A file comes by two names.", raw(file("a"), file("./a")), archive.ErrUnsafe},
		"FileThenDir":  {"A file becomes a folder.", raw(file("a"), folder("a")), archive.ErrUnsafe},
		"DirThenFile":  {"A folder becomes a file.", raw(folder("a"), file("a")), archive.ErrUnsafe},
		"FileAsParent": {"A file has a file in it.", raw(file("a"), file("a/b")), archive.ErrUnsafe},
		"ParentAsFile": {"A folder with a file becomes one.", raw(file("a/b"), file("a")), archive.ErrUnsafe},
		"GlobalPath":   {"A global header renames what follows.", raw(global("path", "../x"), file("a")), archive.ErrUnsafe},
		"GlobalSize":   {"A global header resizes what follows.", raw(global("size", "1"), file("a")), archive.ErrUnsafe},
		"GlobalLink":   {"A global header leads what follows elsewhere.", raw(global("linkpath", "/"), file("a")), archive.ErrUnsafe},
		"Sparse":       {"A sparse file of the old kind.", oldSparse(tb), archive.ErrUnsafe},
		"SparsePAX":    {"A sparse file of the new kind.", paxSparse(tb), archive.ErrUnsafe},
		"NoTar":        {"Text.", bytes.Repeat([]byte("text "), 500), archive.ErrCorrupt},
		"CutBody":      {"A file ends early.", raw(file("abc"))[:514], archive.ErrCorrupt},
		"CutPadding":   {"A file's last block is not full.", raw(file("abc"))[:1000], archive.ErrCorrupt},
		"CutEntries":   {"A file is missing, and the end.", whole[:1024], archive.ErrCorrupt},
		"CutEnd":       {"Nothing says that this is the end.", whole[:2048], archive.ErrCorrupt},
		"CutHeader":    {"An extended header says something of no file.", raw(file(strings.Repeat("n", 200)))[:1024], archive.ErrCorrupt},
		"CutZeros":     {"A file of zeros is not the end.", raw(item{body: string(make([]byte, 1024)), Header: tar.Header{Name: "z"}})[:1536], archive.ErrCorrupt},
		"Trailing":     {"Something follows the end.", append(bytes.Clone(whole), "more"...), archive.ErrCorrupt},
		"TrailingTar":  {"Another archive follows in the stream.", append(bytes.Clone(whole), whole...), archive.ErrCorrupt},
	}
}

type hostileCase struct {
	reason string
	raw    []byte
	want   error
}

func TestHostileArchivesAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, archive.Open, tc.reason, compress(t, tc.raw), archive.Limits{}, tc.want)
		})
	}
}

// opener is Open or OpenLayer.
type opener func(ctx context.Context, src io.Reader, dir string, limits archive.Limits) (*archive.Tree, error)

func refuse(t *testing.T, open opener, reason string, packed []byte, limits archive.Limits, want error) {
	t.Helper()
	dir := t.TempDir()
	tree, err := open(t.Context(), bytes.NewReader(packed), dir, limits)
	if !errors.Is(err, want) || tree != nil {
		t.Errorf("%s\nwant %v, got %v", reason, want, err)
	}
	left, err := os.ReadDir(dir)
	check(t, err)
	if len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestDamagedArchivesAreRefused(t *testing.T) {
	t.Parallel()
	whole := craft(t, file("a"), file("b"))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	cases := map[string]struct {
		reason string
		packed []byte
		want   error
	}{
		"Nothing":   {"No byte at all.", nil, archive.ErrCorrupt},
		"NoGzip":    {"Not compressed.", expand(t, whole), archive.ErrCorrupt},
		"Zstandard": {"Compressed in a way that no artifact is.", squeeze(t, expand(t, whole)), archive.ErrCorrupt},
		"Empty":     {"Not even an end.", compress(t, nil), archive.ErrCorrupt},
		"Cut":       {"The end is missing.", whole[:len(whole)-1], archive.ErrCorrupt},
		"CutHalf":   {"Half is missing.", whole[:len(whole)/2], archive.ErrCorrupt},
		"CutHead":   {"Only a header is left.", whole[:5], archive.ErrCorrupt},
		"Checksum":  {"The checksum is wrong.", flipped, archive.ErrCorrupt},
		"Trailing":  {"Something follows.", append(bytes.Clone(whole), "more"...), archive.ErrCorrupt},
		"Symlink":   {"A symbolic link.", craft(t, typed("l", tar.TypeSymlink)), archive.ErrUnsafe},
		"Hardlink":  {"A hard link.", craft(t, file("target"), typed("l", tar.TypeLink)), archive.ErrUnsafe},
		"RootTwice": {"The root comes twice.", craft(t, folder("."), folder("./")), archive.ErrUnsafe},
		"DirTwice":  {"A folder comes twice.", craft(t, folder("a"), folder("a/")), archive.ErrUnsafe},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, archive.Open, tc.reason, tc.packed, archive.Limits{}, tc.want)
		})
	}
}

// bombs are tar streams that exceed a limit.
func bombs(tb testing.TB) map[string]bombCase {
	tb.Helper()
	raw := func(items ...item) []byte { return expand(tb, craft(tb, items...)) }
	zeros := item{Header: tar.Header{Name: "zeros"}, body: string(make([]byte, 1<<20))}
	var small, nested []item
	for i := range 200 {
		small = append(small, file(fmt.Sprint(i)))
		nested = append(nested, file(fmt.Sprint(i)+strings.Repeat("/d", 50)))
	}
	return map[string]bombCase{
		"Bytes":   {"The files are a byte too many.", raw(file("12"), file("345")), archive.Limits{MaxBytes: 4}},
		"Bomb":    {"A small archive has a large file.", raw(zeros), archive.Limits{MaxBytes: 1<<20 - 1}},
		"Claimed": {"A file claims to be huge.", expand(tb, craftClaim(tb)), archive.Limits{}},
		"Files":   {"There are too many files.", raw(small...), archive.Limits{MaxFiles: 199}},
		"MadeUp":  {"Folders that are made up count.", raw(nested...), archive.Limits{MaxFiles: 1000}},
		"Depth":   {"A path is too deep.", raw(file("a/b/c")), archive.Limits{MaxDepth: 2}},
		"Path":    {"A path is too long.", raw(file(strings.Repeat("abc/", 1024) + "a")), archive.Limits{}},
		"Name":    {"A name is too long.", raw(file(strings.Repeat("n", 256))), archive.Limits{}},
		"Padding": {"The archive ends in endless zeros.", make([]byte, 1<<20+4096), archive.Limits{}},
		"Headers": {"Headers without end precede a file.", headers(tb, 20), archive.Limits{}},
	}
}

type bombCase struct {
	reason string
	raw    []byte
	limits archive.Limits
}

func TestOpenLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range bombs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, archive.Open, tc.reason, compress(t, tc.raw), tc.limits, archive.ErrLimit)
		})
	}
	exact := archive.Limits{MaxBytes: 5, MaxFiles: 3, MaxDepth: 2, MaxPath: 3}
	tree, err := archive.Open(t.Context(), bytes.NewReader(craft(t, file("12"), file("a/b"))), t.TempDir(), exact)
	check(t, err)
	check(t, tree.Close())
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	packed := craft(t, item{Header: tar.Header{Name: "noise"}, body: noise(1 << 20)})
	src := io.MultiReader(bytes.NewReader(packed[:len(packed)/2]), hook(cancel), bytes.NewReader(packed[len(packed)/2:]))
	_, err := archive.Open(ctx, src, t.TempDir(), archive.Limits{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("want %v, got %v", context.Canceled, err)
	}
}

func noise(n int) string {
	random := rand.NewChaCha8([32]byte{})
	out := make([]byte, n)
	_, _ = random.Read(out)
	return string(out)
}

// hook is an empty reader that calls a function.
type hook func()

func (h hook) Read([]byte) (int, error) { h(); return 0, io.EOF }

func TestOpenFailsWithItsSource(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset")
	packed := mustPack(t, sample(), nil)
	src := io.MultiReader(bytes.NewReader(packed[:100]), failingReader{reset})
	if _, err := archive.Open(t.Context(), src, t.TempDir(), archive.Limits{}); !errors.Is(err, reset) || errors.Is(err, archive.ErrCorrupt) {
		t.Errorf("want %v, got %v", reset, err)
	}
	if _, err := archive.Open(t.Context(), src, filepath.Join(t.TempDir(), "missing"), archive.Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want %v, got %v", fs.ErrNotExist, err)
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestCloseGivesUpTheSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, err := archive.Open(t.Context(), bytes.NewReader(mustPack(t, sample(), nil)), dir, archive.Limits{})
	check(t, err)
	check(t, tree.Close())
	if _, err := fs.ReadFile(tree, "README.md"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("want %v, got %v", fs.ErrClosed, err)
	}
	left, err := os.ReadDir(dir)
	check(t, err)
	if len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random, dir := rand.New(rand.NewPCG(seed, 4)), t.TempDir()
		growTree(t, random, dir, 4)
		// A backslash is archived as it is on disk, but no reader unpacks it.
		check(t, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.Contains(entry.Name(), `\`) {
				return err
			}
			if err := os.RemoveAll(name); err != nil || !entry.IsDir() {
				return err
			}
			return fs.SkipDir
		}))
		// The rules are read once: an archive need not hold the ignore files that shaped it.
		rules := rulesOf(t, os.DirFS(dir), someRules(random)+"!*.png\n")
		var once, again bytes.Buffer
		check(t, archive.Write(t.Context(), &once, os.DirFS(dir), rules, archive.Limits{}))
		check(t, archive.Write(t.Context(), &again, open(t, once.Bytes()), rules, archive.Limits{}))
		if !bytes.Equal(once.Bytes(), again.Bytes()) {
			t.Fatalf("seed %d: -once, +again:\n%s", seed, cmp.Diff(list(t, once.Bytes()), list(t, again.Bytes())))
		}
	}
}
