package source_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/storage"
)

// grove is a source of many files with IDs, of which one changes with each version.
type grove struct {
	session
	parts  source.Parts
	opened *int
}

func (g grove) Fetch(context.Context, source.Selection, string) (source.Content, error) {
	root := &tree.Node{Name: tree.Root, Mode: fs.ModeDir | 0o755}
	for i := range 100 {
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 10_000)
		if i == 50 {
			text += strings.Repeat("changed ", 1<<g.shelf.version)
		}
		root.Children = append(root.Children, &tree.Node{
			Name: fmt.Sprintf("file-%02d", i), Mode: 0o644, Size: int64(len(text)), ID: digest.FromString(text).String(), Source: leaf{text, g.opened},
		})
	}
	return source.Content{Tree: &tree.Tree{Root: root}, Parts: g.parts}, nil
}

type leaf struct {
	text   string
	opened *int
}

func (l leaf) Open(*tree.Node) (io.ReadCloser, error) {
	*l.opened++
	return io.NopCloser(strings.NewReader(l.text)), nil
}

// keptParts keeps all indexes.
type keptParts map[digest.Digest][]byte

func (k keptParts) Load(archive digest.Digest) []byte { return k[archive] }

func (k keptParts) Save(archive digest.Digest, index []byte) { k[archive] = index }

// lostParts keeps none.
type lostParts struct{}

func (lostParts) Load(digest.Digest) []byte { return nil }

func (lostParts) Save(digest.Digest, []byte) {}

// wrongParts gives the index of the first archive, whichever is asked for.
type wrongParts struct{ first []byte }

func (w *wrongParts) Load(digest.Digest) []byte { return w.first }

func (w *wrongParts) Save(_ digest.Digest, index []byte) {
	if w.first == nil {
		w.first = index
	}
}

func TestAnArtifactTakesOverWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	other := &wrongParts{}
	for name, tc := range map[string]struct {
		reason      string
		parts       source.Parts
		least, most int
	}{
		"Known":     {"Only the part with the changed file is made again.", keptParts{}, 1, 10},
		"Forgotten": {"There was no room for the index.", lostParts{}, 100, 100},
		"Unknown":   {"Nobody remembers anything.", nil, 100, 100},
		"Wrong":     {"What the index says is not so: all is read again.", other, 101, 110},
	} {
		pipeline, opened, trunk := newPipeline(t), 0, &shelf{}
		subject := source.Subject{Object: storage.Object{Kind: "grove", Namespace: "n", Name: "a"}, UID: "u", Timeout: time.Minute}
		run := func(parts source.Parts) []byte {
			trunk.Advance()
			opened = 0
			outcome, err := pipeline.Run(t.Context(), subject, func(context.Context) (source.Session, error) {
				return grove{session{trunk}, parts, &opened}, nil
			}, func(context.Context, source.Change) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			body, err := pipeline.Store.Open(t.Context(), outcome.Record.Current.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = body.Close() }()
			content, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
		run(tc.parts)
		if tc.parts == other {
			run(nil)
		}
		got := run(tc.parts)
		if opened < tc.least || opened > tc.most {
			t.Errorf("%s: %d files were read, want %d to %d. %s", name, opened, tc.least, tc.most, tc.reason)
		}
		trunk.version--
		if want := run(nil); !bytes.Equal(want, got) {
			t.Errorf("%s: another archive than without parts", name)
		}
	}
}
