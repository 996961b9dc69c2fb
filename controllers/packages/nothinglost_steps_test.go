package packages_test

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// deed is one thing that somebody does.
type deed string

const (
	// Two people with git.
	doEditDraft       deed = "edit a draft"
	doEditBranch      deed = "edit a branch"
	doBeginDraft      deed = "begin a draft"
	doResetDraft      deed = "force-push a draft back"
	doResetBranch     deed = "force-push a branch back"
	doRenameDraft     deed = "rename a draft"
	doRemoveDraft     deed = "delete a draft"
	doRemoveTag       deed = "delete a tag"
	doReleaseUpstream deed = "release upstream"
	doDropRelease     deed = "delete an upstream tag"
	// An approver.
	doPropose        deed = "propose"
	doApprove        deed = "approve"
	doReject         deed = "reject"
	doDiscard        deed = "discard"
	doProposeRemoval deed = "propose a deletion"
	doApproveRemoval deed = "approve a deletion"
	doRejectRemoval  deed = "reject a deletion"
	// A hurried operator.
	doDeleteVariant     deed = "kubectl delete packagevariant"
	doReplaceVariant    deed = "kubectl replace --force packagevariant"
	doDeleteRevision    deed = "kubectl delete packagerevision"
	doDeleteSet         deed = "kubectl delete packagevariantset"
	doReplaceSet        deed = "kubectl replace --force packagevariantset"
	doDeleteRepository  deed = "kubectl delete repository"
	doReplaceRepository deed = "kubectl replace --force repository"
	doApplyAll          deed = "kubectl apply"
	doAcknowledge       deed = "acknowledge a deletion"
	doRelabel           deed = "take a label away"
	doSetPolicy         deed = "set an approval policy"
	doEditVariant       deed = "edit a packagevariant"
	doMoveVariant       deed = "move a packagevariant"
	doSuspendVariant    deed = "suspend a packagevariant"
	doSuspendRepository deed = "suspend a repository"
	doResumeAll         deed = "resume all"
	doKill              deed = "kill the manager"
	// doLoseKinds is for sequences that run alone.
	doLoseKinds deed = "kubectl delete crd, and restore"
	// The steps that bring all to an end.
	doSettle deed = "wait for rest"
)

// weights say how often each is done.
var weights = []struct {
	deed  deed
	often int
}{
	{doEditDraft, 10},
	{doEditBranch, 5},
	{doBeginDraft, 2},
	{doResetDraft, 2},
	{doResetBranch, 1},
	{doRenameDraft, 2},
	{doRemoveDraft, 1},
	{doRemoveTag, 1},
	{doReleaseUpstream, 7},
	{doDropRelease, 1},
	{doPropose, 6},
	{doApprove, 9},
	{doReject, 2},
	{doDiscard, 1},
	{doProposeRemoval, 2},
	{doApproveRemoval, 3},
	{doRejectRemoval, 1},
	{doDeleteVariant, 3},
	{doReplaceVariant, 3},
	{doDeleteRevision, 4},
	{doDeleteSet, 1},
	{doReplaceSet, 1},
	{doDeleteRepository, 1},
	{doReplaceRepository, 2},
	{doApplyAll, 3},
	{doRelabel, 7},
	{doAcknowledge, 1},
	{doSetPolicy, 4},
	{doEditVariant, 2},
	{doMoveVariant, 1},
	{doSuspendVariant, 2},
	{doSuspendRepository, 1},
	{doResumeAll, 3},
	{doKill, 1},
	{doSettle, 16},
}

// sequenceSteps is how many steps a sequence has.
const sequenceSteps = 30

// sequenceStep is a deed with the numbers that choose its object.
type sequenceStep struct {
	deed    deed
	a, b, c int
	// pause is how long the controllers have before the next step, unless it is to wait for rest.
	pause time.Duration
}

func (s sequenceStep) String() string { return fmt.Sprintf("%s (%d, %d, %d)", s.deed, s.a, s.b, s.c) }

// sequenceOf returns the steps, which depend on the seed alone.
func sequenceOf(seed uint64) []sequenceStep {
	random, all := rand.New(rand.NewPCG(seed, 30)), 0
	for _, w := range weights {
		all += w.often
	}
	steps := make([]sequenceStep, sequenceSteps)
	for i := range steps {
		s := sequenceStep{a: random.IntN(1 << 16), b: random.IntN(1 << 16), c: random.IntN(1 << 16)}
		s.pause = []time.Duration{0, 0, 50 * time.Millisecond, 400 * time.Millisecond}[random.IntN(4)]
		at := random.IntN(all)
		for _, w := range weights {
			if at -= w.often; at < 0 {
				s.deed = w.deed
				break
			}
		}
		steps[i] = s
	}
	return steps
}
