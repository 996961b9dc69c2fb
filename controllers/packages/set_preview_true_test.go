package packages_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// previewsAreWhatIsDrafted, also where objects of the cluster are injected and functions run: of each package the same files and objects.
func previewsAreWhatIsDrafted(t *testing.T, f *previewed) {
	t.Helper()
	labels := packagesv1.FunctionTemplate{Function: packagesv1.Function{Image: "set-labels"}, ConfigMapExprs: []packagesv1.MapExpr{{Key: "at", ValueExpr: "repository.name"}}}
	namespace := packagesv1.FunctionTemplate{Function: packagesv1.Function{Image: "set-namespace", ConfigMap: map[string]string{"namespace": "edge"}}}
	bindings := []packagesv1.BindingTemplate{{
		BindingTarget: packagesv1.BindingTarget{Name: "where", Path: "data.region"},
		From: packagesv1.BindingSourceTemplate{Object: &packagesv1.BindingObjectTemplate{
			BindingObject: packagesv1.BindingObject{APIVersion: "v1", Kind: "ConfigMap"}, NameExpr: "repository.name",
		}},
	}, {
		BindingTarget: packagesv1.BindingTarget{Name: "rank", Type: packagesv1.IntegerBinding},
		From:          packagesv1.BindingSourceTemplate{LiteralExpr: "string(size(repository.name) * 7)"},
	}}
	settings := point("ConfigMap", "settings", "required") + "---\n" + marked("where: none", "rank: 1")["a.yaml"]
	r := f.begin(t, "filled", map[string]string{"settings.yaml": settings}, func(s *packagesv1.PackageVariantSetSpec) {
		s.DryRun, s.Rollout.PreviewApproval, s.Rollout.Waves = true, packagesv1.ApproveEdits, []packagesv1.Wave{{Name: "all"}}
		s.Targets[0].Template = &packagesv1.VariantTemplate{
			Injectors: []packagesv1.InjectorTemplate{{NameExpr: "repository.name"}}, ServiceAccountName: "reader", Bindings: bindings,
			Pipeline: &packagesv1.PipelineTemplate{Mutators: []packagesv1.FunctionTemplate{labels, namespace}},
		}
	})
	r.previews("the preview of new packages", func(p *packagesv1.SetPreview) bool { return p.Created == 3 && p.Failed == 0 })
	first := f.lines(t, r.set)
	r.has(first["south"].Message, "required", "settings", "where (there is no ConfigMap south")
	r.hasNot(first["north"].Message, "settings", "where")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.DryRun = false })
	r.drafts(f, first, map[string]string{"canary": "region: canary", "north": "region: north", "south": "region: none"})

	for name, text := range map[string]string{"canary": "where: canary # packages.sluice.dev/bind: where\n  rank: 42 #", "north": "where: north", "south": "where: none"} {
		r.drafted(f, name, text)
	}

	r.create(r.regional("south", "far"))
	r.drafted(f, "south", "region: far")
	r.drafted(f, "south", "where: far #")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0].Template.Pipeline.Mutators[0].ConfigMap = map[string]string{"tier": "new"}
	})
	held := r.previews("the preview of the edit", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" }).Digest
	place := f.regional("canary", "canary")
	r.ask(place, func() { place.Data["region"] = "near" })
	r.drafted(f, "canary", "region: near")
	next := r.previews("the preview with what is injected now", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Digest != held }).Digest
	r.approve(held)
	r.waits("names "+held[:40], next)
	lines := f.lines(t, r.set)
	r.approve(next)
	until(r.plane, r.set, "it is approved", func(s *packagesv1.PackageVariantSet) (bool, string) { return s.Status.Preview == nil, said(s) })
	r.drafts(f, lines, map[string]string{"canary": "tier: new", "north": "tier: new", "south": "tier: new"})
	for name, region := range map[string]string{"canary": "near", "north": "north", "south": "far"} {
		r.drafted(f, name, "region: "+region)
	}
}

// drafts waits until each package has a text in its open draft, and compares that with what a preview said of it.
func (r *rollout) drafts(f *previewed, lines map[string]packagesv1.TargetPreview, has map[string]string) {
	r.Helper()
	for name, text := range has {
		change := r.drafted(f, name, text)
		want := packagesv1.TargetPreview{Files: lines[name].Files, Objects: lines[name].Objects}
		if diff := cmp.Diff(want, packagesv1.TargetPreview{Files: change.Files, Objects: change.Objects}); diff != "" || want.Files == nil {
			r.Errorf("the draft of %s is not what the preview said:\n%s", name, diff)
		}
		files := f.clusters[name].Tree(change.Commit)
		for _, file := range lines[name].Files.Names {
			if _, isThere := files[r.name+"/"+file.Path]; !isThere {
				r.Errorf("the draft of %s has no %s, which the preview names", name, file.Path)
			}
		}
		r.has(files[r.name+"/deployment.yaml"].Content, "namespace: edge", "at: "+name)
	}
}

