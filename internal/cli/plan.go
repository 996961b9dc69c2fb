package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/revision"
)

// planner is one call of plan, or of approve.
type planner struct {
	*why

	to, channel string
	artifact    string
	evidence    string
	detail      string
	asAccount   bool
}

// planned is what would become of an installation.
type planned struct {
	Object ref            `json:"object"`
	From   *chosenRelease `json:"from,omitempty"`
	To     chosenRelease  `json:"to"`
	Digest string         `json:"digest,omitempty"`
	// Awaited says that it is the plan that waits for its approval.
	Awaited  bool             `json:"awaited"`
	Held     *reasoned        `json:"held,omitempty"`
	Objects  []plannedObject  `json:"objects,omitempty"`
	Blockers []plannedBlocker `json:"blockers,omitempty"`
	as       string
	same     int
}

type plannedObject struct {
	Action     engine.Action   `json:"action"`
	Group      string          `json:"group,omitempty"`
	Kind       string          `json:"kind"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name"`
	Fields     []plannedField  `json:"fields,omitempty"`
	Uncompared string          `json:"uncompared,omitempty"`
	Taken      []plannedTaking `json:"taken,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Blocked    string          `json:"blocked,omitempty"`
	Evidence   engine.Evidence `json:"evidence"`
}

type plannedField struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
}

type plannedTaking struct {
	Path    string `json:"path"`
	Manager string `json:"manager"`
}

type plannedBlocker struct {
	Stage   string `json:"stage,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func planCommand(b *base) *cobra.Command {
	p := &planner{why: &why{base: b}}
	command := &cobra.Command{
		Use:     "plan NAME",
		Aliases: []string{"diff"},
		Short:   "Show what an upgrade, or an edited spec, would change, object by object",
		Example: `  sluice plan redis -n team-a
  sluice plan redis --version 2.0.0
  sluice plan redis -f redis.yaml --detail none`,
		ValidArgsFunction: b.completeInstallations,
	}
	p.shown = bindAnswers(command)
	p.bind(command)
	flags := command.Flags()
	flags.StringVar(&p.to, "version", "", "Plan for this version.")
	flags.StringVar(&p.channel, "channel", "", "Plan for the release of this channel.")
	bindCatalogue(flags, &p.paths, &p.given)
	command.MarkFlagsMutuallyExclusive("version", "channel")
	return b.on(command, func(ctx context.Context, args []string) error {
		_, name, err := one(args, kinds()[0].resource)
		if err != nil {
			return err
		}
		told, err := p.make(ctx, name)
		if err != nil {
			return err
		}
		if err := p.show(told); err != nil {
			return err
		}
		if told.changes() {
			return &CommandError{Code: ExitNo}
		}
		return nil
	})
}

// bind adds the flags that say how a plan is made and shown.
func (p *planner) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&p.artifact, "artifact", "", "File with the content of the release. Empty: what the controllers serve, through the API server.")
	flags.StringVar(&p.evidence, "evidence", "auto", "What is asked of the API server: server, dry runs of all that would be written; auto, those that you have the right to; none.")
	flags.StringVar(&p.detail, "detail", "fields", "What is shown of an object: fields, or none.")
	flags.BoolVar(&p.asAccount, "as-installation", false, "Ask as the ServiceAccount of the installation, which you may have to be allowed to impersonate.")
}

// evidences are what people type for how sure a plan is to be.
func evidences() map[string]engine.Evidence {
	return map[string]engine.Evidence{"auto": engine.EvidenceAuto, "server": engine.EvidenceServer, "none": engine.EvidenceNone}
}

