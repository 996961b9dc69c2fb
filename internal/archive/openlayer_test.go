package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
)

// bodies are the bodies of a tree's files by path, and "folder" for a folder.
func bodies(tb testing.TB, tree fs.FS) map[string]string {
	tb.Helper()
	all := map[string]string{}
	check(tb, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			all[name] = "folder"
			return nil
		}
		body, err := fs.ReadFile(tree, name)
		all[name] = string(body)
		return err
	}))
	return all
}

func layerContents(tb testing.TB, packed []byte) map[string]string {
	tb.Helper()
	tree, err := archive.OpenLayer(tb.Context(), bytes.NewReader(packed), tb.TempDir(), archive.Limits{})
	check(tb, err)
	defer func() { check(tb, tree.Close()) }()
	return bodies(tb, tree)
}

func TestOpenLayerTakesWhatToolsWrite(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long/", 30) + strings.Repeat("n", 200)
	pax := func(name string, typeflag byte, records map[string]string) item {
		return item{Header: tar.Header{Name: name, Typeflag: typeflag, Format: tar.FormatPAX, PAXRecords: records}}
	}
	owned := item{Header: tar.Header{Name: "owned", Uid: 1 << 40, Gid: 1 << 40, Uname: "ü", Mode: 0o4000}}
	cases := map[string]struct {
		reason string
		raw    []byte
		want   map[string]string
	}{
		"Empty": {
			reason: "The layer of an image that adds nothing.",
			raw:    make([]byte, 1024),
			want:   map[string]string{},
		},
		"Dotted": {
			reason: "tar -C dir . begins every name with a dot.",
			raw:    expand(t, craft(t, folder("./"), folder("./a/"), file("./a/b"))),
			want:   map[string]string{"a": "folder", "a/b": "./a/b"},
		},
		"Repeated": {
			reason: "Builders write the folders above each file anew.",
			raw:    expand(t, craft(t, folder("."), folder("a/"), file("a/b"), folder("./"), folder("a"), folder("./a/"), file("a/c"))),
			want:   map[string]string{"a": "folder", "a/b": "a/b", "a/c": "a/c"},
		},
		"Whiteout": {
			reason: "Whiteouts are for who stacks layers.",
			raw:    expand(t, craft(t, file("a/.wh.b"), file("a/.wh..wh..opq"))),
			want:   map[string]string{"a": "folder", "a/.wh.b": "a/.wh.b", "a/.wh..wh..opq": "a/.wh..wh..opq"},
		},
		"Lazy": {
			reason: "The index of a layer that is pulled in parts is a file of it.",
			raw:    expand(t, craft(t, file("a"), file(".no.prefetch.landmark"), file("stargz.index.json"))),
			want: map[string]string{
				"a": "a", ".no.prefetch.landmark": ".no.prefetch.landmark", "stargz.index.json": "stargz.index.json",
			},
		},
		"Extended": {
			reason: "Times, owners and attributes in extended headers are passed over.",
			raw: expand(t, craft(t,
				pax("g", tar.TypeXGlobalHeader, map[string]string{"comment": "c0ffee", "mtime": "1.5", "SCHILY.xattr.user.x": "y"}),
				pax("e", tar.TypeReg, map[string]string{"SCHILY.xattr.security.capability": "\x01", "LIBARCHIVE.creationtime": "1"}), owned)),
			want: map[string]string{"e": "", "owned": ""},
		},
		"Sealed": {
			reason: "A folder that nobody may enter is one like others.",
			raw:    expand(t, craft(t, item{Header: tar.Header{Name: "a/", Typeflag: tar.TypeDir}}, file("a/b"))),
			want:   map[string]string{"a": "folder", "a/b": "a/b"},
		},
		"Padded": {
			reason: "Tapes have long blocks.",
			raw:    append(expand(t, craft(t, file("a"))), make([]byte, 20<<10)...),
			want:   map[string]string{"a": "a"},
		},
		"OneBlock": {
			reason: "Some write half the end that they should.",
			raw:    expand(t, craft(t, file("a")))[:1536],
			want:   map[string]string{"a": "a"},
		},
		"Zeros": {
			reason: "A file of zeros before the end is a file.",
			raw:    expand(t, craft(t, item{Header: tar.Header{Name: "z"}, body: "\x00\x00"})),
			want:   map[string]string{"z": "\x00\x00"},
		},
		"Long": {
			reason: "A long name has a header of its own.",
			raw:    expand(t, craft(t, item{Header: tar.Header{Name: long, Format: tar.FormatGNU}, body: "b"})),
			want:   lineage(long, "b"),
		},
	}
	for name, tc := range cases {
		for format, pack := range formats() {
			t.Run(name+format, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(tc.want, layerContents(t, pack(t, tc.raw))); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// lineage is a file with the folders above it.
func lineage(name, body string) map[string]string {
	all := map[string]string{name: body}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		all[dir] = "folder"
	}
	return all
}

// TestLinksOfALayerAreLeftOut: they lead nowhere, whatever they are named and wherever they lead; what stands under their
// names later is what it is without them.
func TestLinksOfALayerAreLeftOut(t *testing.T) {
	t.Parallel()
	link := func(typeflag byte, name, to string) item {
		return item{Header: tar.Header{Name: name, Typeflag: typeflag, Linkname: to}}
	}
	layer := craft(t, file("a"), link(tar.TypeSymlink, "out", "/etc"), file("out/passwd"), link(tar.TypeLink, "hard", "a"),
		link(tar.TypeSymlink, "a", "out"), link(tar.TypeLink, "none/of/these", "/etc/passwd"), link(tar.TypeSymlink, "b", ".."), file("b"))
	tree, err := archive.OpenLayer(t.Context(), bytes.NewReader(layer), t.TempDir(), archive.Limits{})
	check(t, err)
	defer func() { check(t, tree.Close()) }()
	if diff := cmp.Diff(map[string]string{"a": "a", "out": "folder", "out/passwd": "out/passwd", "b": "b"}, bodies(t, tree)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if tree.Links != 5 || tree.FirstLink != "out" {
		t.Errorf("%d links are left out, the first is %q", tree.Links, tree.FirstLink)
	}
	many := make([]item, 5000)
	for i := range many {
		many[i] = link(tar.TypeSymlink, fmt.Sprint(i), "a")
	}
	empty, err := archive.OpenLayer(t.Context(), bytes.NewReader(craft(t, many...)), t.TempDir(), archive.Limits{MaxFiles: 5000})
	check(t, err)
	check(t, empty.Close())
	refuse(t, archive.OpenLayer, "Links count as files do.", craft(t, many...), archive.Limits{MaxFiles: 4999}, archive.ErrLimit)
	refuse(t, archive.OpenLayer, "A link has a name like others.", craft(t, link(tar.TypeSymlink, "../x", "a")), archive.Limits{}, archive.ErrUnsafe)
}

func TestOpenLayerTakesArchivesOfTar(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for _, name := range []string{"a/b", "a/é", "c", strings.Repeat("d/", 60) + strings.Repeat("n", 250)} {
		tree[name] = &fstest.MapFile{Data: []byte(strings.Repeat(name, 100))}
	}
	dir := materialise(t, tree)
	want := bodies(t, os.DirFS(dir))
	for _, arguments := range []string{
		"--format=gnu -c .", "--format=pax -c ./a ./c ./d", "--format=oldgnu -z -c a/b a/é c d",
		"--format=posix -z -c --blocking-factor=200 .", "--format=gnu -c --no-recursion a a/b a a/é c a -C . --recursion d",
	} {
		command := exec.CommandContext(t.Context(), "tar", strings.Fields(arguments)...)
		command.Dir = dir
		packed, err := command.Output()
		check(t, err)
		if diff := cmp.Diff(want, layerContents(t, packed)); diff != "" {
			t.Errorf("tar %v: -want, +got:\n%s", arguments, diff)
		}
	}
}

func TestHostileLayersAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range hostile(t) {
		for format, pack := range formats() {
			t.Run(name+format, func(t *testing.T) {
				t.Parallel()
				refuse(t, archive.OpenLayer, tc.reason, pack(t, tc.raw), archive.Limits{}, tc.want)
			})
		}
	}
}

func TestDamagedLayersAreRefused(t *testing.T) {
	t.Parallel()
	whole := expand(t, craft(t, file("a"), file("b")))
	v7 := patch(whole, func(h []byte) { copy(h[257:265], make([]byte, 8)) })
	cases := map[string]struct {
		reason string
		packed []byte
		want   error
	}{
		"Nothing":   {"No byte at all.", nil, archive.ErrCorrupt},
		"Short":     {"Too little to tell.", whole[:511], archive.ErrCorrupt},
		"Unknown":   {"Packed in another way.", append([]byte("BZh91AY&SY"), whole...), archive.ErrCorrupt},
		"Text":      {"Not packed, and no tar.", bytes.Repeat([]byte("text "), 500), archive.ErrCorrupt},
		"Old":       {"A header without the mark of tar.", v7, archive.ErrCorrupt},
		"Twice":     {"Packed twice.", compress(t, compress(t, whole)), archive.ErrCorrupt},
		"Gzip":      {"The end of the stream is followed by something.", append(compress(t, whole), "more"...), archive.ErrCorrupt},
		"Zstandard": {"The end of the stream is followed by something.", append(squeeze(t, whole), "more"...), archive.ErrCorrupt},
		"Skipped":   {"A frame to skip, and nothing else.", skippable(string(whole)), archive.ErrCorrupt},
		"SkipCut":   {"A frame to skip ends early.", append(squeeze(t, whole), skippable("abc")[:10]...), archive.ErrCorrupt},
		"Window":    {"A frame asks for too much memory.", windowed(32 << 20), archive.ErrLimit},
		"Largest":   {"A frame asks for 2 TiB of memory.", []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0}, archive.ErrLimit},
		"Segment":   {"A frame of one segment asks for 2^62 bytes.", []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x40, 1, 0, 0}, archive.ErrLimit},
		"Small":     {"A frame asks for all it may, but holds nothing.", windowed(16 << 20), archive.ErrCorrupt},
		"Dictated":  {"A frame needs a dictionary.", []byte{0x28, 0xb5, 0x2f, 0xfd, 1, 0, 7, 1, 0, 0}, archive.ErrCorrupt},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, archive.OpenLayer, tc.reason, tc.packed, archive.Limits{}, tc.want)
		})
	}
}

func TestOpenLayerLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range bombs(t) {
		for format, pack := range formats() {
			t.Run(name+format, func(t *testing.T) {
				t.Parallel()
				refuse(t, archive.OpenLayer, tc.reason, pack(t, tc.raw), tc.limits, archive.ErrLimit)
			})
		}
	}
	exact := archive.Limits{MaxBytes: 5, MaxFiles: 3, MaxDepth: 2, MaxPath: 3}
	raw := expand(t, craft(t, file("12"), folder("a"), folder("a"), file("a/b")))
	tree, err := archive.OpenLayer(t.Context(), bytes.NewReader(raw), t.TempDir(), exact)
	check(t, err)
	check(t, tree.Close())
}

// endlessly repeats its bytes, after its head, and counts what is read. It fails where nobody should have come to.
type endlessly struct {
	head, bytes []byte
	read        int
}

func (e *endlessly) Read(p []byte) (int, error) {
	if e.read > 4<<20 {
		return 0, errors.New("4 MiB were read")
	}
	for i := range p {
		at := e.read + i
		if at < len(e.head) {
			p[i] = e.head[at]
			continue
		}
		p[i] = e.bytes[(at-len(e.head))%len(e.bytes)]
	}
	e.read += len(p)
	return len(p), nil
}

// TestEndlessLayersEnd: what is read of a stream without end depends on the limits alone.
func TestEndlessLayersEnd(t *testing.T) {
	t.Parallel()
	raw := func(items ...item) []byte {
		all := expand(t, craft(t, items...))
		return all[:len(all)-1024]
	}
	cases := map[string]struct {
		reason string
		src    endlessly
	}{
		"Folders": {"One folder without end.", endlessly{bytes: raw(folder("a"))}},
		"Roots":   {"The root without end.", endlessly{bytes: raw(folder("."))}},
		"Globals": {"Global headers without end.", endlessly{bytes: raw(item{Header: tar.Header{
			Name: "g", Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": "c"},
		}})}},
		"Headers": {"Extended headers without end.", endlessly{bytes: headers(t, 1)}},
		"Zeros":   {"Padding without end.", endlessly{head: raw(file("a")), bytes: []byte{0}}},
		"File":    {"A file without end.", endlessly{head: expand(t, craftClaim(t))[:512], bytes: []byte("x")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := archive.OpenLayer(t.Context(), &tc.src, t.TempDir(), archive.Limits{MaxFiles: 100, MaxBytes: 1 << 20})
			if !errors.Is(err, archive.ErrLimit) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, archive.ErrLimit, err)
			}
			if tc.src.read > 2<<20 {
				t.Errorf("%s\n%d bytes were read", tc.reason, tc.src.read)
			}
		})
	}
}

