package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// packageLaps is a scene in which variants are drafted, edited, updated, proposed, published and, one of them, removed, again and
// again. All that is done to a repository's branches and tags is recorded.
type packageLaps struct {
	*packageScene

	server   *upstream.GitHTTP
	variants []*packagesv1.PackageVariant
}

// lapStep is something that people do, and how to see that the program has done its part.
type lapStep struct {
	name  string
	begin func()
	done  func(context.Context) (bool, string)
}

func newPackageLaps(t *testing.T) *packageLaps {
	t.Helper()
	l := &packageLaps{packageScene: newPackageScene(t)}
	l.server = l.overHTTP()
	l.injects("north", "south")
	return l
}

// begin makes the repositories and starts the program.
func (l *packageLaps) begin() {
	l.t.Helper()
	l.repositories(blueprints, "north", "south")
	l.record("north", "south")
	l.variants = nil
	for _, of := range [][2]string{{"web", "north"}, {"db", "north"}, {"web", "south"}} {
		l.variants = append(l.variants, l.variant(of[0], of[1]))
	}
	l.start()
}

// record has all that becomes of the repositories' refs recorded.
func (l *packageLaps) record(repositories ...string) {
	l.t.Helper()
	for _, name := range repositories {
		for _, hook := range []string{"pre-receive", "reference-transaction", "post-receive"} {
			l.repos[name].Hook(hook, recordHook)
		}
	}
}

// recordHook writes down which ref has come to which commit, and kills the process whose number is in the file strike-STAGE, once,
// when a push has come to that stage.
const recordHook = `stage=$(basename "$0")
[ "$stage" != reference-transaction ] || stage=$1
if [ "$stage" = committed ]; then
	while read -r _ new ref; do
		case $ref in refs/*) echo "$ref $new" >>record ;; esac
	done
fi
[ -z "$GATEWAY_INTERFACE" ] || ! mv "strike-$stage" struck 2>/dev/null || kill -9 "$(cat struck)"
exit 0
`

// last is the variant that is given up at the end of each lap.
func (l *packageLaps) last() *packagesv1.PackageVariant { return l.variants[len(l.variants)-1] }

// steps are those of a lap.
func (l *packageLaps) steps(lap int) []lapStep {
	first, second := 2*lap-1, 2*lap
	return []lapStep{
		{"a revision", func() { l.beginLap(lap, first) }, l.forThose(l.kept(lap), packagesv1.LifecycleDraft, first)},
		{"drafts", func() { l.beginDrafts(lap) }, l.forAll(packagesv1.LifecycleDraft, first)},
		{"updates", func() { l.beginUpdates(lap, second) }, l.forAll(packagesv1.LifecycleDraft, second)},
		{"proposals", func() { l.ask(packagesv1.LifecycleProposed) }, l.forAll(packagesv1.LifecycleProposed, second)},
		{"publications", func() { l.ask(packagesv1.LifecyclePublished) }, l.forAll(packagesv1.LifecyclePublished, second)},
		{"proposal of a deletion", func() { l.delete(l.last()) }, l.isLeaving},
		{"deletion", func() {
			obj := &packagesv1.PackageRevision{ObjectMeta: l.meta(l.last().Status.Published.PackageRevision)}
			l.amend(obj, func() { obj.Spec.Lifecycle, obj.Spec.ApprovedCommit = packagesv1.LifecycleDeleted, obj.Status.Commit })
		}, l.isGone},
	}
}

// kept are the variants that are there from the lap before.
func (l *packageLaps) kept(lap int) []*packagesv1.PackageVariant {
	if lap == 1 {
		return nil
	}
	return l.variants[:len(l.variants)-1]
}

// beginLap edits what is on the branches, and publishes a revision upstream.
func (l *packageLaps) beginLap(lap, revision int) {
	l.t.Helper()
	for _, v := range l.kept(lap) {
		l.edit(v, "main", fmt.Sprintf("branch-%d", lap))
	}
	for _, pkg := range []string{"web", "db"} {
		l.revise(pkg, revision)
	}
}

// beginDrafts makes the variants that are not there. The program knows the newest revision upstream by then, and begins with it.
func (l *packageLaps) beginDrafts(lap int) {
	l.t.Helper()
	for _, v := range l.variants[len(l.kept(lap)):] {
		*v = *l.variant(v.Spec.Upstream.Package, v.Spec.Downstream.Repo)
		l.make(v)
	}
}

