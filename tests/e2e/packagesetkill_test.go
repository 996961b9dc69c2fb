package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// TestSetsKilledInEveryWaveBesideForeignWriters: a set of many targets takes one revision after the other in three waves, is edited on
// the way, and its program is killed in each wave, while people push to the same branches. Each target has the variant that it had
// from the beginning, each package each revision once, no wave goes ahead of one before it, and nothing of people is lost.
func TestSetsKilledInEveryWaveBesideForeignWriters(t *testing.T) {
	t.Parallel()
	k := newSetKilling(t, fewestPoints(6, 200), fewestPoints(2, 10))
	k.strikeOn("the first revision", lapStep{begin: func() { k.revise("web", 1); k.makeSet() }, done: k.allAt(1)})
	k.comesTo("the first revision", k.allAt(1))
	before := k.made()

	var writers sync.WaitGroup
	people := &foreign{packageScene: k.packageScene, times: fewestPoints(2, 6)}
	for i, name := range k.downstream {
		for who := range 2 {
			clone := k.person(name)
			writers.Go(func() { k.write(people, clone, name, k.inRepository(i)[who%len(k.inRepository(i))], 2*i+who) })
		}
	}
	struck, revision := map[string]int{}, 1
	for fewest := fewestPoints(1, 3); len(struck) < len(setWaves) || slices.Min(slices.Collect(maps.Values(struck))) < fewest; {
		if revision++; revision > 12 {
			t.Fatalf("in %d laps, the waves were struck %v times", revision, struck)
		}
		for i, wave := range setWaves {
			kills := k.struck
			k.strikeOn(fmt.Sprintf("revision %d, wave %s", revision, wave), lapStep{
				begin: func() { k.release(i, revision) }, done: k.waveAt(i, revision),
			})
			if k.struck > kills {
				struck[wave] += k.struck - kills
			}
		}
	}
	writers.Wait()
	k.comesTo("all is published", k.allAt(revision))
	t.Logf("%d targets, %d revisions, struck %v times; %d commits of people were accepted, %d pushes refused",
		len(k.targets), revision, struck, len(people.made), people.refused)
	if diff := cmp.Diff(before, k.made()); diff != "" {
		t.Errorf("variants are not those of the beginning (-before +after):\n%s", diff)
	}
	k.eachRevisionOnce(revision)
	people.isKept()
	k.hasAllWords(people)
	k.sound()
}

// setWaves are the waves, in order.
var setWaves = []string{"a", "b", "c"}

// setKilling is a set on whose program strikes come.
type setKilling struct {
	*packageKilling

	set *packagesv1.PackageVariantSet
	// targets are the packages, as 'repository/package', and downstream the repositories.
	targets, downstream []string
}

func newSetKilling(t *testing.T, targets, repositories int) *setKilling {
	t.Helper()
	k := &setKilling{packageKilling: newPackageKilling(t)}
	k.most, k.more = fewestPoints(1, 4), map[string]string{"site.yaml": boundSite}
	k.downstream = []string{"north", "south"}
	for i := range repositories - len(k.downstream) {
		k.downstream = append(k.downstream, fmt.Sprintf("more-%d", i))
	}
	k.repositories(append([]string{blueprints}, k.downstream...)...)
	k.record(k.downstream...)
	for i := range targets {
		repository, name := k.downstream[i%repositories], fmt.Sprintf("cluster-%03d", i)
		k.targets = append(k.targets, repository+"/"+name)
		k.make(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: map[string]string{
				"fleet": "yes", "repository": repository, "wave": setWaves[i/repositories%len(setWaves)],
			}},
			Data: map[string]string{"region": name},
		})
	}
	k.start()
	return k
}

// boundSite has binding points for a field, and for an object as a whole.
const boundSite = `apiVersion: v1
kind: ConfigMap
metadata:
  name: site
data:
  region: none # packages.sluice.dev/bind: region
  tier: none # packages.sluice.dev/bind: tier
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: all
  annotations:
    packages.sluice.dev/bind: all
`

// isBoundTo tells whether all of its points hold what is of the target.
func isBoundTo(site, target string) bool {
	return strings.Contains(site, "region: "+target+" # ") && strings.Contains(site, "tier: "+target+"-web # ") && strings.Contains(site, "data:\n  region: "+target+"\n")
}