// make plans for the installation as it is, or is to be.
func (p *planner) make(ctx context.Context, name string) (planned, error) {
	evidence, known := evidences()[p.evidence]
	if !known {
		return planned{}, usage("--evidence "+p.evidence+" is none", "it is auto, server or none")
	}
	if p.detail != "fields" && p.detail != "none" {
		return planned{}, usage("--detail "+p.detail+" is none", "it is fields or none")
	}
	if err := p.readFiles(); err != nil {
		return planned{}, err
	}
	obj, err := p.installation(ctx, name)
	if err != nil {
		return planned{}, err
	}
	if err := p.edit(obj); err != nil {
		return planned{}, err
	}
	asked := plan.Request{Installation: obj, Artifact: p.artifact, Evidence: evidence}
	if p.asAccount {
		if obj.Spec.ServiceAccountName == "" {
			return planned{}, usage("--as-installation: the installation names no ServiceAccount in spec.serviceAccountName")
		}
		asked.As = cluster.Identity{Namespace: obj.Namespace, ServiceAccount: obj.Spec.ServiceAccountName}
	}
	held, err := p.choose(ctx, obj, &asked)
	if err != nil {
		return planned{}, err
	}
	works := plan.Planner{
		API: p.WithWatch, Core: p.core, Config: p.rest,
		Members: func(ctx context.Context) ([]modulesv1.Member, error) { return p.found(ctx, obj) },
	}
	made, err := works.Make(ctx, asked)
	if err != nil {
		return planned{}, p.unplanned(err)
	}
	told := plannedOf(obj, made)
	told.Held = held
	if p.asAccount {
		told.as = "ServiceAccount " + asked.As.Namespace + "/" + asked.As.ServiceAccount
	}
	return told, nil
}

// edit has the spec ask for what the flags do.
func (p *planner) edit(obj *modulesv1.ModuleInstallation) error {
	if p.to == "" && p.channel == "" {
		return nil
	}
	if p.to != "" {
		if _, err := revision.ParseStrict(p.to); err != nil {
			return usage("--version: " + err.Error())
		}
	}
	module := &obj.Spec.Module
	if module.Name == "" && obj.Status.Resolution != nil {
		module.Name = obj.Status.Resolution.Module
	}
	module.TemplateRef, module.Range, module.Latest, module.Version, module.Channel = nil, "", false, p.to, p.channel
	return nil
}

// choose finds the release to plan for: the one that is to run, or else the one that is held back.
func (p *planner) choose(ctx context.Context, obj *modulesv1.ModuleInstallation, asked *plan.Request) (*reasoned, error) {
	_, _, _, d, err := p.decide(ctx, obj)
	if err != nil {
		return nil, err
	}
	if p.catalogues.lacking != nil {
		return nil, p.catalogues.lacking
	}
	asked.Namespace, asked.Channel = d.Namespace, d.Channel()
	var held *reasoned
	chosen := d.Target
	if d.Hold != nil {
		held = &reasoned{d.Hold.Reason, d.Hold.Message}
		chosen = d.Hold.Candidate
	}
	if chosen == nil {
		told := &CommandError{Code: ExitUnanswered, What: "choose a release for " + ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}.String(), Why: "none is found"}
		if held != nil {
			told.Why = held.String()
		}
		told.Help = []string{"sluice why " + obj.Name + " -n " + obj.Namespace + " explains it rule by rule"}
		return nil, told
	}
	asked.Chosen = *chosen
	return held, nil
}

// unplanned says why there is no plan.
func (p *planner) unplanned(err error) error {
	if problem, ok := errors.AsType[*CommandError](err); ok {
		return problem
	}
	const what = "make the plan"
	switch reason := failure.Of(err).Reason; {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "services"):
		told := explain("read the content of the release", err, "sluice-artifacts")
		told.Help = append(told.Help, "or have it in a file, and name that with --artifact")
		return told
	case reason == modulesv1.ArtifactUnavailableReason:
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"have the content in a file, and name that with --artifact"}}
	case reason == modulesv1.ForbiddenReason:
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"the values of substituteFrom have to be read for a plan; ask for the right, or for --as-installation"}}
	}
	return explain(what, err, "sluice-view")
}

