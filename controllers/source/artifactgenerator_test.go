package source_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/generator"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/storage/retention"
	"sluice.dev/sluice/tests/upstream/files"
)

// storing counts what the pipeline stores, and remembers it.
type storing struct{ names []string }

func (*storing) Step(string, source.Stage, time.Duration) {}
func (s *storing) Stored(object storage.Object, _ int64)  { s.names = append(s.names, object.Name) }
func (*storing) Run(string, bool)                         {}
func (s *storing) take() []string {
	names := s.names
	s.names = nil
	return names
}

func readAll(t *testing.T, body io.ReadCloser) []byte {
	t.Helper()
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// generatorPlane is the controller of ArtifactGenerators, with sources whose artifacts a test stores itself.
type generatorPlane struct {
	*plane

	stored    *storing
	bodies    int // of sources, opened
	shared    controllers.Shared
	reconcile reconcile.Reconciler
	cross     bool
	limits    archive.Limits
}

// opening counts how often bodies are opened.
type opening struct {
	controllers.Artifacts

	count *int
}

func (o opening) Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	*o.count++
	return o.Artifacts.Body(ctx, artifact)
}

func newGeneratorPlane(t *testing.T) *generatorPlane {
	t.Helper()
	p := &generatorPlane{
		plane:  &plane{t: t, namespace: env.NewNamespace(t), events: &emitted{}, clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))},
		stored: &storing{},
	}
	p.store = localtest.Open(t, local.Options{Now: p.clock.Now, Retention: retention.Policy{TTL: time.Minute, Records: 2}})
	base, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	counting := interceptor.NewClient(base, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			p.writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	p.shared = controllers.Shared{
		Shell: kernel.Shell{
			Client: counting, Reader: counting, Events: p.events, FieldOwner: "source-controller", RequeueDependency: 30 * time.Second,
			Jitter: func(d time.Duration) time.Duration { return d }, Clock: p.clock, Durations: noDurations{}, Workers: 4,
		},
		Pipeline: &source.Pipeline{Store: p.store, Clock: p.clock, Observer: p.stored},
		Address:  "artifacts.example.com",
		Backoff:  kernel.NewBackoff(time.Millisecond, time.Minute),
	}
	p.restart = func() {
		downloads := fetch.New(transport.New(transport.Options{AllowLoopback: true}), fetch.Options{Dir: t.TempDir()})
		t.Cleanup(downloads.Close)
		p.reconcile = controllers.NewArtifactGeneratorReconciler(p.shared, generator.NewMaker(generator.Options{
			Artifacts: opening{controllers.Artifacts{Reader: counting, Store: p.store}, &p.bodies},
			Downloads: downloads, Pipeline: p.shared.Pipeline, TempDir: t.TempDir(), CrossNamespace: p.cross, Limits: p.limits,
		}))
	}
	p.restart()
	return p
}

