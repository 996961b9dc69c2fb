package chart_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/helm/chart"
)

// deep is a package of a chart in a chart, so many times.
func deep(tb testing.TB, levels int) []byte {
	tb.Helper()
	packed := pack(tb, file("app/Chart.yaml", chartYAML))
	for range levels {
		packed = pack(tb, file("app/Chart.yaml", chartYAML), file("app/charts/app-1.2.3.tgz", string(packed)))
	}
	return packed
}

// hostile are packages that must not be taken.
func hostile(tb testing.TB) map[string][]byte {
	tb.Helper()
	chartFile := file("app/Chart.yaml", chartYAML)
	return map[string][]byte{
		"no package":              []byte("<html>"),
		"nothing in it":           pack(tb),
		"no Chart.yaml":           pack(tb, file("app/values.yaml", "")),
		"a broken Chart.yaml":     pack(tb, file("app/Chart.yaml", ": :")),
		"no name":                 pack(tb, file("app/Chart.yaml", "apiVersion: v2\nversion: 1.0.0\n")),
		"a name that climbs":      pack(tb, file("app/Chart.yaml", "apiVersion: v2\nname: ../app\nversion: 1.0.0\n")),
		"no version":              pack(tb, file("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: one\n")),
		"two Chart.yaml":          pack(tb, chartFile, file("app/Chart.yaml", chartYAML)),
		"a Chart.yaml at the top": pack(tb, file("Chart.yaml", chartYAML)),
		"a symbolic link":         pack(tb, chartFile, &tar.Header{Name: "app/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
		"a hard link":             pack(tb, chartFile, &tar.Header{Name: "app/link", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}),
		"a device":                pack(tb, chartFile, &tar.Header{Name: "app/null", Typeflag: tar.TypeChar}),
		"a path that climbs":      pack(tb, chartFile, file("app/../../etc/passwd", "x")),
		"a path of Windows":       pack(tb, chartFile, file(`app\..\..\etc\passwd`, "x")),
		"an absolute path":        pack(tb, chartFile, file("app//etc/passwd", "x")),
		"a drive letter":          pack(tb, chartFile, file("app/c:/x", "x")),
		"a file that is large":    pack(tb, chartFile, file("app/large", strings.Repeat("x", 1<<20+1))),
		"files that are many":     pack(tb, append([]*tar.Header{chartFile}, many(101)...)...),
		"a bomb":                  pack(tb, append([]*tar.Header{chartFile}, bomb(5)...)...),
		"a bomb of headers":       pack(tb, append([]*tar.Header{chartFile}, folders(20_000)...)...),
		"the end missing":         truncated(pack(tb, chartFile, file("app/x", strings.Repeat("abc", 10_000)))),
	}
}

func truncated(packed []byte) []byte { return packed[:len(packed)-len(packed)/3] }

func many(n int) (entries []*tar.Header) {
	for i := range n {
		entries = append(entries, file(fmt.Sprintf("app/%d", i), ""))
	}
	return entries
}

func bomb(megabytes int) (entries []*tar.Header) {
	for i := range megabytes {
		entries = append(entries, file(fmt.Sprintf("app/bomb%d", i), strings.Repeat("0", 1<<20)))
	}
	return entries
}

func folders(n int) (entries []*tar.Header) {
	for range n {
		entries = append(entries, &tar.Header{Name: "app/folder/", Typeflag: tar.TypeDir})
	}
	return entries
}

// small are limits that the tests above go beyond quickly.
func small() chart.Limits {
	return chart.Limits{MaxPackage: 1 << 20, MaxFile: 1 << 20, MaxUnpacked: 4 << 20, MaxFiles: 100, MaxDepth: 8}
}

func TestHostilePackagesAreRefused(t *testing.T) {
	t.Parallel()
	for name, packed := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := chart.Inspect(t.Context(), bytes.NewReader(packed), small()); !errors.Is(err, chart.ErrPackage) {
				t.Errorf("inspected: %v", err)
			}
			request := chart.Package{Content: bytes.NewReader(packed), Metadata: "1", Limits: small()}
			if _, err := chart.Rebuild(t.Context(), request); !errors.Is(err, chart.ErrPackage) {
				t.Errorf("remade: %v", err)
			}
			folder := chart.Folder{Files: files(map[string]string{"app.tgz": string(packed)}), Path: "app.tgz", Limits: small()}
			if _, err := chart.Build(t.Context(), folder); !errors.Is(err, chart.ErrReference) {
				t.Errorf("in a tree: %v", err)
			}
		})
	}
}

