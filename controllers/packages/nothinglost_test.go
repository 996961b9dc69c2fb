package packages_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// TestNoWorkOfAPersonIsLost plays random sequences of changes to packages by two people with git, an approver and a hurried operator, and
// checks after each step, with code that shares nothing with the product:
//
//   - each commit that a person pushed is in a branch or tag, unless a person took it away;
//   - no package leaves a branch without an approval that named its content;
//   - published content was seen by an approver, or is that of the model of an automatic approval;
//   - a set lets go of no more variants than people accepted;
//   - at rest, status tells the truth about Git.
//
// SLUICE_TORTURE is how many sequences are played, SLUICE_TORTURE_SEED the first one's seed: a failure prints its own. The sequence of
// a seed is always the same; how it meets the controllers is not, so that a rare one may need repeating.
func TestNoWorkOfAPersonIsLost(t *testing.T) {
	t.Parallel()
	count, first := number(t, "SLUICE_TORTURE", 4), number(t, "SLUICE_TORTURE_SEED", 1)
	seeds := make(chan int)
	var players sync.WaitGroup
	for range min(count, number(t, "SLUICE_TORTURE_PLAYERS", 24)) {
		players.Go(func() {
			for seed := range seeds {
				t.Run(strconv.Itoa(seed), func(t *testing.T) { play(t, uint64(seed), sequenceOf(uint64(seed))) })
			}
		})
	}
	isHasty := flag.Lookup("test.failfast").Value.String() == "true"
	for seed := first; seed < first+count && (!isHasty || !t.Failed()); seed++ {
		seeds <- seed
	}
	close(seeds)
	players.Wait()
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	read, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestNoWorkIsLostWithTheKinds plays sequences in which CustomResourceDefinitions are deleted and restored, one for a hundred of those
// above. No other test runs then.
func TestNoWorkIsLostWithTheKinds(t *testing.T) { //nolint:paralleltest // The kinds are everybody's.
	if os.Getenv("SLUICE_TORTURE") == "" {
		t.Skip("SLUICE_TORTURE is not set; TestADeletedKindChangesNothingInGit deletes the kinds in every run")
	}
	clearKinds(t)
	first := number(t, "SLUICE_TORTURE_SEED", 1)
	for seed := first; seed < first+max(number(t, "SLUICE_TORTURE", 1)/100, 1); seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			steps := sequenceOf(uint64(seed))
			for _, at := range []int{len(steps) / 3, 2 * len(steps) / 3} {
				steps[at].deed = doLoseKinds
			}
			play(t, uint64(seed), steps)
		})
		clearKinds(t) // The controllers have stopped, which would make variants anew.
	}
}

// play plays the sequence of a seed.
func play(t *testing.T, seed uint64, steps []sequenceStep) {
	t.Helper()
	s := newSandbox(newPlane(t, func(p *plane) { p.interval = time.Hour }), seed%2 == 0)
	wrong := s.rests()
	for i, step := range append(steps, sequenceStep{deed: doApplyAll}, sequenceStep{deed: doResumeAll}, sequenceStep{deed: doSettle}) {
		if wrong != "" {
			break
		}
		began := time.Now()
		said, untrue := s.does(step)
		s.told = append(s.told, fmt.Sprintf("%2d. %s: %s [%s]", i+1, step, said, time.Since(began).Round(time.Millisecond)))
		for _, check := range []func() string{func() string { return untrue }, s.judge, s.guardHolds} {
			if wrong == "" {
				wrong = check()
			}
		}
		time.Sleep(step.pause)
	}
	if wrong != "" {
		t.Errorf("SLUICE_TORTURE=1 SLUICE_TORTURE_SEED=%d: %s, after\n%s", seed, wrong, s.story())
	}
}

// does takes a step, and describes it. A difference at rest is untrue.
func (s *sandbox) does(step sequenceStep) (said, untrue string) {
	if step.deed == doSettle {
		return "", s.rests()
	}
	said = s.doesWithGit(step)
	switch {
	case said == "":
		said = s.doesWithObjects(step)
	case step.c%2 == 0: // A webhook that is not lost.
		s.calls()
	}
	return said, ""
}