// tarred is an archive of the files.
func tarred(t *testing.T, texts map[string]string) []byte {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range texts {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	var packed bytes.Buffer
	if err := archive.Write(t.Context(), &packed, tree, archive.Everything(), archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// source has the GitRepository repo of a namespace hold the files.
func (p *generatorPlane) source(namespace, revision string, texts map[string]string) {
	p.t.Helper()
	obj := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "repo"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://example.com/r.git", Interval: metav1.Duration{Duration: time.Minute}},
	}
	if err := env.Client.Create(p.t.Context(), obj); apierrors.IsAlreadyExists(err) {
		err = env.Client.Get(p.t.Context(), client.ObjectKeyFromObject(obj), obj)
		if err != nil {
			p.t.Fatal(err)
		}
	} else if err != nil {
		p.t.Fatal(err)
	}
	body := tarred(p.t, texts)
	staged, err := p.store.Stage(p.t.Context(), 0, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	object := storage.Object{Kind: controllers.GitRepositoryDir, Namespace: namespace, Name: "repo"}
	_, err = p.store.Publish(p.t.Context(), object, staged, storage.Record{
		UID: string(obj.UID), Current: storage.Artifact{Path: object.File(staged.Digest.Encoded() + ".tar.gz"), Revision: revision},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func copies(from, to string) []extensionsv1.CopyOperation {
	return []extensionsv1.CopyOperation{{From: from, To: to}}
}

// create makes a generator of two artifacts out of one repository, or of what change makes of that.
func (p *generatorPlane) create(name string, change func(*extensionsv1.ArtifactGenerator)) {
	p.t.Helper()
	obj := &extensionsv1.ArtifactGenerator{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
		Spec: extensionsv1.ArtifactGeneratorSpec{
			Sources: []extensionsv1.SourceReference{{Alias: "repo", Kind: "GitRepository", Name: "repo"}},
			OutputArtifacts: []extensionsv1.OutputArtifact{
				{Name: "web", Copy: copies("@repo/apps/web/**", "@artifact/")},
				{Name: "db", Copy: copies("@repo/apps/db/**", "@artifact/")},
			},
		},
	}
	if change != nil {
		change(obj)
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

func (p *generatorPlane) edit(name string, change func(*extensionsv1.ArtifactGenerator)) {
	p.t.Helper()
	obj := &extensionsv1.ArtifactGenerator{}
	if err := env.Client.Get(p.t.Context(), p.key(name), obj); err != nil {
		p.t.Fatal(err)
	}
	change(obj)
	if err := env.Client.Update(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// run reconciles a generator, and gives it as it is then; nil when it is gone.
func (p *generatorPlane) run(name string) (*extensionsv1.ArtifactGenerator, ctrl.Result, error) {
	p.t.Helper()
	result, err := p.reconcile.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: p.key(name)})
	obj := &extensionsv1.ArtifactGenerator{}
	if lost := env.Client.Get(p.t.Context(), p.key(name), obj); lost != nil {
		return nil, result, err
	}
	return obj, result, err
}

// succeed runs, and wants Ready.
func (p *generatorPlane) succeed(name string) *extensionsv1.ArtifactGenerator {
	p.t.Helper()
	obj, result, err := p.run(name)
	if err != nil || !conditions.IsReady(obj) || result.RequeueAfter != time.Hour {
		p.t.Fatalf("%v %+v %+v", err, result, obj.Status.Conditions)
	}
	return obj
}

// fail runs, and wants Ready to be False with the reason, for words of the message.
func (p *generatorPlane) fail(name, reason, words string, stalled bool) {
	p.t.Helper()
	obj, _, _ := p.run(name)
	ready := conditions.Get(obj, meta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != reason || !strings.Contains(ready.Message, words) || conditions.IsStalled(obj) != stalled {
		p.t.Fatalf("want %s with %q, got %+v", reason, words, obj.Status.Conditions)
	}
}

func (p *generatorPlane) output(name string) *sourcev1.ExternalArtifact {
	p.t.Helper()
	obj := &sourcev1.ExternalArtifact{}
	if err := env.Client.Get(p.t.Context(), p.key(name), obj); err != nil {
		p.t.Fatal(err)
	}
	return obj
}

// holds are the files of an output, as it is served.
func (p *generatorPlane) holds(name string) map[string]string {
	p.t.Helper()
	artifact := p.output(name).Status.Artifact
	body, err := p.store.Open(p.t.Context(), artifact.Path)
	if err != nil {
		p.t.Fatal(err)
	}
	packed := readAll(p.t, body)
	if got := digest.FromBytes(packed).String(); got != artifact.Digest {
		p.t.Fatalf("digest %s of status, %s of the body", artifact.Digest, got)
	}
	opened, err := archive.Open(p.t.Context(), bytes.NewReader(packed), p.t.TempDir(), archive.Limits{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	found := map[string]string{}
	err = fs.WalkDir(opened, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(opened, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func TestOneSourceBecomesManyArtifacts(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	tree := map[string]string{"apps/web/a.yaml": "a", "apps/db/b.yaml": "b", "README.md": "r"}
	p.source(p.namespace, "main@sha1:1", tree)
	p.create("apps", nil)
	obj := p.succeed("apps")

	if diff := cmp.Diff(map[string]string{"a.yaml": "a"}, p.holds("web")); diff != "" {
		t.Error(diff)
	}
	web := p.output("web")
	artifact := web.Status.Artifact
	if artifact.Revision != "latest@"+artifact.Digest || !strings.HasPrefix(artifact.Path, "externalartifact/"+p.namespace+"/web/") ||
		artifact.URL != "http://artifacts.example.com/"+artifact.Path || !conditions.IsReady(web) || conditions.GetReason(web, meta.ReadyCondition) != "Succeeded" {
		t.Errorf("%+v", web.Status)
	}
	if diff := cmp.Diff(map[string]string{"app.kubernetes.io/managed-by": "sluice", extensionsv1.GeneratorLabel: string(obj.UID)}, web.Labels); diff != "" {
		t.Error(diff)
	}
	want := &meta.NamespacedObjectKindReference{APIVersion: "source.extensions.fluxcd.io/v1beta1", Kind: "ArtifactGenerator", Name: "apps", Namespace: p.namespace}
	if diff := cmp.Diff(want, web.Spec.SourceRef); diff != "" {
		t.Error(diff)
	}
	if got := conditions.GetMessage(obj, meta.ReadyCondition); got != "reconciliation succeeded, generated 2 artifact(s)" {
		t.Error(got)
	}
	inventory := obj.Status.Inventory
	if len(inventory) != 2 || inventory[0].Name != "web" || inventory[0].Namespace != p.namespace || inventory[0].Digest != artifact.Digest ||
		!strings.HasSuffix(artifact.Path, "/"+inventory[0].Filename) || obj.Status.ObservedSourcesDigest == "" {
		t.Errorf("%+v", obj.Status)
	}
	if got := p.events.take(); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Succeeded: external artifacts reconciled: "+p.namespace+"/web ("+artifact.Digest) {
		t.Error(got)
	}

	// Nothing has changed: nothing is read or written.
	p.writes, p.bodies = 0, 0
	p.stored.take()
	p.succeed("apps")
	p.restart()
	p.succeed("apps")
	if p.writes != 0 || p.bodies != 0 || len(p.stored.take()) != 0 {
		t.Errorf("a look that finds nothing new: %d writes, %d sources read", p.writes, p.bodies)
	}

	// One file has changed: one archive is written, and one ExternalArtifact.
	tree["apps/db/b.yaml"] = "B"
	p.source(p.namespace, "main@sha1:2", tree)
	p.succeed("apps")
	if got := p.stored.take(); !slices.Equal(got, []string{"db"}) || p.bodies != 1 {
		t.Errorf("stored %v, and read %d sources", got, p.bodies)
	}
	if after := p.output("web"); after.ResourceVersion != web.ResourceVersion {
		t.Error("what has not changed was written to")
	}
	if diff := cmp.Diff(map[string]string{"b.yaml": "B"}, p.holds("db")); diff != "" {
		t.Error(diff)
	}

	// A commit elsewhere: status tells what was looked at, and no more.
	tree["README.md"] = "R"
	p.source(p.namespace, "main@sha1:3", tree)
	p.writes, p.bodies = 0, 0
	p.succeed("apps")
	p.succeed("apps")
	if got := p.stored.take(); len(got) != 0 || p.writes != 1 || p.bodies != 1 {
		t.Errorf("stored %v, %d writes, %d sources read", got, p.writes, p.bodies)
	}

	// What is not asked for any more goes, and its artifact with it.
	gone := p.output("db").Status.Artifact.Path
	p.edit("apps", func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.OutputArtifacts = obj.Spec.OutputArtifacts[:1] })
	if obj = p.succeed("apps"); len(obj.Status.Inventory) != 1 {
		t.Errorf("%+v", obj.Status.Inventory)
	}
	if err := env.Client.Get(t.Context(), p.key("db"), &sourcev1.ExternalArtifact{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if _, err := p.store.Open(t.Context(), gone); err == nil {
		t.Error("the artifact of what is gone is served")
	}

	// With the generator everything goes.
	if err := env.Client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if left, _, err := p.run("apps"); err != nil || left != nil {
		t.Error(left, err)
	}
	if objects, err := p.store.Objects(t.Context()); err != nil || slices.ContainsFunc(objects, func(o storage.Object) bool { return o.Kind == generator.Dir }) {
		t.Error(objects, err)
	}
	if err := env.Client.Get(t.Context(), p.key("web"), &sourcev1.ExternalArtifact{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func TestRevisionsOfSourcesArePassedOn(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	tree := map[string]string{"apps/web/a.yaml": "a"}
	p.source(p.namespace, "main@sha1:1", tree)
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{
			{Name: "named", Revision: "@repo", Copy: copies("@repo/apps", "@artifact/")},
			{Name: "told", OriginRevision: "@repo", Copy: copies("@repo/apps", "@artifact/")},
		}
	})
	p.succeed("apps")
	named, told := p.output("named").Status.Artifact, p.output("told").Status.Artifact
	if named.Revision != "main@sha1:1" || told.Metadata[ocispec.AnnotationRevision] != "main@sha1:1" || told.Digest != named.Digest {
		t.Errorf("%+v %+v", named, told)
	}
	// Another commit with the same content: the words move, and the bytes stay where they are.
	tree["README.md"] = "new"
	p.source(p.namespace, "main@sha1:2", tree)
	p.stored.take()
	p.succeed("apps")
	after, toldAfter := p.output("named").Status.Artifact, p.output("told").Status.Artifact
	if after.Revision != "main@sha1:2" || after.Path != named.Path || toldAfter.Metadata[ocispec.AnnotationRevision] != "main@sha1:2" ||
		toldAfter.Revision != told.Revision || toldAfter.Path != told.Path {
		t.Errorf("%+v %+v", after, toldAfter)
	}
	if got := p.stored.take(); len(got) != 0 {
		t.Errorf("the same content was archived again: %v", got)
	}
}

func TestAPatternMakesArtifactsForEachFolder(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	tree := map[string]string{
		"apps/Web/envs/prod/a": "wp", "apps/Web/envs/test/a": "wt", "apps/db/envs/prod/a": "dp", "apps/db/notes": "n", "apps/other/x": "x",
	}
	p.source(p.namespace, "main@sha1:1", tree)
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.PathPattern = "@repo/apps/{app}/envs/{env}"
		obj.Spec.CommonMetadata = &extensionsv1.CommonMetadata{
			Labels: map[string]string{"team": "a", "app": "lost"}, Annotations: map[string]string{"note": "n"},
		}
		obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "{app}-{env}", Copy: copies("@repo/apps/{app}/envs/{env}/**", "@artifact/{app}/")}}
	})
	obj := p.succeed("apps")
	var names []string
	for _, made := range obj.Status.Inventory {
		names = append(names, made.Name)
	}
	if !slices.Equal(names, []string{"web-prod", "web-test", "db-prod"}) {
		t.Fatal(names)
	}
	if diff := cmp.Diff(map[string]string{"Web/a": "wp"}, p.holds("web-prod")); diff != "" {
		t.Error(diff)
	}
	made := p.output("web-prod")
	if made.Labels["app"] != "web" || made.Labels["env"] != "prod" || made.Labels["team"] != "a" || made.Annotations["note"] != "n" {
		t.Error(made.Labels, made.Annotations)
	}
	// A label that is not asked for any more goes; somebody else's stays.
	made.Labels["theirs"] = "t"
	if err := env.Client.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	p.edit("apps", func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.CommonMetadata = nil })
	p.succeed("apps")
	if made = p.output("web-prod"); made.Labels["team"] != "" || made.Annotations["note"] != "" || made.Labels["theirs"] != "t" {
		t.Error(made.Labels, made.Annotations)
	}
	// Nothing is read for a look that finds nothing new, and one folder more is one artifact more.
	p.bodies = 0
	p.stored.take()
	p.succeed("apps")
	if p.bodies != 0 {
		t.Error("the source was read")
	}
	tree["apps/new/envs/prod/a"] = "np"
	delete(tree, "apps/db/envs/prod/a")
	p.source(p.namespace, "main@sha1:2", tree)
	p.succeed("apps")
	if got := p.stored.take(); !slices.Equal(got, []string{"new-prod"}) {
		t.Error(got)
	}
	if err := env.Client.Get(t.Context(), p.key("db-prod"), &sourcev1.ExternalArtifact{}); !apierrors.IsNotFound(err) {
		t.Error("the artifact of a folder that is gone is still there", err)
	}
}

// TestOutputsAreHealed: whatever somebody does to an ExternalArtifact, it is put right from what is stored, without a source.
func TestOutputsAreHealed(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*generatorPlane, *sourcev1.ExternalArtifact) error{
		"Deleted": func(p *generatorPlane, obj *sourcev1.ExternalArtifact) error {
			return env.Client.Delete(p.t.Context(), obj)
		},
		"StatusForged": func(p *generatorPlane, obj *sourcev1.ExternalArtifact) error {
			obj.Status.Artifact.URL = "http://evil.example.com/x"
			return env.Client.Status().Update(p.t.Context(), obj)
		},
		"StatusCleared": func(p *generatorPlane, obj *sourcev1.ExternalArtifact) error {
			obj.Status = sourcev1.ExternalArtifactStatus{}
			return env.Client.Status().Update(p.t.Context(), obj)
		},
		"LabelsTaken": func(p *generatorPlane, obj *sourcev1.ExternalArtifact) error {
			obj.Labels = nil
			return env.Client.Update(p.t.Context(), obj)
		},
		"SpecEdited": func(p *generatorPlane, obj *sourcev1.ExternalArtifact) error {
			obj.Spec.SourceRef.Name = "other"
			return env.Client.Update(p.t.Context(), obj)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneratorPlane(t)
			p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
			p.create("apps", nil)
			p.succeed("apps")
			before := p.output("web")
			if err := harm(p, before.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			p.stored.take()
			p.bodies = 0
			p.succeed("apps")
			after := p.output("web")
			if diff := cmp.Diff(before.Status.Artifact, after.Status.Artifact); diff != "" || !conditions.IsReady(after) {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Labels, after.Labels); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Error(diff)
			}
			if len(p.stored.take()) != 0 || p.bodies != 0 {
				t.Error("the artifact was made again")
			}
			p.holds("web")
		})
	}
}

// TestWhatOthersMadeIsNeverTakenOver: neither by a generator nor by another one, and what else is made is made.
func TestWhatOthersMadeIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	theirs := &sourcev1.ExternalArtifact{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec:       sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{Kind: "Maker", Name: "m"}},
	}
	if err := env.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.create("apps", nil)
	p.fail("apps", extensionsv1.ConflictReason, "web reconcile failed: ExternalArtifact web is there, and it was not made by this generator", true)
	if after := p.output("web"); after.ResourceVersion != theirs.ResourceVersion {
		t.Error("somebody else's object was written to")
	}
	p.holds("db")

	p.create("second", nil)
	p.fail("second", extensionsv1.ConflictReason, "(and 1 more)", true)
	if got := p.output("db").Spec.SourceRef.Name; got != "apps" {
		t.Error(got)
	}
	second := &extensionsv1.ArtifactGenerator{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "second"}}
	if err := env.Client.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.run("second"); err != nil {
		t.Error(err)
	}
	p.holds("db")
	if after := p.output("web"); after.ResourceVersion != theirs.ResourceVersion {
		t.Error("somebody else's object was written to")
	}

	if err := env.Client.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.succeed("apps")
	p.holds("web")
}

// TestALastGoodArtifactStays: one artifact that cannot be made holds up no other, and what was made of it before stays served.
func TestALastGoodArtifactStays(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	tree := map[string]string{"apps/web/a": "a", "apps/db/b": "b"}
	p.source(p.namespace, "main@sha1:1", tree)
	p.create("apps", nil)
	p.succeed("apps")
	p.events.take()
	delete(tree, "apps/web/a")
	tree["apps/db/b"] = "B"
	p.source(p.namespace, "main@sha1:2", tree)
	p.fail("apps", extensionsv1.BuildFailedReason, "web build failed: failed to apply copy operation from '@repo/apps/web/**' to '@artifact/': no files match pattern 'apps/web/**' in source 'repo'", false)
	if got := p.events.take(); len(got) != 2 || !strings.Contains(got[0], "db (sha256:") || !strings.HasPrefix(got[1], "Warning BuildFailed: web build failed") {
		t.Error(got)
	}
	if diff := cmp.Diff(map[string]string{"a": "a"}, p.holds("web")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "B"}, p.holds("db")); diff != "" {
		t.Error(diff)
	}
	tree["apps/web/a"] = "a"
	p.source(p.namespace, "main@sha1:3", tree)
	p.succeed("apps")
	if got := p.events.take(); len(got) != 1 || got[0] != "Normal Succeeded: reconciliation succeeded, generated 2 artifact(s)" {
		t.Error(got)
	}
}

func TestGeneratorsThatAskForTheImpossibleSayWhy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change        func(*extensionsv1.ArtifactGenerator)
		reason, words string
		stalled       bool
	}{
		"NoSource": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.Sources[0].Name = "none" },
			extensionsv1.SourceFetchFailedReason, "get sources failed: there is no such object", false,
		},
		"NoArtifact": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.Sources[0].Name = "empty" },
			extensionsv1.SourceFetchFailedReason, "get sources failed: source 'GitRepository/", false,
		},
		"TwoAliases": {
			func(obj *extensionsv1.ArtifactGenerator) {
				obj.Spec.Sources = append(obj.Spec.Sources, obj.Spec.Sources[0])
			},
			extensionsv1.ValidationFailedReason, "duplicate source alias 'repo' found", true,
		},
		"TwoNames": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.OutputArtifacts[1].Name = "web" },
			extensionsv1.ValidationFailedReason, "duplicate artifact name 'web' found", true,
		},
		"NoAlias": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.OutputArtifacts[0].Revision = "@none" },
			extensionsv1.ValidationFailedReason, "artifact web revision source alias 'none' not found", true,
		},
		"NoAliasToCopyFrom": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.OutputArtifacts[0].Copy[0].From = "@none/x" },
			extensionsv1.ValidationFailedReason, "artifact web copy source alias 'none' not found", true,
		},
		"NoName": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.OutputArtifacts[0].Name = "a.b" },
			extensionsv1.ValidationFailedReason, "artifact name 'a.b'", true,
		},
		"ElsewhereIsForbidden": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.Sources[0].Namespace = "kube-system" },
			extensionsv1.AccessDeniedReason, "cross-namespace reference to source GitRepository/kube-system/repo is not allowed", true,
		},
		"NamesThatMeet": {
			func(obj *extensionsv1.ArtifactGenerator) {
				obj.Spec.PathPattern = "@repo/apps/{app}/{env}"
				obj.Spec.OutputArtifacts = obj.Spec.OutputArtifacts[:1]
				obj.Spec.OutputArtifacts[0].Name = "{app}"
			},
			extensionsv1.ValidationFailedReason, `folders "apps/web/x" and "apps/web/y" both give the artifact name 'web'`, true,
		},
		"NoLabel": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.PathPattern = "@repo/bad/{app}" },
			extensionsv1.ValidationFailedReason, "'-a b' is no value of a label", true,
		},
		"NoCapture": {
			func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.PathPattern = "@repo/apps/{a b}" },
			extensionsv1.ValidationFailedReason, "is no capture", true,
		},
		"NoSuchCapture": {
			func(obj *extensionsv1.ArtifactGenerator) {
				obj.Spec.PathPattern = "@repo/apps/{app}"
				obj.Spec.OutputArtifacts[0].Copy[0].To = "@artifact/{env}/"
			},
			extensionsv1.ValidationFailedReason, "'{env}/' stands for nothing that the pattern captures", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneratorPlane(t)
			p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/x/a": "a", "apps/web/y/a": "b", "apps/db/b": "b", "bad/-a b/x": "x"})
			if err := env.Client.Create(t.Context(), &sourcev1.GitRepository{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "empty"},
				Spec:       sourcev1.GitRepositorySpec{URL: "https://example.com/r.git", Interval: metav1.Duration{Duration: time.Minute}},
			}); err != nil {
				t.Fatal(err)
			}
			p.create("apps", tc.change)
			p.fail("apps", tc.reason, tc.words, tc.stalled)
		})
	}
}

