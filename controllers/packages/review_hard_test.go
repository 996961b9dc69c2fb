package packages_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/forges"
	"sluice.dev/sluice/tests/testenv"
)

// TestAReviewIsFollowed: what people make of a request, and what becomes of it when the change does.
func TestAReviewIsFollowed(t *testing.T) {
	t.Parallel()
	f := newForged(t, "gitlab") // It alone leaves requests open whose branch is gone.
	isOpen := func(p forges.Pull) bool { return p.State == "open" }
	t.Run("closed and opened again", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "closing")
		s.sync()
		first := s.pull("there is a request", isOpen)
		s.says(packagesv1.ReviewPendingReason)
		draft := s.v.Status.Change.Commit
		f.forge.Close(first.Number, "bob")
		s.says(packagesv1.ReviewClosedReason, "bob closed", fmt.Sprint(first.Number))
		s.settle()
		if again := s.pull("it stays closed", func(forges.Pull) bool { return true }); again.Number != first.Number || again.State != "closed" || s.v.Status.Change.Commit != draft {
			t.Errorf("after the rejection: %+v, draft %+v", again, s.v.Status.Change)
		}
		f.forge.Reopen(first.Number)
		s.says(packagesv1.ReviewPendingReason)
		f.forge.Change(first.Number, func(p *forges.Pull) { p.Body = "Please look at the image.\n\n" + p.Body })
		s.release("v2", "2.0.0", nil)
		s.settle()
		edited := s.pull("it tells of the new commit", func(p forges.Pull) bool { return strings.Contains(p.Body, s.v.Status.Change.Commit) })
		if edited.Number != first.Number || !strings.HasPrefix(edited.Body, "Please look at the image.\n\n<!--") || strings.Contains(edited.Body, draft) {
			t.Errorf("the request is %+v", edited)
		}
		f.forge.Close(first.Number, "bob")
		s.says(packagesv1.ReviewClosedReason)
		s.release("v3", "3.0.0", nil)
		s.sync()
		s.pull("another change has another request", func(p forges.Pull) bool { return p.Number > first.Number && p.State == "open" })
	})
	t.Run("merged with something else", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "otherwise")
		s.sync()
		first := s.pull("there is a request", isOpen)
		f.forge.Change(first.Number, func(p *forges.Pull) { p.State, p.By = "merged", "carol" })
		s.says(packagesv1.MergedOtherwiseReason, "carol merged")
		s.settle()
		if s.v.Status.Published != nil || strings.Contains(refs(s.cluster), "refs/tags/otherwise/") {
			t.Errorf("it was published: %+v", s.v.Status.Published)
		}
		files := s.cluster.Tree(s.v.Status.Change.Commit)
		s.person("main", map[string]string{"Kptfile": files["otherwise/Kptfile"].Content, "deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", "1.0.0-hot")})
		s.settle()
		second := s.pull("what is on the branch is taken over", func(p forges.Pull) bool { return p.Number > first.Number && p.State == "open" })
		f.forge.Merge(second.Number, forges.Squash, "dave", false)
		s.isPublished("v1")
		s.says(packagesv1.ReviewMergedReason, "dave merged")
	})
	t.Run("proposed and closed", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "proposing")
		s.sync()
		first := s.pull("there is a request", isOpen)
		s.settle()
		s.move(s.revision(), packagesv1.LifecycleProposed)
		second := s.pull("the proposal has a request", func(p forges.Pull) bool { return isOpen(p) && strings.HasPrefix(p.Head, "proposed/") })
		testenv.Eventually(t, "the request of a branch that is gone is closed", func(context.Context) (bool, string) {
			return f.forge.Pulls()[first.Number-1].State == "closed", ""
		})
		f.forge.Close(second.Number, "erin")
		s.says(packagesv1.ReviewClosedReason, "erin closed")
		until(s.plane, s.v, "it is a draft again", func(v *packagesv1.PackageVariant) (bool, string) {
			return v.Status.Change != nil && v.Status.Change.Lifecycle == packagesv1.LifecycleDraft && conditions.IsReady(v), said(v)
		})
	})
	t.Run("approved by its revision", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "beside")
		s.sync()
		s.pull("there is a request", isOpen)
		s.settle()
		s.publish(s.v)
		s.pull("no request is left open", func(p forges.Pull) bool { return p.State == "closed" })
		s.isPublished("v1")
		if c := conditions.Get(s.v, packagesv1.ReviewedCondition); c != nil {
			t.Errorf("nobody reviewed it, and %+v", c)
		}
	})
	t.Run("from a copy", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "copied")
		f.forge.Foreign("acme/cluster", "drafts/copied/packagevariant-1", "main", "")
		s.sync()
		ours := s.pull("there is a request of ours", func(p forges.Pull) bool { return isOpen(p) && p.Body != "" })
		s.says(packagesv1.ReviewPendingReason, fmt.Sprintf("/%d ", ours.Number))
	})
	t.Run("let go", func(t *testing.T) {
		t.Parallel()
		s := f.tale(t, "leaving")
		s.sync()
		s.pull("there is a request", isOpen)
		s.settle()
		s.delete(s.v)
		s.pull("it is closed", func(p forges.Pull) bool { return p.State == "closed" })
	})
}