func TestPackagesThatAreTooLargeAreNotRead(t *testing.T) {
	t.Parallel()
	endless := strings.NewReader(strings.Repeat("x", 3<<20))
	_, err := chart.Rebuild(t.Context(), chart.Package{Content: endless, Limits: small()})
	if !errors.Is(err, chart.ErrPackage) || !strings.Contains(err.Error(), "--helm-chart-max-size") {
		t.Errorf("got %v", err)
	}
	if read := 3<<20 - endless.Len(); read > 1<<20+1 {
		t.Errorf("%d bytes were read", read)
	}
}

func TestSubChartsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	inner := pack(t, append([]*tar.Header{file("app/Chart.yaml", chartYAML)}, bomb(3)...)...)
	for name, packed := range map[string][]byte{
		"200 levels":            deep(t, 200),
		"200 levels of folders": pack(t, file("app/Chart.yaml", chartYAML), file("app/"+strings.Repeat("charts/a/", 200)+"Chart.yaml", chartYAML)),
		"two bombs, each of which would pass": pack(t, file("app/Chart.yaml", chartYAML),
			file("app/charts/a.tgz", string(inner)), file("app/charts/b.tgz", string(inner))),
		"a link in one": pack(t, file("app/Chart.yaml", chartYAML), file("app/charts/a.tgz", string(pack(t, file("app/Chart.yaml", chartYAML),
			&tar.Header{Name: "app/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := chart.Rebuild(t.Context(), chart.Package{Content: bytes.NewReader(packed), Metadata: "1", Limits: small()}); !errors.Is(err, chart.ErrPackage) {
				t.Errorf("got %v", err)
			}
		})
	}
	built, err := chart.Rebuild(t.Context(), chart.Package{Content: bytes.NewReader(deep(t, 5)), Metadata: "1", Limits: small()})
	if err != nil {
		t.Fatalf("five levels: %v", err)
	}
	if _, err := loader.LoadArchive(bytes.NewReader(write(t, built))); err != nil {
		t.Errorf("Helm does not load it: %v", err)
	}
}

func TestHostileFoldersAreRefused(t *testing.T) {
	t.Parallel()
	chain := map[string]string{}
	for i := range 50 {
		chain[fmt.Sprintf("c%d/Chart.yaml", i)] = fmt.Sprintf(
			"apiVersion: v2\nname: c%d\nversion: 1.0.0\ndependencies:\n- {name: c%d, version: '*', repository: 'file://../c%d'}\n", i, i+1, i+1)
	}
	for name, tc := range map[string]struct {
		texts map[string]string
		path  string
		want  error
	}{
		"nothing there":        {path: "charts/none", want: chart.ErrReference},
		"no chart":             {path: "elsewhere", want: chart.ErrReference},
		"a file":               {path: "elsewhere/values.yaml", want: chart.ErrReference},
		"the root is no chart": {path: "../../..", want: chart.ErrReference},
		"a file that is large": {texts: map[string]string{"charts/app/large": strings.Repeat("x", 1<<20+1)}, path: "charts/app", want: chart.ErrPackage},
		"a broken .helmignore": {texts: map[string]string{"charts/app/.helmignore": "a/**/b\n"}, path: "charts/app", want: chart.ErrPackage},
		"a cycle":              {texts: cycle(), path: "a", want: chart.ErrDependency},
		"a long chain":         {texts: chain, path: "c0", want: chart.ErrDependency},
		"an alias bomb":        {texts: map[string]string{"charts/app/values.yaml": aliases()}, path: "charts/app", want: chart.ErrReference},
		"an empty dependency":  {texts: map[string]string{"charts/app/Chart.lock": "dependencies:\n- null\n"}, path: "charts/app", want: chart.ErrDependency},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := chart.Build(t.Context(), chart.Folder{Files: files(with(app(), tc.texts)), Path: tc.path, Limits: small()})
			if !errors.Is(err, tc.want) {
				t.Errorf("want %v, got %v", tc.want, err)
			}
		})
	}
}

func cycle() map[string]string {
	return map[string]string{
		"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- {name: b, version: '*', repository: 'file://../b'}\n",
		"b/Chart.yaml": "apiVersion: v2\nname: b\nversion: 1.0.0\ndependencies:\n- {name: a, version: '*', repository: 'file://../a'}\n",
	}
}

// aliases is a YAML document that grows by ten with each line.
func aliases() string {
	text := "a0: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return text
}