// TestSourcesOfOtherNamespaces: where the operator allows them.
func TestSourcesOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.cross = true
	p.restart()
	elsewhere := env.NewNamespace(t)
	p.source(elsewhere, "main@sha1:1", map[string]string{"apps/web/a": "theirs", "apps/db/b": "b"})
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.Sources[0].Namespace = elsewhere })
	p.succeed("apps")
	if diff := cmp.Diff(map[string]string{"a": "theirs"}, p.holds("web")); diff != "" {
		t.Error(diff)
	}
}

// TestExternalArtifactsAreSources: those of others are downloaded, with the digest that they announce, and our own are read.
func TestExternalArtifactsAreSources(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	server := files.New(t)
	body := tarred(t, map[string]string{"x/f": "theirs"})
	server.Put("/theirs.tar.gz", body)
	theirs := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "theirs"}}
	if err := env.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Status.Artifact = &meta.Artifact{
		Path: "theirs.tar.gz", URL: server.URL + "/theirs.tar.gz", Revision: "v1", Digest: digest.FromBytes([]byte("other")).String(), LastUpdateTime: metav1.Now(),
	}
	if err := env.Client.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.create("first", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.Sources = []extensionsv1.SourceReference{{Alias: "ea", Kind: "ExternalArtifact", Name: "theirs"}}
		obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "one", Revision: "@ea", Copy: copies("@ea/x/f", "@artifact/g")}}
	})
	p.fail("first", extensionsv1.SourceFetchFailedReason, "fetch sources failed: source 'ea'", false)
	theirs.Status.Artifact.Digest = digest.FromBytes(body).String()
	if err := env.Client.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.succeed("first")
	if got := p.output("one").Status.Artifact.Revision; got != "v1" {
		t.Error(got)
	}
	p.create("second", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.Sources = []extensionsv1.SourceReference{{Alias: "ea", Kind: "ExternalArtifact", Name: "one"}}
		obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "two", Copy: copies("@ea/g", "@artifact/h")}}
	})
	p.succeed("second")
	if diff := cmp.Diff(map[string]string{"h": "theirs"}, p.holds("two")); diff != "" {
		t.Error(diff)
	}
}

