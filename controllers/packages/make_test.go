package packages

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/variant"
	"sluice.dev/sluice/tests/upstream"
)

// bench has what a package is made with: a blueprint in one real repository, and another one for what is made.
type bench struct {
	*brief

	shared Shared
	there  *upstream.Edited
	server *upstream.GitHTTP
}

// silent is a client that cannot tell what there is.
type silent struct{ client.Client }

func (silent) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nobody knows")
}

func (silent) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func newBench(t *testing.T) *bench {
	t.Helper()
	f := upstream.ForTest(t)
	blueprints, there := f.Repository("blueprints"), f.Repository("cluster")
	there.AcceptPushes()
	server := f.HTTP(upstream.HTTPOptions{})
	commit := blueprints.Commit("main", "app", upstream.Text(map[string]string{
		"app/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n", "app/a.yaml": "a: 1\n",
	}))
	blueprints.Tag("app/v1", commit, false)
	there.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	connections := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(connections.Close)
	client, err := git.New(git.Options{Transport: connections, TempDir: t.TempDir(), CacheDir: t.TempDir(), MaxCacheBytes: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	depot := pkgrepo.New(client, pkgrepo.Options{})
	mirrored := func(name string) *mirror {
		remote := git.Remote{URL: server.URL(name)}
		m := &mirror{key: types.NamespacedName{Namespace: "default", Name: name}, url: remote.URL, Repository: depot.Repository(pkgrepo.Settings{
			Fetch: remote, Push: remote, Author: pkgrepo.Person{Name: "Sluice", Email: "sluice@shop.example"},
		})}
		if _, _, err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return m
	}
	b := &bench{there: there, server: server, shared: Shared{Shell: kernel.Shell{Client: silent{}}, Plane: NewPlane(), Renderer: function.New(function.Options{})}, brief: &brief{
		owner: "default/app", up: mirrored("blueprints"), upstream: "app", down: mirrored("cluster"),
		downRepo: types.NamespacedName{Namespace: "default", Name: "cluster"}, downstream: "app",
		config: variant.Config{Owner: kpt.Owner{Namespace: "default", Name: "app"}, Package: "app"},
	}}
	b.shared.mirrors.put(b.up)
	b.blueprint = variant.Blueprint{Repo: b.up.url, Directory: "/app", Ref: "app/v1", Commit: commit, Tree: b.up.Snapshot().Package("app").Branch.Tree}
	return b
}

// write orders a draft in a workspace, empty for a new one.
func (b *bench) write(t *testing.T, workspace string) pkgrepo.Result {
	t.Helper()
	m := &maker{brief: b.brief, shared: b.shared, policy: packagesv1.ConflictUpstream, workspace: workspace, timeout: time.Minute, kept: &made{}}
	change := pkgrepo.Change{Kind: pkgrepo.Write, Package: "app", Workspace: workspace, Make: m.make}
	return b.down.Apply(t.Context(), []pkgrepo.Change{change})[0]
}

// TestAnOrderThatWaitedOverwritesNoWork: the spec approves what is computed without the draft, to which a person has committed since the order
// was given.
func TestAnOrderThatWaitedOverwritesNoWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	draft := b.write(t, "")
	b.there.Commit("drafts/app/"+draft.Workspace, "mine", upstream.Text(map[string]string{"app/mine.yaml": "mine: 1\n"}))
	b.config.Labels = map[string]string{"team": "blue"}
	m := &maker{
		brief: b.brief, shared: b.shared, policy: packagesv1.ConflictLocal, workspace: draft.Workspace, timeout: time.Minute, computes: true, kept: &made{},
	}
	change := pkgrepo.Change{Kind: pkgrepo.Write, Package: "app", Workspace: draft.Workspace, Make: m.make}
	r := b.down.Apply(t.Context(), []pkgrepo.Change{change})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if files := b.there.Tree("drafts/app/" + draft.Workspace); files["app/mine.yaml"].Content == "" || m.kept.isComputed {
		t.Errorf("computed: %t, and the draft has %v", m.kept.isComputed, files)
	}
}

// TestAStatusNamesNoCommitWithoutItsConflicts: while Git cannot be asked which ones the open change has, the status stays that of the commit
// before. Otherwise, the new commit could be published without them, and the next look would believe the status.
func TestAStatusNamesNoCommitWithoutItsConflicts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	draft := b.write(t, "")
	open := *b.down.Snapshot().Package("app").Find(draft.Workspace)
	open.Commit = "1111111111111111111111111111111111111111"
	b.server.Always(upstream.Status(500))
	obj := &packagesv1.PackageVariant{}
	obj.Namespace, obj.Name = "default", "app"
	obj.Status.Change = &packagesv1.ChangeStatus{Workspace: draft.Workspace, Commit: "before", Conflicts: conflictsNamed(0, 1), ConflictCount: 1}
	l := &look{open: &open, state: b.down.Snapshot().Package("app"), downstream: &packagesv1.DownstreamStatus{Repo: "cluster", Package: "app"}}
	k := &variants{shared: b.shared}
	if err := k.describe(t.Context(), obj, b.brief, l); err == nil {
		t.Fatal("Git was not asked")
	}
	if c := l.change; c == nil || c.Commit != "before" || c.ConflictCount != 1 {
		t.Errorf("the status is %+v", c)
	}
}

