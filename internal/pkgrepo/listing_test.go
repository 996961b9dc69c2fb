package pkgrepo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/tests/upstream"
)

// TestPackagesAreListedWithWhatPublishesThem: each revision has the list as it is with it, in the commits and the push that there are
// anyway. Packages that go leave it, and the same repository has the same list.
func TestPackagesAreListedWithWhatPublishesThem(t *testing.T) {
	t.Parallel()
	s := newShop(t, overHTTP, func(s *shop) {
		s.settings.Index, s.settings.Directory = true, "all"
	})
	const file = "all/.sluice/index"
	s.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n", "all/tools/Kptfile": kptfile("tools")}))
	s.Tag("all/web/v1.2.0", s.Commit("main", "by hand", packaged("all/web", "zero")), false)
	s.sync()
	first, second := s.one(write("web", "first", "one")), s.one(write("web", "second", "two"))
	other := s.one(write("db/main", "", "one"))
	pushes := s.server.Count(upstream.Push)
	results := s.apply(
		pkgrepo.Change{Kind: pkgrepo.Publish, Package: "web", Workspace: "first", Expect: first.Commit},
		pkgrepo.Change{Kind: pkgrepo.Publish, Package: "db/main", Workspace: other.Workspace, Expect: other.Commit},
	)
	if made := s.server.Count(upstream.Push) - pushes; made != 1 {
		t.Errorf("%d pushes were made, not one", made)
	}
	for i, want := range []string{row("web", "v1", "v1 v1.2.0"), row("db/main", "v1", "v1") + row("web", "v1", "v1 v1.2.0")} {
		if diff := cmp.Diff(want, s.Tree(results[i].Commit)[file].Content); diff != "" {
			t.Error(diff)
		}
	}
	s.restart()
	s.sync()
	if r := s.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "web", Workspace: "second", Expect: second.Commit}})[0]; r.Err == nil {
		t.Fatalf("a draft that is out of date was published: %+v", r)
	}
	s.publish("web", "three")
	if diff := cmp.Diff(row("db/main", "v1", "v1")+row("web", "v2", "v2 v1 v1.2.0"), s.Tree("main")[file].Content); diff != "" {
		t.Error(diff)
	}
	s.one(pkgrepo.Change{Kind: pkgrepo.Remove, Package: "db/main", Expect: s.at("refs/tags/all/db/main/v1")})
	if diff := cmp.Diff(row("web", "v2", "v2 v1 v1.2.0"), s.Tree("main")[file].Content); diff != "" {
		t.Error(diff)
	}
	for path := range s.sync().Packages {
		if path != "web" && path != "db/main" && path != "tools" {
			t.Errorf("%s is taken for a package", path)
		}
	}
	s.settings.Index = false
	s.restart()
	s.sync()
	s.publish("web", "four")
	if diff := cmp.Diff(row("web", "v2", "v2 v1 v1.2.0"), s.Tree("main")[file].Content); diff != "" {
		t.Errorf("nobody asks for it any more:\n%s", diff)
	}
	s.sound()
}

// row is a line of the list of packages.
func row(name, newest, tags string) string { return name + "\t" + newest + "\t" + tags + "\n" }