// TestADisabledGeneratorIsLeftAlone: and finishes what was asked for when it is turned on again.
func TestADisabledGeneratorIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Annotations = map[string]string{extensionsv1.ReconcileAnnotation: "Disabled"}
	})
	if _, _, err := p.run("apps"); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), p.key("web"), &sourcev1.ExternalArtifact{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	p.edit("apps", func(obj *extensionsv1.ArtifactGenerator) { obj.Annotations = nil })
	p.succeed("apps")
}

// TestALostStoreIsFilledAgain: under the same names, with the same bytes.
func TestALostStoreIsFilledAgain(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	texts := map[string]string{"apps/web/a": "a", "apps/db/b": "b"}
	p.source(p.namespace, "main@sha1:1", texts)
	p.create("apps", nil)
	p.succeed("apps")
	before := p.output("web").Status.Artifact
	objects, err := p.store.Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := p.store.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	p.fail("apps", extensionsv1.SourceFetchFailedReason, "is not ready", false)
	p.source(p.namespace, "main@sha1:1", texts)
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	p.succeed("apps")
	after := p.output("web").Status.Artifact
	if after.Path != before.Path || after.Digest != before.Digest || after.Revision != before.Revision {
		t.Errorf("%+v, and %+v before", after, before)
	}
}

// TestAHundredArtifactsOfWhichOneChanges writes one archive, and one ExternalArtifact beside the generator's status.
func TestAHundredArtifactsOfWhichOneChanges(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	texts := map[string]string{}
	for i := range 100 {
		texts[fmt.Sprintf("apps/a%02d/f", i)] = "text"
	}
	p.source(p.namespace, "main@sha1:1", texts)
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.OutputArtifacts = nil
		for i := range 100 {
			name := fmt.Sprintf("a%02d", i)
			obj.Spec.OutputArtifacts = append(obj.Spec.OutputArtifacts, extensionsv1.OutputArtifact{Name: name, Copy: copies("@repo/apps/"+name, "@artifact/")})
		}
	})
	p.succeed("apps")
	p.stored.take()
	texts["apps/a42/f"] = "other"
	p.source(p.namespace, "main@sha1:2", texts)
	p.writes, p.bodies = 0, 0
	p.succeed("apps")
	if got := p.stored.take(); !slices.Equal(got, []string{"a42"}) || p.bodies != 1 || p.writes > 3 {
		t.Errorf("stored %v, %d sources read, %d writes of status", got, p.bodies, p.writes)
	}
}

