package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/tests/testenv"
)

// preview is one with the API server's evidence.
func (r *rig) preview() engine.Preview {
	r.t.Helper()
	told, err := r.engine.Preview(r.t.Context(), r.in, engine.EvidenceServer)
	check(r.t, err)
	return told
}

// unseeing is an engine for previews alone.
func (r *rig) unseeing() *engine.Engine {
	r.t.Helper()
	made, err := engine.NewForPreviews(r.parts, engine.Options{Clock: r.clock})
	check(r.t, err)
	return made
}

// actions are what a preview says of each object.
func actions(told engine.Preview) map[string]engine.Action {
	all := map[string]engine.Action{}
	for _, row := range told.Rows {
		all[row.Ref.Name] = row.Action
	}
	return all
}

// rowOf is what a preview says of an object.
func rowOf(told engine.Preview, name string) engine.Row {
	for _, row := range told.Rows {
		if row.Ref.Name == name {
			return row
		}
	}
	return engine.Row{}
}

// snapshot is what is there of the objects of a preview.
func (r *rig) snapshot(told engine.Preview) map[cluster.Ref]*unstructured.Unstructured {
	r.t.Helper()
	there := map[cluster.Ref]*unstructured.Unstructured{}
	for _, row := range told.Rows {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(row.Ref.GVK)
		err := env.Client.Get(r.t.Context(), client.ObjectKey{Namespace: row.Ref.Namespace, Name: row.Ref.Name}, found)
		if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			r.t.Fatal(err)
		}
		if err == nil {
			there[row.Ref] = found
		}
	}
	return there
}

// comesTrue says where what is installed now is not what the preview said; "" is nowhere.
func (r *rig) comesTrue(told engine.Preview) string {
	r.t.Helper()
	before := r.snapshot(told)
	if len(told.Blockers) > 0 {
		r.isBlocked(told.Blockers[0])
	} else {
		r.comesToItsEnd()
	}
	after := r.snapshot(told)
	for _, row := range told.Rows {
		right := becomes(row, before[row.Ref], after[row.Ref], r.in)
		if len(told.Blockers) > 0 {
			right = stands(row, before[row.Ref], after[row.Ref], told.Blockers[0]) || right && row.Blocked == ""
		}
		if !right {
			return fmt.Sprintf("%s of %s (%s, blocked by %q, %+v) was not so:\n%v\n%v", row.Action, row.Ref, row.Reason, row.Blocked, told.Blockers,
				before[row.Ref], after[row.Ref])
		}
	}
	return ""
}

func (r *rig) isBlocked(want engine.Blocker) {
	r.t.Helper()
	testenv.Eventually(r.t, fmt.Sprintf("it is blocked by %+v", want), func(ctx context.Context) (bool, string) {
		_, err := r.engine.Reconcile(ctx, r.in)
		r.clock.SetTime(r.clock.Now().Add(5 * time.Second))
		staged, ok := errors.AsType[*failure.StageError](err)
		return ok && cmp.Equal(want, engine.Blocker{Stage: staged.Stage, Reason: failure.Of(err).Reason, Message: err.Error()}), fmt.Sprint(err)
	})
}

func (r *rig) comesToItsEnd() {
	r.t.Helper()
	testenv.Eventually(r.t, "nothing was said to be in the way, and it comes to its end", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		r.clock.SetTime(r.clock.Now().Add(5 * time.Second))
		return err == nil && settled(out), fmt.Sprintf("%v, %+v", err, out.Waiting)
	})
}

// stands says that an object is as it was, as what is blocked is, and what would come after what is.
func stands(row engine.Row, before, after *unstructured.Unstructured, first engine.Blocker) bool {
	isPruning := first.Stage == engine.StagePrune
	return uidOf(before) == uidOf(after) && (row.Blocked != "" || !isPruning || row.Object == nil)
}

