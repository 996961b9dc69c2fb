package packages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// brief is what a variant is to make, and where.
type brief struct {
	owner    string
	adoption packagesv1.AdoptionPolicy
	// adopted is what was taken over as it was; nil for nothing.
	adopted *packagesv1.AdoptedStatus

	up *mirror
	// upstream is the package's path below the directory of its Repository.
	upstream string
	// ref is the full name of the branch or tag that leads to the blueprint.
	ref       string
	blueprint variant.Blueprint
	config    variant.Config

	down       *mirror
	downRepo   types.NamespacedName
	downstream string
}

// brief finds out what the variant is to make of what.
func (k *variants) brief(ctx context.Context, obj *packagesv1.PackageVariant, l *look) (*brief, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(packagesv1.InvalidSpecReason, errors.New(obj.Undecodable))
	}
	spec := &obj.Spec
	b := &brief{
		owner: ownerOf(obj), adoption: spec.GetAdoptionPolicy(), upstream: spec.Upstream.Package,
		downRepo: in(obj, spec.Downstream.Repo), downstream: spec.GetDownstreamPackage(), adopted: adoptedAt(obj, target(obj)),
	}
	l.downstream = new(target(obj))
	var err error
	if b.up, err = k.shared.repository(ctx, in(obj, spec.Upstream.Repo)); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if b.down, err = k.shared.repository(ctx, b.downRepo); err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	if err = b.down.refusesWrites(); err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	if err = k.shared.checkCircle(ctx, obj, b); err != nil {
		return nil, err
	}
	var marks variant.Marks
	if err = k.shared.inBudget(ctx, obj, func(ctx context.Context) error {
		if err := b.choose(ctx, obj, l); err != nil {
			return err
		}
		marks, err = k.shared.marks(ctx, b)
		return err
	}); err != nil {
		return nil, err
	}
	b.config = configOf(obj, b)
	bound, err := k.fill(ctx, obj, marks, &b.config)
	if err != nil {
		return nil, err
	}
	l.injected, l.lacking = injectedStatus(marks.Points, b.config.Sources)
	l.bound = boundStatus(marks.Slots, bound)
	l.digest, err = b.intent(b.blueprint.Commit)
	return b, err
}

// choose finds the upstream revision.
func (b *brief) choose(ctx context.Context, obj *packagesv1.PackageVariant, l *look) error {
	found, err := b.up.find(ctx, obj.Spec.Upstream)
	if err != nil {
		return err
	}
	b.blueprint = variant.Blueprint{
		Repo: b.up.url, Directory: path.Join("/", b.up.directory, found.Package), Ref: shortRef(found.Ref), Commit: found.Commit, Tree: found.Tree,
	}
	b.ref, l.upstream = found.Ref, &found
	return nil
}

// configOf is what the spec says of the package.
func configOf(obj *packagesv1.PackageVariant, b *brief) variant.Config {
	spec := &obj.Spec
	c := variant.Config{
		Owner: kpt.Owner{Namespace: obj.Namespace, Name: obj.Name}, Package: path.Join(b.down.directory, b.downstream), Deployment: b.down.isDeployment,
		Labels: spec.Labels, Annotations: spec.Annotations, Namespace: spec.Namespace,
	}
	if spec.PackageContext != nil {
		c.Context, c.ContextGone = spec.PackageContext.Data, spec.PackageContext.RemoveKeys
	}
	if spec.Pipeline != nil {
		c.Pipeline = kpt.Pipeline{Mutators: functions(spec.Pipeline.Mutators), Validators: functions(spec.Pipeline.Validators)}
	}
	return c
}

func functions(all []packagesv1.Function) []kpt.Function {
	var converted []kpt.Function
	for _, f := range all {
		converted = append(converted, kpt.Function{
			Image: f.Image, Name: f.Name, ConfigPath: f.ConfigPath, ConfigMap: f.ConfigMap, Selectors: selectors(f.Selectors), Exclude: selectors(f.Exclude),
		})
	}
	return converted
}

func selectors(all []packagesv1.Selector) []kpt.Selector {
	var converted []kpt.Selector
	for _, s := range all {
		converted = append(converted, kpt.Selector(s))
	}
	return converted
}

// intent is the digest of what is to be made, of the blueprint at a commit.
func (b *brief) intent(commit string) (string, error) {
	at := b.blueprint
	at.Commit = commit
	return variant.Intent(at, b.config)
}

// makes tells whether the revision is what is to be made. A commit upstream that left the package as it was changes nothing.
func (b *brief) makes(r *pkgrepo.Revision) bool {
	if !b.owns(r) || r.Facts.Lock == nil {
		return false
	}
	config := r.Facts.Config
	if r.Facts.Variant == "" {
		config = b.adopted.Config
	}
	digest, err := b.intent(r.Facts.Lock.Commit)
	return err == nil && config == digest
}

// message describes a commit.
func (b *brief) message(what string) pkgrepo.Message {
	return pkgrepo.Message{
		Subject: what, Variant: b.owner, Upstream: fmt.Sprintf("%s %s@%s %s", b.blueprint.Repo, b.blueprint.Directory, b.blueprint.Ref, b.blueprint.Commit),
	}
}

// shortRef is a ref as people write it.
func shortRef(name string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// fewPoints is how many points a message names.
const fewPoints = 8

// injectedStatus shows what fills the points, and says which required ones are left empty.
func injectedStatus(points []kpt.Point, sources []variant.Source) (shown []packagesv1.InjectedStatus, lacking []string) {
	for _, point := range points {
		s := packagesv1.InjectedStatus{
			Point: fit(point.ID.Name, maxName), File: fit(point.File(), maxRef), Group: fit(point.ID.Group, maxName), Version: fit(point.Version, maxLabel),
			Kind: fit(point.ID.Kind, maxLabel), Required: point.Required,
		}
		if source := variant.SourceOf(point, sources); source != nil && source.Reason == "" {
			s.Namespace, s.Name = source.Namespace, source.Name
		} else {
			s.Reason, s.Message = packagesv1.InjectionMissingReason, "no object of the cluster fits"
			if source != nil {
				s.Reason, s.Message = source.Reason, source.Message
			}
			if point.Required {
				lacking = append(lacking, fit(fmt.Sprintf("%s (%s)", point.ID, s.Message), maxText))
			}
		}
		if len(shown) < packagesv1.MaxInjected {
			shown = append(shown, s)
		}
	}
	return shown, lacking
}
