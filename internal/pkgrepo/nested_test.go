package pkgrepo_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// nest publishes a package in each of the folders, one in the other, from the outside in.
func (s *shop) nest(paths ...string) map[string]pkgrepo.Result {
	s.t.Helper()
	results := map[string]pkgrepo.Result{}
	for _, path := range paths {
		results[path] = s.publish(path, path+" one")
	}
	return results
}

// texts are the files of a commit, without Kptfiles.
func (s *shop) texts(commit string) map[string]string {
	s.t.Helper()
	texts := map[string]string{}
	for name, file := range s.Tree(commit) {
		if !strings.HasSuffix(name, "/Kptfile") {
			texts[name] = file.Content
		}
	}
	return texts
}

func (s *shop) hasOnBranch(want map[string]string) {
	s.t.Helper()
	if got := s.texts("main"); !maps.Equal(got, want) {
		s.t.Errorf("the branch has %v, want %v", got, want)
	}
	s.sound()
}

// TestInnerPackagesAreNoPartOfTheOuterOne: each is read, written, published and removed by itself, in whichever order they began.
func TestInnerPackagesAreNoPartOfTheOuterOne(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"from the outside in": {"edge", "edge/web", "edge/web/x"},
		"from the inside out": {"edge/web/x", "edge/web", "edge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			before := s.nest(order...)
			for _, path := range order {
				branch := s.sync().Package(path).Branch
				if branch.Tree != before[path].Tree || branch.Name != "v1" {
					t.Errorf("%s was published as %+v and is on the branch as %+v", path, before[path], branch)
				}
				read, err := s.Read(t.Context(), s.at("main"), path)
				if want := []string{"Kptfile", "a.yaml"}; err != nil || !slices.Equal(read.Paths(), want) {
					t.Errorf("%s has %v, %v", path, read.Paths(), err)
				}
				if read, err = s.ReadTree(t.Context(), path, branch.Tree); err != nil || len(read) != 2 {
					t.Errorf("tree of %s has %v, %v", path, read.Paths(), err)
				}
				found, err := s.Resolve(t.Context(), pkgrepo.Selector{Package: path, Branch: "main"})
				if err != nil || found.Tree != branch.Tree {
					t.Errorf("%s is resolved to %+v, %v", path, found, err)
				}
			}
			if got := s.publish("edge", "edge two"); got.Number != 2 {
				t.Errorf("%+v", got)
			}
			s.hasOnBranch(map[string]string{"edge/a.yaml": "edge two", "edge/web/a.yaml": "edge/web one", "edge/web/x/a.yaml": "edge/web/x one"})
			s.restart()
			newest := s.sync().Package("edge/web").Newest()
			s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "edge/web", Expect: newest.Commit})
			s.hasOnBranch(map[string]string{"edge/a.yaml": "edge two", "edge/web/x/a.yaml": "edge/web/x one"})
			newest = s.Snapshot().Package("edge").Newest()
			s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "edge", Expect: newest.Commit})
			s.hasOnBranch(map[string]string{"edge/web/x/a.yaml": "edge/web/x one"})
			s.restart()
			now := s.sync()
			if now.Package("edge").Branch != nil || now.Package("edge/web").Branch != nil || now.Package("edge/web/x").Branch.Name != "v1" {
				t.Errorf("%+v", now.Packages)
			}
		})
	}
}

// TestAnInnerPackageMovesOnWhileAnOuterDraftIsOpen: the draft stays up to date, and its publication does not set the inner package
// back.
func TestAnInnerPackageMovesOnWhileAnOuterDraftIsOpen(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in one life": false, "with a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.nest("edge", "edge/web")
			outer := s.one(write("edge", "", "edge two"))
			before := s.Snapshot().Package("edge").Branch.Tree
			s.publish("edge/web", "web two")
			s.publish("edge/db", "db one")
			if restart {
				s.restart()
			}
			now := s.sync().Package("edge")
			if now.Branch.Tree != before || now.Branch.Name != "v1" || now.Open[0].Facts.Base != before {
				t.Errorf("%+v, begun on %s", now.Branch, now.Open[0].Facts.Base)
			}
			r := s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge", Workspace: outer.Workspace, Expect: outer.Commit})
			if r.Tree != s.sync().Package("edge").Branch.Tree {
				t.Errorf("%+v", r)
			}
			s.hasOnBranch(map[string]string{"edge/a.yaml": "edge two", "edge/web/a.yaml": "web two", "edge/db/a.yaml": "db one"})
		})
	}
}