// TestAnOrderThatWaitedBeginsNoSecondDraft: while it was carried out, the variant looked at what was before, and ordered more.
func TestAnOrderThatWaitedBeginsNoSecondDraft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if r := b.write(t, ""); r.Err != nil || r.Workspace != "packagevariant-1" {
		t.Fatalf("%+v", r)
	}
	b.config.Labels = map[string]string{"team": "blue"}
	if r := b.write(t, ""); !errors.Is(r.Err, pkgrepo.ErrExists) {
		t.Errorf("%+v", r)
	}
	if open := b.down.Snapshot().Package("app").Open; len(open) != 1 {
		t.Errorf("%d changes are open", len(open))
	}
}

// TestAnOrderThatWaitedBeginsNoDraftAnew: the draft that it was for was published, or somebody dropped it.
func TestAnOrderThatWaitedBeginsNoDraftAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	draft := b.write(t, "")
	published := b.down.Apply(t.Context(), []pkgrepo.Change{{Kind: pkgrepo.Publish, Package: "app", Workspace: draft.Workspace, Expect: draft.Commit}})[0]
	if published.Err != nil {
		t.Fatal(published.Err)
	}
	if r := b.write(t, draft.Workspace); !errors.Is(r.Err, pkgrepo.ErrGone) {
		t.Errorf("%+v", r)
	}
	if open := b.down.Snapshot().Package("app").Open; len(open) != 0 {
		t.Errorf("%d changes are open", len(open))
	}
}

// TestAVariantThatComesSecondWritesNothing: another one took the package while the order waited.
func TestAVariantThatComesSecondWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if r := b.write(t, ""); r.Err != nil {
		t.Fatal(r.Err)
	}
	b.owner, b.config.Owner.Name = "default/other", "other"
	if r := b.write(t, ""); r.Err == nil {
		t.Errorf("%+v", r)
	}
	if open := b.down.Snapshot().Package("app").Open; len(open) != 1 {
		t.Errorf("%d changes are open", len(open))
	}
}

// TestADraftThatCannotBeReadIsInTheWay: somebody's mistake in a draft's Kptfile hides whose the draft is.
func TestADraftThatCannotBeReadIsInTheWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	draft := b.write(t, "")
	files := b.there.Tree(draft.Commit)
	files["app/Kptfile"] = upstream.File{Content: "a: b: c\n"}
	b.there.Commit("drafts/app/"+draft.Workspace, "a mistake", files)
	if _, _, err := b.down.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.shared.claim(t.Context(), b.brief, b.down.Snapshot().Package("app")); err == nil {
		t.Error("another draft may be begun")
	}
}
