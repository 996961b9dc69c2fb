package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// Evidence is how it is known what would become of an object.
type Evidence string

const (
	// EvidenceNone is the render and the record, and what the watch has of an object.
	EvidenceNone Evidence = "None"
	// EvidenceServer is the API server's answer to the engine's own requests, as dry runs. They need the rights of an
	// installation.
	EvidenceServer Evidence = "Server"
	// EvidenceRead is what is there, with the engine's own requests merged into it here: it needs the right to read alone. It
	// knows nothing of defaults, of admission, of fields that cannot change, and of who may write.
	EvidenceRead Evidence = "Read"
	// EvidenceAuto is EvidenceServer for what the rights allow, and EvidenceRead for what may be read. The rest is told
	// without evidence, and blocks nothing: whoever looks need not be who applies.
	EvidenceAuto Evidence = "Auto"
)

// Preview is what installing a release would do.
type Preview struct {
	// Plan is the engine's for the same installation: the summary of what is known without evidence.
	Plan modulesv1.Plan
	// Rows are all objects of the release and on record, by kind, namespace and name.
	Rows []Row
	// Blockers are why the engine would not come to the end, in the order in which it would meet them: the first is what
	// it would tell. Objects whose turn comes after one stay as they are.
	Blockers []Blocker
}

// Row is what would become of an object, if nothing blocks it.
type Row struct {
	Ref   cluster.Ref
	Stage int
	// Action is what evidence makes of it: a row that the plan counts as a deletion may turn out to be let go of.
	Action Action
	// Object is as it would be applied, for an Action that applies it. It may be a Secret: whoever shows it masks it.
	Object *unstructured.Unstructured
	// After is what it would be then, with what others have set, as the API server answered, or as it was merged; nil where
	// neither was tried. It may be a Secret too, or hold what whoever asks may not read.
	After *unstructured.Unstructured
	// Taken are the fields that others have set, and that would be taken over.
	Taken []cluster.Field
	// Reason says in words why it is let go of, kept, replaced or adopted; "" where the action says it all. It may have any length,
	// and quote what is secret: whoever shows it masks it, and cuts it then.
	Reason string
	// Evidence is by what this is known. EvidenceNone beside a reason, where more was asked for, says why that cannot be had.
	Evidence Evidence
	// Blocked is what is in the way, in words, as Reason is.
	Blocked string
}

// Blocker is why the engine would not go on: the failure that Reconcile would return. Its message is as a Row's Reason is.
type Blocker struct {
	Stage           failure.Stage
	Reason, Message string
}

// Preview says what becomes of each object when the target, which has to be there, is installed. Nothing is written, and
// nothing watched; the objects may be looked at, as the evidence says. What drifted is healed whatever is installed, and
// is no part of it. Neither is the target's seal asked. An error says that there is no answer now.
func (e *Engine) Preview(ctx context.Context, in Installation, evidence Evidence) (Preview, error) {
	r, end := e.round(in)
	defer end()
	if err := r.open(ctx); err != nil {
		return Preview{}, err
	}
	planned, err := r.renders.aimAt(ctx, in.Target)
	if lasting(ctx, err) {
		return Preview{Blockers: []Blocker{blockerOf(err)}}, nil
	}
	if err != nil {
		return Preview{}, err
	}
	r.aim = planned
	rows, err := r.rows(ctx, planned)
	if err != nil {
		return Preview{}, err
	}
	plan, err := summary(planned, rows)
	if err != nil {
		return Preview{}, err
	}
	made := outlook{
		round: r, asked: evidence, all: make([]prospect, len(rows)), dry: r.client.DryRun(), foreseen: r.client.Foresee(),
	}
	for i := range rows {
		made.all[i] = prospect{row: rows[i], evidence: EvidenceNone}
	}
	if err := made.find(ctx, evidence); err != nil {
		return Preview{}, err
	}
	told := Preview{Plan: plan, Blockers: made.blockers}
	for i := range made.all {
		told.Rows = append(told.Rows, made.all[i].tell())
	}
	return told, nil
}

// outlook is what is found out about rows.
type outlook struct {
	*round

	asked    Evidence
	all      []prospect
	blockers []Blocker
	// dry has the API server tell what it would do, and foreseen tells it from what is there.
	dry, foreseen *cluster.Client
}