// TestHeadersHaveTheirRoom: what bounds them grows with the files.
func TestHeadersHaveTheirRoom(t *testing.T) {
	t.Parallel()
	var items []item
	for i := range 2500 {
		items = append(items, item{Header: tar.Header{Name: fmt.Sprint(i), Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": "c"}}})
	}
	if got := len(layerContents(t, expand(t, craft(t, items...)))); got != len(items) {
		t.Errorf("want %d files, got %d", len(items), got)
	}
}

// TestEmptyFilesAreCounted: they cost no byte of the limit on bytes.
func TestEmptyFilesAreCounted(t *testing.T) {
	t.Parallel()
	var items []item
	for i := range 301 {
		items = append(items, item{Header: tar.Header{Name: fmt.Sprint(i)}})
	}
	raw := expand(t, craft(t, items...))
	for format, pack := range formats() {
		_, err := archive.OpenLayer(t.Context(), bytes.NewReader(pack(t, raw)), t.TempDir(), archive.Limits{MaxFiles: 300})
		if !errors.Is(err, archive.ErrLimit) {
			t.Errorf("%s: want %v, got %v", format, archive.ErrLimit, err)
		}
	}
}

// damageable is a layer of several files that does not compress to nothing.
func damageable(tb testing.TB) []byte {
	tb.Helper()
	all := []item{folder("a")}
	for i := range 5 {
		all = append(all, item{Header: tar.Header{Name: fmt.Sprintf("a/%d", i)}, body: noise(700 * (i + 1))})
	}
	all = append(all, item{Header: tar.Header{Name: "a/zeros"}, body: string(make([]byte, 2048))})
	return expand(tb, craft(tb, all...))
}

func TestCutLayersGiveNoTree(t *testing.T) {
	t.Parallel()
	raw := damageable(t)
	want := layerContents(t, raw)
	for format, pack := range formats() {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			packed, dir := pack(t, raw), t.TempDir()
			for at := range packed {
				if part := at % 512; part > 1 && part < 511 && at < len(packed)-64 {
					continue
				}
				tree, err := archive.OpenLayer(t.Context(), bytes.NewReader(packed[:at]), dir, archive.Limits{})
				mustBeWhole(t, fmt.Sprintf("cut after %d of %d bytes", at, len(packed)), want, tree, err)
			}
		})
	}
}

func TestCorruptLayersGiveNoTree(t *testing.T) {
	t.Parallel()
	raw := damageable(t)
	want := layerContents(t, raw)
	packings := formats()
	// Tar itself has no checksum over bodies; what was pulled is compared with its digest.
	maps.DeleteFunc(packings, func(format string, _ func(testing.TB, []byte) []byte) bool { return format == "Tar" })
	for format, pack := range packings {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			packed, dir := pack(t, raw), t.TempDir()
			for at := 0; at < len(packed); at += 29 {
				flipped := bytes.Clone(packed)
				flipped[at] ^= 1 << (at % 8)
				tree, err := archive.OpenLayer(t.Context(), bytes.NewReader(flipped), dir, archive.Limits{})
				mustBeWhole(t, fmt.Sprintf("byte %d of %d flipped", at, len(packed)), want, tree, err)
			}
		})
	}
}

