package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/compose"
	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/tree"
	"sluice.dev/sluice/internal/yamlweight"
)

func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		name, isFolder := strings.CutSuffix(name, "/")
		if isFolder {
			mode = fs.ModeDir | 0o755
		}
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: mode}
	}
	var to bytes.Buffer
	if err := archive.Write(t.Context(), &to, tree, archive.Everything(), archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	return to.Bytes()
}

func opened(t *testing.T, files map[string]string) *tree.Tree {
	t.Helper()
	found, err := archive.OpenNamed(t.Context(), bytes.NewReader(packed(t, files)), t.TempDir(), archive.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = found.Close() })
	return found.Tree
}

// sources are two: a repository, and a set of values.
func sources(t *testing.T) map[string]*tree.Tree {
	t.Helper()
	return map[string]*tree.Tree{
		"repo": opened(t, map[string]string{
			"README.md": "read", "run.sh": "run",
			"apps/web/a.yaml": "a", "apps/web/deep/b.yaml": "b", "apps/web/README.md": "web", "apps/db/c.yaml": "c", "apps/db/empty/": "",
			"values.yaml": "image: {tag: 1, name: app}\nlist: [1, 2]\nkeep: yes\n",
			"chart.tgz":   string(packed(t, map[string]string{"app/Chart.yaml": "chart", "app/t/x": "x"})),
		}),
		"values": opened(t, map[string]string{"prod.yaml": "image: {tag: 2}\nlist: [3]\nnone: null\n", "apps/web/a.yaml": "other"}),
	}
}

func composed(t *testing.T, operations ...compose.Operation) (map[string]string, string, error) {
	t.Helper()
	c := &compose.Composer{Sources: sources(t), TempDir: t.TempDir()}
	defer func() { _ = c.Close() }()
	made, err := c.Compose(t.Context(), operations)
	if err != nil {
		return nil, "", err
	}
	found := map[string]string{}
	err = fs.WalkDir(made, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if entries, _ := fs.ReadDir(made, name); len(entries) == 0 {
				found[name+"/"] = ""
			}
			return nil
		}
		text, err := fs.ReadFile(made, name)
		if info, _ := entry.Info(); info.Mode()&0o100 != 0 {
			name += "*"
		}
		found[name] = string(text)
		return err
	})
	return found, made.Root.ID, err
}

func op(from, to string, exclude ...string) compose.Operation {
	return compose.Operation{From: from, To: to, Exclude: exclude}
}

