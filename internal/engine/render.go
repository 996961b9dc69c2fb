package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
)

// aim is a release to work for, with the digest of what it renders to. The objects are there only once something
// needs them: most rounds do not.
type aim struct {
	target *Target
	digest string
	render *render
}

// render are the objects of a release as they are applied.
type render struct {
	digest  string
	objects []object
	keys    map[key]bool
	// unsure says that a kind is not known yet, so that it may turn out to have no namespace.
	unsure bool
}

// object is one of them.
type object struct {
	key   key
	hash  string
	stage int
	*unstructured.Unstructured
}

// aimAt is the aim for a target. It renders unless the digest is known from before.
func (r *round) aimAt(ctx context.Context, target *Target) (*aim, error) {
	a := &aim{target: target}
	name, err := r.renderKey(target)
	if err != nil {
		return nil, err
	}
	if digest, known := r.engine.renders.Get(name); known {
		a.digest = digest
		return a, nil
	}
	if _, err := r.objects(ctx, a); err != nil {
		return nil, err
	}
	return a, nil
}

// objects renders the aim, once a round.
func (r *round) objects(ctx context.Context, a *aim) (*render, error) {
	if a.render != nil {
		return a.render, nil
	}
	name, err := r.renderKey(a.target)
	if err != nil {
		return nil, err
	}
	began := r.engine.clock.Now()
	// Whoever asks for a verification wants to know how it is now.
	if err := r.engine.failures.of(name, began); err != nil && !r.in.Verify {
		return nil, err
	}
	made, err := r.make(ctx, a.target)
	if observer := r.engine.options.Observer; observer != nil && !errors.Is(err, errBusy) {
		observer.Rendered(r.engine.clock.Now().Sub(began), err)
	}
	if err == nil || lasting(ctx, err) {
		r.engine.failures.add(name, err, r.engine.clock.Now())
	}
	if err != nil {
		return nil, err
	}
	if !made.unsure {
		r.engine.renders.Add(name, made.digest)
	}
	a.render, a.digest = made, made.digest
	return made, nil
}

// renderKey names all that a render depends on.
func (r *round) renderKey(target *Target) (string, error) {
	raw, err := json.Marshal([]any{
		r.salt(), r.in.Namespace, r.in.Name, target.Artifact.Digest, target.Path, r.in.Spec.Config, r.in.Variables,
	})
	if err != nil {
		return "", failure.At(StageBuild, failure.Stall(modulesv1.BuildFailedReason, err))
	}
	sum := sha256.Sum256(raw)
	return string(sum[:]), nil
}

// make fetches, builds and completes.
func (r *round) make(ctx context.Context, target *Target) (made *render, err error) {
	lease, granted, err := r.admit(ctx, target)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	defer func() {
		if err != nil {
			granted.settle(0)
			return
		}
		r.turns = append(r.turns, granted)
	}()
	request := r.request(target)
	request.Tree = lease.FS
	objects, err := r.engine.parts.Builder.Build(ctx, request)
	switch {
	case errors.Is(err, build.ErrEmpty), err == nil && len(objects) == 0:
		return nil, failure.At(StageBuild, failure.Retry(modulesv1.EmptyRenderReason, errors.Join(build.ErrEmpty, err)))
	case err != nil:
		return nil, failure.At(StageBuild, rename(modulesv1.BuildFailedReason, err))
	}
	granted.settle(weigh(objects))
	return r.complete(objects)
}