// drafted waits until the open change of a repository's variant has the text in a file.
func (r *rollout) drafted(f *previewed, repository, text string) (change *packagesv1.ChangeStatus) {
	r.Helper()
	testenv.Eventually(r.T, fmt.Sprintf("%s has %q in its draft", repository, text), func(context.Context) (bool, string) {
		for _, v := range r.variants() {
			if change = v.Status.Change; v.Spec.Downstream.Repo != repository || change == nil || v.Status.ObservedGeneration != v.Generation {
				continue
			}
			files := f.clusters[repository].Tree(change.Commit)
			all := files[r.name+"/settings.yaml"].Content + files[r.name+"/deployment.yaml"].Content
			return strings.Contains(all, text), said(&v) + all
		}
		return false, "there is no change"
	})
	return change
}

// takingOverChangesNothing: what Porch has written as the set would is unchanged in the preview, and stays so without it.
func takingOverChangesNothing(t *testing.T, f *previewed) {
	t.Helper()
	west, east := upstream.Porch{Edited: f.clusters["west"]}, upstream.Porch{Edited: f.clusters["east"]}
	r := f.begin(t, "moved", map[string]string{"settings.yaml": point("ConfigMap", "settings", "required")}, func(s *packagesv1.PackageVariantSetSpec) {
		files := f.porched("moved", f.blueprints, "1.0.0")
		west.Draft("moved", "packagevariant-1", "", files)
		west.Approve("moved", "packagevariant-1", 1)
		files["deployment.yaml"] = strings.ReplaceAll(files["deployment.yaml"], "replicas: 1", "replicas: 7")
		west.Draft("moved", "people", "edit", files)
		west.Approve("moved", "people", 2)
		east.Draft("moved", "packagevariant-1", "", f.porched("moved", f.blueprints, "1.0.0"))
		east.Propose("moved", "packagevariant-1")
		s.DryRun, s.Rollout = true, nil
		s.Targets[0] = packagesv1.Target{
			Repositories: []packagesv1.RepositoryTarget{{Name: "west"}, {Name: "east"}},
			Template: &packagesv1.VariantTemplate{
				AdoptionPolicy: packagesv1.AdoptExisting, Injectors: []packagesv1.InjectorTemplate{{Injector: packagesv1.Injector{Name: "north"}}}, ServiceAccountName: "reader",
				Pipeline: &packagesv1.PipelineTemplate{Mutators: []packagesv1.FunctionTemplate{{Function: packagesv1.Function{Image: namespacing, ConfigMap: map[string]string{"namespace": "edge"}}}}},
			},
		}
	})
	before := f.refs("moved")
	p := r.previews("all stays as it is", func(p *packagesv1.SetPreview) bool { return p.Unchanged == 2 })
	if diff := cmp.Diff(packagesv1.SetPreview{Digest: p.Digest, Unchanged: 2}, *p); diff != "" {
		t.Error(diff)
	}
	for name, line := range f.lines(t, r.set) {
		if line.Files != nil || line.Objects != nil || !strings.Contains(line.Message, "taken over as it is") {
			t.Errorf("%s would be written to: %+v", name, line)
		}
	}
	r.edit(template("one"))
	r.previews("a label is a change", func(p *packagesv1.SetPreview) bool { return p.Changed == 2 && p.Targets[1].Files.Changed == 1 })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.DryRun, s.Targets[0].Template.Labels = false, nil })
	until(r.plane, r.set, "all are taken over", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return conditions.IsReady(s) && s.Status.ReadyVariants == 2 && s.Status.OpenVariants == 1, fmt.Sprintf("%s %+v", said(s), s.Status)
	})
	for _, v := range r.variants() {
		if v.Status.Adopted == nil {
			t.Errorf("%s has not taken over its package: %s", v.Name, said(&v))
		}
	}
	if diff := cmp.Diff(before, f.refs("moved")); diff != "" {
		t.Errorf("something was written to Git:\n%s", diff)
	}
}

