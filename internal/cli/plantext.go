package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/printable"
)

// signs stand before the objects of a plan.
func signs() map[engine.Action]string {
	return map[engine.Action]string{
		engine.ActionCreate: "+", engine.ActionAdopt: "~", engine.ActionChange: "~", engine.ActionReplace: "!",
		engine.ActionRemove: "-", engine.ActionLetGo: "<", engine.ActionHandOver: ">", engine.ActionKeep: "=",
	}
}

// print draws the plan.
func (p planned) print(t table, detail string) error {
	var lines strings.Builder
	line := func(indent int, parts ...string) { lines.WriteString(planLine(indent, parts...) + "\n") }
	line(0, p.head(t)...)
	p.objects(t, detail, 4, line)
	p.sums(line)
	_, err := io.WriteString(t.out, lines.String())
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

// planLine is a line of a plan, of those of its parts that there are.
func planLine(indent int, parts ...string) string {
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Repeat(" ", indent) + printable.Line(strings.Join(parts, "  "), maxProblem)
}

// head says what is planned for.
func (p planned) head(t table) []string {
	way := p.To.Version
	if p.From != nil && p.From.Version != p.To.Version {
		way = p.From.Version + t.arrow() + p.To.Version
	}
	as := ""
	if p.as != "" {
		as = "as " + p.as
	}
	return []string{p.Object.Namespace + "/" + p.Object.Name, way, as}
}

// arrow stands between what is and what is to be.
func (t table) arrow() string {
	if t.plain {
		return " -> "
	}
	return " → "
}

// objects tells what becomes of each, in as much detail as is asked for. Lines of YAML begin at the column.
func (p planned) objects(t table, detail string, column int, line func(indent int, parts ...string)) {
	named := p.kinds()
	for _, object := range p.Objects {
		kind := object.Kind
		if len(named[kind]) > 1 && object.Group != "" {
			kind += "." + object.Group
		}
		name := ref{kind, object.Namespace, object.Name}.String()
		line(0, signs()[object.Action]+" "+name, headlineOf(object))
		if object.Blocked != "" {
			line(4, "blocked: "+object.Blocked)
		}
		switch detail {
		case "none":
			continue
		case "yaml":
			for _, one := range yamlChanges(object) {
				line(column, one)
			}
			for _, taken := range object.Taken {
				line(4, taken.Path, "taken over from "+taken.Manager)
			}
		default:
			for _, field := range object.Fields {
				line(4, field.Path, changeOf(field, t), takerOf(object, field.Path))
			}
		}
		if object.Uncompared != "" {
			line(4, "not compared: "+object.Uncompared)
		}
	}
}

// kinds are the groups of the kinds of each name.
func (p planned) kinds() map[string]map[string]bool {
	groups := map[string]map[string]bool{}
	for _, object := range p.Objects {
		if groups[object.Kind] == nil {
			groups[object.Kind] = map[string]bool{}
		}
		groups[object.Kind][object.Group] = true
	}
	return groups
}

// headlineOf is what is said beside an object's name.
func headlineOf(o plan.Object) string {
	word := map[engine.Action]string{
		engine.ActionAdopt: "adopted", engine.ActionReplace: "deleted and made anew", engine.ActionLetGo: "let go of, and left where it is",
		engine.ActionHandOver: "handed over", engine.ActionKeep: "kept",
	}[o.Action]
	if o.Reason == "" {
		return word
	}
	return strings.TrimPrefix(word+": "+o.Reason, ": ")
}

// takerOf says from whom the field is taken over.
func takerOf(o plan.Object, path string) string {
	at := slices.IndexFunc(o.Taken, func(taken plan.Taken) bool { return taken.Path == path })
	if at < 0 {
		return ""
	}
	return "takes over from " + o.Taken[at].Manager
}

// changeOf is a field's values before and after.
func changeOf(f plan.Field, t table) string {
	switch {
	case f.Hidden:
		return "changed, value hidden"
	case f.Before == "":
		return "set to " + f.After
	case f.After == "":
		return "removed, was " + f.Before
	}
	return f.Before + t.arrow() + f.After
}

// sums counts, and says how sure that is.
func (p planned) sums(line func(indent int, parts ...string)) {
	counts := map[engine.Action]int{}
	confirmed, merged, predicted, taken := 0, 0, 0, 0
	for _, object := range p.Objects {
		counts[object.Action]++
		taken += len(object.Taken)
		switch {
		case object.Action == engine.ActionKeep:
		case object.Evidence == engine.EvidenceServer:
			confirmed++
		case object.Evidence == engine.EvidenceRead:
			merged++
		default:
			predicted++
		}
	}
	var parts []string
	for _, sum := range []struct {
		count int
		word  string
	}{
		{counts[engine.ActionCreate], "created"},
		{counts[engine.ActionAdopt], "adopted"},
		{counts[engine.ActionChange], "changed"},
		{counts[engine.ActionReplace], "made anew"},
		{counts[engine.ActionRemove], "removed"},
		{counts[engine.ActionHandOver], "handed over"},
		{counts[engine.ActionLetGo], "let go of"},
		{p.same + counts[engine.ActionKeep], "unchanged"},
	} {
		if sum.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", sum.count, sum.word))
		}
	}
	total := list(parts)
	if taken > 0 {
		total += fmt.Sprintf("; %d fields taken over", taken)
	}
	line(0, total)
	switch {
	case merged > 0:
		line(0, fmt.Sprintf("%d confirmed by the API server, %d predicted, %d of these from what is there", confirmed, merged+predicted, merged))
	case confirmed+predicted > 0:
		line(0, fmt.Sprintf("%d confirmed by the API server, %d predicted", confirmed, predicted))
	}
	for _, blocker := range p.Blockers {
		line(0, "blocked by "+blocker.Reason+": "+blocker.Message)
	}
	if p.Held != nil {
		line(0, "held: "+p.Held.String())
	}
	switch {
	case p.Awaited:
		line(0, "plan "+p.Digest+", the one that waits for approval")
	case p.Digest != "":
		line(0, "plan "+p.Digest)
	case len(p.Objects) == 0 && len(p.Blockers) > 0: // It has not come so far.
	default:
		line(0, "no digest, as the Inventory may not be read: ask for the ClusterRole sluice-operate")
	}
}