// boundTo are the bindings of its points: to the target's own object, and to a value.
func boundTo() []packagesv1.BindingTemplate {
	object := packagesv1.BindingSourceTemplate{Object: &packagesv1.BindingObjectTemplate{
		BindingObject: packagesv1.BindingObject{APIVersion: "v1", Kind: "ConfigMap"}, NameExpr: "target.name",
	}}
	return []packagesv1.BindingTemplate{
		{BindingTarget: packagesv1.BindingTarget{Name: "region", Path: "data.region"}, From: object},
		{BindingTarget: packagesv1.BindingTarget{Name: "all"}, From: object},
		{BindingTarget: packagesv1.BindingTarget{Name: "tier"}, From: packagesv1.BindingSourceTemplate{LiteralExpr: "target.name + '-web'"}},
	}
}

// inRepository are the targets whose packages are in the repository of the index.
func (k *setKilling) inRepository(index int) (names []string) {
	for _, target := range k.targets {
		if name, isThere := strings.CutPrefix(target, k.downstream[index]+"/"); isThere {
			names = append(names, name)
		}
	}
	return names
}

func (k *setKilling) makeSet() {
	k.t.Helper()
	rollout := &packagesv1.Rollout{}
	for _, wave := range setWaves {
		rollout.Waves = append(rollout.Waves, packagesv1.Wave{
			Name: wave, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": wave}}, MaxInFlight: new(intstr.FromString("60%")),
		})
	}
	k.set = &packagesv1.PackageVariantSet{ObjectMeta: k.meta("web"), Spec: packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: blueprints, Package: "web"}, ServiceAccountName: packager, Rollout: rollout,
		Targets: []packagesv1.Target{{
			ObjectSelector: &packagesv1.ObjectSelector{
				APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}},
			},
			Template: &packagesv1.VariantTemplate{
				Downstream: &packagesv1.DownstreamTemplate{RepoExpr: "target.labels.repository", PackageExpr: "target.name"},
				Injectors:  []packagesv1.InjectorTemplate{{Injector: packagesv1.Injector{Point: "settings"}, NameExpr: "target.name"}},
				Bindings:   boundTo(),
				Approval:   &packagesv1.Approval{Policy: packagesv1.ApprovalAlways}, ServiceAccountName: packager,
			},
		}},
	}}
	k.make(k.set)
}

// release lets a wave take the revision. The first one has all after it paused, and the revision published.
func (k *setKilling) release(wave, revision int) {
	k.t.Helper()
	set := k.set.DeepCopy()
	k.amend(set, func() {
		for i := range set.Spec.Rollout.Waves {
			set.Spec.Rollout.Waves[i].Pause = i > wave
		}
	})
	if wave == 0 {
		k.revise("web", revision)
	}
}

// waveAt says that a wave and those before it are published with the revision, and that those after it are not.
func (k *setKilling) waveAt(wave, revision int) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		if err := env.Client.Get(ctx, k.key(k.set.Name), k.set); err != nil {
			return false, err.Error()
		}
		rollout := k.set.Status.Rollout
		if rollout == nil || rollout.Upstream.Revision != fmt.Sprintf("v%d", revision) || k.set.Status.ObservedGeneration != k.set.Generation {
			return false, asJSON(k.set.Status)
		}
		for i, w := range rollout.Waves {
			if i <= wave && (w.State != packagesv1.WaveDone || w.Published != w.Targets) {
				return false, asJSON(k.set.Status)
			}
			if i > wave && w.Updated > 0 {
				k.t.Errorf("wave %s goes ahead of wave %s: %s", w.Name, setWaves[wave], asJSON(k.set.Status))
			}
		}
		return true, ""
	}
}

// allAt says that all is published with the revision, in Git as well.
func (k *setKilling) allAt(revision int) func(context.Context) (bool, string) {
	waves := k.waveAt(len(setWaves)-1, revision)
	return func(ctx context.Context) (bool, string) {
		if ok, seen := waves(ctx); !ok || !conditions.IsReady(k.set) || int(k.set.Status.ReadyVariants) != len(k.targets) {
			return false, seen + asJSON(k.set.Status)
		}
		for i, repository := range k.downstream {
			tree := k.repos[repository].Tree("main")
			for _, name := range k.inRepository(i) {
				deployment, settings, site := tree[name+"/deployment.yaml"].Content, tree[name+"/settings.yaml"].Content, tree[name+"/site.yaml"].Content
				if !strings.Contains(deployment, image("web", revision)) || !strings.Contains(settings, "region: "+name) || !isBoundTo(site, name) {
					return false, repository + "/" + name + ":\n" + deployment + settings + site
				}
			}
		}
		return true, ""
	}
}

