package packages_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// people are the two persons that edit with git.
var people = []string{"ada", "bob"}

// git runs git in a repository, as a person with a clone does. It returns whether git succeeded.
func (s *sandbox) git(in *upstream.Edited, stdin string, args ...string) (out string, isDone bool) {
	cmd := upstream.Command(s.Context(), in.Dir(), nil, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	return strings.TrimSpace(stdout.String()), err == nil
}

// push puts a commit with the files on top of one, and moves the ref there, unless that is not a step forward. A file without content is
// taken away. Without a commit below, it is the first one. It is empty where the push is refused.
func (s *sandbox) push(in *upstream.Edited, ref, on string, files map[string]string) string {
	var stream strings.Builder
	fmt.Fprintf(&stream, "commit %s\nmark :1\ncommitter A Person <person@example.com> 1704067200 +0000\n", ref)
	message := "Edit " + s.token("commit")
	fmt.Fprintf(&stream, "data %d\n%s\n", len(message), message)
	if on != "" {
		fmt.Fprintf(&stream, "from %s\n", on)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if content := files[file]; content != "" {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", file, len(content), content)
			continue
		}
		fmt.Fprintf(&stream, "D %s\n", file)
	}
	stream.WriteString("get-mark :1\ndone\n")
	commit, isDone := s.git(in, stream.String(), "fast-import", "--quiet", "--done", "--date-format=raw")
	if !isDone {
		return ""
	}
	return commit
}

// moveRefs has git update refs at once: 'create' a name at a commit, 'delete' one, or 'update' one.
func (s *sandbox) moveRefs(in *upstream.Edited, words ...string) bool {
	line := strings.NewReplacer(" \n ", "\n").Replace(strings.Join(words, " ")) + "\n"
	_, isDone := s.git(in, "start\n"+line+"commit\n", "update-ref", "--stdin")
	return isDone
}

// refs are the refs of the cluster's repository.
func (s *sandbox) refs() map[string]string {
	found, err := s.read.refs()
	s.check(err)
	return found
}

func (s *sandbox) tipOf(b *bareRepository, ref string) string {
	found, err := b.refs()
	s.check(err)
	return found[ref]
}

func (s *sandbox) textAt(b *bareRepository, commit, file string) string {
	files, err := b.filesOf(commit)
	s.check(err)
	text, err := b.content(files[file])
	s.check(err)
	return text
}

func (s *sandbox) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// under are the refs below one of the prefixes, in their order.
func under(refs map[string]string, prefixes ...string) (found []string) {
	for ref := range refs {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(ref, prefix) }) {
			found = append(found, ref)
		}
	}
	slices.Sort(found)
	return found
}

// chosen is one of several; ok is false without any.
func chosen[T any](from []T, number int) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return from[number%len(from)], true
}

// openFolder is the package of a draft's or proposal's branch.
func openFolder(ref string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/drafts/"), "refs/heads/proposed/")
	return path.Dir(rest)
}

// edited are the files of an edit of a package at a commit.
func (s *sandbox) edited(author, commit, folder string, kind int, isDraft bool) map[string]string {
	files, err := s.read.filesOf(commit)
	s.check(err)
	edit, at := map[string]string{}, folder+"/settings.yaml"
	values := settings(s.textAt(s.read, commit, at))
	switch kind % 8 {
	case 0, 1, 2:
		values[fmt.Sprintf("p%d", kind%3)] = s.token(author)
	case 3:
		values[fmt.Sprintf("u%d", kind%4)] = s.token(author)
	case 4, 5:
		name := s.token(author)
		return map[string]string{folder + "/" + name + ".yaml": configMap(name, map[string]string{"by": author})}
	case 6:
		if files[folder+"/extra.yaml"] != "" {
			return map[string]string{folder + "/extra.yaml": ""}
		}
		values["p0"] = s.token(author)
	case 7:
		values["p1"] = s.token(author)
		if isDraft {
			edit["outside/"+s.token(author)+".txt"] = "a file that is in no package\n"
		}
	}
	edit[at] = configMap("settings", values)
	return edit
}

// personPushes pushes an edit, and notes it.
func (s *sandbox) personPushes(author, ref, on string, files map[string]string) string {
	commit := s.push(s.cluster, ref, on, files)
	if commit == "" {
		return fmt.Sprintf("%s was refused at %s", author, ref)
	}
	said := fmt.Sprintf("%s pushed %.8s to %s: %s", author, commit, ref, strings.Join(slices.Sorted(maps.Keys(files)), " "))
	s.ledger.pushed[commit] = said
	return said
}