// admit fetches the artifact, and waits for the turn to render it. Whoever waits does not keep an artifact from being
// given up meanwhile, and nobody is kept from their turn by an artifact that does not come.
func (r *round) admit(ctx context.Context, target *Target) (*fetch.Lease, *turn, error) {
	lease, err := r.lease(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	var held int64
	for _, one := range r.turns {
		held += one.weight
	}
	asked := r.engine.turns.ask(r.in.Namespace, held)
	if asked != nil && asked.granted() {
		return lease, asked, nil
	}
	lease.Release()
	if asked == nil {
		return nil, nil, busy()
	}
	if err := asked.wait(ctx); err != nil {
		return nil, nil, err
	}
	if lease, err = r.lease(ctx, target); err != nil {
		asked.settle(0)
		return nil, nil, err
	}
	return lease, asked, nil
}

func (r *round) lease(ctx context.Context, target *Target) (*fetch.Lease, error) {
	lease, err := r.engine.parts.Cache.Acquire(ctx, target.Artifact)
	if err == nil {
		return lease, nil
	}
	reason := modulesv1.ArtifactFailedReason
	if failure.Of(err).Reason == fetch.ReasonUnavailable {
		reason = modulesv1.ArtifactUnavailableReason
	}
	return nil, failure.At(StageFetch, rename(reason, err))
}

// close gives back what the round's renders took.
func (r *round) close() {
	for _, one := range r.turns {
		one.settle(0)
	}
	r.turns = nil
}

// request is the installation's config as the builder takes it.
func (r *round) request(target *Target) build.Request {
	request := build.Request{Path: target.Path, Substitute: r.in.Variables}
	config := r.in.Spec.Config
	if config == nil {
		return request
	}
	request.TargetNamespace = config.TargetNamespace
	if config.CommonMetadata != nil {
		request.Labels, request.Annotations = config.CommonMetadata.Labels, config.CommonMetadata.Annotations
	}
	for _, image := range config.Images {
		request.Images = append(request.Images, build.Image(image))
	}
	for _, patch := range config.Patches {
		one := build.Patch{Patch: patch.Patch}
		if patch.Target != nil {
			one.Target = build.Target(*patch.Target)
		}
		request.Patches = append(request.Patches, one)
	}
	return request
}

// complete gives objects their namespace and our labels, and knows them by their keys.
func (r *round) complete(objects []*unstructured.Unstructured) (*render, error) {
	made := &render{objects: make([]object, 0, len(objects)), keys: make(map[key]bool, len(objects))}
	scopes := scopesOf(objects)
	for _, o := range objects {
		if err := r.place(o, scopes, made); err != nil {
			return nil, failure.At(StageBuild, failure.Retry(modulesv1.ApplyFailedReason, err))
		}
		labels := o.GetLabels()
		if labels == nil {
			labels = make(map[string]string, len(ours()))
		}
		labels[Label], labels[InstallationLabel], labels[NamespaceLabel] = r.id(), labelText(r.in.Name), r.in.Namespace
		o.SetLabels(labels)
		k := keyOfObject(o)
		if made.keys[k] {
			return nil, failure.At(StageBuild, failure.Retry(modulesv1.BuildFailedReason, fmt.Errorf(
				"%w: %s is there twice once it has its namespace", build.ErrDocument, describe(refOfObject(o)))))
		}
		made.keys[k] = true
		made.objects = append(made.objects, object{
			key: k, hash: shortHash(r.salted(build.Hash(o))), stage: cluster.Stage(o.GroupVersionKind()), Unstructured: o,
		})
	}
	made.digest = r.salted(build.RenderDigest(objects))
	return made, nil
}

// place puts an object into its namespace, or takes it out where its kind has none.
func (r *round) place(o *unstructured.Unstructured, scopes map[schema.GroupKind]bool, made *render) error {
	gvk := o.GroupVersionKind()
	namespaced, known := scopes[gvk.GroupKind()]
	if !known {
		var err error
		namespaced, err = r.client.Namespaced(gvk)
		switch {
		case errors.Is(err, cluster.ErrNoKind):
			var applied bool
			if namespaced, applied = r.placed(gvk.GroupKind()); !applied {
				// Most kinds have namespaces; should this one not, it gets another key once it is known.
				namespaced, made.unsure = true, true
			}
		case err != nil:
			return fmt.Errorf("find out whether %s has namespaces: %w", gvk.Kind, err)
		}
	}
	switch {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(r.in.Namespace)
	}
	return nil
}

// placed says whether members of the kind that were applied have namespaces. While an aggregated API is down, or a CRD
// away, its kinds are not known; what is installed is not to be taken for something else because of that.
func (r *round) placed(kind schema.GroupKind) (namespaced, applied bool) {
	if r.record == nil {
		return false, false
	}
	for i := range r.record.Data.Members {
		if m := &r.record.Data.Members[i]; m.UID != "" && kindOf(m).GroupKind() == kind {
			return m.Namespace != "", true
		}
	}
	return false, false
}

// scopesOf are the kinds that CRDs among the objects define, and whether these have namespaces.
func scopesOf(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	scopes := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); gvk.Kind != crdKind || gvk.Group != crdGroup {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		scopes[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	return scopes
}

// salt is what the installation's hashes are made with: that on record, or the one that is going to be.
func (r *round) salt() string {
	switch {
	case r.record != nil && r.record.Data.Salt != "":
		return r.record.Data.Salt
	case r.session.salt == "":
		raw := make([]byte, 16)
		// The system's randomness does not fail, and another source's shortage leaves zeros, which are a salt as well.
		_, _ = io.ReadFull(r.engine.options.Random, raw)
		r.session.salt = base64.RawURLEncoding.EncodeToString(raw)
	}
	return r.session.salt
}

// salted is a digest that says nothing to whoever does not know the salt: rendered objects may hold secrets that can be
// guessed.
func (r *round) salted(digest string) string {
	sum := sha256.Sum256([]byte(r.salt() + digest))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// shortHash is 128 bits of a sha256:hex digest in 22 characters.
func shortHash(digest string) string {
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || len(raw) < 16 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw[:16])
}

// labelText is a name as a label can hold it: names of objects may be longer than labels' values.
func labelText(name string) string {
	if len(name) <= 63 {
		return name
	}
	return strings.TrimRight(name[:63], "-.")
}

// rename gives a failure one of modulesv1's reasons, and keeps what is to be done about it.
func rename(reason string, err error) error {
	found := failure.Of(err)
	return &failure.Error{Disposition: found.Disposition, Reason: reason, After: found.After, Err: err}
}
