package packages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// step is something that happens, and what it leads to.
type step struct {
	what string
	do   func(*story)
	// updates is how many commits it puts on the draft.
	updates int
	// image is that of the draft afterwards.
	image string
}

// TestWhatTheSelectorSelectsIsFollowed: what leads to another package is one update, and what does not is none.
func TestWhatTheSelectorSelectsIsFollowed(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, test := range map[string]struct {
		reason   string
		begin    func(*story)
		selector packagesv1.Upstream
		steps    []step
	}{
		"newest": {
			reason: "Without a selector, the newest revision is followed, whatever is on the branch.",
			begin:  func(s *story) { s.release("v1", "1.0.0", nil) },
			steps: []step{
				{"a commit that is not tagged", func(s *story) { s.blueprint("1.0.1", nil) }, 0, "1.0.0"},
				{"a new revision", func(s *story) { s.release("v2", "2.0.0", nil) }, 1, "2.0.0"},
				{"the tenth, which is newer than the second", func(s *story) { s.release("v10", "10.0.0", nil) }, 1, "10.0.0"},
			},
		},
		"revision": {
			reason: "A revision stays, until the spec names another one.",
			begin:  func(s *story) { s.release("v1", "1.0.0", nil) }, selector: packagesv1.Upstream{Revision: 1},
			steps: []step{
				{"a new revision", func(s *story) { s.release("v2", "2.0.0", nil) }, 0, "1.0.0"},
				{"the spec names it", func(s *story) {
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Revision = 2 })
				}, 1, "2.0.0"},
			},
		},
		"tag": {
			reason: "A tag that moves to another package is an update; one that moves to the same package is none.",
			begin:  func(s *story) { s.release("stable", "1.0.0", nil) }, selector: packagesv1.Upstream{Tag: "stable"},
			steps: []step{
				{"the tag moves", func(s *story) { s.release("stable", "2.0.0", nil) }, 1, "2.0.0"},
				{"the tag moves to a commit that has the same package", func(s *story) {
					other := s.blueprints.Commit("main", "something else", upstream.Text(map[string]string{s.name + ".md": "words"}))
					s.blueprints.Tag(s.name+"/stable", other, false)
				}, 0, "2.0.0"},
				{"the tag becomes an annotated one", func(s *story) {
					s.blueprints.Tag(s.name+"/stable", s.blueprint("3.0.0", nil), true)
				}, 1, "3.0.0"},
				{"the tag moves back", func(s *story) { s.release("stable", "1.0.0", nil) }, 1, "1.0.0"},
			},
		},
		"whole": {
			reason:   "A tag of the whole repository is found where the package has none of that name, which else goes first.",
			begin:    func(s *story) { s.blueprints.Tag("whole-v1.0.0", s.blueprint("1.0.0", nil), false) },
			selector: packagesv1.Upstream{Tag: "whole-v1.0.0"},
			steps: []step{
				{"the package gets a tag of the name", func(s *story) { s.release("whole-v1.0.0", "2.0.0", nil) }, 1, "2.0.0"},
			},
		},
		"branch": {
			reason: "A commit that leaves the package as it was makes no update, even if it changes all else.",
			begin: func(s *story) {
				s.blueprints.Commit("edge", "begin", s.files("1.0.0", nil))
			}, selector: packagesv1.Upstream{Branch: "edge"},
			steps: []step{
				{"an unrelated commit", func(s *story) {
					s.blueprints.Commit("edge", "words", upstream.Text(map[string]string{"branch.md": "words", "other/Kptfile": kptfile}))
				}, 0, "1.0.0"},
				{"a commit of the package", func(s *story) { s.blueprints.Commit("edge", "more", s.files("2.0.0", nil)) }, 1, "2.0.0"},
				{"the branch is rewritten", func(s *story) { s.blueprints.Rewrite("edge", "anew", s.files("3.0.0", nil)) }, 1, "3.0.0"},
			},
		},
		"range": {
			reason:   "The highest version in the range is taken; what is outside of it, or lower, changes nothing.",
			begin:    func(s *story) { s.release("v1.0.0", "1.0.0", nil) },
			selector: packagesv1.Upstream{Range: ">=1.0.0 <3.0.0"},
			steps: []step{
				{"a new version", func(s *story) { s.release("v2.0.0", "2.0.0", nil) }, 1, "2.0.0"},
				{"a version outside of the range", func(s *story) { s.release("v3.0.0", "3.0.0", nil) }, 0, "2.0.0"},
				{"a lower version", func(s *story) { s.release("v1.9.0", "1.9.0", nil) }, 0, "2.0.0"},
				{"two versions at once", func(s *story) {
					first, second := s.blueprint("2.2.0", nil), s.blueprint("2.10.0", nil)
					tags := fmt.Sprintf("create refs/tags/range/v2.2.0 %s\ncreate refs/tags/range/v2.10.0 %s\n", first, second)
					if _, err := s.blueprints.RawInput([]byte(tags), "update-ref", "--stdin"); err != nil {
						s.Fatal(err)
					}
				}, 1, "2.10.0"},
				{"the spec takes the next one in", func(s *story) {
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Range = "^3.0.0" })
				}, 1, "3.0.0"},
			},
		},
		"commit": {
			reason:   "A commit is held, wherever that has moved which it is known by.",
			begin:    func(s *story) { s.release("v1", "1.0.0", nil) },
			selector: packagesv1.Upstream{Revision: 1},
			steps: []step{
				{"the spec names the commit that is there", func(s *story) {
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Commit = s.v.Status.Upstream.Commit })
				}, 0, "1.0.0"},
				{"the tag moves", func(s *story) { s.release("v1", "1.5.0", nil) }, 0, "1.0.0"},
				{"the tag goes", func(s *story) { s.blueprints.DeleteRef("refs/tags/commit/v1") }, 0, "1.0.0"},
				{"the spec names another commit", func(s *story) {
					newer := s.blueprint("2.0.0", nil)
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Commit = newer })
				}, 1, "2.0.0"},
				{"the spec follows again", func(s *story) {
					s.release("v3", "3.0.0", nil)
					s.edit(func(spec *packagesv1.PackageVariantSpec) {
						spec.Upstream = packagesv1.Upstream{Repo: "blueprints", Package: s.name}
					})
				}, 1, "3.0.0"},
			},
		},
		"package": {
			reason: "Another package at the same revision is another package.",
			begin: func(s *story) {
				s.release("v1", "1.0.0", nil)
				other := s.story(s.T, "package-other")
				other.release("v1", "9.0.0", nil)
			},
			steps: []step{
				{"the spec names the other package", func(s *story) {
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Package = "package-other" })
				}, 1, "9.0.0"},
			},
		},
		"repository": {
			reason: "A package of the same name and revision in another repository is another package.",
			begin: func(s *story) {
				s.release("v1", "1.0.0", nil)
				other := s.repository("others")
				other.Tag("repository/v1", other.Commit("main", "app", s.files("9.0.0", nil)), false)
			},
			steps: []step{
				{"the spec names the other repository", func(s *story) {
					s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Repo = "others" })
				}, 1, "9.0.0"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			test.begin(s)
			test.selector.Repo, test.selector.Package = "blueprints", name
			s.begin(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream = test.selector })
			s.settle()
			if got := s.written(); got != 1 {
				t.Fatalf("the draft was written %d times: %s", got, said(s.v))
			}
			for _, step := range test.steps {
				before := s.written()
				step.do(s)
				s.settle()
				if got := s.written() - before; got != step.updates {
					t.Errorf("%s: %s made %d updates, not %d", test.reason, step.what, got, step.updates)
				}
				if got := s.open("deployment.yaml"); !strings.Contains(got, "app:"+step.image+"\n") {
					t.Errorf("%s: after %s, the draft has not image %s:\n%s", test.reason, step.what, step.image, got)
				}
				if lock, up := s.open("Kptfile"), s.v.Status.Upstream; step.updates > 0 && !strings.Contains(lock, up.Commit) {
					t.Errorf("after %s, the lock does not name commit %s:\n%s", step.what, up.Commit, lock)
				}
			}
		})
	}
}

