package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// foreignWriters is how many people push at the same time. Of each four, who write the same kind of thing, the first and the last are
// in other repositories and at other packages.
const foreignWriters = 20

// TestForeignWritersAndPackages: while packages follow upstream, people push to the same branches, edit the packages there and
// in the drafts, and make tags, all with the git program. No commit of theirs that was accepted is lost, no edit is there twice,
// and each package has the one change open.
func TestForeignWritersAndPackages(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]struct {
		serve         func(*packageScene)
		times, ofFour int
	}{
		"HTTP": {func(s *packageScene) { s.overHTTP() }, fewestPoints(2, 12), 4},
		// Each git of theirs logs in anew, and so does the server's side of it.
		"SSH": {func(s *packageScene) {
			s.overSSH()
			s.interval = 3 * time.Second
		}, fewestPoints(1, 6), fewestPoints(2, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPackageScene(t)
			over.serve(s)
			(&foreign{packageScene: s, times: over.times, ofFour: over.ofFour}).play()
		})
	}
}

// foreign is what people do to repositories of packages.
type foreign struct {
	*packageScene

	// variants wait for people with their drafts, and approved ones are published at once.
	variants, approved []*packagesv1.PackageVariant

	times  int // how often each of them writes
	ofFour int // how many write of each four: two, or all

	mu      sync.Mutex
	made    []foreignEdit
	refused int
}

// foreignEdit is one that the server has accepted.
type foreignEdit struct {
	repository string
	// ref leads to the commit: a branch, or a tag.
	ref, commit string
	// word stands once in the package's file, if the edit is of one.
	pkg, word string
}

// play has packages follow upstream while everybody writes, and looks at what has become of all that.
func (f *foreign) play() {
	f.t.Helper()
	clusters := []string{"north", "south"}
	f.repositories(append(clusters, blueprints)...)
	f.injects(clusters...)
	f.start()
	f.revise(1)
	for _, cluster := range clusters {
		v := f.variant("app", cluster, func(spec *packagesv1.PackageVariantSpec) {
			spec.Approval = &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}
		})
		f.make(v)
		f.approved = append(f.approved, v)
	}
	for _, pkg := range []string{"web", "db"} {
		for _, cluster := range clusters {
			v := f.variant(pkg, cluster)
			f.make(v)
			f.variants = append(f.variants, v)
		}
	}
	for _, v := range f.variants {
		f.drafted(v, 1)
		f.publish(v)
	}
	f.revise(2)
	for _, v := range f.variants {
		f.drafted(v, 2)
	}
	for _, v := range f.approved {
		f.published(v, 2)
	}

	var writers sync.WaitGroup
	for i := range foreignWriters {
		if last := i % 4; f.ofFour == 2 && (last == 1 || last == 2) {
			continue
		}
		clone := f.person(clusters[i%len(clusters)])
		writers.Go(func() { f.write(i, clone) })
	}
	newest := 2
	for range f.times {
		newest++
		f.revise(newest)
		for _, v := range f.variants {
			f.drafted(v, newest)
		}
	}
	writers.Wait()
	if f.t.Failed() {
		return
	}
	f.t.Logf("%d commits and tags of people were accepted, %d pushes were refused", len(f.made), f.refused)
	f.endsWith(newest)
}

// revise publishes a revision of each blueprint.
func (f *foreign) revise(revision int) {
	f.t.Helper()
	for _, pkg := range []string{"app", "web", "db"} {
		f.packageScene.revise(pkg, revision)
	}
}

// published waits until the revision is on the branch, and nothing is open.
func (f *foreign) published(v *packagesv1.PackageVariant, revision int) {
	f.t.Helper()
	f.untilVariant(v, fmt.Sprintf("is published with revision %d", revision), func() bool {
		return isDone(v) && v.Status.Change == nil && v.Status.Published != nil &&
			strings.Contains(f.files(v, "main")["deployment.yaml"], image(v.Spec.Upstream.Package, revision))
	})
}

// write is what one person does, again and again. What is refused is made again on what is there by then.
func (f *foreign) write(who int, clone *upstream.Clone) {
	repository := f.variants[who%2].Spec.Downstream.Repo
	pkg := f.variants[2*(who/2%2)].Spec.Upstream.Package
	for turn := range f.times {
		edit := foreignEdit{repository: repository, word: fmt.Sprintf("word-%d-%d", who, turn)}
		var err error
		switch who / 4 {
		case 0: // What is of no package.
			edit.ref = "refs/heads/main"
			edit.commit, err = f.push(clone, edit.word, func() (string, error) { return "main", nil }, func(root *os.Root) error {
				return root.WriteFile(edit.word+".txt", []byte(edit.word+"\n"), 0o600)
			})
		case 1: // A package that is published, with a draft of it open, or about to be published again.
			edit.ref, edit.pkg = "refs/heads/main", []string{"web", "app"}[who/2%2]
			edit.commit, err = f.push(clone, edit.word, func() (string, error) { return "main", nil }, addWord(edit.pkg, edit.word))
		case 2, 3: // A draft.
			edit.pkg = pkg
			edit.commit, err = f.push(clone, edit.word, func() (string, error) {
				drafts, err := clone.Branches("drafts/" + pkg + "/")
				if err == nil && len(drafts) != 1 {
					err = fmt.Errorf("there are %d drafts of %s in %s: %q", len(drafts), pkg, repository, drafts)
				}
				edit.ref = "refs/heads/" + strings.Join(drafts, "")
				return strings.Join(drafts, ""), err
			}, addWord(pkg, edit.word))
		default:
			edit.ref = "refs/tags/" + edit.word
			edit.commit, err = f.tag(clone, edit.word)
		}
		f.mu.Lock()
		if f.made = append(f.made, edit); err != nil {
			f.t.Errorf("writer %d: %v", who, err)
		}
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// push edits a branch until the server takes it.
func (f *foreign) push(clone *upstream.Clone, word string, branch func() (string, error), edit func(*os.Root) error) (string, error) {
	for {
		to, err := branch()
		if err != nil {
			return "", err
		}
		commit, err := clone.Edit(to, "Say "+word, edit)
		if !errors.Is(err, upstream.ErrTaken) {
			return commit, err
		}
		f.mu.Lock()
		f.refused++
		f.mu.Unlock()
	}
}

// tag tags what is on the branch by now.
func (f *foreign) tag(clone *upstream.Clone, name string) (string, error) {
	if _, err := clone.Branches(""); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"tag", "--annotate", "--message=" + name, name, "origin/main"}, {"push", "--quiet", "origin", "refs/tags/" + name}} {
		if _, err := clone.Run(args...); err != nil {
			return "", err
		}
	}
	return clone.Run("rev-parse", name+"^{commit}")
}