// TestAForgeThatRefusesHoldsUpNothing: the condition says what it answers, the draft is there, and once it is well it is asked.
func TestAForgeThatRefusesHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"github", "gitlab", "gitea"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			refusing(t, provider)
		})
	}
}

// refusing is a forge that refuses in all ways, and then is well.
func refusing(t *testing.T, provider string) {
	t.Helper()
	f := newForged(t, provider)
	f.forge.Always(forges.Status(http.StatusUnauthorized, "Bad credentials "+forges.Token))
	s := f.tale(t, "refused")
	for _, test := range []struct {
		answer  http.HandlerFunc
		reason  string
		isReady bool
		words   string
	}{
		{nil, packagesv1.ReviewFailedReason, false, "401"},
		{forges.Status(http.StatusForbidden, "not for you"), packagesv1.ReviewFailedReason, false, "not for you"},
		{forges.Status(http.StatusNotFound, "Not Found"), packagesv1.ReviewFailedReason, false, "acme/cluster"},
		{func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, packagesv1.ReviewFailedReason, false, "not the JSON"},
		{forges.Endless, packagesv1.ReviewFailedReason, false, "longer than"},
		{forges.Status(http.StatusInternalServerError, "oops"), packagesv1.ReviewDelayedReason, true, "oops"},
		{forges.Limited(http.StatusForbidden, map[string]string{"Retry-After": "1"}), packagesv1.ReviewDelayedReason, true, "403"},
		{forges.Limited(http.StatusTooManyRequests, map[string]string{"Retry-After": "1"}), packagesv1.ReviewDelayedReason, true, "429"},
	} {
		if test.answer != nil {
			f.forge.Always(test.answer)
		}
		s.sync()
		s.says(test.reason, test.words)
		until(s.plane, s.v, "Ready says so where people have to mend it", func(v *packagesv1.PackageVariant) (bool, string) {
			return conditions.IsReady(v) == test.isReady && v.Status.Change != nil && !strings.Contains(fmt.Sprint(v.Status.Conditions), forges.Token), said(v)
		})
	}
	s.has(s.open("deployment.yaml"), "app:1.0.0")
	f.forge.Always(nil)
	s.pull("it is asked", func(p forges.Pull) bool { return p.State == "open" })
	s.says(packagesv1.ReviewPendingReason)
}

// TestAForgeIsAskedNoMoreThanItHasToBe: while nothing changes, it answers with nothing; and an edit of what it is asked with is seen.
func TestAForgeIsAskedNoMoreThanItHasToBe(t *testing.T) {
	t.Parallel()
	f := newForged(t, "github")
	s := f.tale(t, "refused")
	s.sync()
	first := s.pull("it is asked", func(p forges.Pull) bool { return p.State == "open" })
	s.says(packagesv1.ReviewPendingReason)
	s.settle()

	// What was to be asked before may be asked late, so that the quietest of some looks counts.
	testenv.Eventually(t, "the forge has nothing new", func(context.Context) (bool, string) {
		before := len(f.forge.Asked())
		for range 3 {
			s.sync()
		}
		s.settle()
		asked := f.forge.Asked()[before:]
		return len(asked) > 0 && !slices.ContainsFunc(asked, func(request string) bool { return !strings.HasSuffix(request, " 304") }), strings.Join(asked, "\n")
	})

	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Approval.Review.SecretRef.Name = "missing" })
	s.says(packagesv1.ReviewFailedReason, "missing")
	f.create(f.secret("missing", forges.Token))
	s.says(packagesv1.ReviewPendingReason, fmt.Sprintf("/%d ", first.Number))
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Approval.Review.Provider = packagesv1.ReviewGitLab })
	s.says(packagesv1.ReviewFailedReason, "404")
	s.edit(f.asks)
	s.says(packagesv1.ReviewPendingReason)
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Approval = nil })
	until(s.plane, s.v, "nothing is said of a review", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Review == nil && conditions.Get(v, packagesv1.ReviewedCondition) == nil && conditions.IsReady(v), said(v)
	})
}

