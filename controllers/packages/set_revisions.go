package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=list;create;update;patch;delete

const (
	// maxRevisionBytes bounds what a set with a rollout says of its variants, as it is kept once more with each revision.
	maxRevisionBytes = 256 << 10
	// maxRevisions is how many are kept. Variants at one that is gone stay as they are until their wave begins.
	maxRevisions = 10
)

// revisionContent is what the variants of a set are made of. It says so of variants whose wave has not begun after the set and
// upstream have moved on, and after a restart.
type revisionContent struct {
	// Upstream is what was found, and Pin how it is said in a variant.
	Upstream packagesv1.UpstreamStatus `json:"upstream"`
	Pin      packagesv1.Upstream       `json:"pin"`
	Targets  []revisionTarget          `json:"targets"`
}

// revisionTarget is a target of the spec: a digest of what it selects, and the template.
type revisionTarget struct {
	Selects  string                      `json:"selects"`
	Template *packagesv1.VariantTemplate `json:"template,omitempty"`
}

// setRevision is a revision of a set.
type setRevision struct {
	appsv1.ControllerRevision
	revisionContent

	// key is the same for revisions of which the variants are the same.
	key string
}

// contentOf is what a set makes its variants of, now that upstream is this.
func contentOf(obj *packagesv1.PackageVariantSet, up packagesv1.UpstreamStatus, directory string) revisionContent {
	c := revisionContent{Upstream: up, Pin: pin(up, directory)}
	for i := range obj.Spec.Targets {
		selects := obj.Spec.Targets[i]
		selects.Template = nil
		c.Targets = append(c.Targets, revisionTarget{digestOf(selects), obj.Spec.Targets[i].Template})
	}
	return c
}

// pin is how a variant says that it is made of what was found, wherever upstream moves.
func pin(up packagesv1.UpstreamStatus, directory string) packagesv1.Upstream {
	made := packagesv1.Upstream{Repo: up.Repo, Package: up.Package, Commit: up.Commit}
	tag, isTag := strings.CutPrefix(up.Ref, "refs/tags/")
	var number int32
	switch n, err := fmt.Sscanf(up.Revision, "v%d", &number); {
	case !isTag:
		made.Branch = shortRef(up.Ref)
	case n == 1 && err == nil && tag == fmt.Sprintf("%s/v%d", path.Join(directory, up.Package), number):
		made.Revision = number
	default:
		made.Tag = tag
	}
	return made
}

// keyOf leaves the commit out: one that leaves the package as it was changes nothing.
func keyOf(c revisionContent) string {
	c.Upstream.Commit, c.Pin.Commit = "", ""
	return digestOf(c)
}

func digestOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error() // What came as JSON goes as JSON.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// history are the revisions of a set, the newest last.
func (k *sets) history(ctx context.Context, obj *packagesv1.PackageVariantSet) ([]*setRevision, error) {
	var list appsv1.ControllerRevisionList
	err := k.shared.Reader.List(ctx, &list, client.InNamespace(obj.Namespace), client.MatchingLabels{packagesv1.SetLabel: string(obj.UID)})
	if err != nil {
		return nil, fmt.Errorf("list the set's ControllerRevisions: %w", err)
	}
	var all []*setRevision
	for i := range list.Items {
		r := &setRevision{ControllerRevision: list.Items[i]}
		// One that somebody has broken is as one that is gone.
		if metav1.IsControlledBy(&r.ControllerRevision, obj) && r.DeletionTimestamp.IsZero() && json.Unmarshal(r.Data.Raw, &r.revisionContent) == nil {
			r.key = keyOf(r.revisionContent)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *setRevision) int { return int(a.Revision - b.Revision) })
	return all, nil
}