// addWord says the word in a setting of its own.
func addWord(pkg, word string) func(*os.Root) error {
	return func(root *os.Root) error {
		file := filepath.Join(pkg, "limits.yaml")
		text, err := root.ReadFile(file)
		if err != nil {
			return err
		}
		return root.WriteFile(file, fmt.Appendf(text, "  %s: said\n", word), 0o600)
	}
}

// endsWith waits until all that was written has come into the drafts of the revision, and checks that nothing was lost.
func (f *foreign) endsWith(revision int) {
	f.t.Helper()
	for _, v := range f.variants {
		f.hasWords(v, func() map[string]string { return f.drafted(v, revision) })
		f.isAdaptedTo(v, revision, branch(v))
		if open := f.open(v); open != "refs/heads/"+branch(v) {
			f.t.Errorf("%s: these changes are open: %q", v.Name, open)
		}
	}
	for _, v := range f.approved {
		f.published(v, revision)
		f.hasWords(v, func() map[string]string { return f.files(v, "main") })
		f.isAdaptedTo(v, revision, "main")
		f.eventually(v.Name+" has no change open", func(context.Context) (bool, string) {
			open := f.open(v)
			return open == "", fmt.Sprintf("%q", open)
		})
		tags := strings.Fields(f.repos[v.Spec.Downstream.Repo].Raw("for-each-ref", "--format=%(refname:short)", "refs/tags/app"))
		if last := "app/" + v.Status.Published.Revision; len(tags) > revision || last != fmt.Sprintf("app/v%d", len(tags)) {
			f.t.Errorf("%s: %d revisions upstream became %q, and the last is %s", v.Name, revision, tags, last)
		}
	}
	f.isKept()
	f.sound()
}

// isKept checks that all that was accepted of people is still where they put it.
func (f *foreign) isKept() {
	f.t.Helper()
	for _, edit := range f.made {
		if _, err := f.repos[edit.repository].Repository.Raw("merge-base", "--is-ancestor", edit.commit, edit.ref); err != nil {
			f.t.Errorf("%s: commit %s of %s was accepted and is not there any more: %v", edit.repository, edit.commit, edit.ref, err)
		}
		if edit.pkg == "" && edit.ref == "refs/heads/main" && f.repos[edit.repository].Tree("main")[edit.word+".txt"].Content != edit.word+"\n" {
			f.t.Errorf("%s: what was written as %s.txt is not there any more", edit.repository, edit.word)
		}
	}
}

// open are the branches of the package's changes, a line each.
func (f *foreign) open(v *packagesv1.PackageVariant) string {
	pkg := v.Spec.Upstream.Package
	return f.repos[v.Spec.Downstream.Repo].Raw("for-each-ref", "--format=%(refname)", "refs/heads/drafts/"+pkg, "refs/heads/proposed/"+pkg)
}

// hasWords waits until each word that people wrote into the package is there once.
func (f *foreign) hasWords(v *packagesv1.PackageVariant, files func() map[string]string) {
	f.t.Helper()
	var want []string
	for _, edit := range f.made {
		if edit.repository == v.Spec.Downstream.Repo && edit.pkg == v.Spec.Upstream.Package {
			want = append(want, edit.word)
		}
	}
	slices.Sort(want)
	f.eventually(v.Name+" has everything that people wrote", func(context.Context) (bool, string) {
		var all strings.Builder
		for _, content := range files() {
			all.WriteString(content)
		}
		got := aWord.FindAllString(all.String(), -1)
		slices.Sort(got)
		return slices.Equal(got, want), fmt.Sprintf("has %q, want %q", got, want)
	})
}

var aWord = regexp.MustCompile(`word-\d+-\d+`)

// isAdaptedTo checks what the package is on a branch.
func (f *foreign) isAdaptedTo(v *packagesv1.PackageVariant, revision int, branch string) {
	f.t.Helper()
	files := f.files(v, branch)
	for file, want := range map[string]string{
		"deployment.yaml": image(v.Spec.Upstream.Package, revision), "limits.yaml": fmt.Sprintf("revision: %q", fmt.Sprint(revision)),
		"settings.yaml": "region: " + v.Spec.Downstream.Repo,
	} {
		if strings.Count(files[file], want) != 1 {
			f.t.Errorf("%s: %s has not %q once:\n%s", v.Name, file, want, files[file])
		}
	}
}
