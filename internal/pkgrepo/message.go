package pkgrepo

import (
	"encoding/json"
	"strings"

	"sluice.dev/sluice/internal/printable"
)

// The trailers of commits, see git-interpret-trailers(1). Nothing that is decided on a package's content depends on them, but for
// Sluice-Pristine, which the content has to confirm: they tell people where a commit is from, and what a crash has interrupted.
const (
	variantTrailer   = "Sluice-Variant"
	uidTrailer       = "Sluice-Variant-UID"
	upstreamTrailer  = "Sluice-Upstream"
	configTrailer    = "Sluice-Config"
	packageTrailer   = "Sluice-Package"
	revisionTrailer  = "Sluice-Revision"
	workspaceTrailer = "Sluice-Workspace"
	changeTrailer    = "Sluice-Change"
	removedTrailer   = "Sluice-Removed"
	conflictsTrailer = "Sluice-Conflicts"
	// treeTrailer has the root tree of a draft's commit. It is there as long as every commit of the draft was made here, and whoever
	// amends such a commit changes the tree: so the tip alone says whether anything on the draft is somebody else's.
	treeTrailer     = "Sluice-Tree"
	pristineTrailer = "Sluice-Pristine"
)

const (
	maxSubjectBytes = 200
	maxBodyBytes    = 8 << 10
	maxTrailerBytes = maxPathBytes
	// maxTrailers bounds how many lines at the end of a message are looked at.
	maxTrailers = 64
)

// Message describes a commit. Whatever its words are, they do not become lines or trailers of their own.
type Message struct {
	// Subject is the first line.
	Subject string
	// Body is text below it.
	Body string
	// Variant is <namespace>/<name> of what made the change and UID that object's, Upstream what it was made from, and Config the
	// digest of what it was made with. Each becomes a trailer unless it is empty.
	Variant, UID, Upstream, Config string
	// Pristine says that there are no edits of people in the package, and names what was made; see LastPristine. It becomes a trailer
	// unless it is empty, also of the commit that publishes the package.
	Pristine string
	// Conflicts are those that the commit was written with.
	Conflicts Conflicts
}

// trailer is a line at the end of a message.
type trailer struct{ key, value string }

// text is the whole message, with more trailers of those that have a value.
func (m Message) text(otherwise string, more ...trailer) string {
	subject := strings.TrimSpace(printable.Line(m.Subject, maxSubjectBytes))
	if subject == "" {
		subject = printable.Line(otherwise, maxSubjectBytes)
	}
	var text strings.Builder
	text.WriteString(subject + "\n")
	if body := body(m.Body); body != "" {
		text.WriteString("\n" + body + "\n")
	}
	text.WriteString("\n")
	all := append([]trailer{
		{variantTrailer, m.Variant},
		{uidTrailer, m.UID},
		{upstreamTrailer, m.Upstream},
		{configTrailer, m.Config},
		{pristineTrailer, m.Pristine},
		{conflictsTrailer, m.Conflicts.String()},
	}, more...)
	for _, t := range all {
		if value := strings.TrimSpace(printable.Line(t.value, maxTrailerBytes)); value != "" {
			text.WriteString(t.key + ": " + value + "\n")
		}
	}
	return text.String()
}

// body keeps the lines of a text.
func body(text string) string {
	var lines []string
	size := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(printable.Line(strings.TrimRight(line, "\r\n"), maxSubjectBytes), " ")
		if size += len(line) + 1; size > maxBodyBytes {
			break
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// porchLine is how Porch finds the workspace of a revision in a commit.
func porchLine(path, workspace string) string {
	line, err := json.Marshal(porchNote{Package: path, Workspace: workspace})
	if err != nil {
		return "" // Two strings can always be written.
	}
	return porchPrefix + string(line) + "\n"
}

const porchPrefix = "kpt:"

// porchNote is what of Porch's line is of use here.
type porchNote struct {
	Package   string `json:"package"`
	Workspace string `json:"workspaceName"`
}

// note is what a commit's message tells of a package.
type note struct {
	pkg       string // the path with the directory
	workspace string
	revision  string
	change    string // the tip that was published
	// variant and uid are of the variant that asked for it, and tree is the root tree that the commit was made with.
	variant, uid, tree string
	pristine           string // what was made, where people edited nothing of it
	conflicts          string
}

// of is what the note tells of the package at the path. It holds nothing of the message, which may be long.
func (n note) of(path string) note {
	if n.pkg != path {
		return note{}
	}
	return note{
		pkg: path, workspace: strings.Clone(n.workspace), revision: strings.Clone(n.revision), change: strings.Clone(n.change),
		variant: strings.Clone(n.variant), uid: strings.Clone(n.uid),
		pristine: strings.Clone(n.pristine),
	}
}

// parseNote reads the last paragraph of a message. Of a trailer that is there twice the first counts.
func parseNote(message string) (n note) {
	message = strings.TrimRight(message, "\n")
	const gap = "\n\n"
	at := strings.LastIndex(message, gap)
	if at < 0 {
		return note{}
	}
	lines := strings.Split(message[at+len(gap):], "\n")
	for _, line := range lines[max(0, len(lines)-maxTrailers):] {
		n.read(line)
	}
	return n
}

func (n *note) read(line string) {
	if rest, ok := strings.CutPrefix(line, porchPrefix); ok && len(rest) <= 4*maxPathBytes {
		var porch porchNote
		if json.Unmarshal([]byte(rest), &porch) == nil {
			n.pkg, n.workspace = keep(n.pkg, porch.Package), keep(n.workspace, porch.Workspace)
		}
		return
	}
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case packageTrailer:
		n.pkg = keep(n.pkg, value)
	case workspaceTrailer:
		n.workspace = keep(n.workspace, value)
	case revisionTrailer:
		n.revision = keep(n.revision, value)
	case changeTrailer:
		n.change = keep(n.change, value)
	case variantTrailer:
		n.variant = keep(n.variant, value)
	case uidTrailer:
		n.uid = keep(n.uid, value)
	case treeTrailer:
		n.tree = keep(n.tree, value)
	case pristineTrailer:
		n.pristine = keep(n.pristine, value)
	case conflictsTrailer:
		n.conflicts = keep(n.conflicts, value)
	}
}

// keep is what is known already, or else what was read.
func keep(known, read string) string {
	if known != "" || len(read) > maxPathBytes {
		return known
	}
	return read
}
