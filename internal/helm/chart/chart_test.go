package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"sluice.dev/sluice/internal/helm/chart"
)

// files makes a tree of files by their paths.
func files(texts map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range texts {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return tree
}

// with is the map with others added to it, or put in the place of its own.
func with(texts map[string]string, others map[string]string) map[string]string {
	all := maps.Clone(texts)
	maps.Copy(all, others)
	return all
}

// app is a chart in a folder.
func app() map[string]string {
	return map[string]string{
		"charts/app/Chart.yaml":               "apiVersion: v2\nname: app\nversion: 1.2.3+old\n# a comment\n",
		"charts/app/values.yaml":              "a: 1 # one\nlist: [1, 2]\nmap: {x: 1, w: 2}\n",
		"charts/app/values-prod.yaml":         "map: {x: 3}\nlist: [9]\n",
		"charts/app/templates/one.yaml":       "kind: ConfigMap\napiVersion: v1\nmetadata: {name: one}\n",
		"charts/app/templates/.hidden":        "never",
		"charts/app/.helmignore":              "*.bak\n",
		"charts/app/notes.bak":                "never",
		"charts/app/README.md":                "\ufeffread me",
		"elsewhere/values.yaml":               "a: 2\nmap: {z: 3}\n",
		"charts/app/templates/_helpers.tpl":   "{{/* nothing */}}",
		"charts/app/values.schema.json":       "{}",
		"charts/app/crds/crd.yaml":            "kind: CustomResourceDefinition\n",
		"charts/other/templates/unrelated.md": "not read",
	}
}

// pack makes a package of entries in their order.
func pack(tb testing.TB, entries ...*tar.Header) []byte {
	tb.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, given := range entries {
		entry := *given
		text := entry.Linkname
		if entry.Typeflag == 0 {
			entry.Typeflag, entry.Linkname = tar.TypeReg, ""
			entry.Size = int64(len(text))
		}
		entry.Mode = 0o644
		if err := archive.WriteHeader(&entry); err != nil {
			tb.Fatal(err)
		}
		if entry.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(archive, text); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// file is an entry of a package.
func file(name, text string) *tar.Header { return &tar.Header{Name: name, Linkname: text} }

const chartYAML = "apiVersion: v2\nname: app\nversion: 1.2.3\n"

// write writes what was built.
func write(tb testing.TB, built *chart.Built) []byte {
	tb.Helper()
	var packed bytes.Buffer
	if err := built.Write(tb.Context(), &packed); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// contents are the files of a package by their names.
func contents(tb testing.TB, packed []byte) map[string]string {
	tb.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			tb.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			tb.Fatal(err)
		}
		if _, twice := found[header.Name]; twice || header.ModTime.Unix() != 0 || header.Mode != 0o644 {
			tb.Errorf("entry %s: mode %o, of %s, twice: %t", header.Name, header.Mode, header.ModTime, twice)
		}
		found[header.Name] = string(text)
	}
}

func TestAFolderIsPackaged(t *testing.T) {
	t.Parallel()
	tree := files(app())
	built, err := chart.Build(t.Context(), chart.Folder{Files: tree, Path: "./charts/app"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (chart.Identity{Name: "app", Version: "1.2.3+old"}); built.Identity != want {
		t.Errorf("it is %v, want %v", built.Identity, want)
	}
	packed := write(t, built)
	want := map[string]string{
		"app/Chart.yaml":             "apiVersion: v2\nname: app\nversion: 1.2.3+old\n",
		"app/values.yaml":            app()["charts/app/values.yaml"],
		"app/values-prod.yaml":       app()["charts/app/values-prod.yaml"],
		"app/values.schema.json":     "{}",
		"app/templates/one.yaml":     app()["charts/app/templates/one.yaml"],
		"app/templates/_helpers.tpl": "{{/* nothing */}}",
		"app/crds/crd.yaml":          "kind: CustomResourceDefinition\n",
		"app/README.md":              "read me",
		"app/.helmignore":            "*.bak\n",
	}
	if diff := cmp.Diff(want, contents(t, packed)); diff != "" {
		t.Error(diff)
	}
	if _, err := loader.LoadArchive(bytes.NewReader(packed)); err != nil {
		t.Errorf("Helm does not load it: %v", err)
	}
	if identity, err := chart.Inspect(t.Context(), bytes.NewReader(packed), chart.Limits{}); err != nil || identity != built.Identity {
		t.Errorf("it is inspected as %v: %v", identity, err)
	}
}

// TestAPackageIsHelms: the bytes are those that Helm writes for the same chart.
func TestAPackageIsHelms(t *testing.T) {
	t.Parallel()
	sub := map[string]string{
		"charts/app/charts/sub/Chart.yaml":        "apiVersion: v1\nname: sub\nversion: 1.0.0\n",
		"charts/app/charts/sub/values.yaml":       "a: 1\n",
		"charts/app/charts/sub/requirements.yaml": "dependencies: []\n",
	}
	for name, texts := range map[string]map[string]string{
		"Plain":    app(),
		"SubChart": with(app(), sub),
		"Locked": with(app(), with(sub, map[string]string{
			"charts/app/Chart.yaml": chartYAML + "dependencies:\n- {name: sub, version: 1.0.0}\n",
			"charts/app/Chart.lock": "dependencies:\n- {name: sub, version: 1.0.0, repository: ''}\ndigest: sha256:0\ngenerated: '2026-01-02T03:04:05.5Z'\n",
		})),
		"V1": with(app(), map[string]string{"charts/app/Chart.yaml": "apiVersion: v1\nname: app\nversion: 1.2.3\nkeywords: [one, '2']\nannotations: {a: \"b: c\"}\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := chart.Build(t.Context(), chart.Folder{Files: files(texts), Path: "charts/app"})
			if err != nil {
				t.Fatal(err)
			}
			packed := write(t, built)
			loaded, err := loader.LoadArchive(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(err)
			}
			saved, err := util.Save(loaded, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, packed) {
				t.Errorf("Helm writes %d bytes, we %d, and not the same", len(want), len(packed))
			}
		})
	}
}

func TestValuesFilesAreMerged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files         []string
		ignoreMissing bool
		want          string
		used          []string
		err           string
	}{
		"the last one wins, maps are merged, lists replaced": {
			files: []string{"charts/app/values.yaml", "elsewhere/values.yaml", "./charts/app/values-prod.yaml"},
			want:  "a: 2\nlist:\n- 9\nmap:\n  w: 2\n  x: 3\n  z: 3\n", used: []string{"charts/app/values.yaml", "elsewhere/values.yaml", "./charts/app/values-prod.yaml"},
		},
		"the chart's own do not count where they are not listed": {
			files: []string{"charts/app/values-prod.yaml"}, want: "list:\n- 9\nmap:\n  x: 3\n", used: []string{"charts/app/values-prod.yaml"},
		},
		"paths cannot climb out": {files: []string{"../../../elsewhere/values.yaml"}, want: "a: 2\nmap:\n  z: 3\n", used: []string{"../../../elsewhere/values.yaml"}},
		"one that is missing":    {files: []string{"no.yaml"}, err: "values files merge error: no values file found at path 'no.yaml'"},
		"ignored":                {files: []string{"no.yaml", "elsewhere/values.yaml"}, ignoreMissing: true, want: "a: 2\nmap:\n  z: 3\n", used: []string{"elsewhere/values.yaml"}},
		"all of them":            {files: []string{"no.yaml"}, ignoreMissing: true, want: "{}\n"},
		"no YAML":                {files: []string{"charts/app/README.md"}, err: "values files merge error: unmarshaling values from 'charts/app/README.md' failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := chart.Build(t.Context(), chart.Folder{Files: files(app()), Path: "charts/app", ValuesFiles: tc.files, IgnoreMissing: tc.ignoreMissing})
			if tc.err != "" {
				if !errors.Is(err, chart.ErrValues) || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("want %q, got %v", tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, write(t, built))["app/values.yaml"]; got != tc.want || !slices.Equal(built.Values, tc.used) {
				t.Errorf("values %q of %q, want %q of %q", got, built.Values, tc.want, tc.used)
			}
		})
	}
}

func TestAPackageIsRemade(t *testing.T) {
	t.Parallel()
	packed := pack(t, file("app/Chart.yaml", chartYAML), file("app/values.yaml", "a: 1 # one\n"), file("app/ci/prod.yaml", "b: 2\n"))
	for name, tc := range map[string]struct {
		values   []string
		metadata string
		want     chart.Identity
		text     string
		isAsIs   bool
		err      error
	}{
		"as it is":                    {want: chart.Identity{Name: "app", Version: "1.2.3"}, isAsIs: true},
		"its own values alone":        {values: []string{"values.yaml"}, want: chart.Identity{Name: "app", Version: "1.2.3"}, isAsIs: true},
		"its own values and others":   {values: []string{"values.yaml", "ci/prod.yaml"}, metadata: "4", want: chart.Identity{Name: "app", Version: "1.2.3+4"}, text: "a: 1\nb: 2\n"},
		"others alone":                {values: []string{"ci/prod.yaml"}, metadata: "abc.4", want: chart.Identity{Name: "app", Version: "1.2.3+abc.4"}, text: "b: 2\n"},
		"values that are not there":   {values: []string{"no.yaml"}, err: chart.ErrValues},
		"metadata that is none":       {metadata: "no_good", err: chart.ErrMetadata},
		"the version with metadata":   {metadata: "5", want: chart.Identity{Name: "app", Version: "1.2.3+5"}, text: "a: 1 # one\n"},
		"values outside of the chart": {values: []string{"../app/values.yaml"}, err: chart.ErrValues},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := chart.Rebuild(t.Context(), chart.Package{Content: bytes.NewReader(packed), ValuesFiles: tc.values, Metadata: tc.metadata})
			if !errors.Is(err, tc.err) {
				t.Fatalf("want %v, got %v", tc.err, err)
			}
			if tc.err != nil {
				return
			}
			if built.Identity != tc.want || built.IsAsItWas != tc.isAsIs {
				t.Errorf("it is %v, as it was: %t; want %v, %t", built.Identity, built.IsAsItWas, tc.want, tc.isAsIs)
			}
			got := write(t, built)
			if tc.isAsIs != bytes.Equal(got, packed) {
				t.Errorf("its bytes stayed: %t", !tc.isAsIs)
			}
			if !tc.isAsIs {
				if text := contents(t, got)["app/values.yaml"]; text != tc.text {
					t.Errorf("its values are %q, want %q", text, tc.text)
				}
			}
		})
	}
}