// revise makes sure that the newest revision has the content. A new one is held, or not.
func (k *sets) revise(
	ctx context.Context, obj *packagesv1.PackageVariantSet, history []*setRevision, content revisionContent, isHeld bool,
) ([]*setRevision, error) {
	key, number, notes := keyOf(content), int64(1), map[string]string{}
	if isHeld {
		notes[packagesv1.HeldAnnotation] = "true"
	}
	if len(history) > 0 {
		number = history[len(history)-1].Revision + 1
	}
	if at := slices.IndexFunc(history, func(r *setRevision) bool { return r.key == key }); at >= 0 {
		again := history[at]
		if at == len(history)-1 {
			return history, nil
		}
		// What was before comes back: it is rolled out as anything else.
		again.Revision = number
		again.Annotations = notes
		if err := k.shared.Client.Update(ctx, &again.ControllerRevision, client.FieldOwner(k.shared.FieldOwner)); err != nil {
			return nil, fmt.Errorf("change ControllerRevision %s: %w", again.Name, err)
		}
		return append(slices.Delete(history, at, at+1), again), nil
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the set's revision: %w", err)
	}
	if len(raw) > maxRevisionBytes {
		return nil, failure.Stall(packagesv1.InvalidSpecReason, fmt.Errorf(
			"the templates in spec.targets have %d bytes; with a rollout, %d are allowed: make several sets of it", len(raw), maxRevisionBytes))
	}
	made := &setRevision{revisionContent: content, key: key, ControllerRevision: appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.Namespace, Name: objectName(obj.Name, digestOf(string(obj.UID) + key)[:8]), Labels: map[string]string{packagesv1.SetLabel: string(obj.UID)}, Annotations: notes,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, packagesv1.GroupVersion.WithKind(packagesv1.PackageVariantSetKind))},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}}
	if err := k.shared.Client.Create(ctx, &made.ControllerRevision, client.FieldOwner(k.shared.FieldOwner)); err != nil {
		return nil, fmt.Errorf("create ControllerRevision %s: %w", made.Name, err)
	}
	return append(history, made), nil
}

// collect deletes the revisions that no variant is at any more. The newest is kept in any case.
func (k *sets) collect(ctx context.Context, history []*setRevision, used map[string]bool) error {
	for i, r := range slices.Backward(history[:len(history)-1]) {
		if used[r.Name] && i > len(history)-1-maxRevisions {
			continue
		}
		if err := k.shared.Client.Delete(ctx, &r.ControllerRevision); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ControllerRevision %s: %w", r.Name, err)
		}
	}
	return nil
}

// done are the times since when waves are done with the revision.
func (r *setRevision) done() map[string]time.Time {
	var times map[string]time.Time
	if json.Unmarshal([]byte(r.Annotations[packagesv1.WavesAnnotation]), &times) != nil {
		return nil // They are noted anew.
	}
	return times
}

// note keeps since when waves are done.
func (k *sets) note(ctx context.Context, r *setRevision, done map[string]time.Time) error {
	if maps.EqualFunc(r.done(), done, time.Time.Equal) {
		return nil
	}
	text, err := json.Marshal(done)
	if err != nil {
		return fmt.Errorf("encode the times of waves: %w", err)
	}
	before := r.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, packagesv1.WavesAnnotation, string(text))
	if err := k.shared.Client.Patch(ctx, &r.ControllerRevision, client.MergeFrom(before), client.FieldOwner(k.shared.FieldOwner)); err != nil {
		return fmt.Errorf("change ControllerRevision %s: %w", r.Name, err)
	}
	return nil
}

// spec is a set that makes variants of the revision for the targets of today. Not all of them were there then.
func (r *setRevision) spec(obj *packagesv1.PackageVariantSet) (spec *packagesv1.PackageVariantSetSpec, wasThere []bool) {
	spec = &packagesv1.PackageVariantSetSpec{Upstream: r.Pin}
	left := slices.Clone(r.Targets) // Of several that select the same, each is found once.
	for i := range obj.Spec.Targets {
		selects := obj.Spec.Targets[i]
		selects.Template = nil
		digest := digestOf(selects)
		at := slices.IndexFunc(left, func(t revisionTarget) bool { return t.Selects == digest })
		if at < 0 && len(r.Targets) == len(obj.Spec.Targets) {
			at = i // It selects something else by now.
		}
		if wasThere = append(wasThere, at >= 0); at >= 0 {
			selects.Template, left[at].Selects = r.Targets[at].Template, ""
		}
		spec.Targets = append(spec.Targets, packagesv1.Target{Template: selects.Template})
	}
	return spec, wasThere
}
