package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/printable"
)

const (
	// maxTitle and maxWords bound the title and the words of a request: no forge takes less than 255 and 65,536 characters, and
	// people may write something as well.
	maxTitle, maxWords = 200, 48 << 10
	// maxCell bounds what a cell of a table shows of a value.
	maxCell = 80
)

// reviewWords are the title and the words of the request for a change. They depend on nothing but what is to be reviewed, so that
// nothing is edited as long as that stays. What is from outside stands in code, so that a forge takes it for nothing else.
func reviewWords(obj *packagesv1.PackageVariant, b *brief, l *look, change *packagesv1.ChangeStatus) (title, words string) {
	what := "Update"
	if branchOf(l.state) == nil {
		what = "Add"
	}
	from := ""
	if lock := l.open.Facts.Lock; lock != nil {
		from = fmt.Sprintf(" to %s", printable.Line(lock.Ref, maxCell))
	}
	title = printable.Line(fmt.Sprintf("%s package %s%s", what, b.downstream, from), maxTitle)
	t := &tables{}
	t.line("Package %s, as PackageVariant %s wants it.", forge.Code(b.downstream), forge.Code(b.owner))
	if lock := l.open.Facts.Lock; lock != nil {
		t.line("It is made from %s of %s at %s, which is commit %s.", forge.Code(lock.Directory), forge.Code(printable.Line(lock.Repo, maxTitle)), forge.Code(lock.Ref), forge.Code(lock.Commit))
	}
	if waiting := l.open.Facts.Waiting(); len(waiting) > 0 {
		t.line("**These readiness gates are not open:** %s. Whoever merges this passes them.", forge.Code(printable.List(waiting, fewPoints)))
	}
	if change.ConflictCount > 0 {
		t.line("**Upstream and people changed the same value in %s**. The draft has the values of conflictPolicy %s. Merging this request accepts the conflicts with the digest %s.",
			counted(int(change.ConflictCount), "place"), forge.Code(string(obj.Spec.GetConflictPolicy())), forge.Code(change.ConflictDigest))
		var rows [][]string
		for _, c := range change.Conflicts {
			rows = append(rows, []string{c.File, c.Resource, c.Path, c.Base, c.Upstream, c.Local})
		}
		t.table([]string{"File", "Object", "Field", "Before", "Upstream", "Here"}, rows, int(change.ConflictCount))
	}
	t.changes(change)
	t.line("Merging this, in whichever way, approves commit %s and publishes the package. Closing it rejects that commit: another one is asked for anew.", forge.Code(l.open.Commit))
	return title, strings.TrimSuffix(t.text.String(), "\n")
}

// wordsDigest names words.
func wordsDigest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// tables is a text with tables, as all forges read Markdown. What would be too long is left out, and counted.
type tables struct{ text strings.Builder }

func (t *tables) line(format string, args ...any) { fmt.Fprintf(&t.text, format+"\n\n", args...) }

// changes shows what differs from what is published.
func (t *tables) changes(change *packagesv1.ChangeStatus) {
	if change.Message != "" {
		t.line("**Read the diff of the branch before you merge this:** %s", forge.Code(printable.Line(change.Message, maxTitle)))
	}
	f, o := change.Files, change.Objects
	if f == nil {
		return
	}
	counts := "| | Added | Changed | Removed |\n|---|---|---|---|\n"
	if o != nil {
		counts += fmt.Sprintf("| Objects | %d | %d | %d |\n", o.Added, o.Changed, o.Removed)
	} else {
		o = &packagesv1.ObjectChanges{}
	}
	t.line("%s| Files | %d | %d | %d |", counts, f.Added, f.Changed, f.Removed)
	var rows [][]string
	for _, c := range o.Names {
		kind := c.Kind
		if c.Group != "" {
			kind += "." + c.Group
		}
		rows = append(rows, []string{string(c.Change), kind, strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")})
	}
	t.table([]string{"Change", "Kind", "Object"}, rows, int(o.Added+o.Changed+o.Removed))
	rows = nil
	for _, c := range f.Names {
		rows = append(rows, []string{string(c.Change), c.Path})
	}
	t.table([]string{"Change", "File"}, rows, int(f.Added+f.Changed+f.Removed))
}

// table writes rows, of which there may be more than are known.
func (t *tables) table(head []string, rows [][]string, all int) {
	if all == 0 {
		return
	}
	fmt.Fprintf(&t.text, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	shown := 0
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = forge.Code(printable.Line(cell, maxCell))
		}
		line := "| " + strings.Join(cells, " | ") + " |\n"
		if t.text.Len()+len(line) > maxWords {
			break
		}
		t.text.WriteString(line)
		shown++
	}
	t.text.WriteString("\n")
	if more := all - shown; more > 0 {
		t.line("And %d more.", more)
	}
}