// TestCopyHasTheMannersOfCp: what Flux's source-watcher makes of the same operations.
func TestCopyHasTheMannersOfCp(t *testing.T) {
	t.Parallel()
	web := map[string]string{"a.yaml": "a", "deep/b.yaml": "b", "README.md": "web"}
	under := func(dir string, files map[string]string) map[string]string {
		all := map[string]string{}
		for name, text := range files {
			all[dir+"/"+name] = text
		}
		return all
	}
	merging := compose.Operation{From: "@values/prod.yaml", To: "@artifact/values.yaml", Strategy: compose.Merge}
	for name, tc := range map[string]struct {
		operations []compose.Operation
		want       map[string]string
	}{
		"The contents of a folder":            {[]compose.Operation{op("@repo/apps/web/**", "@artifact/")}, web},
		"A folder goes in under its name":     {[]compose.Operation{op("@repo/apps/web", "@artifact/x")}, under("x/web", web)},
		"With a slash as well":                {[]compose.Operation{op("@repo/apps/web/", "@artifact/x/")}, under("x/web", web)},
		"A file to a file":                    {[]compose.Operation{op("@repo/run.sh", "@artifact/bin/go")}, map[string]string{"bin/go*": "run"}},
		"A file into a folder":                {[]compose.Operation{op("@repo/run.sh", "@artifact/bin/")}, map[string]string{"bin/run.sh*": "run"}},
		"A file into a folder that is there":  {[]compose.Operation{op("@repo/apps/db", "@artifact/"), op("@repo/run.sh", "@artifact/db")}, map[string]string{"db/c.yaml": "c", "db/empty/": "", "db/run.sh*": "run"}},
		"A glob keeps the path":               {[]compose.Operation{op("@repo/apps/*/*.yaml", "@artifact/x/")}, map[string]string{"x/apps/web/a.yaml": "a", "x/apps/db/c.yaml": "c"}},
		"Two stars are one":                   {[]compose.Operation{op("@repo/apps/**/*.yaml", "@artifact/")}, map[string]string{"apps/web/a.yaml": "a", "apps/db/c.yaml": "c"}},
		"The later one wins":                  {[]compose.Operation{op("@repo/apps/web/**", "@artifact/"), op("@values/apps/web/a.yaml", "@artifact/a.yaml")}, map[string]string{"a.yaml": "other", "deep/b.yaml": "b", "README.md": "web"}},
		"Folders become one":                  {[]compose.Operation{op("@repo/apps/web", "@artifact/"), op("@values/apps/web", "@artifact/")}, under("web", map[string]string{"a.yaml": "other", "deep/b.yaml": "b", "README.md": "web"})},
		"Excluded by name, at any depth":      {[]compose.Operation{op("@repo/apps/**", "@artifact/", "*.md", "empty")}, map[string]string{"web/a.yaml": "a", "web/deep/b.yaml": "b", "db/c.yaml": "c"}},
		"Excluded by the path from the root":  {[]compose.Operation{op("@repo/apps/**", "@artifact/", "apps/web/**", "**/empty")}, map[string]string{"db/c.yaml": "c"}},
		"Excluded by the path from the glob":  {[]compose.Operation{op("@repo/apps/**", "@artifact/", "web", "db/{c,d}.yaml")}, map[string]string{"db/empty/": ""}},
		"Excluded from a folder":              {[]compose.Operation{op("@repo/apps/web", "@artifact/", "deep")}, under("web", map[string]string{"a.yaml": "a", "README.md": "web"})},
		"A file that is excluded":             {[]compose.Operation{op("@repo/README.md", "@artifact/", "*.md"), op("@repo/run.sh", "@artifact/")}, map[string]string{"run.sh*": "run"}},
		"Values are merged as Helm's are":     {[]compose.Operation{op("@repo/values.yaml", "@artifact/"), merging}, map[string]string{"values.yaml": "image:\n  name: app\n  tag: 2\nkeep: true\nlist:\n- 3\nnone: null\n"}},
		"Merged into nothing is copied":       {[]compose.Operation{merging}, map[string]string{"values.yaml": "image: {tag: 2}\nlist: [3]\nnone: null\n"}},
		"An archive is unpacked":              {[]compose.Operation{{From: "@repo/chart.tgz", To: "@artifact/c/", Strategy: compose.Extract}}, map[string]string{"c/app/Chart.yaml": "chart", "c/app/t/x": "x"}},
		"Archives are found at any depth":     {[]compose.Operation{{From: "@repo/**/*.tgz", To: "@artifact/", Strategy: compose.Extract}}, map[string]string{"app/Chart.yaml": "chart", "app/t/x": "x"}},
		"All of a source, under no name":      {[]compose.Operation{op("@values/", "@artifact/")}, map[string]string{"prod.yaml": "image: {tag: 2}\nlist: [3]\nnone: null\n", "apps/web/a.yaml": "other"}},
		"All of a source into a folder there": {[]compose.Operation{op("@values/**", "@artifact/v")}, map[string]string{"v/prod.yaml": "image: {tag: 2}\nlist: [3]\nnone: null\n", "v/apps/web/a.yaml": "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, id, err := composed(t, tc.operations...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if id == "" {
				t.Error("what was made has no ID")
			}
		})
	}
}