// plannedOf is the plan as it is told.
func plannedOf(obj *modulesv1.ModuleInstallation, made plan.Plan) planned {
	told := planned{
		Object: ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}, Digest: made.Digest, same: made.Unchanged,
		To: chosenRelease{Version: made.Release.Version, Template: made.Release.Template},
	}
	if current := obj.Status.Current; current != nil {
		told.From = &chosenRelease{Version: current.Version, Template: current.Template}
	}
	if pending := obj.Status.Pending; pending != nil && pending.Plan != nil {
		told.Awaited = made.Digest != "" && pending.Plan.Digest == made.Digest
	}
	for _, one := range made.Objects {
		object := plannedObject{
			Action: one.Action, Group: one.Ref.GVK.Group, Kind: one.Ref.GVK.Kind, Namespace: one.Ref.Namespace, Name: one.Ref.Name,
			Uncompared: one.Uncompared, Reason: one.Reason, Blocked: one.Blocked, Evidence: one.Evidence,
		}
		for _, field := range one.Fields {
			object.Fields = append(object.Fields, plannedField(field))
		}
		for _, field := range one.Taken {
			object.Taken = append(object.Taken, plannedTaking(field))
		}
		told.Objects = append(told.Objects, object)
	}
	for _, one := range made.Blockers {
		told.Blockers = append(told.Blockers, plannedBlocker{string(one.Stage), one.Reason, one.Message})
	}
	return told
}

// changes says that the plan would change something, or cannot be carried out.
func (p planned) changes() bool {
	return len(p.Blockers) > 0 || slices.ContainsFunc(p.Objects, func(o plannedObject) bool { return o.Action != engine.ActionKeep })
}

func (p *planner) show(told planned) error {
	return p.shown.show(p.Out, "Plan", told, func(out io.Writer) error { return told.print(newTable(out, p.shown.wide()), p.detail) })
}

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
	line := func(indent int, parts ...string) {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		lines.WriteString(strings.Repeat(" ", indent) + printable.Line(strings.Join(parts, "  "), maxProblem) + "\n")
	}
	way := p.To.Version
	if p.From != nil && p.From.Version != p.To.Version {
		way = p.From.Version + " -> " + p.To.Version
		if !t.plain {
			way = p.From.Version + " → " + p.To.Version
		}
	}
	as := ""
	if p.as != "" {
		as = "as " + p.as
	}
	line(0, p.Object.Namespace+"/"+p.Object.Name, way, as)
	for _, object := range p.Objects {
		name := ref{object.Kind, object.Namespace, object.Name}.String()
		line(0, signs()[object.Action]+" "+name, object.headline())
		if object.Blocked != "" {
			line(4, "blocked: "+object.Blocked)
		}
		if detail == "none" {
			continue
		}
		for _, field := range object.Fields {
			line(4, field.Path, field.change(t), object.takes(field.Path))
		}
		if object.Uncompared != "" {
			line(4, "not compared: "+object.Uncompared)
		}
	}
	p.sums(line)
	_, err := io.WriteString(t.out, lines.String())
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}

// headline is what is said beside an object's name.
func (o plannedObject) headline() string {
	word := map[engine.Action]string{
		engine.ActionAdopt: "adopted", engine.ActionReplace: "deleted and made anew", engine.ActionLetGo: "let go of, and left where it is",
		engine.ActionHandOver: "handed over", engine.ActionKeep: "kept",
	}[o.Action]
	if o.Reason == "" {
		return word
	}
	return strings.TrimPrefix(word+": "+o.Reason, ": ")
}

// takes says from whom the field is taken over.
func (o plannedObject) takes(path string) string {
	at := slices.IndexFunc(o.Taken, func(taken plannedTaking) bool {
		return strings.TrimPrefix(taken.Path, ".") == path
	})
	if at < 0 {
		return ""
	}
	return "takes over from " + o.Taken[at].Manager
}

// change is a field's values before and after.
func (f plannedField) change(t table) string {
	arrow := " → "
	if t.plain {
		arrow = " -> "
	}
	switch {
	case f.Hidden:
		return "changed, value hidden"
	case f.Before == "":
		return "set to " + f.After
	case f.After == "":
		return "removed, was " + f.Before
	}
	return f.Before + arrow + f.After
}

// sums counts, and says how sure that is.
func (p planned) sums(line func(indent int, parts ...string)) {
	counts := map[engine.Action]int{}
	confirmed, predicted, taken := 0, 0, 0
	for _, object := range p.Objects {
		counts[object.Action]++
		taken += len(object.Taken)
		switch {
		case object.Action == engine.ActionKeep:
		case object.Evidence == engine.EvidenceServer:
			confirmed++
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
	if confirmed+predicted > 0 {
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
	default:
		line(0, "no digest, as the Inventory may not be read: ask for the ClusterRole sluice-operate")
	}
}
