package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

// generate makes a generator of an artifact for each folder of a GitRepository.
func (s *scene) generate(name, of string) *extensionsv1.ArtifactGenerator {
	s.t.Helper()
	obj := &extensionsv1.ArtifactGenerator{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: extensionsv1.ArtifactGeneratorSpec{
			Sources:     []extensionsv1.SourceReference{{Alias: "repo", Kind: sourcev1.GitRepositoryKind, Name: of}},
			PathPattern: "@repo/apps/{app}",
			OutputArtifacts: []extensionsv1.OutputArtifact{{
				Name: name + "-{app}", Copy: []extensionsv1.CopyOperation{{From: "@repo/apps/{app}/**", To: "@artifact/"}},
			}},
		},
	}
	s.make(obj)
	return obj
}

// generated waits until an ExternalArtifact is served that the condition holds for.
func (s *scene) generated(name string, holds func(*meta.Artifact) bool) *sourcev1.ExternalArtifact {
	s.t.Helper()
	obj := &sourcev1.ExternalArtifact{}
	s.eventually("ExternalArtifact "+name, func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, s.key(name), obj)
		return err == nil && conditions.IsReady(obj) && obj.Status.Artifact != nil && holds(obj.Status.Artifact) && isServed(obj.Status.Artifact.URL),
			fmt.Sprint(err, asJSON(obj.Status))
	})
	return obj
}

func anyArtifact(*meta.Artifact) bool { return true }

// TestGeneratorsFollowTheirSources: each is made before its source, and nobody looks at it again by the clock.
func TestGeneratorsFollowTheirSources(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	made := s.generate("apps", "repo")
	repository := s.upstream.Repository("team/repo")
	files := map[string]string{"apps/web/a.yaml": "a", "apps/db/b.yaml": "b", "README.md": "r"}
	repository.Commit("main", "one", upstream.Text(files))
	s.create("repo", s.upstream.HTTP(upstream.HTTPOptions{}).URL("team/repo"), func(spec *sourcev1.GitRepositorySpec) { spec.Interval.Duration = time.Second })
	web, db := s.generated("apps-web", anyArtifact), s.generated("apps-db", anyArtifact)
	s.holds(web.Status.Artifact, upstream.Text(map[string]string{"a.yaml": "a"}))
	s.holds(db.Status.Artifact, upstream.Text(map[string]string{"b.yaml": "b"}))

	files["apps/db/b.yaml"] = "B"
	repository.Commit("main", "two", upstream.Text(files))
	changed := s.generated("apps-db", func(now *meta.Artifact) bool { return now.Digest != db.Status.Artifact.Digest })
	s.holds(changed.Status.Artifact, upstream.Text(map[string]string{"b.yaml": "B"}))
	if again := s.generated("apps-web", anyArtifact); again.ResourceVersion != web.ResourceVersion {
		t.Errorf("what has not changed was written to: %s", asJSON(again))
	}

	// Who deletes or forges one finds it put right.
	if err := env.Client.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	back := s.generated("apps-web", anyArtifact)
	if back.UID == web.UID || back.Status.Artifact.Path != web.Status.Artifact.Path {
		t.Errorf("%s, and before %s", asJSON(back), asJSON(web))
	}
	back.Status.Artifact.URL = "http://evil.example.com/x"
	if err := env.Client.Status().Update(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	s.generated("apps-web", func(now *meta.Artifact) bool { return now.URL == web.Status.Artifact.URL })

	s.stop()
	s.start()
	s.generated("apps-web", func(now *meta.Artifact) bool { return now.Path == web.Status.Artifact.Path })

	if err := env.Client.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"apps-web", "apps-db"} {
		s.eventually(name+" goes with its generator", func(ctx context.Context) (bool, string) {
			err := env.Client.Get(ctx, s.key(name), &sourcev1.ExternalArtifact{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
}

// TestAGeneratorKilledAtAnyWriteConverges: while it begins, and while it goes.
func TestAGeneratorKilledAtAnyWriteConverges(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	k.begin()
	k.create("many", k.server.URL("many"))
	k.upstream.Repository("many").Commit("main", "one", upstream.Text(map[string]string{"apps/a/x": "a", "apps/b/x": "b"}))
	k.generate("first", "many")
	k.generated("first-b", anyArtifact)
	struck := 0
	for n := 1; n <= 9; n++ {
		for _, when := range someOf(n, beforeForwarding, beforeAnswering) {
			name := fmt.Sprintf("new-%d-%d", n, len(when))
			var made *extensionsv1.ArtifactGenerator
			struck += k.at(n, when, name, func() { made = k.generate(name, "many") })
			for _, app := range []string{"a", "b"} {
				k.holds(k.generated(name+"-"+app, anyArtifact).Status.Artifact, upstream.Text(map[string]string{"x": app}))
			}
			if n > 4 {
				continue
			}
			struck += k.at(n, when, name, func() {
				if err := env.Client.Delete(t.Context(), made); err != nil {
					t.Fatal(err)
				}
			})
			k.eventually(name+" and all it has made are gone", func(ctx context.Context) (bool, string) {
				err := env.Client.Get(ctx, k.key(name), &extensionsv1.ArtifactGenerator{})
				left := env.Client.Get(ctx, k.key(name+"-a"), &sourcev1.ExternalArtifact{})
				return apierrors.IsNotFound(err) && apierrors.IsNotFound(left), fmt.Sprint(err, left)
			})
		}
	}
	if struck < fewestPoints(5, 10) {
		t.Errorf("killed at %d points alone", struck)
	}
}

// at has something done while the program is killed at a write, if it comes so far, and starts it again. It returns how often that was.
func (k *killing) at(n int, when moment, name string, do func()) int {
	k.t.Helper()
	k.api.onWrite(n, when, k.strike())
	do()
	select {
	case <-k.manager.Done():
	case <-k.done(name): // The write by which it was done may be the one.
	}
	if !k.api.disarm() {
		return 0
	}
	k.within(fmt.Sprintf("killed at write %d, %s", n, when), k.manager.Done())
	k.manager = nil
	k.api.settle()
	k.start()
	return 1
}

// done is closed when a generator is ready, or gone.
func (k *killing) done(name string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for k.t.Context().Err() == nil {
			obj := &extensionsv1.ArtifactGenerator{}
			err := env.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, obj)
			if apierrors.IsNotFound(err) || err == nil && conditions.IsReady(obj) && obj.DeletionTimestamp.IsZero() && len(obj.Status.Inventory) == 2 {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return done
}
