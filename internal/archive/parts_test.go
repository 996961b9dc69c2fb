package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/tree"
)

// plot is a tree of files by their paths, whose nodes have IDs. It notes what is listed and opened.
type plot struct {
	files          map[string]string
	listed, opened map[string]bool
}

func (p *plot) tree() *tree.Tree {
	p.listed, p.opened = map[string]bool{}, map[string]bool{}
	root := &bed{beds: map[string]*bed{}}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		at, elements := root, strings.Split(name, "/")
		for _, element := range elements[:len(elements)-1] {
			if at.beds[element] == nil {
				at.beds[element] = &bed{beds: map[string]*bed{}}
			}
			at = at.beds[element]
		}
		text := p.files[name]
		at.files = append(at.files, &tree.Node{
			Name: elements[len(elements)-1], Mode: 0o644, Size: int64(len(text)), ID: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Source: seed{p, name},
		})
	}
	return &tree.Tree{Root: p.folder(tree.Root, tree.Root, root)}
}

// bed is a folder.
type bed struct {
	beds  map[string]*bed
	files []*tree.Node
}

func (p *plot) folder(at, name string, b *bed) *tree.Node {
	children, id := slices.Clone(b.files), sha256.New()
	for inside, below := range b.beds {
		children = append(children, p.folder(path.Join(at, inside), inside, below))
	}
	slices.SortFunc(children, tree.Compare)
	for _, child := range children {
		_, _ = fmt.Fprintf(id, "%v %q %s\n", child.Mode, child.Name, child.ID)
	}
	facts, _ := tree.Sum(children)
	list := func() ([]*tree.Node, error) {
		p.listed[at] = true
		return children, nil
	}
	return &tree.Node{Name: name, Mode: fs.ModeDir | 0o755, ID: fmt.Sprintf("%x", id.Sum(nil)), Lister: list, Known: &facts}
}

// seed is the content of a file in a plot.
type seed struct {
	plot *plot
	name string
}

func (s seed) Open(*tree.Node) (io.ReadCloser, error) {
	s.plot.opened[s.name] = true
	return io.NopCloser(strings.NewReader(s.plot.files[s.name])), nil
}

// written is an archive with its index.
type written struct{ body, index []byte }

func (w written) stored() archive.Stored {
	return archive.Stored{Body: bytes.NewReader(w.body), Index: w.index}
}

func (p *plot) write(tb testing.TB, spec *string, before archive.Stored) written {
	tb.Helper()
	grown := p.tree()
	rules, err := archive.ReadRules(tb.Context(), grown, spec, archive.Limits{})
	check(tb, err)
	clear(p.listed)
	clear(p.opened)
	var out bytes.Buffer
	index, err := archive.WriteFrom(tb.Context(), &out, grown, rules, archive.Limits{}, before)
	check(tb, err)
	return written{out.Bytes(), index}
}

// orchard is a tree of about 8 MB with folders of all sizes.
func orchard(random *rand.Rand) *plot {
	p := &plot{files: map[string]string{}}
	for i := range 200 {
		line := fmt.Sprintf("  - name: item-%d\n    value: %x\n", i, random.Uint64())
		size := 1 << (4 + random.IntN(13))
		if i%100 == 99 {
			size = 1536 << 10
		}
		p.files[fmt.Sprintf("teams/team-%02d/app-%d/file-%d.yaml", i%3, i%20, i)] = strings.Repeat(line, 1+size/len(line))
	}
	return p
}

// change edits, adds and removes a few files.
func (p *plot) change(random *rand.Rand) {
	names := slices.Sorted(maps.Keys(p.files))
	for range 1 + random.IntN(3) {
		name := names[random.IntN(len(names))]
		switch random.IntN(5) {
		case 0:
			delete(p.files, name)
		case 1:
			p.files[name+".new"] = "new"
		case 2:
			p.files[name] += strings.Repeat("longer", random.IntN(1<<17))
		case 3:
			p.files["teams/new/"+name] = p.files[name]
		default:
			p.files[name] = "changed" + p.files[name]
		}
	}
}

func TestWarmBytesAreColdBytes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	garden := orchard(random)
	warm := written{}
	spec := "*-1*.yaml\n"
	for round := range 14 {
		var rules *string
		if round%10 == 9 {
			rules = &spec
		}
		warm = garden.write(t, rules, warm.stored())
		cold := garden.write(t, rules, archive.Stored{})
		if !bytes.Equal(cold.body, warm.body) || !bytes.Equal(cold.index, warm.index) {
			t.Fatalf("round %d: taking parts over made another archive", round)
		}
		garden.change(random)
		if round == 12 {
			garden.files["teams/team-01/.sourceignore"] = "app-7\n"
		}
	}
}

func TestWhatIsUnchangedIsNotLooked(t *testing.T) {
	t.Parallel()
	garden := orchard(rand.New(rand.NewPCG(1, 2)))
	first := garden.write(t, nil, archive.Stored{})
	changed := "teams/team-01/app-1/file-1.yaml"
	garden.files[changed] += "changed"
	garden.write(t, nil, first.stored())
	if !garden.opened[changed] || len(garden.opened) > 100 {
		t.Errorf("%d files were opened, of which the changed one: %t", len(garden.opened), garden.opened[changed])
	}
	if garden.listed["teams/team-02"] || !garden.listed["teams/team-01"] {
		t.Errorf("listed folders: %v", garden.listed)
	}
	garden.files["teams/team-01/app-1/file-0-inserted"] = "inserted"
	garden.write(t, nil, first.stored())
	if len(garden.opened) > 100 {
		t.Errorf("%d files were opened for one that is new", len(garden.opened))
	}
}