func TestEqualChartsHaveEqualPackages(t *testing.T) {
	t.Parallel()
	texts := app()
	for i := range 20 {
		sub := fmt.Sprintf("charts/app/charts/sub%02d/", i)
		texts[sub+"Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: sub%02d\nversion: 1.0.0\n", i)
	}
	texts["charts/app/Chart.lock"] = "dependencies: []\n"
	if packed := sameEachTime(t, texts); len(contents(t, packed)) < 29 {
		t.Error("sub-charts are missing")
	}
	// Of one name and version, as where a package lies beside its folder.
	for _, folder := range []string{"one", "two", "three"} {
		texts["charts/app/charts/"+folder+"/Chart.yaml"] = "apiVersion: v2\nname: twin\nversion: 1.0.0\n"
		texts["charts/app/charts/"+folder+"/values.yaml"] = "of: " + folder + "\n"
	}
	sameEachTime(t, texts)
}

// sameEachTime packages a chart several times: Helm reads sub-charts in the order of a map.
func sameEachTime(t *testing.T, texts map[string]string) []byte {
	t.Helper()
	var first []byte
	for range 10 {
		built, err := chart.Build(t.Context(), chart.Folder{Files: files(texts), Path: "charts/app"})
		if err != nil {
			t.Fatal(err)
		}
		packed := write(t, built)
		if first == nil {
			first = packed
		}
		if !bytes.Equal(first, packed) {
			t.Fatal("two packages of one chart differ")
		}
	}
	return first
}