// TestACycleOfGeneratorsIsRefused: of one with itself, and of two.
func TestACycleOfGeneratorsIsRefused(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	from := func(name string) func(*extensionsv1.ArtifactGenerator) {
		return func(obj *extensionsv1.ArtifactGenerator) {
			obj.Spec.Sources = append(obj.Spec.Sources, extensionsv1.SourceReference{Alias: "ea", Kind: "ExternalArtifact", Name: name})
			obj.Spec.OutputArtifacts[0].Copy = append(obj.Spec.OutputArtifacts[0].Copy, extensionsv1.CopyOperation{From: "@ea/**", To: "@artifact/again/"})
		}
	}
	p.create("first", nil)
	p.succeed("first")
	p.create("second", func(obj *extensionsv1.ArtifactGenerator) {
		from("web")(obj)
		obj.Spec.OutputArtifacts = obj.Spec.OutputArtifacts[:1]
		obj.Spec.OutputArtifacts[0].Name = "second"
	})
	p.succeed("second")
	if diff := cmp.Diff(map[string]string{"a": "a", "again/a": "a"}, p.holds("second")); diff != "" {
		t.Error(diff)
	}
	p.edit("first", from("second"))
	p.fail("first", extensionsv1.ValidationFailedReason, "its sources lead back to what it makes itself", true)
	p.edit("first", func(obj *extensionsv1.ArtifactGenerator) { obj.Spec.Sources[1].Name = "web" })
	p.fail("first", extensionsv1.ValidationFailedReason, "/web out of the cycle", true)
	p.holds("web")
}