func TestDamageIsNotTakenOver(t *testing.T) {
	t.Parallel()
	garden := orchard(rand.New(rand.NewPCG(3, 4)))
	good := garden.write(t, nil, archive.Stored{})
	for place := range 8 {
		index := slices.Clone(good.index)
		index[place*(len(index)-1)/7] ^= 0x10
		if again := garden.write(t, nil, written{good.body, index}.stored()); !bytes.Equal(again.body, good.body) {
			t.Fatalf("a flipped bit in the index, at %d of 7, made another archive", place)
		}
	}
	rotten := slices.Clone(good.body)
	rotten[len(rotten)/2] ^= 1
	for name, body := range map[string][]byte{"flipped": rotten, "cut": good.body[:len(good.body)/2], "empty": {}} {
		_, err := archive.WriteFrom(t.Context(), io.Discard, garden.tree(), nil, archive.Limits{}, written{body, good.index}.stored())
		if !errors.Is(err, archive.ErrStored) {
			t.Errorf("%s: want %v, got %v", name, archive.ErrStored, err)
		}
	}
}

// TestAFolderIsNotTakenForTheHeaderOfAnother: names and ids are chosen so that the one reads like the other.
func TestAFolderIsNotTakenForTheHeaderOfAnother(t *testing.T) {
	t.Parallel()
	p := &plot{opened: map[string]bool{}, files: map[string]string{"small": "text", "large": strings.Repeat("line\n", 1<<18)}}
	root := func(folder, id, file string) *tree.Tree {
		inside := &tree.Node{Name: file, Mode: 0o644, Size: int64(len(p.files[file])), ID: file, Source: seed{p, file}}
		return &tree.Tree{Root: &tree.Node{Name: tree.Root, Mode: fs.ModeDir, Children: []*tree.Node{
			{Name: folder, Mode: fs.ModeDir, ID: id, Children: []*tree.Node{inside}},
		}}}
	}
	write := func(files *tree.Tree, before archive.Stored) written {
		var out bytes.Buffer
		index, err := archive.WriteFrom(t.Context(), &out, files, nil, archive.Limits{}, before)
		check(t, err)
		return written{out.Bytes(), index}
	}
	name, id := strings.Repeat("n", 103), strings.Repeat("i", 18)
	whole := root("z"+name, id+"\x01-", "small") // 'z' is how long the other's name is, 'h' how long this one's.
	apart := root(name+"\x14"+id, "another", "large")
	warm, cold := write(apart, write(whole, archive.Stored{}).stored()), write(apart, archive.Stored{})
	if !bytes.Equal(warm.body, cold.body) {
		t.Errorf("after the one folder the other's archive lists %q", list(t, warm.body))
	}
}

func TestLimitsCountWhatIsTakenOver(t *testing.T) {
	t.Parallel()
	garden := orchard(rand.New(rand.NewPCG(5, 6)))
	first := garden.write(t, nil, archive.Stored{})
	var size int64
	for _, text := range garden.files {
		size += int64(len(text))
	}
	files := len(garden.files) + 1 + 3 + 60 // and folders
	for reason, tc := range map[string]struct {
		limits archive.Limits
		want   error
	}{
		"All fit":           {archive.Limits{MaxFiles: files, MaxBytes: size}, nil},
		"One file too many": {archive.Limits{MaxFiles: files - 1}, archive.ErrLimit},
		"One byte too many": {archive.Limits{MaxBytes: size - 1}, archive.ErrLimit},
		"Too deep":          {archive.Limits{MaxDepth: 3}, archive.ErrLimit},
		"Too long":          {archive.Limits{MaxPath: 20}, archive.ErrLimit},
	} {
		_, err := archive.WriteFrom(t.Context(), io.Discard, garden.tree(), nil, tc.limits, first.stored())
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: want %v, got %v", reason, tc.want, err)
		}
	}
}

// TestEverybodyReadsParts: what is put together from parts is one member to all programs.
func TestEverybodyReadsParts(t *testing.T) {
	t.Parallel()
	garden := orchard(rand.New(rand.NewPCG(8, 9)))
	packed := garden.write(t, nil, archive.Stored{}).body
	want := expand(t, packed)
	python := "import sys, zlib; d = zlib.decompressobj(31); sys.stdout.buffer.write(d.decompress(sys.stdin.buffer.read())); assert d.eof and not d.unused_data"
	for _, command := range [][]string{{"gzip", "-dc"}, {"python3", "-c", python}, {"busybox", "gzip", "-dc"}, {"pigz", "-dc"}} {
		program, err := exec.LookPath(command[0])
		if err != nil {
			t.Logf("there is no %s", command[0])
			continue
		}
		reading := exec.CommandContext(t.Context(), program, command[1:]...)
		reading.Stdin = bytes.NewReader(packed)
		if got, err := reading.Output(); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%q read %d bytes instead of %d: %v", command, len(got), len(want), err)
		}
	}
	if names := list(t, packed); len(names) != len(garden.files)+65 {
		t.Errorf("tar lists %d entries", len(names))
	}
}

func FuzzIndex(f *testing.F) {
	garden := &plot{files: map[string]string{"a/b": "text", "c": strings.Repeat("line\n", 1<<18)}}
	good := garden.write(f, nil, archive.Stored{})
	f.Add(good.index[4:], good.body)
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, index, body []byte) {
		var out bytes.Buffer
		_, err := archive.WriteFrom(t.Context(), &out, garden.tree(), nil, archive.Limits{}, written{body, archive.Sealed(index)}.stored())
		if err != nil && !errors.Is(err, archive.ErrStored) && !errors.Is(err, archive.ErrLimit) {
			t.Fatal(err)
		}
	})
}
