package index_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/revision"
)

// library is what Helm's own library makes of an index, in the steps that it takes: the document is read as a whole.
func library(text []byte) (string, error) {
	if len(text) == 0 {
		return "", index.ErrEmpty
	}
	made := index.NewFile()
	unmarshal := func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) }
	if json.Valid(text) {
		unmarshal = json.Unmarshal
	}
	if err := unmarshal(text, made); err != nil {
		return "", err
	}
	for name, versions := range made.Entries {
		kept := []*index.Version{}
		for _, v := range versions {
			if v == nil {
				continue
			}
			if v.Metadata == nil {
				v.Metadata = &chart.Metadata{}
			}
			if v.APIVersion == "" {
				v.APIVersion = "v1"
			}
			if err := v.Validate(); err == nil || strings.HasPrefix(err.Error(), "validation: more than one dependency with name or alias") {
				kept = append(kept, v)
			}
		}
		slices.SortStableFunc(kept, func(a, b *index.Version) int {
			x, _ := revision.ParseLoose(a.Version)
			y, _ := revision.ParseLoose(b.Version)
			return y.Compare(x)
		})
		made.Entries[name] = kept
	}
	if made.APIVersion == "" {
		return "", errors.New("no API version specified")
	}
	if made.Entries == nil {
		made.Entries = map[string][]*index.Version{}
	}
	stored, err := json.MarshalIndent(made, "", "  ")
	return string(stored), err
}

// converted is an index as it is stored.
type converted struct{ artifact, table []byte }

func (c converted) previous() *index.Previous {
	return &index.Previous{Artifact: bytes.NewReader(c.artifact), Table: bytes.NewReader(c.table)}
}

func convert(tb testing.TB, text []byte, previous *index.Previous) (converted, error) {
	tb.Helper()
	scratch, err := os.Create(filepath.Join(tb.TempDir(), "scratch"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = scratch.Close() }()
	var stored bytes.Buffer
	table, err := index.Convert(context.Background(), io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))), previous, scratch, &stored)
	return converted{stored.Bytes(), table}, err
}

// check compares a conversion with what the library says, without and with a previous index.
func check(tb testing.TB, text []byte, previous ...converted) {
	tb.Helper()
	want, wrong := library(text)
	froms := []*index.Previous{nil}
	for _, p := range previous {
		froms = append(froms, p.previous())
	}
	var first converted
	for i, from := range froms {
		got, err := convert(tb, text, from)
		if (err != nil) != (wrong != nil) {
			tb.Fatalf("from %d: want error %v, got %v", i, wrong, err)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(want, string(got.artifact)); diff != "" {
			tb.Fatalf("from %d: -library +ours:\n%s", i, diff)
		}
		if i == 0 {
			first = got
		} else if !bytes.Equal(first.table, got.table) {
			tb.Fatalf("from %d: the table depends on what was there before", i)
		}
		checkLookup(tb, want, got)
	}
	if wrong == nil {
		again, err := convert(tb, text, first.previous())
		if err != nil || !bytes.Equal(again.artifact, first.artifact) || !bytes.Equal(again.table, first.table) {
			tb.Fatalf("converted again it is another: %v", err)
		}
	}
}

// checkLookup reads each chart by the table.
func checkLookup(tb testing.TB, stored string, got converted) {
	tb.Helper()
	all := index.NewFile()
	if err := json.Unmarshal([]byte(stored), all); err != nil {
		tb.Fatal(err)
	}
	for name, want := range all.Entries {
		versions, err := index.Lookup(context.Background(), bytes.NewReader(got.artifact), bytes.NewReader(got.table), name)
		if err != nil {
			tb.Fatalf("%q: %v", name, err)
		}
		if len(versions) != len(want) {
			tb.Fatalf("%q: want %d versions, got %d", name, len(want), len(versions))
		}
		for i := range versions {
			if diff := cmp.Diff(*want[i], versions[i]); diff != "" {
				tb.Fatalf("%q: %s", name, diff)
			}
		}
	}
	if _, err := index.Lookup(context.Background(), bytes.NewReader(got.artifact), bytes.NewReader(got.table), "no such chart"); !errors.Is(err, index.ErrNoChart) {
		tb.Fatalf("want no chart, got %v", err)
	}
}

// TestConvertIsTheLibrary: whatever the text, the library decides what counts and what it says.
func TestConvertIsTheLibrary(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/documents/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	var all [][]byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	for i, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			var before []converted
			for _, text := range all {
				if c, err := convert(t, text, nil); err == nil {
					before = append(before, c)
				}
			}
			check(t, all[i], before...)
		})
	}
}

func FuzzConvert(f *testing.F) {
	files, err := filepath.Glob("testdata/documents/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			t.Skip()
		}
		check(t, text)
	})
}
