package packages_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// previewed is a fleet whose repositories and stored artifacts can be looked into.
type previewed struct {
	*fleet

	store    storage.Store
	clusters map[string]*upstream.Edited
}

// newPreviewed makes one of three clusters. What is injected has the same names, but for that of the south.
func newPreviewed(t *testing.T) *previewed {
	t.Helper()
	f := &previewed{fleet: &fleet{}, clusters: map[string]*upstream.Edited{}}
	f.plane = newPlane(t, func(p *plane) {
		p.store = func(s storage.Store) storage.Store {
			f.store = s
			return s
		}
	})
	f.blueprints = f.repository("blueprints")
	f.blueprints.Commit("main", "begin", upstream.Text(map[string]string{"README.md": "blueprints\n"}))
	for name, wave := range map[string]string{"canary": "first", "north": "second", "south": "second"} {
		f.clusters[name] = f.cluster(name, map[string]string{"fleet": "yes", "wave": wave})
	}
	f.mayRead()
	f.create(f.regional("canary", "canary"), f.regional("north", "north"))
	return f
}

func TestPreviewsOfSets(t *testing.T) {
	t.Parallel()
	f := newPreviewed(t)
	for _, name := range []string{"east", "west"} { // Nobody selects them by the label of the fleet.
		f.clusters[name] = f.cluster(name, nil)
	}
	for name, story := range map[string]func(*testing.T, *previewed){
		"dry": dryRunWritesNothing, "held": editsAreHeld, "all": allIsHeld, "blind": failuresHideNoEdit, "lost": lostRevisionsHideNothing,
		"filled": previewsAreWhatIsDrafted, "moved": takingOverChangesNothing, "busy": fleetsMayBeBusy, "beside": othersGoOnBeside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, f)
		})
	}
}

// refs are where the branches and tags of the package are, in all clusters.
func (f *previewed) refs(pkg string) map[string]string {
	all := map[string]string{}
	for name, repository := range f.clusters {
		for line := range strings.Lines(repository.Raw("for-each-ref", "--format=%(refname) %(objectname)")) {
			if ref, _, _ := strings.Cut(line, " "); strings.Contains(ref, "/"+pkg+"/") {
				all[name+" "+ref] = strings.TrimSpace(line)
			}
		}
	}
	return all
}

// previews waits until the set has a whole preview that is as it should be.
func (r *rollout) previews(what string, is func(*packagesv1.SetPreview) bool) *packagesv1.SetPreview {
	r.Helper()
	until(r.plane, r.set, what, func(s *packagesv1.PackageVariantSet) (bool, string) {
		p := s.Status.Preview
		text, _ := json.Marshal(p)
		ready := conditions.Get(s, "Ready") // What is tried again is not observed.
		return p != nil && p.Digest != "" && ready != nil && ready.ObservedGeneration == s.Generation && is(p), fmt.Sprintf("%s %s", said(s), text)
	})
	return r.set.Status.Preview
}

// approve names the digest in the annotation.
func (r *rollout) approve(digest string) {
	r.Helper()
	r.ask(r.set, func() {
		metav1.SetMetaDataAnnotation(&r.set.ObjectMeta, packagesv1.ApprovedPreviewAnnotation, digest)
	})
}

// waits has the set say what it waits for.
func (r *rollout) waits(words ...string) {
	r.Helper()
	until(r.plane, r.set, fmt.Sprintf("the set waits: %v", words), func(s *packagesv1.PackageVariantSet) (bool, string) {
		c := conditions.Get(s, packagesv1.RolledOutCondition)
		if c == nil || c.Reason != packagesv1.PreviewNotApprovedReason {
			return false, fmt.Sprintf("%+v", c)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return false, c.Message
			}
		}
		return conditions.IsReady(s), said(s)
	})
}

