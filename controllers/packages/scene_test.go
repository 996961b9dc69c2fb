package packages_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// scene is a plane with two repositories: one of blueprints, and one of what is made of them, which begins with a README.
// Many stories go on in it at the same time, each with a package of its own.
type scene struct {
	*plane

	blueprints, cluster *upstream.Edited
	reading             *reading
}

// reading has one story at a time read the repositories, for all who came to wait for it meanwhile.
type reading struct {
	turn sync.Mutex

	mu sync.Mutex
	// next is the one that nobody has begun; nil for none. It is closed at its end.
	next chan struct{}
}

func newScene(t *testing.T, change ...func(*plane)) *scene {
	t.Helper()
	s := &scene{plane: newPlane(t, change...), reading: &reading{}}
	s.blueprints, s.cluster = s.repository("blueprints"), s.repository("cluster")
	s.blueprints.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "blueprints\n"}))
	s.cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	return s
}

// story is what happens to one package of the scene.
type story struct {
	*scene

	// name is that of the package, up and down, and of its variant.
	name string
	v    *packagesv1.PackageVariant
}

// story begins one, in a test of its own.
func (s *scene) story(t *testing.T, name string) *story {
	t.Helper()
	own, plane := *s, *s.plane
	own.plane, plane.T = &plane, t
	return &story{scene: &own, name: name}
}

// files are those of the package with the image; more are further ones, by their name in it.
func (s *story) files(image string, more map[string]string) upstream.Files {
	all := map[string]string{"Kptfile": strings.ReplaceAll(kptfile, "app", s.name), "deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", image)}
	maps.Copy(all, more)
	inside := map[string]string{}
	for name, content := range all {
		inside[s.name+"/"+name] = content
	}
	return upstream.Text(inside)
}

// blueprint commits the package upstream.
func (s *story) blueprint(image string, more map[string]string) (commit string) {
	s.Helper()
	return s.blueprints.Commit("main", s.name+" "+image, s.files(image, more))
}

// release commits the package upstream, and tags it with its revision.
func (s *story) release(revision, image string, more map[string]string) {
	s.Helper()
	s.blueprints.Tag(s.name+"/"+revision, s.blueprint(image, more), false)
}

// begin makes the variant.
func (s *story) begin(change ...func(*packagesv1.PackageVariantSpec)) {
	s.Helper()
	s.v = &packagesv1.PackageVariant{ObjectMeta: s.meta(s.name), Spec: packagesv1.PackageVariantSpec{
		Upstream:   packagesv1.Upstream{Repo: "blueprints", Package: s.name},
		Downstream: packagesv1.Downstream{Repo: "cluster", Package: s.name},
	}}
	for _, c := range change {
		c(&s.v.Spec)
	}
	s.create(s.v)
}

// edit changes the variant's spec.
func (s *story) edit(change func(*packagesv1.PackageVariantSpec)) {
	s.Helper()
	s.ask(s.v, func() { change(&s.v.Spec) })
}

// requests counts requests to look at objects, so that no two are the same.
var requests atomic.Int64

// looked is an object that says which request it has answered.
type looked interface {
	conditions.Getter
	client.Object
}

// again has an object looked at now, and waits until it was.
func (p *plane) again(obj looked, handled func() string) {
	p.Helper()
	token := fmt.Sprintf("request-%d", requests.Add(1))
	p.ask(obj, func() {
		all := maps.Clone(obj.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		all[meta.ReconcileRequestAnnotation] = token
		obj.SetAnnotations(all)
	})
	testenv.Eventually(p.T, "the request is answered", func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err == nil && handled() == token, fmt.Sprint(err, said(obj))
	})
}

// sync has all that was pushed to the repositories read.
func (s *scene) sync() {
	s.Helper()
	s.reading.mu.Lock()
	next := s.reading.next
	if next != nil {
		s.reading.mu.Unlock()
		<-next
		return
	}
	next = make(chan struct{})
	defer close(next)
	s.reading.next = next
	s.reading.mu.Unlock()
	s.reading.turn.Lock()
	defer s.reading.turn.Unlock()
	s.reading.mu.Lock()
	s.reading.next = nil
	s.reading.mu.Unlock()
	for _, name := range []string{"blueprints", "cluster"} {
		r := &packagesv1.Repository{ObjectMeta: s.meta(name)}
		s.again(r, func() string { return r.Status.LastHandledReconcileAt })
	}
}

// settle waits until nothing is left to do for the variant, with all seen that is in Git and in its spec by now.
func (s *story) settle() {
	s.Helper()
	s.sync()
	for calm := 0; calm < 2; {
		s.again(s.v, func() string { return s.v.Status.LastHandledReconcileAt })
		if calm++; !s.rests(s.v) {
			calm = 0
			until(s.plane, s.v, "it comes to rest", func(v *packagesv1.PackageVariant) (bool, string) { return s.rests(v), said(v) })
		}
	}
}

// rests tells whether nothing is done for the variant at the moment.
func (s *story) rests(v *packagesv1.PackageVariant) bool {
	return conditions.IsReady(v) || conditions.IsStalled(v) || s.waits()
}

// waits tells whether the variant waits for something else, such as a revision that does not exist.
func (s *story) waits() bool {
	return conditions.GetReason(s.v, "Ready") == packagesv1.UpstreamNotFoundReason
}

// draft is the name of the open change's branch; empty without one.
func (s *story) draft() string {
	if s.v.Status.Change == nil {
		return ""
	}
	return "drafts/" + s.name + "/" + s.v.Status.Change.Workspace
}

// written counts the commits of all of the package's drafts.
func (s *story) written() int {
	s.Helper()
	return len(strings.Fields(s.cluster.Raw("log", "--format=%H", "--branches=drafts/"+s.name+"/*", "--not", "main")))
}

// open is a file of the open change.
func (s *story) open(name string) string {
	s.Helper()
	if s.v.Status.Change == nil {
		s.Fatalf("there is no open change: %s", said(s.v))
	}
	return s.cluster.Tree(s.v.Status.Change.Commit)[s.name+"/"+name].Content
}

// published is a file on the branch.
func (s *story) published(name string) string {
	s.Helper()
	return s.cluster.Tree("main")[s.name+"/"+name].Content
}

// person commits files of the package to a branch of the cluster's repository, as somebody does who edits them.
func (s *story) person(branch string, files map[string]string) (commit string) {
	s.Helper()
	edited := map[string]string{}
	for name, content := range files {
		edited[s.name+"/"+name] = content
	}
	return s.cluster.Commit(branch, "an edit", upstream.Text(edited))
}

// has tells what of a text is missing.
func (p *plane) has(text string, wanted ...string) {
	p.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			p.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// hasNot tells what of a text should not be there.
func (p *plane) hasNot(text string, unwanted ...string) {
	p.Helper()
	for _, other := range unwanted {
		if strings.Contains(text, other) {
			p.Errorf("%q is still in\n%s", other, text)
		}
	}
}