// beginUpdates edits the drafts, and publishes another revision upstream.
func (l *packageLaps) beginUpdates(lap, revision int) {
	l.t.Helper()
	for _, v := range l.variants {
		l.edit(v, branch(v), fmt.Sprintf("draft-%d", lap))
	}
	for _, pkg := range []string{"web", "db"} {
		l.revise(pkg, revision)
	}
}

// edit adds a setting and a file to a package.
func (l *packageLaps) edit(v *packagesv1.PackageVariant, branch, word string) {
	l.t.Helper()
	pkg := v.Spec.Upstream.Package
	text := l.files(v, branch)["limits.yaml"]
	l.repos[v.Spec.Downstream.Repo].Commit(branch, "Say "+word, upstream.Text(map[string]string{
		pkg + "/limits.yaml": text + "  " + word + ": said\n",
		pkg + "/" + word:     word + "\n",
	}))
}

// ask asks for all open changes to go on to the lifecycle, each as it is now.
func (l *packageLaps) ask(lifecycle packagesv1.Lifecycle) {
	l.t.Helper()
	for _, v := range l.variants {
		obj := &packagesv1.PackageRevision{ObjectMeta: l.meta(v.Status.Change.PackageRevision)}
		l.amend(obj, func() {
			if obj.Spec.Lifecycle = lifecycle; lifecycle == packagesv1.LifecyclePublished {
				obj.Spec.ApprovedCommit = obj.Status.Commit
			}
		})
	}
}

func (l *packageLaps) delete(obj client.Object) {
	l.t.Helper()
	if err := env.Client.Delete(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}

// forAll says that all variants have come to the lifecycle with the revision, and that their objects say so.
func (l *packageLaps) forAll(lifecycle packagesv1.Lifecycle, revision int) func(context.Context) (bool, string) {
	return l.forThose(l.variants, lifecycle, revision)
}

// forThose is forAll for some of them.
func (l *packageLaps) forThose(
	variants []*packagesv1.PackageVariant, lifecycle packagesv1.Lifecycle, revision int,
) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		for _, v := range variants {
			if ok, seen := l.isAt(ctx, v, lifecycle, revision); !ok {
				return false, v.Name + ": " + seen
			}
		}
		return true, ""
	}
}

func (l *packageLaps) isAt(ctx context.Context, v *packagesv1.PackageVariant, lifecycle packagesv1.Lifecycle, revision int) (bool, string) {
	if err := env.Client.Get(ctx, l.key(v.Name), v); err != nil {
		return false, err.Error()
	}
	name, commit := "", ""
	switch change, published := v.Status.Change, v.Status.Published; {
	case change != nil && change.Lifecycle == lifecycle:
		name, commit = change.PackageRevision, change.Commit
	case change == nil && published != nil && lifecycle == packagesv1.LifecyclePublished:
		name, commit = published.PackageRevision, published.Commit
	}
	if !isDone(v) || commit == "" || !strings.Contains(l.files(v, commit)["deployment.yaml"], image(v.Spec.Upstream.Package, revision)) {
		return false, asJSON(v.Status)
	}
	obj := &packagesv1.PackageRevision{}
	if err := env.Client.Get(ctx, l.key(name), obj); err != nil {
		return false, err.Error()
	}
	return obj.Status.Lifecycle == lifecycle && obj.Status.Commit == commit && conditions.IsReady(obj), name + ": " + asJSON(obj.Status)
}

// isLeaving says that the last variant is gone and the deletion of its package proposed.
func (l *packageLaps) isLeaving(ctx context.Context) (bool, string) {
	if err := env.Client.Get(ctx, l.key(l.last().Name), &packagesv1.PackageVariant{}); !apierrors.IsNotFound(err) {
		return false, fmt.Sprintf("%s is there: %v", l.last().Name, err)
	}
	obj := &packagesv1.PackageRevision{}
	err := env.Client.Get(ctx, l.key(l.last().Status.Published.PackageRevision), obj)
	return err == nil && obj.Status.Lifecycle == packagesv1.LifecycleDeletionProposed && conditions.IsReady(obj), fmt.Sprint(asJSON(obj.Status), err)
}

// isGone says that nothing of the last variant's package is left but its tags.
func (l *packageLaps) isGone(ctx context.Context) (bool, string) {
	var left packagesv1.PackageRevisionList
	if err := env.Client.List(ctx, &left, client.InNamespace(l.namespace)); err != nil {
		return false, err.Error()
	}
	into := l.last().Spec.Downstream.Repo
	if at := slices.IndexFunc(left.Items, func(r packagesv1.PackageRevision) bool { return r.Spec.Repository == into }); at >= 0 {
		return false, asJSON(left.Items[at])
	}
	files := l.files(l.last(), "main")
	return len(files) == 0, fmt.Sprintf("on the branch there are %d files", len(files))
}

