package v1alpha1_test

import (
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

func TestRevisionAcceptance(t *testing.T) {
	t.Parallel()
	const unsafe = "Git takes no such name"
	testAcceptance(t, packagesv1.PackageRevisionKind, map[string]acceptance{
		"Least":       {"a change has three names", "spec: {ONE}", ""},
		"Short":       {"a commit of SHA-1", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT1}", ""},
		"Long":        {"a commit of SHA-256", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT2}", ""},
		"Found":       {"what was found in Git was approved there", "spec: {ONE, lifecycle: Published}", ""},
		"Leaving":     {"and so was its deletion proposed", "spec: {ONE, lifecycle: DeletionProposed}", ""},
		"Tag":         {"a revision's name is a workspace", "spec: {repository: a, package: b/c, workspace: v1.2.0+build}", ""},
		"NoSpec":      {"a change has names", "metadata: {}", "spec: Required value"},
		"NoWorkspace": {"a change has a name", "spec: {repository: a, package: b}", "workspace: Required value"},
		"NoPackage":   {"of a package", "spec: {repository: a, workspace: b}", "package: Required value"},
		"NoRepo":      {"in a repository", "spec: {package: a, workspace: b}", "repository: Required value"},
		"Slash":       {"a workspace is no folder", "spec: {repository: a, package: b, workspace: c/d}", "workspace: Invalid value"},
		"Dots":        {"no branch has such a name", "spec: {repository: a, package: b, workspace: c..d}", unsafe},
		"Lock":        {"no branch has such a name", "spec: {repository: a, package: b, workspace: c.lock}", unsafe},
		"LongName":    {"a workspace is bounded", "spec: {repository: a, package: b, workspace: " + strings.Repeat("c", 201) + "}", "Too long"},
		"Lifecycle":   {"there are five", "spec: {ONE, lifecycle: Approved}", "Unsupported value"},
		"Half":        {"a commit is named in full", "spec: {ONE, approvedCommit: '1111111'}", "approvedCommit: Invalid value"},
		"Upper":       {"as Git writes it", "spec: {ONE, approvedCommit: '" + strings.Repeat("A", 40) + "'}", "approvedCommit: Invalid value"},
		"Tasks":       {"files are in Git", "spec: {ONE, tasks: []}", "unknown field"},
	})
}

func TestRevisionTransitions(t *testing.T) {
	t.Parallel()
	const (
		commit  = "approvedCommit has to name the commit"
		stays   = "what is published stays published"
		removes = "Deleted needs approvedCommit"
		seen    = "\nstatus: {observedGeneration: 1, lifecycle: "
	)
	testTransitions(t, packagesv1.PackageRevisionKind, map[string]transition{
		"Propose":        {"a draft is proposed", "spec: {ONE}" + seen + "Draft}", "spec: {ONE, lifecycle: Proposed}", ""},
		"Reject":         {"a proposal is taken back", "spec: {ONE, lifecycle: Proposed}" + seen + "Proposed}", "spec: {ONE}", ""},
		"Publish":        {"a proposal is published at a commit", "spec: {ONE, lifecycle: Proposed}" + seen + "Proposed}", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT1}", ""},
		"Early":          {"the commit may be named first", "spec: {ONE, lifecycle: Proposed, approvedCommit: COMMIT1}" + seen + "Proposed}", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT1}", ""},
		"NoCommit":       {"nobody approves what nobody named", "spec: {ONE, lifecycle: Proposed}" + seen + "Proposed}", "spec: {ONE, lifecycle: Published}", commit},
		"NoCommitDraft":  {"nor by a short cut", "spec: {ONE}" + seen + "Draft}", "spec: {ONE, lifecycle: Published}", commit},
		"NoCommitUnseen": {"nor unseen", "spec: {ONE}", "spec: {ONE, lifecycle: Published}", commit},
		"Renew":          {"the change moved on, and is approved again", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT1}" + seen + "Proposed}", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT2}", ""},
		"Withdraw":       {"an approval that was not carried out is withdrawn", "spec: {ONE, lifecycle: Published, approvedCommit: COMMIT1}" + seen + "Proposed}", "spec: {ONE, lifecycle: Proposed}", ""},
		"Label":          {"what is found published is edited otherwise", "spec: {ONE, lifecycle: Published}" + seen + "Published}", "metadata: {name: web, labels: {a: b}}\nspec: {ONE, lifecycle: Published}", ""},
		"Leave":          {"its deletion is proposed", "spec: {ONE, lifecycle: Published}" + seen + "Published}", "spec: {ONE, lifecycle: DeletionProposed}", ""},
		"Restore":        {"and turned down, which publishes nothing", "spec: {ONE, lifecycle: DeletionProposed}" + seen + "DeletionProposed}", "spec: {ONE, lifecycle: Published}", ""},
		"Follow":         {"the spec follows what others published", "spec: {ONE}" + seen + "Published}", "spec: {ONE, lifecycle: Published}", ""},
		"Unpublish":      {"what is published is no draft again", "spec: {ONE, lifecycle: Published}" + seen + "Published}", "spec: {ONE, lifecycle: Draft}", stays},
		"Propose again":  {"nor a proposal", "spec: {ONE, lifecycle: DeletionProposed}" + seen + "DeletionProposed}", "spec: {ONE, lifecycle: Proposed}", stays},
		"DeleteDraft":    {"a draft is deleted at once", "spec: {ONE}" + seen + "Draft}", "spec: {ONE, lifecycle: DeletionProposed}", stays},
		"Remove":         {"an approved deletion names the commit", "spec: {ONE, lifecycle: DeletionProposed}" + seen + "DeletionProposed}", "spec: {ONE, lifecycle: Deleted, approvedCommit: COMMIT1}", ""},
		"RemoveNoCommit": {"always", "spec: {ONE, lifecycle: DeletionProposed}" + seen + "DeletionProposed}", "spec: {ONE, lifecycle: Deleted}", removes},
		"RemoveAtOnce":   {"a deletion is proposed first", "spec: {ONE, lifecycle: Published}" + seen + "Published}", "spec: {ONE, lifecycle: Deleted, approvedCommit: COMMIT1}", removes},
		"RemoveUnseen":   {"and was observed", "spec: {ONE}", "spec: {ONE, lifecycle: Deleted, approvedCommit: COMMIT1}", removes},
		"Discard":        {"a draft is discarded at a commit", "spec: {ONE}" + seen + "Draft}", "spec: {ONE, lifecycle: Deleted, approvedCommit: COMMIT1}", ""},
		"RemoveExpires":  {"an approval is taken back", "spec: {ONE, lifecycle: Deleted, approvedCommit: COMMIT1}" + seen + "DeletionProposed}", "spec: {ONE, lifecycle: DeletionProposed}", ""},
		"Repository":     {"a change stays where it is", "spec: {ONE}", "spec: {repository: b, package: web, workspace: one}", "repository is immutable"},
		"Package":        {"a change stays where it is", "spec: {ONE}", "spec: {repository: edge, package: b, workspace: one}", "package is immutable"},
		"Workspace":      {"a change keeps its name", "spec: {ONE}", "spec: {repository: edge, package: web, workspace: b}", "workspace is immutable"},
	})
}