// becomes says that an object has become what the row says.
func becomes(row engine.Row, before, after *unstructured.Unstructured, in engine.Installation) bool {
	mine := func(o *unstructured.Unstructured) bool {
		return o != nil && o.GetLabels()[engine.Label] == engine.InstallationID(in.Name, in.Namespace)
	}
	same := uidOf(before) == uidOf(after)
	switch row.Action {
	case engine.ActionCreate:
		return before == nil && mine(after)
	case engine.ActionAdopt:
		return before != nil && same && !mine(before) && mine(after)
	case engine.ActionChange:
		return before != nil && same && mine(before) && mine(after)
	case engine.ActionReplace:
		return before != nil && !same && mine(before) && mine(after)
	case engine.ActionRemove:
		return after == nil || after.GetDeletionTimestamp() != nil
	case engine.ActionLetGo:
		return same && !mine(after)
	case engine.ActionHandOver:
		return same && mine(before) && !mine(after) && after.GetLabels()[engine.Label] != ""
	case engine.ActionKeep:
		return same && mine(before) == mine(after)
	}
	return false
}

func uidOf(o *unstructured.Unstructured) types.UID {
	if o == nil {
		return ""
	}
	return o.GetUID()
}

// TestPreview: each action, and each blocker, is told before it happens; what follows is what was told.
func TestPreview(t *testing.T) {
	t.Parallel()
	fixed := func(value string) map[string]string { return map[string]string{"s.yaml": secretOnce(value)} }
	for name, tc := range map[string]struct {
		reason string
		// before and then are the releases, and between is what happens between them.
		before, then map[string]string
		between      func(*rig)
		want         map[string]engine.Action
		blocker      string
		row          string // is the object of which text is said
		text         string
	}{
		"Plain": {
			reason: "what is new, other, the same and dropped",
			before: configMapFiles("same", "1", "other", "1", "gone", "1"), then: configMapFiles("same", "1", "other", "2", "new", "1"),
			want: map[string]engine.Action{
				"same": engine.ActionKeep, "other": engine.ActionChange, "gone": engine.ActionRemove, "new": engine.ActionCreate,
			},
		},
		"First": {
			reason: "there is no record yet", then: configMapFiles("new", "1"),
			want: map[string]engine.Action{"new": engine.ActionCreate},
		},
		"Missing": {
			reason: "a member that somebody deleted is made anew", before: configMapFiles("a", "1", "b", "1"), then: configMapFiles("a", "2", "b", "1"),
			between: func(r *rig) {
				check(r.t, env.Client.Delete(r.t.Context(), r.get(configMaps, "a")))
			},
			want: map[string]engine.Action{"a": engine.ActionCreate, "b": engine.ActionKeep},
		},
		"Adopt": {
			reason: "somebody made it before", before: configMapFiles("a", "1"), then: configMapFiles("a", "1", "theirs", "2"),
			between: func(r *rig) { r.byHand(configMap("theirs", "1")) },
			want:    map[string]engine.Action{"a": engine.ActionKeep, "theirs": engine.ActionAdopt},
			row:     "theirs", text: ".data.key",
		},
		"TakenField": {
			reason: "somebody has changed a field that the release sets", before: configMapFiles("a", "1"), then: configMapFiles("a", "2"),
			between: func(r *rig) { r.edit(configMaps, "a", `{"data":{"key":"theirs"}}`) },
			want:    map[string]engine.Action{"a": engine.ActionChange}, row: "a", text: ".data.key",
		},
		"Never": {
			reason: "nothing is adopted", before: configMapFiles("a", "1"), then: configMapFiles("a", "1", "theirs", "2"),
			between: func(r *rig) {
				r.byHand(configMap("theirs", "1"))
				r.in.Spec.Adopt = modulesv1.AdoptNever
			},
			want: map[string]engine.Action{"a": engine.ActionKeep, "theirs": engine.ActionCreate}, blocker: modulesv1.OwnershipConflictReason,
			row: "theirs", text: "spec.adopt is Never",
		},
		"Replace": {
			reason: "spec.force makes anew what cannot be changed", before: fixed("one"), then: fixed("two"),
			between: func(r *rig) { r.in.Spec.Force = true },
			want:    map[string]engine.Action{"subject": engine.ActionReplace}, row: "subject", text: "cannot be changed in place",
		},
		"Immutable": {
			reason: "nothing is made anew unasked", before: fixed("one"), then: fixed("two"),
			want: map[string]engine.Action{"subject": engine.ActionChange}, blocker: modulesv1.ImmutableFieldReason, row: "subject", text: "set spec.force",
		},
		"ImmutableAdopted": {
			reason: "what was there before is not deleted, whatever is forced", then: fixed("two"),
			between: func(r *rig) {
				r.byHand(secretOnce("one"))
				r.in.Spec.Force = true
			},
			want: map[string]engine.Action{"subject": engine.ActionCreate}, blocker: modulesv1.ImmutableFieldReason, row: "subject", text: "not provably this installation's",
		},
		"Kept": {
			reason: "somebody keeps it", before: configMapFiles("a", "1", "kept", "1"), then: configMapFiles("a", "1"),
			between: func(r *rig) {
				r.edit(configMaps, "kept", `{"metadata":{"annotations":{"modules.sluice.dev/prune":"disabled"}}}`)
			},
			want: map[string]engine.Action{"a": engine.ActionKeep, "kept": engine.ActionLetGo}, row: "kept", text: "modules.sluice.dev/prune",
		},
		"Ignored": {
			reason: "the release does not apply it any more", before: configMapFiles("a", "1", "b", "1"),
			then: map[string]string{"a.yaml": configMap("a", "1"), "b.yaml": annotatedMap("b", "1", engine.SSAAnnotation+": Ignore")},
			want: map[string]engine.Action{"a": engine.ActionKeep, "b": engine.ActionLetGo}, row: "b", text: "Ignore",
		},
		"IfNotPresent": {
			reason: "it is there, and was to be made only if it was not", before: configMapFiles("a", "1"),
			then:    map[string]string{"a.yaml": configMap("a", "1"), "b.yaml": annotatedMap("b", "1", engine.SSAAnnotation+": IfNotPresent")},
			between: func(r *rig) { r.byHand(configMap("b", "theirs")) },
			want:    map[string]engine.Action{"a": engine.ActionKeep, "b": engine.ActionKeep}, row: "b", text: "left as it is",
		},
		"NoPrune": {
			reason: "nothing is pruned", before: configMapFiles("a", "1", "b", "1"), then: configMapFiles("a", "1"),
			between: func(r *rig) { r.in.Spec.Prune = &modulesv1.PrunePolicy{Enabled: new(false)} },
			want:    map[string]engine.Action{"a": engine.ActionKeep, "b": engine.ActionKeep}, row: "b", text: "spec.prune.enabled",
		},
		"TooMany": {
			reason: "more would go than may", before: configMapFiles("a", "1", "b", "1"), then: configMapFiles("a", "1"),
			between: func(r *rig) { r.in.Spec.Prune = &modulesv1.PrunePolicy{MaxPercent: new(int32(40))} },
			want:    map[string]engine.Action{"a": engine.ActionKeep, "b": engine.ActionRemove}, blocker: modulesv1.PruneBlockedReason,
		},
		"Forbidden": {
			reason: "rights were lost", before: configMapFiles("a", "1", "b", "1"), then: configMapFiles("a", "2"),
			between: func(r *rig) { r.loses("configmaps", "patch") },
			want:    map[string]engine.Action{"a": engine.ActionChange, "b": engine.ActionRemove}, blocker: modulesv1.ForbiddenReason,
			row: "a", text: "patch",
		},
		"ForbiddenToPrune": {
			reason: "the right to delete was lost", before: configMapFiles("a", "1", "b", "1"), then: configMapFiles("a", "2"),
			between: func(r *rig) { r.loses("configmaps", "delete") },
			want:    map[string]engine.Action{"a": engine.ActionChange, "b": engine.ActionRemove}, blocker: modulesv1.ForbiddenReason,
			row: "b", text: "delete",
		},
		"Empty": {
			reason: "nothing is in it", before: configMapFiles("a", "1"), then: map[string]string{"readme.yaml": "# nothing\n"},
			want: map[string]engine.Action{}, blocker: modulesv1.EmptyRenderReason,
		},
		"OwnNamespace": {
			reason: "a namespace that comes with the release is not there yet", then: map[string]string{
				"a.yaml": namespaceFile("NAMESPACE-x", "1"), "b.yaml": strings.Replace(configMap("inside", "1"), "inside", "inside, namespace: NAMESPACE-x", 1),
			},
			want: map[string]engine.Action{"NAMESPACE-x": engine.ActionCreate, "inside": engine.ActionCreate}, row: "inside", text: "its namespace comes with the release",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.asDeployer()
			if tc.before != nil {
				r.in.Target = r.target("1.0.0", tc.before)
				r.settle("it is installed", settled)
			}
			if tc.between != nil {
				tc.between(r)
			}
			named := map[string]string{}
			for file, text := range tc.then {
				named[file] = strings.ReplaceAll(text, "NAMESPACE", r.namespace)
			}
			r.in.Target = r.target("2.0.0", named)
			if name == "OwnNamespace" {
				r.in.Identity = cluster.Identity{}
			}
			told := r.preview()
			got := map[string]engine.Action{}
			for of, action := range actions(told) {
				got[strings.ReplaceAll(of, r.namespace, "NAMESPACE")] = action
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", tc.reason, diff)
			}
			first := ""
			if len(told.Blockers) > 0 {
				first = told.Blockers[0].Reason
			}
			if row := rowOf(told, tc.row); first != tc.blocker || !strings.Contains(fmt.Sprint(row.Taken, row.Reason, row.Blocked), tc.text) {
				t.Fatalf("%s: blocked by %+v; %+v", tc.reason, told.Blockers, row)
			}
			if wrong := r.comesTrue(told); wrong != "" {
				t.Errorf("%s: %s", tc.reason, wrong)
			}
		})
	}
}

