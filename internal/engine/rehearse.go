package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
)

// depends finds out whether what the installation depends on is ready.
func (l *outlook) depends(ctx context.Context) error {
	if l.under(l.aim) {
		return nil
	}
	err := l.depend(ctx)
	if errors.Is(err, errLate) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		l.block(err)
	}
	return nil
}

// applying applies as the engine does, and stores nothing. What is unchanged is not asked for.
func (l *outlook) applying(ctx context.Context) error {
	deletion, err := l.deletion(l.aim.target, true)
	if err != nil {
		l.block(err)
		return nil
	}
	var todo []*prospect
	for i := range l.all {
		if one := &l.all[i]; one.object != nil && one.action != ActionKeep {
			todo = append(todo, one)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	taker := l.taker()
	taker.managed = deletion.ManagedResources
	// Before the first request an attempt claims what it is about to apply.
	members := index(claimed(l.members(), l.aim.render))
	for _, group := range byStage(todo) {
		if err := l.applyGroup(ctx, taker, members, group); err != nil {
			return err
		}
	}
	return nil
}

func (l *outlook) applyGroup(ctx context.Context, taker taker, members map[key]*modulesv1.Member, group []*prospect) error {
	var failed []memberError
	for _, one := range each(ctx, l.over, group, func(p *prospect) (result, error) {
		if err := l.servedByOwn(*p.object); err != nil {
			return result{}, err
		}
		return try(l, p, func(client *cluster.Client) (result, error) {
			with := taker
			with.client = client
			return with.apply(ctx, *p.object, members[p.key])
		})
	}) {
		switch {
		case one.err == nil:
			one.of.applied(one.found)
		case noAnswer(ctx, one.err):
			return failure.At(StageApply, one.err)
		case !l.isTold(one.of, one.err):
			one.of.err = one.err
			failed = append(failed, memberError{refOfObject(one.of.object.Unstructured), one.err})
		}
	}
	if err := joined(StageApply, modulesv1.ApplyFailedReason, failed); err != nil {
		l.block(err)
	}
	return nil
}

// try does what the engine would: the API server tells what comes of it, or else it is foreseen from what is there, if that
// is asked for, or no other right is had.
func try[R any](l *outlook, p *prospect, do func(*cluster.Client) (R, error)) (R, error) {
	if l.asked == EvidenceRead {
		p.tried = EvidenceRead
		return do(l.foreseen)
	}
	p.tried = EvidenceServer
	found, err := do(l.dry)
	if !l.lacksRight(err) {
		return found, err
	}
	foreseen, unread := do(l.foreseen)
	if l.lacksRight(unread) || errors.Is(unread, cluster.ErrUnforeseen) {
		return found, err
	}
	p.tried, p.lacking = EvidenceRead, err
	return foreseen, unread
}

// noAnswer says that an error tells nothing about an object.
func noAnswer(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errLate) || errors.Is(err, cluster.ErrUnavailable)
}

// undryable is what the API server says where a webhook has effects of its own.
const undryable = "does not support dry run"

// isTold says that an error is no obstacle, but one to a dry run: the object's namespace, kind or role comes with the release,
// or changes with it, something has to go before, or a webhook in its way cannot be asked. It says so in the row.
func (l *outlook) isTold(one *prospect, err error) bool {
	crd, defined := l.aim.render.definition(one.object.GroupVersionKind())
	switch {
	case errors.Is(err, cluster.ErrNoKind) && defined, defined && l.changes(crd.key):
		one.why = "its kind comes with the release: " + err.Error()
	case errors.Is(err, cluster.ErrNamespaceMissing) && l.changes(key{kind: "Namespace", name: one.key.namespace}):
		one.why = "its namespace comes with the release"
	case errors.Is(err, cluster.ErrNotFound) && l.changes(roleOf(one.object)):
		one.why = "its role comes with the release"
	case l.lacksRight(err):
		one.why = err.Error()
	case errors.Is(err, errUntried), errors.Is(err, cluster.ErrUnforeseen), strings.Contains(err.Error(), undryable):
		one.why = err.Error()
	default:
		return false
	}
	return true
}

// lacksRight says that whoever looks may not try, or see, what somebody else may.
func (l *outlook) lacksRight(err error) bool {
	return l.asked != EvidenceServer && errors.Is(err, cluster.ErrForbidden)
}

// roleOf is the role that a binding grants, which is checked for who may not grant any.
func roleOf(o *object) key {
	at := func(field string) string {
		found, _, _ := unstructured.NestedString(o.Object, "roleRef", field)
		return found
	}
	role := key{group: rbacv1.GroupName, kind: at("kind"), name: at("name")}
	if role.kind == "Role" {
		role.namespace = o.key.namespace
	}
	return role
}

// changes says that the release brings an object, or changes it.
func (l *outlook) changes(k key) bool {
	return slices.ContainsFunc(l.all, func(one prospect) bool { return one.key == k && one.object != nil && one.action != ActionKeep })
}

// applied takes in what the API server made of an apply.
func (p *prospect) applied(found result) {
	p.evidence, p.taken, p.after = p.tried, found.fields, found.applied.Rehearsed
	switch {
	case found.left:
		p.action, p.why = ActionKeep, "it is there, and its annotation "+SSAAnnotation+" has it left as it is"
	case found.unfit != nil:
		p.action, p.why = ActionReplace, found.unfit.Error()
	case found.applied.Created:
		p.action = ActionCreate
	case found.adopted:
		p.action = ActionAdopt
		for _, note := range found.notes {
			p.why = note.Message
		}
	default:
		p.action = ActionChange
	}
}

// ignoring lets go of what the release does not apply, and stores nothing.
func (l *outlook) ignoring(ctx context.Context) error {
	var failed []memberError
	for i := range l.all {
		one := &l.all[i]
		if !l.ignores(one) {
			continue
		}
		if err := l.over(ctx); err != nil {
			return late(StageApply)
		}
		_, one.err = try(l, one, func(client *cluster.Client) (struct{}, error) {
			return struct{}{}, l.letIgnored(ctx, client, one.member)
		})
		if l.lacksRight(one.err) {
			one.why, one.err = one.err.Error(), nil
			continue
		}
		if one.err != nil && noAnswer(ctx, one.err) {
			return failure.At(StageApply, one.err)
		}
		one.evidence = one.tried
		if one.err != nil {
			failed = append(failed, memberError{refOf(one.member), one.err})
		}
	}
	if err := joined(StageApply, modulesv1.ApplyFailedReason, failed); err != nil {
		l.block(err)
	}
	return nil
}

// removing removes as the engine does, and stores nothing.
func (l *outlook) removing(ctx context.Context) error {
	var todo []*prospect
	leaving := map[key]bool{}
	for i := range l.all {
		if one := &l.all[i]; one.leaves() && !l.ignores(one) && l.in.Spec.PruneEnabled() {
			todo = append(todo, one)
			leaving[one.key] = true
		}
	}
	if len(todo) == 0 {
		return nil
	}
	removal, err := l.removalOf(ctx, func(m *modulesv1.Member) bool { return leaving[keyOf(m)] })
	if err != nil {
		return failure.At(StagePrune, failure.Retry(modulesv1.PruneFailedReason, err))
	}
	removal.client = l.dry
	held, err := l.definitions(ctx, removal, todo)
	if err != nil {
		return err
	}
	if err := l.overLimit(); err != nil {
		l.block(err)
	} else if held != nil {
		l.block(held)
	}
	groups := byStage(todo)
	for _, group := range slices.Backward(groups) {
		if err := l.removeGroup(ctx, removal, group); err != nil {
			return err
		}
	}
	return nil
}

// definitions finds out which CRDs are held, for the engine asks that before it removes anything.
func (l *outlook) definitions(ctx context.Context, removal *removal, todo []*prospect) (held, err error) {
	var failed []memberError
	for _, one := range todo {
		if one.member.UID == "" || kindOf(one.member).GroupKind() != definitionKind() {
			continue
		}
		if one.err = removal.mayGo(ctx, one.member); one.err == nil {
			continue
		}
		if noAnswer(ctx, one.err) {
			return nil, failure.At(StagePrune, one.err)
		}
		failed = append(failed, memberError{refOf(one.member), one.err})
	}
	return joined(StagePrune, modulesv1.PruneBlockedReason, failed), nil
}

func (l *outlook) removeGroup(ctx context.Context, removal *removal, group []*prospect) error {
	var failed []memberError
	for _, one := range each(ctx, l.over, group, func(p *prospect) (removed, error) {
		return try(l, p, func(client *cluster.Client) (removed, error) {
			with := *removal
			with.client = client
			return with.remove(ctx, *p.member)
		})
	}) {
		p := one.of
		if one.err != nil && noAnswer(ctx, one.err) {
			return failure.At(StagePrune, one.err)
		}
		if l.lacksRight(one.err) {
			p.why = one.err.Error()
			continue
		}
		if one.err != nil {
			if p.err == nil {
				p.err = one.err
				failed = append(failed, memberError{refOf(p.member), one.err})
			}
			continue
		}
		p.evidence = p.tried
		p.removed(one.found)
		if by := l.moved(p); by != "" && p.action == ActionRemove {
			p.action, p.why = ActionLetGo, by+" is in it"
		}
	}
	if err := joined(StagePrune, modulesv1.PruneFailedReason, failed); err != nil {
		l.block(err)
	}
	return nil
}

// removed takes in what came of removing a member.
func (p *prospect) removed(found removed) {
	p.why = found.why
	switch found.fate {
	case inherited:
		p.action, p.why = ActionHandOver, "the installation "+found.heir.Namespace+"/"+found.heir.Name+" claims it"
	case held:
		p.action = ActionKeep
	case goes:
		p.action = ActionRemove
	case letGo, foreign:
		p.action = ActionLetGo
	}
}

// moved names an object that the release puts into a Namespace of which nothing else is needed any more.
func (l *outlook) moved(p *prospect) string {
	if kindOf(p.member).GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
		return ""
	}
	for i := range l.all {
		if one := &l.all[i]; one.object != nil && one.key.namespace == p.key.name {
			return describe(refOfObject(one.object.whole))
		}
	}
	return ""
}