func TestWhatCannotBeCopiedIsAnError(t *testing.T) {
	t.Parallel()
	extract := func(from string) compose.Operation {
		return compose.Operation{From: from, To: "@artifact/", Strategy: compose.Extract}
	}
	for name, tc := range map[string]struct {
		operations []compose.Operation
		want       string
	}{
		"Nothing matches":         {[]compose.Operation{op("@repo/none/*", "@artifact/")}, "no files match pattern 'none/*' in source 'repo'"},
		"Nothing is there":        {[]compose.Operation{op("@repo/none", "@artifact/")}, "source 'none' does not exist"},
		"All is excluded":         {[]compose.Operation{op("@repo/*.md", "@artifact/", "*.md")}, "were excluded"},
		"No such alias":           {[]compose.Operation{op("@other/x", "@artifact/")}, "source alias 'other' not found"},
		"A bad glob":              {[]compose.Operation{op("@repo/[", "@artifact/")}, "invalid glob pattern '['"},
		"A bad exclude":           {[]compose.Operation{op("@repo/*", "@artifact/", "[")}, "invalid exclude pattern '['"},
		"Too many alternatives":   {[]compose.Operation{op("@repo/*", "@artifact/", strings.Repeat("{a,b}", 11))}, "more than 1024 alternatives"},
		"Out of the artifact":     {[]compose.Operation{op("@repo/run.sh", "@artifact/../x")}, "leads out of the artifact"},
		"Out of the file system":  {[]compose.Operation{op("@repo/run.sh", "@artifact//etc")}, "no path in the artifact"},
		"Out of the source":       {[]compose.Operation{op("@repo/../x", "@artifact/")}, "source '../x' does not exist"},
		"A file over a folder":    {[]compose.Operation{op("@repo/apps", "@artifact/"), op("@repo/run.sh", "@artifact/apps/web/deep"), op("@repo/apps/web/deep/b.yaml", "@artifact/apps/web/deep/run.sh/x")}, "'run.sh' is a file, and no folder"},
		"A folder over a file":    {[]compose.Operation{op("@repo/run.sh", "@artifact/web"), op("@repo/apps/web", "@artifact/")}, "'web' is a file, and a folder is to take its place"},
		"No YAML":                 {[]compose.Operation{op("@repo/values.yaml", "@artifact/x"), {From: "@repo/run.sh", To: "@artifact/x", Strategy: compose.Merge}}, "'run.sh' is no YAML that can be merged"},
		"A folder is no archive":  {[]compose.Operation{extract("@repo/apps")}, "archives alone can be extracted"},
		"Nor is any file":         {[]compose.Operation{extract("@repo/run.sh")}, "is no archive"},
		"An archive that is none": {[]compose.Operation{op("@repo/run.sh", "@artifact/x.tgz"), extract("@bad/x.tgz")}, "source alias 'bad' not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := composed(t, tc.operations...)
			if !errors.Is(err, compose.ErrCopy) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

// TestEqualContentsHaveEqualNames: by whatever way they came about.
func TestEqualContentsHaveEqualNames(t *testing.T) {
	t.Parallel()
	_, one, err := composed(t, op("@repo/apps/web/**", "@artifact/"))
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := composed(t, op("@repo/apps/web/deep", "@artifact/"), op("@repo/apps/web/a.yaml", "@artifact/"), op("@repo/apps/web/README.md", "@artifact/"))
	if err != nil || one != other {
		t.Error(one, other, err)
	}
	_, moved, err := composed(t, op("@repo/apps/web/**", "@artifact/x"))
	if err != nil || moved == one {
		t.Error(moved, err)
	}
	_, changed, err := composed(t, op("@repo/apps/web/**", "@artifact/"), op("@values/apps/web/a.yaml", "@artifact/"))
	if err != nil || changed == one {
		t.Error(changed, err)
	}
}

// TestMatchingIsBounded: globs of tenants are held against names of tenants.
func TestMatchingIsBounded(t *testing.T) {
	t.Parallel()
	c := &compose.Composer{Sources: sources(t), Limits: archive.Limits{MaxMatch: 10_000}}
	_, err := c.Compose(t.Context(), []compose.Operation{op("@repo/apps/**", "@artifact/", strings.Repeat("*a", 500))})
	if !errors.Is(err, archive.ErrLimit) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Compose(ctx, []compose.Operation{op("@repo/run.sh", "@artifact/")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestTheWalkOfAGlobIsBounded: names that are compared with a pattern count, whether any matches or not.
func TestTheWalkOfAGlobIsBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%03d/%s", i, strings.Repeat("a", 100))] = "x"
	}
	all := map[string]*tree.Tree{"s": opened(t, files)}
	for name, o := range map[string]compose.Operation{
		"Copy":    op("@s/*/"+strings.Repeat("*a", 20)+"b", "@artifact/"),
		"Extract": {From: "@s/**/" + strings.Repeat("*a", 20) + "b", To: "@artifact/", Strategy: compose.Extract},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &compose.Composer{Sources: all, Limits: archive.Limits{MaxMatch: 1_000_000}}
			if _, err := c.Compose(t.Context(), []compose.Operation{o}); !errors.Is(err, archive.ErrLimit) {
				t.Error(err)
			}
			c = &compose.Composer{Sources: all}
			if _, err := c.Compose(t.Context(), []compose.Operation{o}); err == nil || errors.Is(err, archive.ErrLimit) {
				t.Error(err)
			}
		})
	}
}

// TestABombInASourceIsNotUnpacked: an archive in an archive has the limits of all together.
func TestABombInASourceIsNotUnpacked(t *testing.T) {
	t.Parallel()
	bomb := packed(t, map[string]string{"zeros": strings.Repeat("0", 1<<20)})
	c := &compose.Composer{
		Sources: map[string]*tree.Tree{"s": opened(t, map[string]string{"a.tgz": string(bomb), "b.tgz": string(append(bomb, 0)), "no.tgz": "no"})},
		Limits:  archive.Limits{MaxBytes: 1<<20 - 1}, TempDir: t.TempDir(),
	}
	extract := func(name string) []compose.Operation {
		return []compose.Operation{{From: "@s/" + name, To: "@artifact/", Strategy: compose.Extract}}
	}
	if _, err := c.Compose(t.Context(), extract("a.tgz")); !errors.Is(err, archive.ErrLimit) {
		t.Error(err)
	}
	if _, err := c.Compose(t.Context(), extract("no.tgz")); !errors.Is(err, archive.ErrCorrupt) {
		t.Error(err)
	}
}

// TestAYAMLBombIsNotMerged: a few lines that stand for a billion values, and one that is in itself.
func TestAYAMLBombIsNotMerged(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [" + strings.Repeat("x,", 9) + "x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for name, text := range map[string]string{
		"Bomb": bomb.String(), "LongText": "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 3000) + "]\n", "InItself": "a: &a [*a]\n", "Long": "a: [" + strings.Repeat("1,", 600_000) + "1]\n", "Large": strings.Repeat("# c\n", 400_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &compose.Composer{Sources: map[string]*tree.Tree{"s": opened(t, map[string]string{"v": text, "w": "a: 1\n"})}}
			_, err := c.Compose(t.Context(), []compose.Operation{
				op("@s/w", "@artifact/w"), {From: "@s/v", To: "@artifact/w", Strategy: compose.Merge},
			})
			if err == nil || !errors.Is(err, archive.ErrLimit) && !errors.Is(err, yamlweight.ErrLimit) && !strings.Contains(err.Error(), "no YAML") {
				t.Error(err)
			}
		})
	}
}