// lines are those of the artifact of the preview, by the Repository.
func (f *previewed) lines(t *testing.T, set *packagesv1.PackageVariantSet) map[string]packagesv1.TargetPreview {
	t.Helper()
	if set.Status.Artifact == nil || !strings.HasSuffix(set.Status.Artifact.Revision, set.Status.Preview.Digest) {
		t.Fatalf("the artifact is %+v", set.Status.Artifact)
	}
	body, err := f.store.Open(t.Context(), set.Status.Artifact.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	all := map[string]packagesv1.TargetPreview{}
	for scanner := bufio.NewScanner(body); scanner.Scan(); {
		var line packagesv1.TargetPreview
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		all[line.Repo] = line
	}
	return all
}

// dryRunWritesNothing: what would become of each target is told, those in conflict first, and done when dryRun is taken away.
func dryRunWritesNothing(t *testing.T, f *previewed) {
	t.Helper()
	r := f.rollout(t, "dry")
	f.clusters["north"].Commit("main", "ours", upstream.Text(map[string]string{"dry/deployment.yaml": strings.ReplaceAll(deployment, "1.0.0", "1.0.0-ours")}))
	before, variants := f.refs("dry"), r.variants()
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.DryRun = true
		s.Targets[0].Template.Labels = map[string]string{"edit": "one"}
		s.Targets = append(s.Targets, packagesv1.Target{Repositories: []packagesv1.RepositoryTarget{{Name: "nowhere"}}},
			packagesv1.Target{Repositories: []packagesv1.RepositoryTarget{{Name: "south", PackageNames: []string{"dry-more"}}}})
	})
	r.previews("nothing is written any more", func(*packagesv1.SetPreview) bool { return true })
	r.release("v2", "2.0.0")
	p := r.previews("the preview of v2", func(p *packagesv1.SetPreview) bool { return p.Conflicted == 1 })
	first := p.Targets[0]
	want := packagesv1.SetPreview{Digest: p.Digest, Created: 1, Changed: 3, Failed: 1, Conflicted: 1, Targets: p.Targets}
	if diff := cmp.Diff(want, *p); diff != "" {
		t.Error(diff)
	}
	if first.Target != "Repository north, dry" || first.ConflictCount != 1 || len(first.Conflicts) != 1 || first.Files.Changed != 1 || first.Conflicts[0].Path == "" {
		t.Errorf("the conflict comes first: %+v", first)
	}
	if second := p.Targets[1]; second.Target != "Repository nowhere, dry" || second.Reason != packagesv1.TargetsFailedReason || !strings.Contains(second.Message, "nowhere") {
		t.Errorf("then what fails: %+v", second)
	}
	lines := f.lines(t, r.set)
	if north := lines["north"]; len(north.Conflicts) != 1 || north.Conflicts[0].Local != "example.com/app:1.0.0-ours" || len(north.Files.Names) != 1 {
		t.Errorf("the artifact has all of it: %+v", north)
	}
	if len(lines) != 4 || len(lines["canary"].Objects.Names) != 1 {
		t.Errorf("the artifact has all targets: %+v", lines)
	}
	if c := conditions.Get(r.set, "Ready"); c.Reason != packagesv1.TargetsFailedReason {
		t.Errorf("the bad target is told: %+v", c)
	}
	digest := p.Digest
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets[0], s.Targets[1], s.Targets[2] = s.Targets[2], s.Targets[0], s.Targets[1]
	})
	r.previews("the same preview in another order", func(p *packagesv1.SetPreview) bool { return p.Digest == digest })
	if diff := cmp.Diff(before, f.refs("dry")); diff != "" {
		t.Errorf("something was written to Git:\n%s", diff)
	}
	for i, v := range r.variants() {
		if v.Generation != variants[i].Generation {
			t.Errorf("variant %s was changed", v.Name)
		}
	}
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.DryRun, s.Targets = false, s.Targets[1:2]
	})
	// A person approves the change with the conflict.
	r.until("canary v2 one published, north v2 one drafted, south v2 one published", "first Done, second Progressing NotPublished")
	if s := r.set.Status; s.Preview != nil || s.Artifact != nil {
		t.Errorf("the preview is left behind: %+v %+v", s.Preview, s.Artifact)
	}
}