// rested tells whether each repository has been looked at twice more.
func (l *packageLaps) rested() func(context.Context) (bool, string) {
	before := l.looks()
	return func(context.Context) (bool, string) {
		now := l.looks()
		for name := range l.repos {
			if now[name] < before[name]+2 {
				return false, fmt.Sprintf("%s: %d looks after %d", name, now[name], before[name])
			}
		}
		return true, ""
	}
}

// looks is how often each repository's refs were listed.
func (l *packageLaps) looks() map[string]int {
	counts := map[string]int{}
	for _, request := range l.server.Requests() {
		if name, _, ok := strings.Cut(strings.TrimPrefix(request.URI, "/"), ".git/"); ok && request.Kind == upstream.LsRefs {
			counts[name]++
		}
	}
	return counts
}

// chronicle is what each ref has come through, as the trees of packages and the messages of commits, and what objects say in
// the end.
func (l *packageLaps) chronicle() map[string][]string {
	l.t.Helper()
	told := map[string][]string{}
	for _, name := range []string{"north", "south"} {
		repo := l.repos[name]
		record, err := os.ReadFile(filepath.Join(repo.Dir(), "record"))
		if err != nil {
			l.t.Fatal(err)
		}
		for line := range strings.Lines(string(record)) {
			ref, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
			for _, pkg := range []string{"web", "db"} {
				key, state := name+" "+ref+" "+pkg, l.state(repo, ref, commit, pkg)
				all := told[key]
				if len(all) == 0 && state == "none" {
					continue // Whether packages come to the branch with one push or one after the other is a matter of moments.
				}
				if state != "" && (len(all) == 0 || all[len(all)-1] != state) {
					told[key] = append(all, state)
				}
			}
		}
		told[name] = strings.Fields(repo.Raw("for-each-ref", "--format=%(refname)"))
		told[name+" commits"] = []string{repo.Raw("rev-list", "--count", "main")}
	}
	var revisions packagesv1.PackageRevisionList
	if err := env.Client.List(l.t.Context(), &revisions, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	for _, r := range revisions.Items {
		told["objects"] = append(told["objects"], fmt.Sprint(r.Name, r.Status.Lifecycle, r.Status.Revision, r.Status.Tree))
	}
	slices.Sort(told["objects"])
	if len(told) < 15 || len(told["south refs/heads/main web"]) < 2 {
		l.t.Errorf("next to nothing was recorded: %v", told)
	}
	return told
}

// state is what a package is at a commit of a ref, and what the commit says where the ref is the package's own. Commits
// and objects have other ids each time.
func (l *packageLaps) state(repo *upstream.Edited, ref, commit, pkg string) string {
	l.t.Helper()
	isBranch := ref == "refs/heads/main"
	switch {
	case !isBranch && !strings.Contains(ref, "/"+pkg+"/"):
		return ""
	case strings.Trim(commit, "0") == "":
		return "gone"
	}
	tree, err := repo.Repository.Raw("rev-parse", "--verify", "--quiet", commit+":"+pkg)
	if err != nil {
		tree = "none"
	}
	if isBranch {
		return tree
	}
	return cmp.Or(tree, "none") + " " + aCommit.ReplaceAllString(repo.Raw("log", "-1", "--format=%B", commit), "COMMIT")
}

// aCommit is the id of a commit, or the UID of an object: objects are made anew as well.
var aCommit = regexp.MustCompile(`\b([0-9a-f]{40}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`)

// loseCluster removes all objects of packages and their sources at once, as if the cluster had gone with them.
func (s *packageScene) loseCluster() {
	s.t.Helper()
	s.each(func(obj client.Object) {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := env.Client.Patch(s.t.Context(), obj, free); err != nil {
			s.t.Fatal(err)
		}
		if err := env.Client.Delete(s.t.Context(), obj); client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
	})
}

// each visits all objects of packages and their sources.
func (s *packageScene) each(visit func(client.Object)) {
	s.t.Helper()
	for _, list := range []client.ObjectList{
		&packagesv1.PackageVariantList{}, &packagesv1.PackageRevisionList{}, &packagesv1.RepositoryList{}, &sourcev1.GitRepositoryList{},
	} {
		if err := env.Client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Fatal(err)
		}
		if err := apimeta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			visit(obj)
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
	}
}
