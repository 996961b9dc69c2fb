package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
)

// digestOf, in the environment, makes this test binary print the digest of the folder that it names.
const digestOf = "ARCHIVE_DIGEST_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(digestOf); dir != "" {
		packed, err := pack(context.Background(), os.DirFS(dir), nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%x\n", sha256.Sum256(packed))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func pack(ctx context.Context, tree fs.FS, spec *string) ([]byte, error) {
	rules, err := archive.ReadRules(ctx, tree, spec, archive.Limits{})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = archive.Write(ctx, &out, tree, rules, archive.Limits{})
	return out.Bytes(), err
}

func mustPack(tb testing.TB, tree fs.FS, spec *string) []byte {
	tb.Helper()
	packed, err := pack(tb.Context(), tree, spec)
	check(tb, err)
	return packed
}

func sample() fstest.MapFS {
	return fstest.MapFS{
		"README.md":                {Data: []byte("# sample\n")},
		"deploy/app.yaml":          {Data: []byte("kind: Deployment\n"), Mode: 0o644, ModTime: time.Unix(1, 0)},
		"deploy/logo.png":          {Data: []byte("not text")},
		"deploy/run.sh":            {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		"deploy.d/z":               {Data: []byte("sorts after deploy/ in a walk, before it as a string")},
		"empty":                    {Mode: fs.ModeDir | 0o777},
		"link":                     {Data: []byte("README.md"), Mode: fs.ModeSymlink},
		"pipe":                     {Mode: fs.ModeNamedPipe},
		".github/workflows/ci.yml": {Data: []byte("on: push\n")},
		".gitignore":               {Data: []byte("bin\n")},
	}
}

func TestWriteGolden(t *testing.T) {
	t.Parallel()
	keepDeploy := "/*\n!/deploy\n"
	cases := map[string]struct {
		reason string
		tree   fs.FS
		spec   *string
		want   string
	}{
		"Empty": {
			reason: "A tree without entries still has its root.",
			tree:   fstest.MapFS{},
			want:   goldenEmpty,
		},
		"Default": {
			reason: "Without any rule the default exclusions apply.",
			tree:   sample(),
			want:   goldenDefault,
		},
		"Rules": {
			reason: "With a rule only version control is left out beside what it says.",
			tree:   sample(),
			spec:   &keepDeploy,
			want:   goldenRules,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fmt.Sprintf("%x", sha256.Sum256(mustPack(t, tc.tree, tc.spec)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nThe bytes changed, so FormatVersion has to: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// These name what an expanded archive holds, which TestWriteEqualsReference compares, and how that is compressed.
const (
	goldenEmpty   = "bc58909c941c8291a171fa06862c5ca54d40fda6487f1b3d4f0eaa09edb7c79f"
	goldenDefault = "18889dd77df0b7b55bc68208fd9aa55f9bd117ef23319296e4eb500dc93bc828"
	goldenRules   = "bf3c3ad16ced34d751f110a7e838322fecb6019d7df987a705aa2977ee41ada6"
)

func TestWriteEqualsReference(t *testing.T) {
	t.Parallel()
	const rounds = 200
	sizes := map[bool]int{}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		growTree(t, random, dir, 4)
		var spec *string
		if random.IntN(3) > 0 {
			text := someRules(random)
			spec = &text
		}
		want, got := reference(t, dir, spec), mustPack(t, os.DirFS(dir), spec)
		sizes[len(got) > 150]++
		if !bytes.Equal(expand(t, want), expand(t, got)) {
			t.Fatalf("seed %d, rules %q: -want, +got:\n%s", seed, text(spec), cmp.Diff(list(t, want), list(t, got)))
		}
		check(t, os.RemoveAll(dir))
	}
	if sizes[true] < rounds/3 {
		t.Errorf("most archives were next to empty: %v", sizes)
	}
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// list names the entries as the tar program sees them.
func list(tb testing.TB, packed []byte) []string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), "tar", "-t", "-z", "--quoting-style=literal")
	command.Stdin = bytes.NewReader(packed)
	out, err := command.Output()
	check(tb, err)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func TestWriteListsInTar(t *testing.T) {
	t.Parallel()
	want := []string{".", "README.md", "deploy", "deploy/app.yaml", "deploy/run.sh", "deploy.d", "deploy.d/z", "empty"}
	got := list(t, mustPack(t, sample(), nil))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestWriteIgnoresSurroundings(t *testing.T) {
	t.Parallel()
	digests := map[string][]string{}
	for umask, zone := range map[string]string{"000": "UTC", "027": "Pacific/Kiritimati", "077": "America/New_York"} {
		dir := t.TempDir()
		script := `umask "$1" && mkdir -p sub/deeper && echo one >sub/file && echo two >sub/deeper/é && touch -d "$2" sub`
		growing := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", umask, "@"+umask)
		growing.Dir = dir
		if out, err := growing.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		digest := exec.CommandContext(t.Context(), "sh", "-c", `umask "$1" && exec "$2"`, "sh", umask, os.Args[0])
		digest.Env = append(os.Environ(), digestOf+"="+dir, "TZ="+zone, "LC_ALL=tr_TR.UTF-8")
		out, err := digest.Output()
		check(t, err)
		digests[string(out)] = append(digests[string(out)], umask)
	}
	if len(digests) != 1 {
		t.Errorf("digests by umask: %v", digests)
	}
}

// shuffled lists folders in any order but the right one.
type shuffled struct{ fs.FS }

func (s shuffled) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, err
}

func TestWriteSorts(t *testing.T) {
	t.Parallel()
	want := mustPack(t, sample(), nil)
	for range 20 {
		if !bytes.Equal(want, mustPack(t, shuffled{sample()}, nil)) {
			t.Fatal("the order of a listing changed the archive")
		}
	}
}

func TestWriteLeavesListingsAlone(t *testing.T) {
	t.Parallel()
	shared := forged{entry("b"), entry("c"), entry("a")}
	// The files of this tree cannot be opened, and the first in order is asked for first.
	err := archive.Write(t.Context(), io.Discard, shared, nil, archive.Limits{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("want %v about \"a\", got %v", fs.ErrNotExist, err)
	}
	if diff := cmp.Diff(forged{entry("b"), entry("c"), entry("a")}, shared); diff != "" {
		t.Errorf("the tree's own slice was sorted: -want, +got:\n%s", diff)
	}
}

func TestWriteConcurrently(t *testing.T) {
	t.Parallel()
	tree, spec := sample(), "deploy/\n!deploy/app.yaml\n"
	rules, err := archive.ReadRules(t.Context(), tree, &spec, archive.Limits{})
	check(t, err)
	want := mustPack(t, tree, &spec)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			var out bytes.Buffer
			if err := archive.Write(t.Context(), &out, tree, rules, archive.Limits{}); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(want, out.Bytes()) {
				t.Error("archives of one tree differ")
			}
		})
	}
	workers.Wait()
}

func TestWriteSkipsWhatStaysOut(t *testing.T) {
	t.Parallel()
	garden := plot{files: map[string]string{"in/a/f": "", "out/a/f": "", "out/b/f": "", "gone/a/f": ""}}
	tree, spec := garden.tree(), "/out\n!/out/a\n/gone\n"
	rules, err := archive.ReadRules(t.Context(), tree, &spec, archive.Limits{})
	check(t, err)
	clear(garden.listed)
	var out bytes.Buffer
	check(t, archive.Write(t.Context(), &out, tree, rules, archive.Limits{}))
	want := map[string]bool{".": true, "in": true, "in/a": true, "out": true, "out/a": true}
	if diff := cmp.Diff(want, garden.listed); diff != "" {
		t.Errorf("listed folders: -want, +got:\n%s", diff)
	}
	entries := []string{".", "in", "in/a", "in/a/f", "out/a", "out/a/f"}
	if diff := cmp.Diff(entries, list(t, out.Bytes())); diff != "" {
		t.Errorf("entries: -want, +got:\n%s", diff)
	}
}

// materialise puts a tree of files, folders and links on disk.
func materialise(tb testing.TB, tree fstest.MapFS) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, file := range tree {
		full := filepath.Join(dir, name)
		check(tb, os.MkdirAll(filepath.Dir(full), 0o700))
		switch {
		case file.Mode.IsDir():
			check(tb, os.MkdirAll(full, 0o700))
		case file.Mode&fs.ModeSymlink != 0:
			check(tb, os.Symlink(string(file.Data), full))
		case file.Mode.IsRegular():
			check(tb, os.WriteFile(full, file.Data, file.Mode|0o600))
		}
	}
	return dir
}
