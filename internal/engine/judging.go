package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/health"
)

const (
	// many is from how many members of one kind and namespace on a list of whole objects is less than reading each.
	many = 10
	// lookAgain is how soon members that cannot be watched are read again while they are not healthy.
	lookAgain = 10 * time.Second
)

// judging finds out how members are, of which nothing is known that still holds.
type judging struct {
	sight

	client  *cluster.Client
	clock   clock.PassiveClock
	checker *health.Checker
	// checked is what was found before.
	checked map[key]checked
	// retry is how soon healthy members that cannot be watched are read again.
	retry time.Duration
	// over says why no further member is to be read.
	over func(context.Context) error
}

// judgement is what was found of a member.
type judgement = answer[*modulesv1.Member, checked]

// judge reads a member only if its health needs the object, and the watch has another version of it than was judged.
func (j *judging) judge(ctx context.Context, members []modulesv1.Member) []judgement {
	var unread []*modulesv1.Member
	blind := j.blind(members)
	for m := range every(members) {
		if wanted(m) && !j.gone(m) && !j.known(m, blind[keyOf(m)]) {
			unread = append(unread, m)
		}
	}
	listed, unread := j.readMany(ctx, unread)
	return append(listed, each(ctx, j.over, unread, func(m *modulesv1.Member) (checked, error) { return j.read(ctx, m) })...)
}

// known says that what is remembered of a member's health still holds.
func (j *judging) known(m *modulesv1.Member, blind bool) bool {
	if !j.checker.NeedsObject(kindOf(m)) {
		return true
	}
	last, judged := j.checked[keyOf(m)]
	meta, seen := j.state(m)
	switch {
	case !judged:
		return false
	case !seen && last.recalled && !blind:
		// The watch is about to say whether it is that version still, if its kind is still there.
		_, err := j.client.Namespaced(kindOf(m))
		return err == nil
	case !seen:
		// Without a watch there is only time to go by.
		every := lookAgain
		if last.status == health.Current {
			every = j.retry
		}
		return j.clock.Since(last.at) < every
	case meta == nil:
		return last.seen == "" && !last.recalled
	}
	return meta.ResourceVersion == last.seen || meta.ResourceVersion == last.got
}

// readMany reads members that are many of a kind and namespace with one list each, and leaves the rest, and those that
// are not in it. A list that fails leaves all of its members: reading them one by one says why.
func (j *judging) readMany(ctx context.Context, unread []*modulesv1.Member) (found []judgement, left []*modulesv1.Member) {
	type place struct {
		gvk       schema.GroupVersionKind
		namespace string
	}
	groups := map[place]map[string]*modulesv1.Member{}
	for _, m := range unread {
		at := place{kindOf(m), m.Namespace}
		if groups[at] == nil {
			groups[at] = map[string]*modulesv1.Member{}
		}
		groups[at][m.Name] = m
	}
	for at, members := range groups {
		if len(members) >= many && j.over(ctx) == nil {
			seen := map[*modulesv1.Member]string{}
			for _, m := range members {
				seen[m] = j.version(m)
			}
			_ = j.client.Objects(ctx, at.gvk, at.namespace, Label+"="+j.id, func(live *unstructured.Unstructured) { // See above.
				if m := members[live.GetName()]; m != nil && j.over(ctx) == nil {
					found = append(found, judgement{of: m, found: j.judged(seen[m], live)})
					delete(members, live.GetName())
				}
			})
		}
		left = slices.AppendSeq(left, maps.Values(members))
	}
	return found, left
}

func (j *judging) read(ctx context.Context, m *modulesv1.Member) (checked, error) {
	seen := j.version(m)
	live, err := j.client.Get(ctx, refOf(m))
	if errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrNoKind) || errors.Is(err, cluster.ErrScope) {
		live, err = nil, nil
	}
	return j.judged(seen, live), err
}

// version is what the watch has of a member. It is asked before the member is read: what comes meanwhile is another one.
func (j *judging) version(m *modulesv1.Member) string {
	if meta, _ := j.state(m); meta != nil {
		return meta.ResourceVersion
	}
	return ""
}

// judged is what is found of a member that was read when the watch had seen that version; live is nil where it is missing.
func (j *judging) judged(seen string, live *unstructured.Unstructured) checked {
	found := checked{at: j.clock.Now(), seen: seen, status: health.InProgress, message: "is missing"}
	if live != nil {
		found.got = live.GetResourceVersion()
		found.status, found.message = j.checker.Check(live)
	}
	return found
}