func FuzzInspect(f *testing.F) {
	for _, packed := range hostile(f) {
		f.Add(packed)
	}
	f.Add(deep(f, 3))
	f.Fuzz(func(t *testing.T, packed []byte) {
		inspected, err := chart.Inspect(t.Context(), bytes.NewReader(packed), small())
		built, rebuilding := chart.Rebuild(t.Context(), chart.Package{Content: bytes.NewReader(packed), Metadata: "1", Limits: small()})
		if rebuilding != nil {
			return
		}
		// What is more than inspected, with its sub-charts, must have passed that as well, and Helm must load it.
		if err != nil || inspected.Name != built.Name {
			t.Fatalf("remade as %v, inspected as %v: %v", built.Identity, inspected, err)
		}
		var again bytes.Buffer
		if err := built.Write(t.Context(), &again); err != nil {
			return // Helm validates more when it saves.
		}
		if _, err := loader.LoadArchive(&again); err != nil {
			t.Fatalf("Helm does not load what was written: %v", err)
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add("a: 1\n", "a: {b: 2}\n")
	f.Add("m: {x: [1], y: {z: null}}\n", "m: {y: {z: 3}, x: []}\n---\nm: null\n")
	f.Add(aliases(), "a0: 1\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		texts := map[string]string{"Chart.yaml": chartYAML, "one": first, "two": second}
		built, err := chart.Build(t.Context(), chart.Folder{Files: files(texts), ValuesFiles: []string{"one", "two"}, Limits: small()})
		if err != nil {
			return
		}
		one, err := loader.LoadValues(strings.NewReader(first))
		two, err2 := loader.LoadValues(strings.NewReader(second))
		if err != nil || err2 != nil {
			t.Fatalf("Helm does not read what was merged: %v, %v", err, err2)
		}
		want, err := yaml.Marshal(loader.MergeMaps(one, two))
		if err != nil {
			t.Skip()
		}
		if got := contents(t, write(t, built))["app/values.yaml"]; got != string(want) {
			t.Errorf("merged to %q, Helm to %q", got, want)
		}
	})
}

// TestSmallTextsThatStandForMuchAreRefused: Helm reads values and descriptions whole, and copies all values for each document.
func TestSmallTextsThatStandForMuchAreRefused(t *testing.T) {
	t.Parallel()
	long := "\nx: &a " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*a,", 3000) + "]\n"
	for name, c := range map[string]struct {
		file, text string
		values     []string
	}{
		"Values": {file: "values.yaml", text: long}, "Description": {file: "Chart.yaml", text: chartYAML + long},
		"SubChart":  {file: "charts/sub/values.yaml", text: long},
		"Documents": {file: "values.yaml", text: strings.Repeat("---\na: 1\n", 200)},
		"Merged":    {file: "other.yaml", text: long, values: []string{"/charts/app/other.yaml"}},
		"Ignored":   {file: ".helmignore", text: strings.Repeat("*a*b\n", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := with(app(), map[string]string{"charts/app/charts/sub/Chart.yaml": chartYAML, "charts/app/" + c.file: c.text})
			for i := range 1000 {
				texts[fmt.Sprintf("charts/app/%s%d", strings.Repeat("a", 200), i)] = ""
			}
			_, err := chart.Build(t.Context(), chart.Folder{Files: files(texts), Path: "charts/app", ValuesFiles: c.values, Limits: chart.Limits{MaxMatch: 1_000_000}})
			if err == nil {
				t.Error("it was built")
			}
		})
	}
	if _, err := chart.Inspect(t.Context(), bytes.NewReader(pack(t, file("app/Chart.yaml", chartYAML+long))), chart.Limits{}); err == nil {
		t.Error("it was inspected")
	}
	if _, err := chart.Identify(t.Context(), files(map[string]string{"Chart.yaml": chartYAML + long}), ".", chart.Limits{}); err == nil {
		t.Error("it was identified")
	}
}

// TestOnlyWhatCanBeReadIsPackaged: a chart that nobody could load is refused where it is made.
func TestOnlyWhatCanBeReadIsPackaged(t *testing.T) {
	t.Parallel()
	named := func(name string) string { return "apiVersion: v2\nname: '" + name + "'\nversion: 1.0.0\n" }
	for name, texts := range map[string]map[string]string{
		"a name that is the folder above":             {"charts/app/Chart.yaml": named("..")},
		"a name that is the folder":                   {"charts/app/Chart.yaml": named(".")},
		"a name with a backslash":                     {"charts/app/Chart.yaml": named(`a\b`)},
		"a sub-chart's name that is the folder above": {"charts/app/charts/sub/Chart.yaml": named("..")},
		"a sub-chart's name that is the folder":       {"charts/app/charts/sub/Chart.yaml": named(".")},
		"a file that climbs in Windows":               {`charts/app/..\..\x`: "x"},
		"a file of a drive":                           {"charts/app/c:/x": "x"},
		"a file with NUL":                             {"charts/app/a\x00b": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built, err := chart.Build(t.Context(), chart.Folder{Files: files(with(app(), texts)), Path: "charts/app"})
			var packed bytes.Buffer
			if err == nil {
				err = built.Write(t.Context(), &packed)
			}
			if err == nil {
				_, err = loader.LoadArchive(&packed)
				t.Errorf("it is packaged, and Helm says %v", err)
			} else if !errors.Is(err, chart.ErrPackage) && !errors.Is(err, chart.ErrReference) {
				t.Errorf("it is refused: %v", err)
			}
		})
	}
}
