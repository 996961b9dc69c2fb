package packages_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// upstreamOf is the repository and the package that the package of a place is made of.
func (s *sandbox) upstreamOf(at place) (from *bareRepository, folder string) {
	for _, v := range s.variants {
		if v.at.repository == at.repository && v.at.folder == at.folder {
			if v.upstream == "blueprints" {
				return s.readUp, v.follow
			}
			return s.read, v.follow
		}
	}
	if before, isMoved := strings.CutPrefix(at.folder, "moved-"); isMoved {
		return s.upstreamOf(place{at.repository, before})
	}
	return s.readUp, "base"
}

// judgeAutomatic compares content that was published without an approver with a model of its own: upstream's values, with those that people
// have put on the branch. Where both changed the same, or upstream goes back, nothing is to be published so.
func (s *sandbox) judgeAutomatic(at place, was, is map[string]string) string {
	from, folder := s.upstreamOf(at)
	made := func(kptfile string) (commit string, texts map[string]string) {
		if commit = lockedCommit(kptfile); commit == "" {
			return "", nil
		}
		files, err := from.filesOf(commit)
		if err != nil {
			return commit, nil
		}
		return commit, textsOf(from, ownFiles(files, folder))
	}
	local, published := textsOf(s.read, was), textsOf(s.read, is)
	lockedBefore, base := made(local["Kptfile"])
	locked, next := made(published["Kptfile"])
	if len(next) == 0 {
		return fmt.Sprintf("package %s names the upstream commit %q, which has no such package", at, locked)
	}
	if locked != lockedBefore && lockedBefore != "" {
		past, err := from.reach(lockedBefore)
		s.check(err)
		if past[locked] && !maps.Equal(base, next) {
			return fmt.Sprintf("package %s went back to older upstream content, and no approver saw that", at)
		}
	}
	want, conflict := mergedTexts(base, local, next)
	switch {
	case conflict != "":
		return fmt.Sprintf("package %s was published with a conflict at %s, and no approver saw that", at, conflict)
	case maps.Equal(want, withoutOwn(published)):
		return ""
	}
	return fmt.Sprintf("package %s was published without an approver\nis   %q\nwant %q", at, withoutOwn(published), want)
}

// textsOf are the contents of files.
func textsOf(b *bareRepository, files map[string]string) map[string]string {
	found := map[string]string{}
	for name, blob := range files {
		found[name], _ = b.content(blob)
	}
	return found
}

// written are the fields that the controller writes into objects of people and upstream: the namespace, and the merge annotations.
var written = regexp.MustCompile(`(?m)^  namespace: .*\n| # kpt-merge: .*$`)

// withoutOwn omits the controller's own fields, and returns each value of the settings.
func withoutOwn(texts map[string]string) map[string]string {
	found := map[string]string{}
	for name, text := range texts {
		switch name {
		case "Kptfile", "package-context.yaml", "namespace.yaml":
		case "settings.yaml":
			for key, value := range settings(text) {
				found[name+" "+key] = value
			}
		default:
			found[name] = strings.TrimSpace(written.ReplaceAllString(text, ""))
		}
	}
	return found
}

// mergedTexts is the merge of three packages whose values have nothing to do with each other. The conflict is the first value that both
// sides changed, other than files that people removed.
func mergedTexts(base, local, next map[string]string) (merged map[string]string, conflict string) {
	base, local, next = withoutOwn(base), withoutOwn(local), withoutOwn(next)
	merged = map[string]string{}
	all := map[string]bool{}
	for _, side := range []map[string]string{base, local, next} {
		for key := range side {
			all[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := next[key]
		switch {
		case local[key] == base[key], local[key] == next[key]:
		case next[key] == base[key], local[key] == "":
			value = local[key]
		default:
			return nil, key
		}
		if value != "" {
			merged[key] = value
		}
	}
	return merged, ""
}