// TestACycleIsNotHiddenBehindMany: who writes the sources decides in which order they are looked at.
func TestACycleIsNotHiddenBehindMany(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	behind := func(name string, many int) func(*extensionsv1.ArtifactGenerator) {
		return func(obj *extensionsv1.ArtifactGenerator) {
			for i := range many {
				decoy := fmt.Sprintf("%s-%d", name, i)
				obj.Spec.Sources = append(obj.Spec.Sources, extensionsv1.SourceReference{Alias: decoy, Kind: "ExternalArtifact", Name: decoy})
			}
			obj.Spec.Sources = append(obj.Spec.Sources, extensionsv1.SourceReference{Alias: "ea", Kind: "ExternalArtifact", Name: name})
		}
	}
	p.create("first", nil)
	p.succeed("first")
	p.create("second", func(obj *extensionsv1.ArtifactGenerator) {
		behind("web", 0)(obj)
		obj.Spec.OutputArtifacts = obj.Spec.OutputArtifacts[:1]
		obj.Spec.OutputArtifacts[0].Name = "second"
	})
	p.succeed("second")
	p.edit("second", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.Sources = obj.Spec.Sources[:1]
		behind("web", 600)(obj)
	})
	p.edit("first", behind("second", 600))
	p.fail("first", extensionsv1.ValidationFailedReason, "more than 1000 ExternalArtifacts", true)
}