// TestAnOuterDraftCatchesUpWithoutInnerPackages: people edit both on the branch, and the draft is written to again.
func TestAnOuterDraftCatchesUpWithoutInnerPackages(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.nest("edge", "edge/web")
	outer := s.one(write("edge", "", "edge two"))
	base := s.Snapshot().Package("edge").Branch.Tree
	s.Commit("main", "edit", upstream.Text(map[string]string{"edge/people.yaml": "people", "edge/web/people.yaml": "people"}))
	again := write("edge", outer.Workspace, "edge three")
	again.Make = func(ctx context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
		if now.Open.Facts.Base != base || now.Branch.Tree == base || len(now.Local) != 2 {
			t.Errorf("base %s, branch %s, local %v", now.Open.Facts.Base, now.Branch.Tree, now.Local.Paths())
		}
		begun, err := s.ReadTree(ctx, "edge", base)
		if len(begun) != 2 || err != nil {
			t.Errorf("%v, %v", begun.Paths(), err)
		}
		return pkgrepo.Made{Package: content(now, map[string]string{"a.yaml": "edge three", "people.yaml": "people"})}, nil
	}
	r := s.one(again)
	s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge", Workspace: outer.Workspace, Expect: r.Commit})
	s.hasOnBranch(map[string]string{
		"edge/a.yaml": "edge three", "edge/people.yaml": "people", "edge/web/a.yaml": "edge/web one", "edge/web/people.yaml": "people",
	})
}

// TestBothPackagesArePublishedAtOnce: neither publication sets the other one back.
func TestBothPackagesArePublishedAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.nest("edge", "edge/web")
	outer, inner := s.one(write("edge", "", "edge two")), s.one(write("edge/web", "", "web two"))
	s.apply(
		pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge/web", Workspace: inner.Workspace, Expect: inner.Commit},
		pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge", Workspace: outer.Workspace, Expect: outer.Commit},
	)
	s.hasOnBranch(map[string]string{"edge/a.yaml": "edge two", "edge/web/a.yaml": "web two"})
}

// TestWhatAForgeMergedOfAnOuterPackageIsRecorded: its tree is that of the draft, whatever the inner package has become meanwhile.
func TestWhatAForgeMergedOfAnOuterPackageIsRecorded(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.nest("edge", "edge/web")
	outer := s.one(write("edge", "", "edge two"))
	s.publish("edge/web", "web two")
	merged := s.Tree("main")
	for _, name := range []string{"edge/Kptfile", "edge/a.yaml"} {
		merged[name] = s.Tree(outer.Commit)[name]
	}
	s.Commit("main", "merge", merged)
	s.sync()
	r := s.one(pkgrepo.Change{Kind: pkgrepo.Record, Package: "edge", Workspace: outer.Workspace, Tree: outer.Tree})
	if r.Number != 2 || r.Tree != outer.Tree {
		t.Errorf("%+v", r)
	}
	if now := s.sync().Package("edge"); now.Branch.Name != "v2" || len(now.Open) != 0 {
		t.Errorf("%+v", now)
	}
	s.hasOnBranch(map[string]string{"edge/a.yaml": "edge two", "edge/web/a.yaml": "web two"})
}

// TestAnEditOfAnInnerPackageInAnOuterDraftIsNotPublished: the branch has the inner package.
func TestAnEditOfAnInnerPackageInAnOuterDraftIsNotPublished(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	s.nest("edge", "edge/web")
	outer := s.one(write("edge", "mine", "edge two"))
	tip := s.Commit("drafts/edge/mine", "edit", upstream.Text(map[string]string{"edge/web/a.yaml": "by the way"}))
	if now := s.sync().Package("edge").Open[0]; now.Commit != tip || now.Tree != outer.Tree {
		t.Errorf("%+v, want tree %s", now, outer.Tree)
	}
	s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "edge", Workspace: "mine", Expect: tip}})
	if got := s.texts("main")["edge/web/a.yaml"]; got != "edge/web one" {
		t.Errorf("the inner package has %q", got)
	}
}