// editsDraft has a person push to a draft or proposal.
func (s *sandbox) editsDraft(step sequenceStep) string {
	refs, author := s.refs(), people[step.b%2]
	ref, ok := chosen(under(refs, "refs/heads/drafts/", "refs/heads/proposed/"), step.a)
	if !ok {
		return "no draft"
	}
	return s.personPushes(author, ref, refs[ref], s.edited(author, refs[ref], openFolder(ref), step.c, true))
}

// folderOn chooses a branch and a package on it.
func (s *sandbox) folderOn(step sequenceStep) (ref, tip, folder string, ok bool) {
	ref = "refs/heads/" + []string{"main", "main", "prod"}[step.b%3]
	tip = s.refs()[ref]
	files, err := s.read.filesOf(tip)
	s.check(err)
	folders := packageFolders(files)
	folder, ok = chosen(slices.Sorted(maps.Keys(folders)), step.a)
	return ref, tip, folder, ok
}

// editsBranch has a person push to a package on a branch, or begin a draft of it.
func (s *sandbox) editsBranch(step sequenceStep, isDraft bool) string {
	ref, tip, folder, ok := s.folderOn(step)
	if !ok {
		return "no package"
	}
	author := people[step.c%2]
	files := s.edited(author, tip, folder, step.c/2, isDraft)
	if isDraft {
		ref = "refs/heads/drafts/" + folder + "/" + s.token(author)
	}
	return s.personPushes(author, ref, tip, files)
}

// takes has a person move a ref backwards or remove it: commits that no ref has after that were removed by a person.
func (s *sandbox) takes(ref, old, to string) string {
	before, err := s.read.reach(old)
	s.check(err)
	words := []string{"update", ref, to, old}
	if to == "" {
		words = []string{"delete", ref, old}
	}
	if !s.moveRefs(s.cluster, words...) {
		return ref + " was moved meanwhile"
	}
	refs := s.refs()
	if !strings.HasPrefix(ref, "refs/heads/drafts/") && !strings.HasPrefix(ref, "refs/heads/proposed/") {
		// Not on a draft that was begun on the branch.
		for _, draft := range under(refs, "refs/heads/drafts/", "refs/heads/proposed/") {
			delete(refs, draft)
		}
	}
	after, err := s.read.reach(slices.Collect(maps.Values(refs))...)
	s.check(err)
	for commit := range before {
		if s.ledger.pushed[commit] != "" && !after[commit] {
			s.ledger.removed[commit] = true
		}
	}
	s.ledger.taken[ref] = true
	return fmt.Sprintf("%s went from %.8s to %.8s", ref, old, to)
}

// takesRef has a person choose a ref, and set it back or delete it.
func (s *sandbox) takesRef(step sequenceStep, isBack bool, prefixes ...string) string {
	refs := s.refs()
	ref, ok := chosen(under(refs, prefixes...), step.a)
	if !ok {
		return "no such ref"
	}
	to := ""
	if isBack {
		var err error
		to, err = s.read.firstParent(refs[ref])
		s.check(err)
		if to == "" {
			return ref + " has one commit"
		}
	}
	return s.takes(ref, refs[ref], to)
}

// renamesDraft has a person give a draft another name.
func (s *sandbox) renamesDraft(step sequenceStep) string {
	refs, author := s.refs(), people[step.b%2]
	ref, ok := chosen(under(refs, "refs/heads/drafts/"), step.a)
	if !ok {
		return "no draft"
	}
	to := path.Dir(ref) + "/" + s.token(author)
	if !s.moveRefs(s.cluster, "create", to, refs[ref], "\n", "delete", ref, refs[ref]) {
		return ref + " was moved meanwhile"
	}
	return fmt.Sprintf("%s renamed %s to %s", author, ref, to)
}

// drops has a person delete the newest tag of a blueprint.
func (s *sandbox) drops(step sequenceStep) string {
	refs, err := s.readUp.refs()
	s.check(err)
	name := []string{"app", "base", "web"}[step.a%3]
	tags := under(refs, "refs/tags/"+name+"/")
	if len(tags) < 2 {
		return "one tag is left"
	}
	newest := slices.MaxFunc(tags, func(a, b string) int { return revisionNumber(a) - revisionNumber(b) })
	s.moveRefs(s.blueprints, "delete", newest)
	return newest + " is gone upstream"
}

// revisionNumber is that of a tag; zero where it has none.
func revisionNumber(tag string) (number int) {
	_, _ = fmt.Sscanf(path.Base(tag), "v%d", &number)
	return number
}