// prospect is a row, and what is found out about it.
type prospect struct {
	row

	evidence Evidence
	// tried is by what its last request was answered, and lacking the right that was missing for a better answer.
	tried   Evidence
	lacking error
	taken   []cluster.Field
	after   *unstructured.Unstructured
	err     error
}

// find asks for the evidence, and for what is in the way, in the order of the engine.
func (l *outlook) find(ctx context.Context, evidence Evidence) error {
	steps := []func(context.Context) error{l.fits, l.limit}
	if evidence != EvidenceNone {
		steps = []func(context.Context) error{l.depends, l.fits, l.applying, l.ignoring, l.removing}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fits finds out whether the Inventory has room for the attempt.
func (l *outlook) fits(context.Context) error {
	if l.under(l.aim) || l.aim.render == nil {
		return nil
	}
	if err := fits(claimed(l.members(), l.aim.render), l.aim.target.Health); err != nil {
		l.block(failure.At(StageApply, failure.Stall(modulesv1.InventoryTooLargeReason, err)))
	}
	return nil
}

// limit holds those that are to go against spec.prune.maxPercent, as they are once all else is applied.
func (l *outlook) limit(context.Context) error {
	if err := l.overLimit(); err != nil {
		l.block(err)
	}
	return nil
}

func (l *outlook) overLimit() error {
	var going, all int
	for i := range l.all {
		switch one := &l.all[i]; {
		case one.object != nil && one.action == ActionKeep && one.member == nil:
			// It is somebody else's, and no member.
		case one.object != nil, one.member.UID != "" && wanted(one.member) && !one.leaves():
			all++
		case one.member.UID != "" && !l.ignores(one):
			all++
			going++
		}
	}
	if going == 0 || !l.in.Spec.PruneEnabled() {
		return nil
	}
	return l.withinLimit(going, all)
}

// leaves says that no release needs the object any more.
func (p *prospect) leaves() bool {
	return p.object == nil && (p.action != ActionKeep || p.why != "")
}

// ignores says that the release does not apply the object, by its annotation.
func (l *outlook) ignores(one *prospect) bool {
	return l.aim.render != nil && l.aim.render.ignored[one.key]
}

// block adds what the engine would return.
func (l *outlook) block(err error) { l.blockers = append(l.blockers, blockerOf(err)) }

func blockerOf(err error) Blocker {
	told := Blocker{Reason: failure.Of(err).Reason, Message: err.Error()}
	if several, ok := errors.AsType[*severalError](err); ok {
		told.Message = several.text
	}
	if staged, ok := errors.AsType[*failure.StageError](err); ok {
		told.Stage = staged.Stage
	}
	return told
}

// tell is the prospect for the caller.
func (p *prospect) tell() Row {
	told := Row{Action: p.action, After: p.after, Taken: p.taken, Reason: p.why, Evidence: p.evidence}
	switch {
	case p.object == nil:
		told.Ref = refOf(p.member)
	case p.member != nil && !p.member.Claimed:
		told.Ref = refOfObject(p.object.whole)
		told.Ref.UID = refOf(p.member).UID
	default:
		told.Ref = refOfObject(p.object.whole)
	}
	switch p.action {
	case ActionCreate, ActionReplace:
		told.Object = p.object.whole
	case ActionAdopt, ActionChange:
		told.Object = p.object.Unstructured
	case ActionHandOver, ActionRemove, ActionLetGo, ActionKeep:
	}
	if told.Reason == "" && p.lacking != nil {
		told.Reason = p.lacking.Error()
	}
	if p.err != nil {
		told.Blocked = p.err.Error()
	}
	told.Stage = cluster.Stage(told.Ref.GVK)
	return told
}

// byStage groups prospects by their stage, in its order.
func byStage(all []*prospect) [][]*prospect {
	stage := func(p *prospect) int { return cluster.Stage(p.tell().Ref.GVK) }
	slices.SortStableFunc(all, func(a, b *prospect) int { return cmp.Compare(stage(a), stage(b)) })
	var groups [][]*prospect
	for i, one := range all {
		if i == 0 || stage(all[i-1]) != stage(one) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], one)
	}
	return groups
}
