package packages_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

// approval has the files of a package at the commit that an approver saw and approved.
type approval struct {
	branch, folder, commit string
	files                  map[string]string
	isExpired              bool
}

// ledger records the actions of people, and the commits of the branches that were judged.
type ledger struct {
	// pushed are the commits of people with a description each, and removed those that a person removed.
	pushed  map[string]string
	removed map[string]bool
	// discarded are tips of drafts that an approver had discarded.
	discarded map[string]bool
	// taken are the refs that people have moved or deleted since the last look.
	taken map[string]bool
	// known are the commits of the branches that need no look any more.
	known map[string]bool
	tags  map[string]string
	// published is the approved content, and gone are the approved removals.
	published, gone []*approval
	// policies are those that each place had since the last rest.
	policies map[place]map[packagesv1.ApprovalPolicy]bool
}

func newLedger() *ledger {
	return &ledger{
		pushed: map[string]string{}, removed: map[string]bool{}, discarded: map[string]bool{}, taken: map[string]bool{}, known: map[string]bool{}, tags: map[string]string{},
		policies: map[place]map[packagesv1.ApprovalPolicy]bool{},
	}
}

// mayAutomate tells whether a variant approved changes of the package by its spec since the last rest.
func (s *sandbox) mayAutomate(at place, isFirst bool) bool {
	policies := maps.Clone(s.ledger.policies[at])
	if policies == nil {
		policies = map[packagesv1.ApprovalPolicy]bool{}
	}
	for _, v := range s.variants {
		if v.at == at {
			policies[v.policy] = true
		}
	}
	if at.folder == "shared" {
		policies[packagesv1.ApprovalInitial] = true
	}
	return policies[packagesv1.ApprovalAlways] || isFirst && policies[packagesv1.ApprovalInitial]
}

// nothingIsLost checks that each commit of a person is in a branch or tag, unless a person took it away.
func (s *sandbox) nothingIsLost(refs map[string]string) string {
	for ref, was := range s.ledger.tags {
		if refs[ref] != was && !s.ledger.taken[ref] {
			return fmt.Sprintf("tag %s was at %.8s, is at %.8s, and no person moved it", ref, was, refs[ref])
		}
	}
	reached, err := s.read.reach(slices.Concat(slices.Collect(maps.Values(refs)), slices.Collect(maps.Keys(s.ledger.discarded)))...)
	s.check(err)
	for _, commit := range slices.Sorted(maps.Keys(s.ledger.pushed)) {
		if !reached[commit] && !s.ledger.removed[commit] {
			return "no branch or tag has a commit of a person any more: " + s.ledger.pushed[commit]
		}
	}
	return ""
}

// judge checks the changes of the repository since the last time.
func (s *sandbox) judge() string {
	refs := s.refs()
	lost := s.nothingIsLost(refs)
	if lost != "" { // A ref that was renamed while all were read may be missing.
		refs = s.refs()
		lost = s.nothingIsLost(refs)
	}
	if lost != "" {
		return lost
	}
	for _, repository := range slices.Sorted(maps.Keys(branches)) {
		ref := "refs/heads/" + branches[repository]
		if refs[ref] == "" {
			return "branch " + ref + " is gone"
		}
		if wrong := s.judgeBranch(repository, refs[ref]); wrong != "" {
			return wrong
		}
	}
	for _, ref := range under(refs, "refs/tags/") {
		if s.ledger.tags[ref] == "" && !s.ledger.known[refs[ref]] && s.ledger.pushed[refs[ref]] == "" {
			return fmt.Sprintf("tag %s is at %.8s, which no branch had", ref, refs[ref])
		}
	}
	maps.DeleteFunc(refs, func(ref, _ string) bool { return !strings.HasPrefix(ref, "refs/tags/") })
	s.ledger.tags = refs
	clear(s.ledger.taken)
	return ""
}

// judgeBranch checks the commits that a branch has got, the oldest first.
func (s *sandbox) judgeBranch(repository, tip string) string {
	var added []string
	for at := tip; at != "" && !s.ledger.known[at]; {
		added = append(added, at)
		var err error
		at, err = s.read.firstParent(at)
		s.check(err)
	}
	for _, commit := range slices.Backward(added) {
		s.ledger.known[commit] = true
		if s.ledger.pushed[commit] != "" {
			continue
		}
		if wrong := s.judgeCommit(repository, commit); wrong != "" {
			c, _ := s.read.commit(commit)
			return fmt.Sprintf("commit %.8s of branch %s, %q: %s", commit, branches[repository], strings.SplitN(c.message, "\n", 2)[0], wrong)
		}
	}
	return ""
}

// judgeCommit checks a commit of the controllers on a branch.
func (s *sandbox) judgeCommit(repository, commit string) string {
	parent, err := s.read.firstParent(commit)
	s.check(err)
	before, err := s.read.filesOf(parent)
	s.check(err)
	after, err := s.read.filesOf(commit)
	s.check(err)
	folders, folderBefore, folderAfter := map[string]bool{}, packageFolders(before), packageFolders(after)
	for _, file := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
		if before[file] != after[file] {
			folders[packageOf(file, folderBefore, folderAfter)] = true
		}
	}
	changed := slices.Sorted(maps.Keys(folders))
	switch {
	case len(changed) == 0:
		return ""
	case len(changed) > 1:
		return fmt.Sprintf("it changes more than one package: %q", changed)
	case changed[0] == "":
		return "it changes files that are in no package"
	}
	at := place{repository, changed[0]}
	was, is := ownFiles(before, at.folder), ownFiles(after, at.folder)
	if len(is) == 0 {
		return s.judgeRemoval(at, was)
	}
	return s.judgePublication(at, was, is)
}

// judgeRemoval checks that an approver approved that the package leaves the branch.
func (s *sandbox) judgeRemoval(at place, was map[string]string) string {
	for _, a := range s.ledger.gone {
		if !a.isExpired && a.branch == branches[at.repository] && a.folder == at.folder && maps.Equal(a.files, was) {
			a.isExpired = true
			return ""
		}
	}
	return fmt.Sprintf("package %s left the branch, and no approval that holds names what it had", at)
}

// judgePublication checks that an approver saw the published content, or that the spec may approve it.
func (s *sandbox) judgePublication(at place, was, is map[string]string) string {
	for _, a := range s.ledger.published {
		if a.branch == branches[at.repository] && a.folder == at.folder && maps.Equal(a.files, is) {
			return ""
		}
	}
	if !s.mayAutomate(at, len(was) == 0) {
		return fmt.Sprintf("package %s was published, and no approver saw these files: %v", at, is)
	}
	return s.judgeAutomatic(at, was, is)
}