// FuzzCompose: whatever tenants write, nothing leaves the artifact, and what is made can be archived.
func FuzzCompose(f *testing.F) {
	for _, o := range []compose.Operation{
		op("@repo/apps/web/**", "@artifact/"), op("@repo/apps/*/*.yaml", "@artifact/x/", "*.md", "**/deep/**"), op("@values/../../x", "@artifact/../y"),
		{From: "@repo/chart.tgz", To: "@artifact/apps/web/a.yaml", Strategy: compose.Extract},
		{From: "@values/prod.yaml", To: "@artifact/values.yaml", Strategy: compose.Merge},
		op("@repo/[a-", "@artifact//"), op("@repo/apps/{a,b}/\\*", "@artifact/.", "{a,{b,c}}/**", "\\"), op("@/x", "@artifact/\x00"), op("@repo", ""),
	} {
		exclude := strings.Join(o.Exclude, "\n")
		f.Add(o.From, o.To, exclude, o.Strategy)
	}
	files := map[string]string{
		"apps/web/a.yaml": "a: 1\n", "apps/web/deep/b.yaml": "b", "values.yaml": "image: {tag: 1}\n", "prod.yaml": "image: {tag: 2}\n", "chart.tgz": "none",
	}
	f.Fuzz(func(t *testing.T, from, to, exclude, strategy string) {
		all := opened(t, files)
		c := &compose.Composer{Sources: map[string]*tree.Tree{"repo": all, "values": all}, TempDir: t.TempDir()}
		defer func() { _ = c.Close() }()
		made, err := c.Compose(t.Context(), []compose.Operation{
			op("@repo/apps", "@artifact/"), op("@values/values.yaml", "@artifact/"),
			{From: from, To: to, Exclude: strings.Split(exclude, "\n"), Strategy: strategy},
		})
		if err != nil {
			if !errors.Is(err, compose.ErrCopy) {
				t.Fatal(err)
			}
			return
		}
		err = archive.Write(t.Context(), io.Discard, made, archive.Everything(), archive.Limits{})
		if err != nil && !errors.Is(err, archive.ErrLimit) {
			t.Fatalf("what was made cannot be archived: %v", err)
		}
		if made.Root.ID == "" {
			t.Fatal("what was made has no name")
		}
	})
}