// fleetsMayBeBusy: targets that come and go between a preview and its approval have it refused while they are there, and not any more
// when all is again as it was approved; in the end, all that is there has what was approved last.
func fleetsMayBeBusy(t *testing.T, f *previewed) {
	t.Helper()
	r := f.begin(t, "busy", nil, func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.PreviewApproval, s.Rollout.Waves, s.Targets[0].Template.Approval = packagesv1.ApproveEdits, []packagesv1.Wave{{Name: "all"}}, nil
		s.Targets = append(s.Targets, packagesv1.Target{RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{"busy": "yes"}}, Template: s.Targets[0].Template.DeepCopy()})
	})
	label := func(edit string) func(*packagesv1.PackageVariantSetSpec) {
		return func(s *packagesv1.PackageVariantSetSpec) {
			s.Targets[0].Template.Labels = map[string]string{"edit": edit}
			s.Targets[1].Template.Labels = map[string]string{"edit": edit}
		}
	}
	guest := func(is string) {
		r.patch(&packagesv1.Repository{ObjectMeta: r.meta("east")}, fmt.Sprintf(`{"metadata":{"labels":{"busy":%s}}}`, is))
	}
	r.until("canary v1 drafted, north v1 drafted, south v1 drafted", "all Done")
	r.edit(label("one"))
	first := r.previews("the preview of the edit", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" }).Digest
	guest(`"yes"`)
	second := r.previews("the preview with one more", func(p *packagesv1.SetPreview) bool { return p.Changed == 4 }).Digest
	r.approve(first)
	r.waits("names "+first[:40], second, "look at it again")
	guest("null")
	r.until("canary v1 one drafted, north v1 one drafted, south v1 one drafted", "all Progressing NotPublished")

	r.edit(label("two"))
	for _, is := range []string{`"yes"`, "null", `"yes"`, "null", `"yes"`} {
		guest(is)
		r.approveShown()
	}
	testenv.Eventually(t, "the edit is everywhere, the newcomer included", func(ctx context.Context) (bool, string) {
		r.approveShown()
		has, waves := r.look(ctx)
		return has == "canary v1 two drafted, east v1 two drafted, north v1 two drafted, south v1 two drafted" && r.set.Status.Preview == nil, has + waves
	})
}

// approveShown approves the preview that the set shows at the moment, if any.
func (r *rollout) approveShown() {
	r.Helper()
	if err := env.Client.Get(r.Context(), client.ObjectKeyFromObject(r.set), r.set); err != nil {
		r.Fatal(err)
	}
	if p := r.set.Status.Preview; p != nil && p.Digest != "" {
		r.patch(r.set, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, packagesv1.ApprovedPreviewAnnotation, p.Digest))
	}
}

// patch changes an object, whatever it is at the moment.
func (p *plane) patch(obj client.Object, patch string) {
	p.Helper()
	if err := env.Client.Patch(p.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		p.Fatal(err)
	}
}

// othersGoOnBeside an edit that is held: waves of the revision before, and what is no longer selected, which goes as its policy says.
// Of edits that were held, the last one alone is kept, and none that is taken back.
func othersGoOnBeside(t *testing.T, f *previewed) {
	t.Helper()
	r := f.begin(t, "beside", nil, paused(true), func(s *packagesv1.PackageVariantSetSpec) {
		s.Rollout.PreviewApproval = packagesv1.ApproveEdits
		s.Targets[0].RepositorySelector, s.Targets[0].Repositories = nil, []packagesv1.RepositoryTarget{{Name: "canary"}, {Name: "north"}, {Name: "south"}}
		s.Targets[0].Template.DeletionPolicy = ""
	})
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	canary := r.variants()[0]
	r.patch(&canary, `{"spec":{"suspend":true}}`)
	r.release("v2", "2.0.0")
	r.until("canary v2 published, north v1 published, south v1 published", "first Progressing NotPublished, second Waiting PreviousWave")
	r.has(r.set.Status.Rollout.Waves[0].Message, canary.Name)
	r.patch(&canary, `{"spec":{"suspend":null}}`)
	r.until("canary v2 published, north v1 published, south v1 published", "first Done, second Waiting Paused")

	digest := ""
	for _, edit := range []string{"one", "two"} {
		r.edit(template(edit))
		digest = r.previews("the preview of edit "+edit, func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" && p.Digest != digest }).Digest
	}
	if held := r.held(); held != 1 {
		t.Errorf("%d edits are kept that are held", held)
	}
	r.edit(paused(false))
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Done")
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Template.Labels = nil })
	until(r.plane, r.set, "what is taken back is gone", func(s *packagesv1.PackageVariantSet) (bool, string) {
		return s.Status.Preview == nil && r.held() == 0, said(s)
	})

	r.edit(template("three"))
	r.previews("the preview of edit three", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[0].Repositories = s.Targets[0].Repositories[:2] })
	r.previews("the preview without the south", func(p *packagesv1.SetPreview) bool { return p.Changed == 2 && p.Deleted == 0 })
	r.until("canary v2 published, north v2 published", "first Done, second Done")
	if got := f.refs("beside"); got["south refs/heads/deletionProposed/beside/v2"] == "" {
		t.Errorf("the deletion is not proposed: %v", got)
	}
}

// held counts the revisions of the set that are.
func (r *rollout) held() (count int) {
	r.Helper()
	var list appsv1.ControllerRevisionList
	if err := env.Client.List(r.Context(), &list, client.InNamespace(r.namespace), client.MatchingLabels{packagesv1.SetLabel: string(r.set.UID)}); err != nil {
		r.Fatal(err)
	}
	for _, revision := range list.Items {
		if revision.Annotations[packagesv1.HeldAnnotation] != "" {
			count++
		}
	}
	return count
}
