package v1alpha1_test

import (
	"strings"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
)

func TestRepositoryAcceptance(t *testing.T) {
	t.Parallel()
	const unsafe = "Git takes no such name"
	testAcceptance(t, packagesv1.RepositoryKind, map[string]acceptance{
		"Least": {"a name is enough", "spec: {GIT}", ""},
		"All": {
			"everything is set", "spec: {GIT, branch: release/1.x, directory: clusters/edge, deployment: true, pushSecretRef: {name: a}," +
				" commit: {author: {name: 'Ä. Person', email: a@example.com}, committer: {name: b, email: b}, signingKeySecretRef: {name: c}}," +
				" interval: 1m, timeout: 90s, suspend: true}", "",
		},
		"NoSpec":       {"a repository is somewhere", "metadata: {}", "spec: Required value"},
		"NoGit":        {"a repository is somewhere", "spec: {}", "gitRepositoryRef: Required value"},
		"NoName":       {"a reference has a name", "spec: {gitRepositoryRef: {name: ''}}", "name"},
		"Space":        {"references stay in the namespace", "spec: {gitRepositoryRef: {name: a, namespace: b}}", "unknown field"},
		"URL":          {"the URL is the GitRepository's", "spec: {GIT, url: 'https://a'}", "unknown field"},
		"Drafts":       {"drafts are no place for what is published", "spec: {GIT, branch: drafts/a}", "not published"},
		"Proposed":     {"nor are proposals", "spec: {GIT, branch: proposed}", "not published"},
		"Deletions":    {"nor are deletions", "spec: {GIT, branch: deletionProposed/a/v1}", "not published"},
		"DraftsLike":   {"a name may begin like that", "spec: {GIT, branch: drafts-of-mine}", ""},
		"NoBranch":     {"an empty branch is a typing error", "spec: {GIT, branch: ''}", "branch"},
		"SpaceBranch":  {"a branch has no space", "spec: {GIT, branch: 'a b'}", "branch: Invalid value"},
		"DotsBranch":   {"a branch has no two dots", "spec: {GIT, branch: a..b}", unsafe},
		"LockBranch":   {"a branch is no lock", "spec: {GIT, branch: a.lock}", unsafe},
		"SlashBranch":  {"a branch ends in a name", "spec: {GIT, branch: a/}", unsafe},
		"Root":         {"packages may be anywhere", "spec: {GIT, directory: ''}", ""},
		"Unicode":      {"a folder has any name that Git takes", "spec: {GIT, directory: 'größe/@a b'}", "directory: Invalid value"},
		"UnicodeFine":  {"a folder has any name that Git takes", "spec: {GIT, directory: größe/@ab}", ""},
		"Absolute":     {"a folder is in the repository", "spec: {GIT, directory: /a}", "directory: Invalid value"},
		"Up":           {"a folder is in the repository", "spec: {GIT, directory: a/../b}", "directory: Invalid value"},
		"Dots":         {"no branch has such a name", "spec: {GIT, directory: a..b}", unsafe},
		"Trailing":     {"a folder ends in a name", "spec: {GIT, directory: a/}", "directory: Invalid value"},
		"Long":         {"a path is bounded", "spec: {GIT, directory: " + strings.Repeat("a", 513) + "}", "Too long"},
		"Author":       {"an author has an address", "spec: {GIT, commit: {author: {name: a}}}", "email: Required value"},
		"Newline":      {"an author is one line of a commit", "spec: {GIT, commit: {author: {name: \"a\\nb\", email: a}}}", "name: Invalid value"},
		"Brackets":     {"an author's address is marked by brackets", "spec: {GIT, commit: {author: {name: a, email: 'a>b'}}}", "email: Invalid value"},
		"Blank":        {"a name is no blank", "spec: {GIT, commit: {author: {name: ' ', email: a}}}", "name: Invalid value"},
		"Interval":     {"an interval has a unit", "spec: {GIT, interval: '5'}", "interval"},
		"Soon":         {"an interval is no loop", "spec: {GIT, interval: 1ms}", "1s at least"},
		"LongInterval": {"an interval is bounded", "spec: {GIT, interval: " + strings.Repeat("1", 33) + "s}", "Too long"},
	})
}

func TestRepositoryKeepsItsPlace(t *testing.T) {
	t.Parallel()
	testTransitions(t, packagesv1.RepositoryKind, map[string]transition{
		"Other":     {"the rest may be edited", "spec: {GIT}", "spec: {GIT, deployment: true, interval: 1h, pushSecretRef: {name: a}}", ""},
		"Git":       {"another repository is another object", "spec: {GIT}", "spec: {gitRepositoryRef: {name: b}}", "gitRepositoryRef is immutable"},
		"Branch":    {"so is another branch", "spec: {GIT}", "spec: {GIT, branch: b}", "branch is immutable"},
		"Same":      {"the default may be written out", "spec: {GIT}", "spec: {GIT, branch: main}", ""},
		"Directory": {"and another folder", "spec: {GIT, directory: a}", "spec: {GIT, directory: b}", "directory is immutable"},
		"Leave":     {"also the root", "spec: {GIT, directory: a}", "spec: {GIT}", "directory is immutable"},
		"Enter":     {"and from the root", "spec: {GIT}", "spec: {GIT, directory: a}", "directory is immutable"},
		"Root":      {"an empty folder is the root", "spec: {GIT}", "spec: {GIT, directory: ''}", ""},
	})
}