// TestASelectorThatMatchesNothingSaysSo, and is waited for.
func TestASelectorThatMatchesNothingSaysSo(t *testing.T) {
	t.Parallel()
	scene := newScene(t)
	for name, test := range map[string]struct {
		reason   string
		selector packagesv1.Upstream
		says     []string
		appears  string
	}{
		"no-range":    {"No version is in the range.", packagesv1.Upstream{Range: ">=2.0.0 <3.0.0"}, []string{">=2.0.0 <3.0.0", "no-range", "blueprints"}, "v2.4.0"},
		"no-tag":      {"There is no such tag.", packagesv1.Upstream{Tag: "stable"}, []string{"tag", "stable"}, "stable"},
		"no-revision": {"There is no such revision.", packagesv1.Upstream{Revision: 2}, []string{"revision", "v2"}, "v2"},
		"no-newest":   {"Nothing is published.", packagesv1.Upstream{}, []string{"no-newest", "no published revision"}, "v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scene.story(t, name)
			if name != "no-newest" {
				s.release("v1.0.0", "1.0.0", nil)
			}
			test.selector.Repo, test.selector.Package = "blueprints", name
			s.begin(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream = test.selector })
			s.settle()
			if got := conditions.GetReason(s.v, "Ready"); got != packagesv1.UpstreamNotFoundReason || s.written() != 0 {
				t.Fatalf("%s: Ready says %s, and %d commits were made", test.reason, said(s.v), s.written())
			}
			s.has(conditions.GetMessage(s.v, "Ready"), test.says...)
			s.release(test.appears, "7.0.0", nil)
			s.settle()
			s.has(s.open("deployment.yaml"), "app:7.0.0")
		})
	}
}