// doesWithGit takes a step of people with git; it says nothing where that is none.
func (s *sandbox) doesWithGit(step sequenceStep) string {
	switch step.deed {
	case doEditDraft:
		return s.editsDraft(step)
	case doEditBranch:
		return s.editsBranch(step, false)
	case doBeginDraft:
		return s.editsBranch(step, true)
	case doResetDraft:
		return s.takesRef(step, true, "refs/heads/drafts/", "refs/heads/proposed/")
	case doResetBranch:
		return s.takesRef(step, true, "refs/heads/main", "refs/heads/prod")
	case doRenameDraft:
		return s.renamesDraft(step)
	case doRemoveDraft:
		return s.takesRef(step, false, "refs/heads/drafts/", "refs/heads/proposed/")
	case doRemoveTag:
		return s.takesRef(step, false, "refs/tags/")
	case doReleaseUpstream:
		name := []string{"app", "base", "web"}[step.a%3]
		s.release(name, step.b)
		return fmt.Sprintf("%s/v%d", name, s.released[name])
	case doDropRelease:
		return s.drops(step)
	}
	return ""
}

// doesWithObjects takes a step of an approver or operator.
func (s *sandbox) doesWithObjects(step sequenceStep) string {
	switch step.deed {
	case doPropose:
		return s.asks(step, "", packagesv1.LifecycleDraft, packagesv1.LifecycleProposed)
	case doApprove:
		return s.asks(step, packagesv1.LifecycleDraft, packagesv1.LifecycleProposed, packagesv1.LifecyclePublished)
	case doReject:
		return s.asks(step, "", packagesv1.LifecycleProposed, packagesv1.LifecycleDraft)
	case doDiscard:
		return s.asks(step, "", packagesv1.LifecycleDraft, packagesv1.LifecycleDeleted)
	case doProposeRemoval:
		return s.asks(step, "", packagesv1.LifecyclePublished, packagesv1.LifecycleDeletionProposed)
	case doApproveRemoval:
		return s.asks(step, packagesv1.LifecyclePublished, packagesv1.LifecycleDeletionProposed, packagesv1.LifecycleDeleted)
	case doRejectRemoval:
		return s.asks(step, "", packagesv1.LifecycleDeletionProposed, packagesv1.LifecyclePublished)
	case doDeleteRevision:
		return s.deletesRevision(step)
	case doDeleteVariant:
		return s.deletesVariant(step)
	case doReplaceVariant:
		name, _ := chosen(s.names(), step.a)
		return s.replaces(s.variantObject(name))
	case doDeleteSet:
		return s.deletesSet()
	case doReplaceSet:
		return s.deletesSet() + "; " + s.replaces(s.setObject())
	case doDeleteRepository:
		return s.deletes(s.repositoryObject([]string{"dev", "prod"}[step.a%2]))
	case doReplaceRepository:
		return s.replaces(s.repositoryObject([]string{"dev", "prod"}[step.a%2]))
	case doApplyAll:
		return s.applies()
	case doRelabel:
		return s.unlabels(step)
	case doAcknowledge:
		return s.acknowledges()
	default:
		return s.doesToSpecs(step)
	}
}

// doesToSpecs takes a step of an operator that edits, or kills the manager.
func (s *sandbox) doesToSpecs(step sequenceStep) string {
	switch step.deed {
	case doSetPolicy:
		return s.edits(step, func(v *kept) {
			v.policy = []packagesv1.ApprovalPolicy{packagesv1.ApprovalManual, packagesv1.ApprovalInitial, packagesv1.ApprovalAlways}[step.b%3]
		})
	case doEditVariant:
		return s.edits(step, func(v *kept) { v.edit = s.token("edit") })
	case doMoveVariant:
		return s.edits(step, func(v *kept) { v.at = v.at.other() })
	case doSuspendVariant:
		return s.edits(step, func(v *kept) { v.isSuspended = true })
	case doSuspendRepository:
		return s.suspendsRepository([]string{"dev", "prod"}[step.a%2], true)
	case doResumeAll:
		return s.resumes()
	case doLoseKinds:
		return s.losesKinds(step)
	case doKill:
		s.stop()
		s.start()
		return "it runs again"
	}
	return "unknown"
}