// TestPreviewWritesNothing: neither objects nor the record are other than before, and nothing is watched. Who has no
// watcher sees the same.
func TestPreviewWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Spec.Force = true
	files := configMapFiles("a", "1", "gone", "1")
	files["s.yaml"] = secretOnce("one")
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	r.byHand(configMap("theirs", "1"))
	files = configMapFiles("a", "2", "theirs", "2", "new", "1")
	files["s.yaml"], files["account.yaml"] = secretOnce("two"), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\n"
	r.in.Target = r.target("2.0.0", files)

	record, writes := r.inventory(), r.records.writes
	first := r.preview()
	before := r.snapshot(first)
	again := r.preview()
	if diff := cmp.Diff(before, r.snapshot(again)); diff != "" || r.records.writes != writes || !cmp.Equal(record, r.inventory()) {
		t.Errorf("a preview has written (%d writes of the record):\n%s", r.records.writes-writes, diff)
	}
	if _, known := r.watcher.State(r.in.Key(), rowOf(first, "account").Ref); known {
		t.Error("what is only previewed is watched")
	}
	plain, err := r.unseeing().Preview(t.Context(), r.in, engine.EvidenceServer)
	check(t, err)
	// What would be created has another UID each time.
	if diff := cmp.Diff(first, plain, cmpopts.IgnoreFields(engine.Row{}, "After")); diff != "" {
		t.Errorf("without a watcher it is another preview:\n%s", diff)
	}
	if _, err := r.unseeing().Reconcile(t.Context(), r.in); err == nil {
		t.Error("an engine for previews reconciles")
	}
	if calls := r.calls(func() {
		told, err := r.engine.Preview(t.Context(), r.in, engine.EvidenceNone)
		check(t, err)
		if diff := cmp.Diff(map[string]engine.Action{
			"a": engine.ActionChange, "gone": engine.ActionRemove, "subject": engine.ActionChange, "theirs": engine.ActionCreate, "new": engine.ActionCreate,
			"account": engine.ActionCreate,
		}, actions(told)); diff != "" || !cmp.Equal(told.Plan, first.Plan) {
			t.Errorf("without evidence:\n%s", diff)
		}
	}); len(calls) > 0 {
		t.Errorf("without evidence it asks %v", calls)
	}
}