// made are the variants, by where they are. There is one for each target.
func (k *setKilling) made() map[string]types.UID {
	k.t.Helper()
	var list packagesv1.PackageVariantList
	if err := env.Client.List(k.t.Context(), &list, client.InNamespace(k.namespace)); err != nil {
		k.t.Fatal(err)
	}
	made := map[string]types.UID{}
	for _, v := range list.Items {
		made[v.Spec.Downstream.Repo+"/"+v.Spec.Downstream.Package] = v.UID
	}
	if want := slices.Sorted(slices.Values(k.targets)); len(list.Items) != len(want) || !slices.Equal(slices.Sorted(maps.Keys(made)), want) {
		k.t.Errorf("%d variants are at %v, want %v", len(list.Items), made, want)
	}
	return made
}

// write is what one person does on a branch: files that are of no package, and a setting of a package that the set keeps.
func (k *setKilling) write(people *foreign, clone *upstream.Clone, repository, pkg string, who int) {
	onMain := func() (string, error) { return "main", nil }
	for time := range people.times {
		edit := foreignEdit{repository: repository, ref: "refs/heads/main", word: fmt.Sprintf("word-%d-%d", who, time)}
		change := func(root *os.Root) error { return root.WriteFile(edit.word+".txt", []byte(edit.word+"\n"), 0o600) }
		if time%2 == 1 {
			edit.pkg, change = pkg, addWord(pkg, edit.word)
		}
		var err error
		edit.commit, err = people.push(clone, edit.word, onMain, change)
		people.mu.Lock()
		if people.made = append(people.made, edit); err != nil {
			k.t.Errorf("writer %d: %v", who, err)
		}
		people.mu.Unlock()
	}
}

// hasAllWords checks that what people wrote into packages is there once, whatever was published since.
func (k *setKilling) hasAllWords(people *foreign) {
	k.t.Helper()
	for _, edit := range people.made {
		if edit.pkg == "" {
			continue
		}
		text := k.repos[edit.repository].Tree("main")[edit.pkg+"/limits.yaml"].Content
		if strings.Count(text, edit.word+":") != 1 {
			k.t.Errorf("%s/%s has not %s once:\n%s", edit.repository, edit.pkg, edit.word, text)
		}
	}
}

// eachRevisionOnce checks what was recorded of tags: each package has each revision, and in each repository no wave's package comes
// to one before those of the waves before it.
func (k *setKilling) eachRevisionOnce(revisions int) {
	k.t.Helper()
	waves := map[string]int{}
	for i, target := range k.targets {
		waves[filepath.Base(target)] = i / len(k.downstream) % len(setWaves)
	}
	for i, repository := range k.downstream {
		record, err := os.ReadFile(filepath.Join(k.repos[repository].Dir(), "record"))
		if err != nil {
			k.t.Fatal(err)
		}
		tags, furthest := map[string]int{}, map[string]int{}
		for line := range strings.Lines(string(record)) {
			tag, isTag := strings.CutPrefix(strings.Fields(line)[0], "refs/tags/")
			if strings.HasPrefix(line, "refs/heads/deletionProposed/") {
				k.t.Errorf("%s: a deletion is proposed: %s", repository, line)
			}
			if !isTag {
				continue
			}
			tags[tag]++
			name, number, _ := strings.Cut(tag, "/")
			if waves[name] < furthest[number] && number != "v1" {
				k.t.Errorf("%s: %s comes after a later wave has it", repository, tag)
			}
			furthest[number] = max(furthest[number], waves[name])
		}
		want := map[string]int{}
		for _, name := range k.inRepository(i) {
			for revision := range revisions {
				want[fmt.Sprintf("%s/v%d", name, revision+1)] = 1
			}
		}
		if diff := cmp.Diff(want, tags); diff != "" {
			k.t.Errorf("%s: tags were made so often (-want +got):\n%s", repository, diff)
		}
	}
}