// TestAGlobIsBounded: the pattern as well as the names are a tenant's. A few asterisks match one name in a deep folder in more ways
// than there is memory, and one long pattern is held against all names.
func TestAGlobIsBounded(t *testing.T) {
	t.Parallel()
	deep := opened(t, map[string]string{strings.Repeat("d/", 100) + "x.tgz": string(packed(t, map[string]string{"x": "x"}))})
	names := map[string]string{}
	for i := range 1000 {
		names[fmt.Sprintf("%s%d", strings.Repeat("a", 200), i)] = ""
	}
	many := opened(t, names)
	for name, c := range map[string]struct {
		source    *tree.Tree
		operation compose.Operation
	}{
		"Ways":  {deep, compose.Operation{From: "@s/**/**/**/*.tgz", To: "@artifact/", Strategy: compose.Extract}},
		"Names": {many, op("@s/"+strings.Repeat("*a", 400)+"x", "@artifact/")},
		"Deep":  {many, op("@s/*/"+strings.Repeat("*a", 400)+"x", "@artifact/")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			composer := &compose.Composer{Sources: map[string]*tree.Tree{"s": c.source}, Limits: archive.Limits{MaxMatch: 500_000}, TempDir: t.TempDir()}
			defer func() { _ = composer.Close() }()
			if _, err := composer.Compose(t.Context(), []compose.Operation{c.operation}); !errors.Is(err, archive.ErrLimit) {
				t.Error(err)
			}
		})
	}
	ways := compose.Operation{From: "@s/**/**/**/*", To: "@artifact/", Strategy: compose.Extract}
	err := memory.New(32<<20, "--limit").Do(t.Context(), fair.Wish{Namespace: "a"}, fair.New(1, 0), func(ctx context.Context) error {
		composer := &compose.Composer{Sources: map[string]*tree.Tree{"s": deep}, TempDir: t.TempDir()}
		defer func() { _ = composer.Close() }()
		_, err := composer.Compose(ctx, []compose.Operation{ways})
		return err
	})
	if !errors.Is(err, memory.ErrBudget) {
		t.Error(err)
	}
}

// TestEachDocumentCostsWhatItHas: a file with many values is merged with many documents, and is not copied for each of them.
func TestEachDocumentCostsWhatItHas(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "k%d: 1\n", i)
	}
	text.WriteString(strings.Repeat("---\na: {b: 2}\n", 4000))
	c := &compose.Composer{Sources: map[string]*tree.Tree{"s": opened(t, map[string]string{"v": text.String(), "w": "a: {b: 1, c: 3}\n"})}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	made, err := c.Compose(t.Context(), []compose.Operation{op("@s/w", "@artifact/w"), {From: "@s/v", To: "@artifact/w", Strategy: compose.Merge}})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if merged, err := fs.ReadFile(made, "w"); err != nil || !strings.HasPrefix(string(merged), "a:\n  b: 2\n  c: 3\nk0: 1\n") {
		t.Errorf("%.100s %v", merged, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 400<<20 {
		t.Errorf("%d MB were allocated", allocated>>20)
	} else {
		t.Log(allocated >> 20)
	}
}