// TestAGeneratorOutOfABackupHasItsArtifactsBack: it and its ExternalArtifacts have other UIDs, and these have its old one.
func TestAGeneratorOutOfABackupHasItsArtifactsBack(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	theirs := &sourcev1.ExternalArtifact{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web", Labels: map[string]string{extensionsv1.GeneratorLabel: "of-long-ago"}},
		Spec: sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{
			APIVersion: extensionsv1.GroupVersion.String(), Kind: "ArtifactGenerator", Name: "apps", Namespace: p.namespace,
		}},
	}
	if err := env.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	p.create("apps", nil)
	obj := p.succeed("apps")
	if got := p.output("web").Labels[extensionsv1.GeneratorLabel]; got != string(obj.UID) {
		t.Error(got)
	}
	p.holds("web")
}

// TestASourceThatOnlyLendsItsRevisionIsNotRead: it may hold anything.
func TestASourceThatOnlyLendsItsRevisionIsNotRead(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.Sources = append(obj.Spec.Sources, extensionsv1.SourceReference{Alias: "other", Kind: "GitRepository", Name: "repo"})
		obj.Spec.OutputArtifacts[0].Revision = "@other"
	})
	p.succeed("apps")
	if p.bodies != 1 {
		t.Errorf("%d sources were read", p.bodies)
	}
}

// TestAStepBackAfterHalfAFailureIsFollowed: what is remembered of sources is of no use once a part of it was made of others.
func TestAStepBackAfterHalfAFailureIsFollowed(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	one := map[string]string{"apps/web/a": "a", "apps/db/b": "b"}
	p.source(p.namespace, "main@sha1:1", one)
	p.create("apps", nil)
	p.succeed("apps")
	p.source(p.namespace, "main@sha1:2", map[string]string{"apps/db/b": "B"})
	p.fail("apps", extensionsv1.BuildFailedReason, "web build failed", false)
	p.source(p.namespace, "main@sha1:1", one)
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	p.succeed("apps")
	if diff := cmp.Diff(map[string]string{"b": "b"}, p.holds("db")); diff != "" {
		t.Error(diff)
	}
}

// TestOutputsAreHealedWhileASourceIsNotThere: from what is stored.
func TestOutputsAreHealedWhileASourceIsNotThere(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	p.create("apps", nil)
	p.succeed("apps")
	before := p.output("web")
	if err := env.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(t.Context(), &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "repo"}}); err != nil {
		t.Fatal(err)
	}
	p.fail("apps", extensionsv1.SourceFetchFailedReason, "there is no such object", false)
	if diff := cmp.Diff(before.Status.Artifact, p.output("web").Status.Artifact); diff != "" {
		t.Error(diff)
	}
}

// TestTheLastArtifactOfADeletedOutputStays: where the next one cannot be stored.
func TestTheLastArtifactOfADeletedOutputStays(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	tree := map[string]string{"apps/web/a": "a", "apps/db/b": "b"}
	p.source(p.namespace, "main@sha1:1", tree)
	p.create("apps", nil)
	p.succeed("apps")
	before := p.output("web")
	if err := env.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	tree["apps/web/a"] = "another text, of which there is more than may be stored"
	p.source(p.namespace, "main@sha1:2", tree)
	p.shared.Pipeline.MaxArtifactBytes = 10
	p.fail("apps", extensionsv1.BuildFailedReason, "web build failed", false)
	if diff := cmp.Diff(map[string]string{"a": "a"}, p.holds("web")); diff != "" {
		t.Error(diff)
	}
}

// TestAPatternIsBounded: by what it gives in all.
func TestAPatternIsBounded(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	texts := map[string]string{}
	for i := range 1100 {
		texts[fmt.Sprintf("apps/a%04d/f", i)] = "text"
	}
	p.source(p.namespace, "main@sha1:1", texts)
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.PathPattern = "@repo/apps/{app}"
		obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "{app}"}}
		for range 100 {
			obj.Spec.OutputArtifacts[0].Copy = append(obj.Spec.OutputArtifacts[0].Copy, copies("@repo/apps/{app}/f", "@artifact/")...)
		}
	})
	p.fail("apps", extensionsv1.ValidationFailedReason, "more than 100000 copy operations", true)
	p.edit("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.OutputArtifacts[0].Copy = obj.Spec.OutputArtifacts[0].Copy[:1]
		obj.Spec.OutputArtifacts = append(obj.Spec.OutputArtifacts, extensionsv1.OutputArtifact{Name: "{app}-too", Copy: copies("@repo/apps/{app}/f", "@artifact/")})
	})
	p.fail("apps", extensionsv1.ValidationFailedReason, "more than 2000 artifacts", true)
}