// elsewhere brings packages by the names of dependencies.
type elsewhere struct {
	packages map[string][]byte
	asked    atomic.Int32
}

func (e *elsewhere) Dependency(_ context.Context, wanted chart.Dependency) (io.ReadCloser, error) {
	e.asked.Add(1)
	packed, ok := e.packages[wanted.Repository+" "+wanted.Name+" "+wanted.Version]
	if !ok {
		return nil, fmt.Errorf("failed to get chart '%s' version '%s' from '%s'", wanted.Name, wanted.Version, wanted.Repository)
	}
	return io.NopCloser(bytes.NewReader(packed)), nil
}

func TestDependenciesAreAdded(t *testing.T) {
	t.Parallel()
	redis := func(version string) []byte {
		return pack(t, file("redis/Chart.yaml", "apiVersion: v2\nname: redis\nversion: "+version+"\n"))
	}
	library := map[string]string{
		"charts/lib/Chart.yaml":  "apiVersion: v2\nname: lib\nversion: 2.0.0\ndependencies:\n- {name: base, version: '*', repository: 'file://../base'}\n",
		"charts/base/Chart.yaml": "apiVersion: v2\nname: base\nversion: 3.0.0\n",
	}
	for name, tc := range map[string]struct {
		dependencies string
		others       map[string]string
		want         []string
		asked        int32
		resolved     int
		stale        bool
		err          string
	}{
		"files, and what these need": {
			dependencies: "- {name: lib, version: '>=2', repository: 'file://../lib'}\n", others: library, resolved: 2,
			want: []string{"app/charts/lib/Chart.yaml", "app/charts/lib/charts/base/Chart.yaml"},
		},
		"from the root": {
			dependencies: "- {name: base, version: '3.0.0', repository: 'file:///charts/base'}\n", others: library, resolved: 1,
			want: []string{"app/charts/base/Chart.yaml"},
		},
		"another version": {
			dependencies: "- {name: base, version: '4.x', repository: 'file://../base'}\n", others: library,
			err: "dependency build error: failed to add local dependency 'base': can't get a valid version for constraint '4.x'",
		},
		"outside": {
			dependencies: "- {name: base, version: '*', repository: 'file://../../../outside'}\n",
			err:          "dependency build error: failed to add local dependency 'base': no chart found at '/outside' (reference 'file://../../../outside')",
		},
		"itself": {
			dependencies: "- {name: app, version: '*', repository: 'file://../app'}\n",
			err:          "dependency build error: failed to add local dependency 'app': chart 'charts/app' needs itself: charts/app → charts/app",
		},
		"of others, each under its alias": {
			dependencies: "- {name: redis, version: 1.0.0, repository: 'https://a.example', alias: cache}\n" +
				"- {name: redis, version: 2.0.0, repository: 'oci://b.example/charts', alias: queue}\n",
			asked: 2, resolved: 2, want: []string{"app/charts/cache/Chart.yaml", "app/charts/queue/Chart.yaml"},
		},
		"what the lock says, with the aliases of the chart": {
			dependencies: "- {name: redis, version: '>=0', repository: 'https://a.example', alias: cache}\n",
			others:       map[string]string{"charts/app/Chart.lock": "dependencies:\n- {name: redis, version: 1.0.0, repository: 'https://a.example'}\ndigest: sha256:0\n"},
			asked:        1, resolved: 1, stale: true, want: []string{"app/charts/cache/Chart.yaml", "app/Chart.lock"},
		},
		"what is there is not asked for": {
			dependencies: "- {name: redis, version: 1.x, repository: 'https://a.example'}\n",
			others:       map[string]string{"charts/app/charts/redis/Chart.yaml": "apiVersion: v2\nname: redis\nversion: 1.7.0\n"},
			want:         []string{"app/charts/redis/Chart.yaml"},
		},
		"what is there as a package": {
			dependencies: "- {name: redis, version: 1.x, repository: 'https://a.example'}\n",
			others:       map[string]string{"charts/app/charts/redis-1.0.0.tgz": string(redis("1.0.0"))},
			want:         []string{"app/charts/redis/Chart.yaml"},
		},
		"another version than what is there": {
			dependencies: "- {name: redis, version: 1.0.0, repository: 'https://a.example', alias: cache}\n",
			others:       map[string]string{"charts/app/charts/redis/Chart.yaml": "apiVersion: v2\nname: redis\nversion: 0.9.0\n"},
			asked:        1, resolved: 1, want: []string{"app/charts/redis/Chart.yaml", "app/charts/cache/Chart.yaml"},
		},
		"one that is not to be had": {
			dependencies: "- {name: redis, version: 9.0.0, repository: 'https://a.example'}\n", asked: 1,
			err: "dependency build error: failed to add remote dependency 'redis': failed to get chart 'redis' version '9.0.0' from 'https://a.example'",
		},
		"another chart than was asked for": {
			dependencies: "- {name: blue, version: 1.0.0, repository: 'https://a.example'}\n", asked: 1,
			err: "dependency build error: failed to add remote dependency 'blue': the package is chart 'redis' version '1.0.0'",
		},
		"another version than was asked for": {
			dependencies: "- {name: redis, version: 3.x, repository: 'https://a.example'}\n", asked: 1,
			err: "dependency build error: failed to add remote dependency 'redis': the package is chart 'redis' version '2.0.0'",
		},
		"a repository by an alias": {
			dependencies: "- {name: redis, version: 1.0.0, repository: '@stable'}\n", err: "dependency build error: aliased repository dependency is not supported: @stable",
		},
		"another scheme": {
			dependencies: "- {name: redis, version: 1.0.0, repository: 'ftp://a.example'}\n", err: "dependency build error: dependency 'redis': repository URL is not one of http, https, oci or file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := with(app(), tc.others)
			texts["charts/app/Chart.yaml"] = chartYAML + "dependencies:\n" + tc.dependencies
			far := &elsewhere{packages: map[string][]byte{
				"https://a.example redis 1.0.0": redis("1.0.0"), "oci://b.example/charts redis 2.0.0": redis("2.0.0"),
				"https://a.example blue 1.0.0": redis("1.0.0"), "https://a.example redis 3.x": redis("2.0.0"),
			}}
			built, err := chart.Build(t.Context(), chart.Folder{Files: files(part(t, texts, "charts/app")), Path: "charts/app", Dependencies: far})
			if far.asked.Load() != tc.asked {
				t.Errorf("asked %d times, want %d", far.asked.Load(), tc.asked)
			}
			if tc.err != "" {
				if !errors.Is(err, chart.ErrDependency) || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("want %q, got %v", tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if built.Resolved != tc.resolved || built.StaleLock != tc.stale {
				t.Errorf("%d resolved, the lock is stale: %t; want %d, %t", built.Resolved, built.StaleLock, tc.resolved, tc.stale)
			}
			packed := write(t, built)
			found := contents(t, packed)
			for _, name := range tc.want {
				if _, ok := found[name]; !ok {
					t.Errorf("%s is not in the package: %q", name, slices.Sorted(maps.Keys(found)))
				}
			}
			if _, err := loader.LoadArchive(bytes.NewReader(packed)); err != nil {
				t.Errorf("Helm does not load it: %v", err)
			}
		})
	}
}