// mustBeWhole takes an error about the archive, or all of it: some bytes, such as times, mean nothing.
func mustBeWhole(t *testing.T, what string, want map[string]string, tree *archive.Tree, err error) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, archive.ErrCorrupt) && !errors.Is(err, archive.ErrLimit) {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	defer func() { check(t, tree.Close()) }()
	if diff := cmp.Diff(want, bodies(t, tree)); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", what, diff)
	}
}

func TestOpenLayerFailsWithItsSource(t *testing.T) {
	t.Parallel()
	raw := damageable(t)
	for format, pack := range formats() {
		packed := pack(t, raw)
		for name, failure := range map[string]error{
			"Reset": errors.New("connection reset"), "Cut": io.ErrUnexpectedEOF, "Wrapped": fmt.Errorf("digest differs: %w", io.EOF),
		} {
			t.Run(format+name, func(t *testing.T) {
				t.Parallel()
				for _, at := range []int{0, 1, 511, 512, len(packed) / 2, len(packed) - 1, len(packed)} {
					src := io.MultiReader(bytes.NewReader(packed[:at]), failingReader{failure})
					tree, err := archive.OpenLayer(t.Context(), src, t.TempDir(), archive.Limits{})
					if tree != nil || !errors.Is(err, failure) || errors.Is(err, archive.ErrCorrupt) {
						t.Errorf("after %d of %d bytes: want %v, got %v", at, len(packed), failure, err)
					}
				}
			})
		}
	}
}

func TestOpenLayerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	raw := expand(t, craft(t, item{Header: tar.Header{Name: "noise"}, body: noise(1 << 18)}))
	for format, pack := range formats() {
		ctx, cancel := context.WithCancel(t.Context())
		packed := pack(t, raw)
		src := io.MultiReader(bytes.NewReader(packed[:len(packed)/2]), hook(cancel), bytes.NewReader(packed[len(packed)/2:]))
		if _, err := archive.OpenLayer(ctx, src, t.TempDir(), archive.Limits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: want %v, got %v", format, context.Canceled, err)
		}
	}
}

// TestLayersOfAllFormatsAreOne: what is archived does not depend on how the layer came.
func TestLayersOfAllFormatsAreOne(t *testing.T) {
	t.Parallel()
	raw := damageable(t)
	var want []byte
	for format, pack := range formats() {
		tree, err := archive.OpenLayer(t.Context(), bytes.NewReader(pack(t, raw)), t.TempDir(), archive.Limits{})
		check(t, err)
		got := mustPack(t, tree, nil)
		check(t, tree.Close())
		if want == nil {
			want = got
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s: another archive", format)
		}
	}
}
