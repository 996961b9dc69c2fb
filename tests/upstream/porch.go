package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Porch writes packages to a repository in the form in which Porch writes them: every commit on a draft and every approval ends in a
// line that begins with "kpt:", an approval is a merge of the draft into the branch main, and refs say what state a revision is in.
type Porch struct {
	*Edited
	// Numbers says that revisions stand in commits as numbers; else they are texts, as most of its releases write them.
	Numbers bool
}

// porchNote is what the line says, with its fields in Porch's order.
type porchNote struct {
	Package   string         `json:"package,omitempty"`
	Workspace string         `json:"workspaceName,omitempty"`
	Revision  any            `json:"revision,omitempty"`
	Task      map[string]any `json:"task,omitempty"`
}

func (p Porch) note(pkg, workspace string, revision int, task map[string]any) string {
	note := porchNote{Package: pkg, Workspace: workspace, Revision: fmt.Sprint(revision), Task: task}
	if p.Numbers {
		note.Revision = revision
	}
	line, err := json.Marshal(note)
	return "\n\nkpt:" + string(need(p.t, line, err)) + "\n"
}

// Draft begins a draft of a package with its files, and returns its tip. An empty task is a clone.
func (p Porch) Draft(pkg, workspace, task string, files map[string]string) string {
	p.t.Helper()
	branch := "drafts/" + pkg + "/" + workspace
	if task == "" {
		task = "clone"
	}
	if _, err := p.Resolve("refs/heads/" + branch); err != nil {
		p.SetRef("refs/heads/"+branch, p.Raw("rev-parse", "main"))
	}
	note := p.note(pkg, workspace, 0, map[string]any{"type": task, task: map[string]any{}})
	return p.Commit(branch, "Intermediate commit: "+task+"\n"+note, Text(below(pkg, files)))
}

func below(folder string, files map[string]string) map[string]string {
	placed := map[string]string{}
	for name, content := range files {
		placed[folder+"/"+name] = content
	}
	return placed
}

// Propose moves a draft on.
func (p Porch) Propose(pkg, workspace string) {
	p.t.Helper()
	p.RenameBranch("drafts/"+pkg+"/"+workspace, "proposed/"+pkg+"/"+workspace)
}

// Approve publishes a draft, or what is proposed, as the revision, and returns the commit.
func (p Porch) Approve(pkg, workspace string, revision int) string {
	p.t.Helper()
	from := "refs/heads/proposed/" + pkg + "/" + workspace
	tip, err := p.Resolve(from)
	if err != nil {
		from = "refs/heads/drafts/" + pkg + "/" + workspace
		tip, err = p.Resolve(from)
	}
	need(p.t, tip, err)
	main := p.Raw("rev-parse", "main")
	files := Files{pkg: {Mode: Removed}}
	if !p.has(main, pkg) {
		files = Files{}
	}
	const scratch = "scratch"
	need(p.t, "", p.Repository.SetRef("refs/heads/"+scratch, main))
	inside := Files{}
	for name, file := range p.Tree(tip) {
		if strings.HasPrefix(name, pkg+"/") {
			inside[name] = file
		}
	}
	for _, edit := range []Files{files, inside} {
		id, err := p.Repository.Commit(scratch, "scratch", edit)
		need(p.t, id, err)
	}
	tree := p.Raw("rev-parse", scratch+"^{tree}")
	need(p.t, "", p.Repository.DeleteRef("refs/heads/"+scratch))
	commit := p.CommitTree(tree, fmt.Sprintf("Approve %s/%d%s", pkg, revision, p.note(pkg, workspace, revision, nil)), main, tip)
	tag := fmt.Sprintf("refs/tags/%s/v%d", pkg, revision)
	p.Raw("push", "--quiet", "--atomic", ".", commit+":refs/heads/main", commit+":"+tag, ":"+from)
	p.moved()
	return commit
}

func (p Porch) has(commit, pkg string) bool {
	for name := range maps.Keys(p.Tree(commit)) {
		if strings.HasPrefix(name, pkg+"/") {
			return true
		}
	}
	return false
}

// ProposeDeletion marks a revision.
func (p Porch) ProposeDeletion(pkg string, revision int) {
	p.t.Helper()
	name := fmt.Sprintf("%s/v%d", pkg, revision)
	p.SetRef("refs/heads/deletionProposed/"+name, p.Raw("rev-parse", "refs/tags/"+name+"^{commit}"))
}