// TestAReviewIsAskedForWhereTheSecretSays: what is known of one forge says nothing of another one.
func TestAReviewIsAskedForWhereTheSecretSays(t *testing.T) {
	t.Parallel()
	f := newForged(t, "gitlab")
	s := f.tale(t, "moving")
	s.sync()
	s.opened("deployment")
	s.settle()
	other := forges.Start(t, "gitlab")
	other.Foreign("acme/cluster", "feature", "main", "mine")
	other.Add("acme/cluster", f.cluster, func() { f.look("cluster") })
	secret := f.secret("forge", forges.Token)
	secret.StringData["endpoint"] = other.Endpoint()
	if err := env.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.forge = other
	s.release("v2", "2.0.0", nil)
	s.sync()
	found := s.pull("it is asked for there", func(p forges.Pull) bool { return p.State == "open" })
	s.says(packagesv1.ReviewPendingReason, fmt.Sprintf("/%d ", found.Number))
	if stranger := other.Pulls()[0]; stranger.Body != "mine" || stranger.State != "open" {
		t.Errorf("somebody else's request is %+v", stranger)
	}
}

// TestAForgeThatKeepsNoTextIsTold, and is not asked again and again.
func TestAForgeThatKeepsNoTextIsTold(t *testing.T) {
	t.Parallel()
	f := newForged(t, "gitea")
	f.forge.Plain(true)
	s := f.tale(t, "plain")
	s.sync()
	s.says(packagesv1.ReviewFailedReason, "not what was sent")
	f.forge.Plain(false)
	s.says(packagesv1.ReviewPendingReason)
}

// TestWhatIsSuspendedIsNotReviewed: what was to be asked before is not asked meanwhile.
func TestWhatIsSuspendedIsNotReviewed(t *testing.T) {
	t.Parallel()
	f := newForged(t, "github")
	f.forge.Always(forges.Status(http.StatusInternalServerError, "oops"))
	s := f.tale(t, "a-suspended")
	s.sync()
	s.says(packagesv1.ReviewDelayedReason)
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Suspend = true })
	until(s.plane, s.v, "it is suspended", func(v *packagesv1.PackageVariant) (bool, string) {
		return conditions.GetReason(v, "Ready") == packagesv1.SuspendedReason, said(v)
	})
	f.forge.Always(nil)
	next := f.tale(t, "b-next")
	next.sync()
	next.pull("the next one is asked for", func(p forges.Pull) bool { return p.State == "open" })
	if all := f.forge.Pulls(); len(all) != 1 {
		t.Errorf("what is suspended was asked for: %+v", all)
	}
	s.edit(func(spec *packagesv1.PackageVariantSpec) { spec.Suspend = false })
	s.pull("it is asked for at last", func(p forges.Pull) bool { return p.State == "open" })
}

// TestAProposalThatIsTakenBackIsReviewedAsADraft: that the forge closes the request with its branch rejects nothing.
func TestAProposalThatIsTakenBackIsReviewedAsADraft(t *testing.T) {
	t.Parallel()
	isOpen := func(p forges.Pull) bool { return p.State == "open" }
	for _, provider := range []string{"github", "gitlab"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := newForged(t, provider).tale(t, "taken")
			s.sync()
			last := s.pull("there is a request", isOpen).Number
			for _, to := range []packagesv1.Lifecycle{packagesv1.LifecycleProposed, packagesv1.LifecycleDraft, packagesv1.LifecycleProposed} {
				s.settle()
				s.move(s.revision(), to)
				s.sync()
				last = s.pull("there is another request for a "+string(to), func(p forges.Pull) bool { return isOpen(p) && p.Number > last }).Number
				s.says(packagesv1.ReviewPendingReason, fmt.Sprintf("/%d ", last))
			}
		})
	}
}