// editsAreHeld until the preview of just that edit is approved. What is new upstream is not, but goes with the edit.
func editsAreHeld(t *testing.T, f *previewed) {
	t.Helper()
	r := f.rollout(t, "held", func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.PreviewApproval = packagesv1.ApproveEdits })
	before := f.refs("held")
	r.edit(template("one"))
	first := r.previews("the preview of the edit", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" }).Digest
	r.waits("until the annotation", first)
	r.approve("sha256:0123")
	r.waits("names sha256:0123", first)
	r.release("v2", "2.0.0")
	second := r.previews("the preview of the edit with v2", func(p *packagesv1.SetPreview) bool { return p.Digest != first && p.Changed == 3 }).Digest
	r.approve(first)
	r.waits("names "+first[:40], second, "look at it again")
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	if diff := cmp.Diff(before, f.refs("held")); diff != "" {
		t.Errorf("something was written to Git:\n%s", diff)
	}
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets = append(s.Targets, packagesv1.Target{Repositories: []packagesv1.RepositoryTarget{{Name: "south", PackageNames: []string{"held-more"}}}})
	})
	third := r.previews("the preview with a target more", func(p *packagesv1.SetPreview) bool { return p.Created == 1 }).Digest
	r.waits(third)
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	r.approve(third)
	testenv.Eventually(t, "the edit goes out", func(ctx context.Context) (bool, string) {
		has, waves := r.look(ctx)
		return strings.HasPrefix(has, "canary v2 one published, north v2 one published, south v2 ") && strings.Contains(has, "south v2 one published"), has + waves
	})
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets = s.Targets[:1] })
	r.waits("look at it again")
}

// allIsHeld where the set says so, also what is new upstream; and nothing once nobody has to approve any more.
func allIsHeld(t *testing.T, f *previewed) {
	t.Helper()
	r := f.rollout(t, "all", func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.PreviewApproval = packagesv1.ApproveAll })
	r.release("v2", "2.0.0")
	r.waits("until the annotation")
	r.until("canary v1 published, north v1 published, south v1 published", "first Done, second Done")
	dry := r.set.Status.Preview.Digest
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.DryRun = true })
	r.previews("the same preview as a dry run", func(p *packagesv1.SetPreview) bool { return p.Revision == "" && p.Digest == dry })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.DryRun, s.Rollout.PreviewApproval = false, "" })
	r.until("canary v2 published, north v2 published, south v2 published", "first Done, second Done")
	var set packagesv1.PackageVariantSet
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(r.set), &set); err != nil || set.Status.Preview != nil {
		t.Errorf("the preview is left behind: %+v %v", set.Status.Preview, err)
	}
}

// failuresHideNoEdit: who approves while a target fails, of which there is nothing to see, has approved no other edit of it.
func failuresHideNoEdit(t *testing.T, f *previewed) {
	t.Helper()
	r := f.rollout(t, "blind", func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.PreviewApproval = packagesv1.ApproveEdits })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) {
		s.Targets = append(s.Targets, packagesv1.Target{
			Repositories: []packagesv1.RepositoryTarget{{Name: "nowhere"}}, Template: &packagesv1.VariantTemplate{Labels: map[string]string{"edit": "one"}},
		})
	})
	first := r.previews("the preview of a target that fails", func(p *packagesv1.SetPreview) bool { return p.Failed == 1 && p.Unchanged == 3 }).Digest
	r.approve(first)
	until(r.plane, r.set, "it is approved", func(s *packagesv1.PackageVariantSet) (bool, string) { return s.Status.Preview == nil, said(s) })
	r.edit(func(s *packagesv1.PackageVariantSetSpec) { s.Targets[1].Template.Labels["edit"] = "two" })
	r.previews("the preview of another edit of it", func(p *packagesv1.SetPreview) bool { return p.Failed == 1 && p.Unchanged == 3 && p.Digest != first })
	if c := conditions.Get(r.set, packagesv1.RolledOutCondition); c == nil || c.Reason != packagesv1.PreviewNotApprovedReason {
		t.Errorf("the edit goes out: %+v", c)
	}
}

// lostRevisionsHideNothing: where nobody knows what was before, all is held, and the whole preview is to be seen.
func lostRevisionsHideNothing(t *testing.T, f *previewed) {
	t.Helper()
	r := f.rollout(t, "lost", func(s *packagesv1.PackageVariantSetSpec) { s.Rollout.PreviewApproval = packagesv1.ApproveEdits })
	if err := env.Client.DeleteAllOf(t.Context(), &appsv1.ControllerRevision{}, client.InNamespace(r.namespace),
		client.MatchingLabels{packagesv1.SetLabel: string(r.set.UID)}); err != nil {
		t.Fatal(err)
	}
	r.edit(template("one"))
	p := r.previews("the preview of the edit", func(p *packagesv1.SetPreview) bool { return p.Changed == 3 && p.Revision != "" })
	if lines := f.lines(t, r.set); len(lines) != 3 {
		t.Errorf("the artifact has %+v", lines)
	}
	r.approve(p.Digest)
	r.until("canary v1 one published, north v1 one published, south v1 one published", "first Done, second Done")
}