// TestFilesOfAnotherPackageAreRefused, whichever of both was first.
func TestFilesOfAnotherPackageAreRefused(t *testing.T) {
	t.Parallel()
	writes := func(pkg string, files ...string) func(*shop) pkgrepo.Change {
		change := write(pkg, "mine", "")
		change.Make = func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
			made := content(now, nil)
			for _, name := range files {
				made[name] = kpt.File{Mode: 0o644, Content: []byte(kptfile("made"))}
			}
			return pkgrepo.Made{Package: made}, nil
		}
		return func(*shop) pkgrepo.Change { return change }
	}
	for name, c := range map[string]struct {
		begin func(*shop)
		then  func(*shop) pkgrepo.Change
		says  []string
	}{
		"a file in an inner package": {
			func(s *shop) { s.nest("edge", "edge/web") }, writes("edge", "web/b.yaml"),
			[]string{`file "web/b.yaml" of package "edge" lies in package "edge/web"`, "rename the folder upstream"},
		},
		"a file in the place of the folder": {
			func(s *shop) { s.nest("edge", "edge/web/x") }, writes("edge", "web"), []string{`package "edge/web/x"`},
		},
		"the Kptfile of an inner package that left": {
			func(s *shop) {
				inner := s.nest("edge", "edge/web")["edge/web"]
				s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "edge/web", Expect: inner.Commit})
			},
			writes("edge", "web/Kptfile"),
			[]string{`package "edge/web"`},
		},
		"the Kptfile of an inner package that begins": {
			func(s *shop) { s.one(write("edge/web", "theirs", "x")) }, writes("edge", "web/Kptfile"), []string{`package "edge/web"`},
		},
		"a folder of an outer package": {
			func(s *shop) { s.Commit("main", "begin", together(packaged("edge"), packaged("edge/web"))) }, writes("edge/web"),
			[]string{`folder "edge/web" is part of package "edge"`, "choose another package"},
		},
		"a package that no ref names": {
			func(s *shop) { s.Commit("main", "begin", packaged("edge/web")) }, writes("edge"),
			[]string{`package "edge/web" would become part of package "edge"`, "tag it as edge/web/v1"},
		},
		"a draft with an inner package that another draft begins": {
			func(s *shop) {
				s.one(writes("edge", "web/Kptfile")(s))
				s.SetRef("refs/heads/drafts/edge/web/theirs", s.at("drafts/edge/mine"))
				s.sync()
			},
			func(s *shop) pkgrepo.Change {
				return pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge", Workspace: "mine", Expect: s.at("drafts/edge/mine")}
			},
			[]string{`the change of package "edge" contains package "edge/web"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, overHTTP)
			s.Commit("main", "first", upstream.Text(map[string]string{"README.md": "hello"}))
			c.begin(s)
			before := s.refs()
			r := s.Apply(t.Context(), []pkgrepo.Change{c.then(s)})[0]
			if !errors.Is(r.Err, pkgrepo.ErrNested) {
				t.Fatalf("%+v", r)
			}
			for _, want := range c.says {
				if !strings.Contains(r.Err.Error(), want) {
					t.Errorf("%q is missing in %v", want, r.Err)
				}
			}
			if after := s.refs(); !maps.Equal(before, after) {
				t.Errorf("%v, before %v", after, before)
			}
		})
	}
}

// TestFoldersThatAreNoPackagesArePartOfTheOuterOne: neither a Kptfile that no ref names, nor a tag on a folder without one, makes a
// package of its own.
func TestFoldersThatAreNoPackagesArePartOfTheOuterOne(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	head := s.Commit("main", "begin", together(packaged("edge"), packaged("edge/dependent"), upstream.Text(map[string]string{"edge/charts/a.yaml": "a"})))
	s.Tag("edge/charts/v1.2.0", head, false)
	s.Tag("edge/v1", head, false)
	if got, want := s.sync().Package("edge").Branch.Tree, s.at("main:edge"); got != want {
		t.Errorf("tree %s, want %s", got, want)
	}
	read, err := s.Read(t.Context(), head, "edge")
	if want := []string{"Kptfile", "charts/a.yaml", "dependent/Kptfile"}; err != nil || !slices.Equal(read.Paths(), want) {
		t.Errorf("%v, %v", read.Paths(), err)
	}
	s.publish("edge", "two")
	if got := s.texts("main"); !maps.Equal(got, map[string]string{"edge/a.yaml": "two"}) {
		t.Errorf("%v", got)
	}
}

// TestADraftFromBeforeTheInnerPackageIsFoundAgain: its base names the folder with the inner package in it.
func TestADraftFromBeforeTheInnerPackageIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	head := s.Commit("main", "begin", together(packaged("edge"), packaged("edge/web")))
	whole := s.at("main:edge")
	s.sync()
	s.Tag("edge/web/v1", head, false)
	own := s.sync().Package("edge").Branch.Tree
	for _, tree := range []string{whole, own} {
		if read, err := s.ReadTree(t.Context(), "edge", tree); err != nil || !slices.Equal(read.Paths(), []string{"Kptfile"}) {
			t.Errorf("%v, %v", read.Paths(), err)
		}
	}
	if own == whole {
		t.Error("the inner package counts as part of the outer one")
	}
}

// TestAnInterruptedPublicationOfAnInnerPackageHarmsNoOuterOne: the branch has it, and its tag is missing.
func TestAnInterruptedPublicationOfAnInnerPackageHarmsNoOuterOne(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP)
	outer := s.publish("edge", "edge one")
	inner := s.one(write("edge/web", "first", "web one"))
	s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: "edge/web", Workspace: "first", Expect: inner.Commit})
	s.Raw("update-ref", "-d", "refs/tags/edge/web/v1")
	s.SetRef("refs/heads/proposed/edge/web/first", inner.Commit)
	s.restart()
	now := s.sync()
	if edge, web := now.Package("edge"), now.Package("edge/web"); edge.Branch.Tree != outer.Tree || len(web.Open) != 0 || web.Branch.Name != "v1" {
		t.Errorf("%+v, %+v", edge.Branch, web)
	}
}