// theirs has an ExternalArtifact that somebody else has made show a body that he serves.
func (p *generatorPlane) theirs(server *files.Server, name string, body []byte) {
	p.t.Helper()
	server.Put("/"+name, body)
	obj := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
	obj.Status.Artifact = &meta.Artifact{
		Path: name, URL: server.URL + "/" + name, Revision: "v1", Digest: digest.FromBytes(body).String(), LastUpdateTime: metav1.Now(),
	}
	if err := env.Client.Status().Update(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// TestWhatForeignSourcesHoldCountsInTheLimitOfAll: with each other, and with what is stored here.
func TestWhatForeignSourcesHoldCountsInTheLimitOfAll(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.limits = archive.Limits{MaxBytes: 1000}
	p.restart()
	server := files.New(t)
	p.theirs(server, "one", tarred(t, map[string]string{"f": strings.Repeat("1", 600)}))
	p.theirs(server, "two", tarred(t, map[string]string{"f": strings.Repeat("2", 600)}))
	p.source(p.namespace, "main@sha1:1", map[string]string{"f": strings.Repeat("3", 600)})
	from := func(aliases ...extensionsv1.SourceReference) func(*extensionsv1.ArtifactGenerator) {
		return func(obj *extensionsv1.ArtifactGenerator) {
			obj.Spec.Sources, obj.Spec.OutputArtifacts = aliases, []extensionsv1.OutputArtifact{{Name: obj.Name}}
			for _, ref := range aliases {
				operation := copies("@"+ref.Alias+"/f", "@artifact/f")
				obj.Spec.OutputArtifacts[0].Copy = append(obj.Spec.OutputArtifacts[0].Copy, operation...)
			}
		}
	}
	one := extensionsv1.SourceReference{Alias: "one", Kind: "ExternalArtifact", Name: "one"}
	two := extensionsv1.SourceReference{Alias: "two", Kind: "ExternalArtifact", Name: "two"}
	repo := extensionsv1.SourceReference{Alias: "repo", Kind: "GitRepository", Name: "repo"}
	p.create("single", from(one))
	p.succeed("single")
	p.create("foreign", from(one, two))
	p.fail("foreign", extensionsv1.SourceFetchFailedReason, "fetch sources failed: ", false)
	p.create("mixed", from(one, repo))
	p.fail("mixed", extensionsv1.SourceFetchFailedReason, "fetch sources failed: ", false)
}

// TestAForeignSourceThatOnlyLendsItsRevisionIsNotDownloaded: it may hold anything.
func TestAForeignSourceThatOnlyLendsItsRevisionIsNotDownloaded(t *testing.T) {
	t.Parallel()
	p := newGeneratorPlane(t)
	p.source(p.namespace, "main@sha1:1", map[string]string{"apps/web/a": "a", "apps/db/b": "b"})
	p.theirs(files.New(t), "theirs", []byte("no archive"))
	p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
		obj.Spec.Sources = append(obj.Spec.Sources, extensionsv1.SourceReference{Alias: "ea", Kind: "ExternalArtifact", Name: "theirs"})
		obj.Spec.OutputArtifacts[0].Revision = "@ea"
	})
	p.succeed("apps")
	if got := p.output("web").Status.Artifact.Revision; got != "v1" {
		t.Error(got)
	}
}

// TestALastingConflictReadsNothing: what is in the way of one artifact is no reason to read the sources again at each look.
func TestALastingConflictReadsNothing(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{"Plain": "", "Pattern": "@repo/apps/{app}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneratorPlane(t)
			tree := map[string]string{"apps/web/a": "a", "apps/db/b": "b"}
			p.source(p.namespace, "main@sha1:1", tree)
			theirs := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"}}
			if err := env.Client.Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
				if obj.Spec.PathPattern = pattern; pattern != "" {
					obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "{app}", Copy: copies("@repo/apps/{app}/**", "@artifact/")}}
				}
			})
			p.fail("apps", extensionsv1.ConflictReason, "web reconcile failed", true)
			p.bodies = 0
			p.fail("apps", extensionsv1.ConflictReason, "web reconcile failed", true)
			if p.bodies != 0 {
				t.Errorf("%d sources were read, though nothing has changed", p.bodies)
			}
			// What else is made follows its source and is healed, as long as the conflict lasts.
			tree["apps/db/b"] = "B"
			p.source(p.namespace, "main@sha1:2", tree)
			p.fail("apps", extensionsv1.ConflictReason, "web reconcile failed", true)
			if err := env.Client.Delete(t.Context(), p.output("db")); err != nil {
				t.Fatal(err)
			}
			p.fail("apps", extensionsv1.ConflictReason, "web reconcile failed", true)
			if diff := cmp.Diff(map[string]string{"b": "B"}, p.holds("db")); diff != "" {
				t.Error(diff)
			}
			// Once the way is free, it is made.
			if err := env.Client.Delete(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			p.succeed("apps")
			if diff := cmp.Diff(map[string]string{"a": "a"}, p.holds("web")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOutputsAreHealedWhileASourceCannotBeFetched: as while it is not there.
func TestOutputsAreHealedWhileASourceCannotBeFetched(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{"Plain": "", "Pattern": "@ea/{app}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGeneratorPlane(t)
			p.theirs(files.New(t), "theirs", tarred(t, map[string]string{"web/f": "f"}))
			p.create("apps", func(obj *extensionsv1.ArtifactGenerator) {
				obj.Spec.PathPattern = pattern
				obj.Spec.Sources = []extensionsv1.SourceReference{{Alias: "ea", Kind: "ExternalArtifact", Name: "theirs"}}
				obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "web", Copy: copies("@ea/web/**", "@artifact/")}}
			})
			p.succeed("apps")
			before, theirs := p.output("web"), p.output("theirs")
			theirs.Status.Artifact.Digest = digest.FromBytes([]byte("other")).String()
			if err := env.Client.Status().Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := env.Client.Delete(t.Context(), p.output("web")); err != nil {
					t.Fatal(err)
				}
				p.fail("apps", extensionsv1.SourceFetchFailedReason, "fetch sources failed", false)
				if diff := cmp.Diff(before.Status.Artifact, p.output("web").Status.Artifact); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
