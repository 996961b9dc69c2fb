package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/revision"
	"sluice.dev/sluice/internal/ui"
)

// planner is one call of plan, or of approve.
type planner struct {
	*why

	to, channel string
	artifact    string
	upstream    bool
	loopback    bool
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
	Awaited  bool           `json:"awaited"`
	Held     *reasoned      `json:"held,omitempty"`
	Objects  []plan.Object  `json:"objects"`
	Blockers []plan.Blocker `json:"blockers"`
	as       string
	same     int
}

// newPlanner makes the plans that nobody has said more about.
func newPlanner(b *base) *planner {
	return &planner{why: &why{base: b}, evidence: "auto", detail: "fields"}
}

func planCommand(b *base) *cobra.Command {
	p := newPlanner(b)
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
	p.bindRelease(command)
	bindCatalogue(command.Flags(), &p.paths, &p.given)
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
	p.bindContent(command)
	flags := command.Flags()
	flags.StringVar(&p.evidence, "evidence", "auto", "What is asked of the API server: server, dry runs of all that would be written; auto, those that you have the right to, else as read; read, what is there, with which the changes are merged here; none.")
	flags.StringVar(&p.detail, "detail", "fields", "What is shown of an object: fields, yaml, or none.")
	output := flags.Lookup("output")
	output.Usage = strings.Replace(output.Usage, "(wide", "(wide, "+markdown, 1)
}

// bindRelease adds the flags that say which release is meant.
func (p *planner) bindRelease(command *cobra.Command) {
	command.Flags().StringVar(&p.to, "version", "", "Take this version.")
	command.Flags().StringVar(&p.channel, "channel", "", "Take the release of this channel.")
	command.MarkFlagsMutuallyExclusive("version", "channel")
}

// bindContent adds the flags that say where the content of a release is, and as whom the cluster is asked.
func (p *planner) bindContent(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&p.artifact, "artifact", "", "File with the content of the release. Empty: what the controllers serve, through the API server.")
	flags.BoolVar(&p.upstream, "from-upstream", false, "Make the content of the release from upstream, with the source's credentials, which you have to be allowed to read; it has to have the digest on record.")
	flags.BoolVar(&p.loopback, "egress-allow-loopback", false, "Let upstream be on this machine.")
	command.MarkFlagsMutuallyExclusive("artifact", "from-upstream")
	flags.BoolVar(&p.asAccount, "as-installation", false, "Ask as the ServiceAccount of the installation, which you may have to be allowed to impersonate.")
}

// bindPlans adds the flag that has plans made too, and those that say how.
func (p *planner) bindPlans(command *cobra.Command, shows *bool, usage string) {
	command.Flags().BoolVar(shows, planFlag, false, usage)
	p.bindContent(command)
}

// planFlag is the name of the flag that has plans made by commands that do something else.
const planFlag = "plan"

// unplannable refuses what is said of plans where none is made.
func unplannable(command *cobra.Command, others ...string) error {
	for _, name := range append(others, "artifact", "from-upstream", "egress-allow-loopback", "as-installation") {
		if flags := command.Flags(); flags.Changed(name) && !flags.Changed(planFlag) {
			return usage("--"+name+" is for plans, and none is asked for", "add --"+planFlag)
		}
	}
	return nil
}

// evidences are what people type for how sure a plan is to be.
func evidences() map[string]engine.Evidence {
	return map[string]engine.Evidence{"auto": engine.EvidenceAuto, "server": engine.EvidenceServer, "read": engine.EvidenceRead, "none": engine.EvidenceNone}
}

// make plans for the installation as it is, or is to be, with what the files hold.
func (p *planner) make(ctx context.Context, name string) (planned, error) {
	if err := p.readFiles(); err != nil {
		return planned{}, err
	}
	return p.plan(ctx, name)
}

// plan plans with what was read of the files.
func (p *planner) plan(ctx context.Context, name string) (planned, error) {
	evidence, known := evidences()[p.evidence]
	if !known {
		return planned{}, usage("--evidence "+p.evidence+" is none", "it is auto, server, read or none")
	}
	if !slices.Contains([]string{"fields", "yaml", "none"}, p.detail) {
		return planned{}, usage("--detail "+p.detail+" is none", "it is fields, yaml or none")
	}
	asked, held, done, err := p.ask(ctx, name)
	if err != nil {
		return planned{}, err
	}
	defer done()
	asked.Evidence = evidence
	made, err := p.works(asked.Installation).Make(ctx, asked)
	if err != nil {
		return planned{}, p.unplanned("make the plan", err)
	}
	told := plannedOf(asked.Installation, made)
	told.Held = held
	if p.asAccount {
		told.as = "ServiceAccount " + asked.As.Namespace + "/" + asked.As.ServiceAccount
	}
	return told, nil
}