// TestPreviewOfHandOver: what another installation claims is handed over to it, and what it has is not taken.
func TestPreviewOfHandOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "shared", "1"))
	r.settle("it is installed", settled)
	s := r.sibling("valkey")
	s.in.Target = s.target("1.0.0", configMapFiles("shared", "1"))
	told := s.preview()
	if len(told.Blockers) != 1 || told.Blockers[0].Reason != modulesv1.OwnershipConflictReason {
		t.Fatalf("blockers: %+v", told.Blockers)
	}
	if wrong := s.comesTrue(told); wrong != "" {
		t.Error(wrong)
	}
	r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
	told = r.preview()
	if got := rowOf(told, "shared"); got.Action != engine.ActionHandOver || !strings.Contains(got.Reason, "valkey") {
		t.Errorf("shared: %+v", got)
	}
	if wrong := r.comesTrue(told); wrong != "" {
		t.Error(wrong)
	}
}

// TestPreviewOfContents: a CRD with users' objects holds the pruning, and a Namespace goes only if all in it goes too.
func TestPreviewOfContents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		foreign bool
		want    engine.Action
	}{
		"Empty":     {"its only object is a member that goes before it", false, engine.ActionRemove},
		"Inhabited": {"somebody has put an object into it", true, engine.ActionLetGo},
	} {
		t.Run("Namespace"+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			inner := r.namespace + "-x"
			inside := func(name string) string {
				return strings.Replace(configMap(name, "1"), "name: "+name, "name: "+name+", namespace: "+inner, 1)
			}
			files := configMapFiles("a", "1")
			files["ns.yaml"], files["inside.yaml"] = namespaceFile(inner, "1"), inside("inside")
			r.in.Target = r.target("1.0.0", files)
			r.settle("it is installed", settled)
			if tc.foreign {
				foreign := r.get(configMaps, "a")
				foreign.Object["metadata"] = map[string]any{"name": "foreign", "namespace": inner}
				check(t, env.Client.Create(t.Context(), foreign))
			}
			r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
			told := r.preview()
			if got := rowOf(told, inner); got.Action != tc.want || len(told.Blockers) > 0 {
				t.Errorf("%s: %+v, %+v", tc.reason, got, told.Blockers)
			}
			testenv.Eventually(t, "it comes true", func(ctx context.Context) (bool, string) {
				_, err := r.engine.Reconcile(ctx, r.in)
				live := r.snapshot(told)[rowOf(told, inner).Ref]
				going := live == nil || live.GetDeletionTimestamp() != nil
				let := live != nil && live.GetLabels()[engine.Label] == ""
				return tc.want == engine.ActionRemove && going || tc.want == engine.ActionLetGo && let && !going, fmt.Sprint(err)
			})
		})
	}
	t.Run("Definition", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		m := newCRDModule(r)
		r.in.Target = m.target(r, "1.0.0")
		told := r.preview()
		if len(told.Blockers) > 0 {
			t.Errorf("what comes with the release is in its way: %+v", told.Blockers)
		}
		r.settle("it is installed", settled)
		check(t, env.Client.Create(t.Context(), m.thing(r.namespace, "user")))
		r.in.Target = r.target("2.0.0", configMapFiles("a", "1"))
		told = r.preview()
		if len(told.Blockers) == 0 || told.Blockers[0].Reason != modulesv1.PruneBlockedReason {
			t.Fatalf("blockers: %+v", told.Blockers)
		}
		if wrong := r.comesTrue(told); wrong != "" {
			t.Error(wrong)
		}
	})
}
