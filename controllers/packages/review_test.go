package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/forges"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// forged is a scene whose cluster repository is on a forge.
type forged struct {
	*scene

	provider string
	forge    *forges.Forge
}

func newForged(t *testing.T, provider string) *forged {
	t.Helper()
	s := &scene{plane: newPlane(t), reading: &reading{}}
	s.blueprints = s.repository("blueprints")
	s.cluster = s.upstreams.Repository("acme/cluster")
	s.cluster.AcceptPushes()
	source := s.source("cluster", s.server)
	source.Spec.URL = s.server.URL("acme/cluster")
	s.cluster.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "hello\n"}))
	s.blueprints.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "blueprints\n"}))
	f := &forged{scene: s, provider: provider, forge: forges.Start(t, provider)}
	f.forge.Add("acme/cluster", s.cluster, func() { s.look("cluster") })
	s.create(source, s.packages("cluster"), f.secret("forge", forges.Token))
	s.cluster.Moved = func() { s.look("cluster") }
	return f
}

func (f *forged) secret(name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: f.meta(name), StringData: map[string]string{"bearerToken": token, "endpoint": f.forge.Endpoint()}}
}

// asks has the changes reviewed on the forge.
func (f *forged) asks(spec *packagesv1.PackageVariantSpec) {
	spec.Approval = &packagesv1.Approval{Review: &packagesv1.Review{
		Provider: packagesv1.ReviewProvider(f.provider), SecretRef: packagesv1.LocalReference{Name: "forge"},
	}}
}

// tale is a story on the forge.
type tale struct {
	*story

	on *forged
}

func (f *forged) tale(t *testing.T, name string) *tale {
	t.Helper()
	s := &tale{story: f.story(t, name), on: f}
	s.release("v1", "1.0.0", nil)
	s.begin(f.asks)
	return s
}

// pull is the newest request of the package, once it is as it should be.
func (s *tale) pull(what string, is func(forges.Pull) bool) (found forges.Pull) {
	s.Helper()
	testenv.Eventually(s.T, what, func(context.Context) (bool, string) {
		found = forges.Pull{}
		for _, p := range s.on.forge.Pulls() {
			if strings.Contains(p.Head, "/"+s.name+"/") {
				found = p
			}
		}
		return found.Number > 0 && is(found), fmt.Sprintf("%+v", found)
	})
	return found
}

// opened is the newest request of the package, which is open and tells what the image is.
func (s *tale) opened(about string) forges.Pull {
	s.Helper()
	return s.pull("the request tells of "+about, func(p forges.Pull) bool { return p.State == "open" && strings.Contains(p.Body, about) })
}

// says waits until the condition has the reason.
func (s *tale) says(reason string, words ...string) {
	s.Helper()
	until(s.plane, s.v, "its review is "+reason, func(v *packagesv1.PackageVariant) (bool, string) {
		c := conditions.Get(v, packagesv1.ReviewedCondition)
		if c == nil || c.Reason != reason {
			return false, fmt.Sprintf("%+v; %s", c, said(v))
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return false, c.Message
			}
		}
		return true, ""
	})
}

// isPublished waits until the revision is published.
func (s *tale) isPublished(revision string) {
	s.Helper()
	until(s.plane, s.v, revision+" is published", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Published != nil && v.Status.Published.Revision == revision && v.Status.Change == nil && conditions.IsReady(v), fmt.Sprintf("%s %+v %s\n%s", said(v), v.Status.Published, s.debug(), refs(s.cluster))
	})
}

// TestAMergeOnTheForgePublishes, whichever button it was, and the next change gets a request of its own.
func TestAMergeOnTheForgePublishes(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"github", "gitlab", "gitea"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			f := newForged(t, provider)
			f.cluster.Hook("update", `[ "$1" != refs/heads/main ]`) // The branch is protected.
			for name, test := range map[string]struct {
				way     forges.Way
				deletes bool
			}{
				"merge": {forges.Merge, false}, "squash": {forges.Squash, true}, "rebase": {forges.Rebase, false},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					s := f.tale(t, name)
					s.sync()
					first := s.opened("deployment")
					s.says(packagesv1.ReviewPendingReason, "request")
					if s.v.Status.Review == nil || s.v.Status.Review.Number != int64(first.Number) || s.v.Status.Review.URL == "" {
						t.Errorf("the status shows %+v", s.v.Status.Review)
					}
					f.forge.Merge(first.Number, test.way, "alice", test.deletes)
					s.isPublished("v1")
					s.says(packagesv1.ReviewMergedReason, "alice merged")
					s.has(s.published("deployment.yaml"), "app:1.0.0")
					if tag, main := s.cluster.Raw("rev-parse", name+"/v1:"+name), s.cluster.Raw("rev-parse", "main:"+name); tag != main {
						t.Errorf("the tag has %s, and the branch %s", tag, main)
					}
					s.release("v2", "2.0.0", nil)
					s.sync()
					second := s.pull("there is another request", func(p forges.Pull) bool { return p.Number > first.Number && p.State == "open" })
					f.forge.Merge(second.Number, test.way, "bob", test.deletes)
					s.isPublished("v2")
					s.says(packagesv1.ReviewMergedReason, "bob merged")
					s.has(s.published("deployment.yaml"), "app:2.0.0")
					if got := refs(s.cluster); strings.Contains(got, "drafts/"+name) {
						t.Errorf("a draft is left:\n%s", got)
					}
				})
			}
		})
	}
}

func (s *tale) debug() string {
	r := &packagesv1.Repository{}
	err := env.Client.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "cluster"}, r)
	return fmt.Sprintf("%v %+v", err, r.Status)
}
