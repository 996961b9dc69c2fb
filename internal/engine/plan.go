package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/failure"
)

// plan compares what the target renders to with what is on record.
func (r *round) plan(ctx context.Context) (modulesv1.Plan, error) {
	if r.in.Target == nil {
		return modulesv1.Plan{}, failure.At(StageBuild, failure.Stall(modulesv1.BuildFailedReason, errors.New("there is no target to plan for")))
	}
	if err := r.open(ctx); err != nil {
		return modulesv1.Plan{}, err
	}
	planned := &aim{target: r.in.Target}
	made, err := r.renders.objects(ctx, planned)
	if err != nil {
		return modulesv1.Plan{}, err
	}
	var (
		result modulesv1.Plan
		known  map[key]*modulesv1.Member
		going  []string
	)
	if r.record != nil {
		known = index(r.record.Data.Members)
	}
	for _, o := range made.objects {
		switch m := known[o.key]; {
		case m == nil || m.UID == "":
			result.Create++
		case m.RenderHash != o.hash && !o.once:
			result.Update++
		}
	}
	for k := range known {
		if !made.keys[k] && r.in.Spec.PruneEnabled() {
			result.Delete++
			going = append(going, strings.Join([]string{k.group, k.kind, k.namespace, k.name}, "\x00"))
		}
	}
	slices.Sort(going)
	release := r.in.Target.Release
	raw, err := json.Marshal([]any{release.Version, release.Digest, release.Path, made.digest, going})
	if err != nil {
		return modulesv1.Plan{}, failure.At(StageBuild, err)
	}
	sum := sha256.Sum256(raw)
	result.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return result, nil
}