// TestACommitThatVanishesTakesNothingAlong: the draft stays as it is, a process that never saw the commit says what is missing, and
// another commit is another upstream.
func TestACommitThatVanishesTakesNothingAlong(t *testing.T) {
	t.Parallel()
	s := newScene(t).story(t, "app")
	s.release("v1", "1.0.0", nil)
	held := s.blueprints.Commit("aside", "app 2.0.0", s.files("2.0.0", nil))
	s.begin(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Branch, spec.Upstream.Commit = "aside", held })
	s.settle()
	s.has(s.open("deployment.yaml"), "app:2.0.0")
	draft := s.v.Status.Change.Commit

	s.blueprints.DeleteRef("refs/heads/aside")
	s.blueprints.Raw("reflog", "expire", "--expire=now", "--all")
	s.blueprints.Raw("gc", "--quiet", "--prune=now")
	s.settle()
	if !conditions.IsReady(s.v) || s.v.Status.Change.Commit != draft {
		t.Errorf("what is known already is not enough: %s", said(s.v))
	}
	s.stop()
	s.start()
	until(s.plane, s.v, "it says what is missing", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, "Ready") == packagesv1.UpstreamNotFoundReason && strings.Contains(said(v), held), said(v)
	})
	if s.v.Status.Change == nil || s.v.Status.Change.Commit != draft || s.written() != 1 {
		t.Errorf("the draft is %+v, written %d times", s.v.Status.Change, s.written())
	}
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Upstream.Branch, spec.Upstream.Commit = "", "" })
	s.settle()
	if s.has(s.open("deployment.yaml"), "app:1.0.0"); s.written() != 2 {
		t.Errorf("the draft was written %d times", s.written())
	}
}