// works makes plans for an installation.
func (p *planner) works(obj *modulesv1.ModuleInstallation) *plan.Planner {
	return &plan.Planner{
		API: asEdited{p.WithWatch, p.files}, Core: p.core, Config: p.rest,
		Members: func(ctx context.Context) ([]modulesv1.Member, error) { return p.found(ctx, obj) },
		// A page has it at least twice: as it is applied, and as it is shown.
		Room: func(ctx context.Context, object []byte) error { return ui.Answered(ctx, 2*weigh(object)) },
	}
}

// ask finds the installation as it is, or is to be, with its release. What the request takes is there until done is called.
func (p *planner) ask(ctx context.Context, name string) (asked plan.Request, held *reasoned, done func(), err error) {
	obj, err := p.installation(ctx, name)
	if err != nil {
		return asked, nil, nil, err
	}
	if err := p.edit(obj); err != nil {
		return asked, nil, nil, err
	}
	asked = plan.Request{Installation: obj, Artifact: p.artifact}
	if p.asAccount {
		if obj.Spec.ServiceAccountName == "" {
			return asked, nil, nil, usage("--as-installation: the installation names no ServiceAccount in spec.serviceAccountName")
		}
		asked.As = cluster.Identity{Namespace: obj.Namespace, ServiceAccount: obj.Spec.ServiceAccountName}
	}
	if held, err = p.choose(ctx, obj, &asked); err != nil {
		return asked, nil, nil, err
	}
	done = func() {}
	if p.upstream {
		done, err = p.fromUpstream(ctx, &asked)
	}
	return asked, held, done, err
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
	if d.Hold != nil {
		held = &reasoned{d.Hold.Reason, d.Hold.Message}
	}
	chosen := d.Chosen()
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
func (p *planner) unplanned(what string, err error) error {
	if problem, ok := errors.AsType[*CommandError](err); ok {
		return problem
	}
	switch reason := failure.Of(err).Reason; {
	case errors.Is(err, published.ErrReleaseMoved) && len(p.files.templates) > 0:
		return &CommandError{Code: ExitUnanswered, What: what, Why: "the release is in the files alone, and has no content yet"}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "services"):
		told := explain("read the content of the release", err, "sluice-artifacts")
		told.Help = append(told.Help, "or have it in a file, and name that with --artifact", "or make it anew, with --from-upstream")
		return told
	case reason == modulesv1.ArtifactUnavailableReason:
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"have the content in a file, and name that with --artifact", "or make it anew, with --from-upstream"}}
	case reason == modulesv1.ForbiddenReason:
		return &CommandError{Code: ExitUnanswered, What: what, Why: err.Error(), Help: []string{"the values of substituteFrom have to be read for that; ask for the right, or for --as-installation"}}
	}
	return explain(what, err, "sluice-view")
}

// unplannedFor says for which of several there is no plan.
func unplannedFor(of ref, err error) error {
	problem, ok := errors.AsType[*CommandError](foreseen("make the plan", err))
	if !ok || problem.general {
		return err
	}
	told := *problem // Others may lack the same.
	if told.Code == ExitUsage {
		told.Code, told.What = ExitUnanswered, "make the plan" // It may be right for others.
	}
	told.What = "plan for " + of.Namespace + "/" + of.Name + ": " + told.What
	return &told
}

// plannedOf is the plan as it is told.
func plannedOf(obj *modulesv1.ModuleInstallation, made plan.Plan) planned {
	told := planned{
		Object: ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}, Digest: made.Digest, same: made.Unchanged,
		To:      chosenRelease{Version: made.Release.Version, Template: made.Release.Template},
		Objects: made.Objects, Blockers: made.Blockers,
	}
	if current := obj.Status.Current; current != nil {
		told.From = &chosenRelease{Version: current.Version, Template: current.Template}
	}
	if pending := obj.Status.Pending; pending != nil && pending.Plan != nil {
		told.Awaited = made.Digest != "" && pending.Plan.Digest == made.Digest
	}
	return told
}

// changes says that the plan would change something, or cannot be carried out.
func (p planned) changes() bool {
	return len(p.Blockers) > 0 || slices.ContainsFunc(p.Objects, func(o plan.Object) bool { return o.Action != engine.ActionKeep || o.Blocked != "" })
}

func (p *planner) show(told planned) error {
	if *p.shown.output.OutputFormat == markdown {
		_, err := io.WriteString(p.Out, told.markdown(newTable(p.Out, false), p.detail))
		return unprinted(err)
	}
	return p.shown.show(p.Out, "Plan", told, func(t table) error { return told.print(t, p.detail) })
}
