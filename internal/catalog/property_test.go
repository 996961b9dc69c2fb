package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/revision"
)

// worlds is how many questions each property is asked; every one has its own seed, which a failure names.
const worlds = 4000

// world is a question made up from a seed: few versions, contents and channels, so that much coincides.
type world struct {
	*rand.Rand
	request   catalog.Request
	installed catalog.Installed
	local     shelf
	system    shelf
}

type shelf struct {
	namespace string
	releases  []catalog.Release
	modules   []catalog.Module
}

func (s shelf) catalogue() *catalog.Contents { return catalog.New(s.namespace, s.releases, s.modules) }

func (w *world) index() catalog.Index {
	return catalog.Index{Local: w.local.catalogue(), System: w.system.catalogue()}
}

func (w *world) resolve() catalog.Decision {
	return catalog.Resolve(w.request, w.installed, w.index(), now)
}

func (w *world) outcome() string { return outcome(w.installed, w.resolve()) }

var (
	someVersions = []string{"0.9.0", "1.0.0-rc.1", "1.0.0", "1.0.0+b1", "1.0.1", "1.2.0-beta.1", "1.2.0", "2.0.0-rc.1", "2.0.0", "v3.0.0", ""}
	someChannels = []string{"stable", "fast", "none", ""}
	someModules  = []string{"foo", "foo", "foo", "bar"}
	someRanges   = []string{"*", "1.x", ">=1.0.0 <2.0.0", "<1.0.0 || >=2.0.0", "~1.0.0", "1.2"}
)

func pick[T any](w *world, of []T) T { return of[w.IntN(len(of))] }

// oneIn is true once in n times.
func (w *world) oneIn(n int) bool { return w.IntN(n) == 0 }

func makeWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1))}
	w.system = w.shelf(systemNamespace, 1+w.IntN(10))
	w.local = w.shelf(localNamespace, max(0, w.IntN(6)-3))
	w.request = w.someRequest()
	if w.oneIn(4) {
		return w
	}
	w.installed = catalog.Installed{Module: pick(w, someModules), Catalog: pick(w, []modulesv1.Catalog{modulesv1.CatalogSystem, modulesv1.CatalogSystem, modulesv1.CatalogLocal})}
	if w.oneIn(6) {
		return w
	}
	if w.oneIn(3) {
		w.installed.Attempted = w.choice()
	}
	if w.installed.Attempted != nil && w.oneIn(3) {
		return w
	}
	w.installed.Current = w.choice()
	if w.oneIn(2) {
		w.installed.Previous = w.choice()
	}
	if w.oneIn(2) {
		version := pick(w, someVersions)
		w.installed.Plan = &catalog.Plan{Version: version, Content: w.content(version), Digest: "plan"}
	}
	return w
}

func (w *world) shelf(namespace string, size int) shelf {
	s := shelf{namespace: namespace}
	for i := range size {
		s.releases = append(s.releases, w.release(fmt.Sprintf("t%d", i)))
	}
	if w.oneIn(2) {
		s.modules = append(s.modules, w.module())
	}
	return s
}

func (w *world) content(version string) string {
	if w.oneIn(8) {
		return "sha256:other"
	}
	return "sha256:" + version
}

func (w *world) release(template string) catalog.Release {
	version := pick(w, someVersions)
	return catalog.Release{
		Template: template, Module: pick(w, someModules), Version: version, Digest: w.content(version), Channel: pick(w, someChannels),
		Readiness: pick(w, []catalog.Readiness{catalog.Ready, catalog.Ready, catalog.Idle, catalog.NotReady}),
		Since:     now.Add(-time.Duration(w.IntN(4)) * time.Hour), Deleting: w.oneIn(12),
		Support: catalog.Support{
			State: pick(w, []modulesv1.SupportState{modulesv1.SupportSupported, modulesv1.SupportSupported, modulesv1.SupportSupported, modulesv1.SupportDeprecated, modulesv1.SupportWithdrawn}),
			Until: pick(w, []time.Time{{}, {}, now.Add(-time.Hour), now.Add(time.Hour), now.Add(2 * time.Hour)}),
		},
	}
}

func (w *world) module() catalog.Module {
	m := catalog.Module{Name: "foo", DefaultChannel: pick(w, []string{"", "stable", "fast"})}
	for _, name := range []string{"stable", "fast"} {
		if w.oneIn(2) {
			m.Channels = append(m.Channels, modulesv1.Channel{Name: name, Version: pick(w, someVersions), Suspended: w.oneIn(4), OneWay: w.oneIn(4)})
		}
	}
	if w.oneIn(6) {
		m.Admits = func(string) bool { return false }
	}
	return m
}

func (w *world) choice() *modulesv1.Release {
	version := pick(w, someVersions)
	return &modulesv1.Release{Template: fmt.Sprintf("t%d", w.IntN(6)), Version: version, Digest: w.content(version), Channel: pick(w, []string{"", "stable", "fast"}), Namespace: pick(w, []string{systemNamespace, systemNamespace, localNamespace})}
}

func (w *world) someRequest() catalog.Request {
	r := catalog.Request{
		Namespace: localNamespace, Name: "foo", Catalog: pick(w, []modulesv1.Catalog{"", modulesv1.CatalogAuto, modulesv1.CatalogLocal, modulesv1.CatalogSystem}),
		Prereleases: pick(w, []modulesv1.Prereleases{
			{}, {}, {Policy: modulesv1.PrereleasesInclude}, {Policy: modulesv1.PrereleasesListed, Identifiers: []string{"rc"}},
		}),
		Upgrade: modulesv1.UpgradePolicy{
			Mode:             pick(w, []modulesv1.UpgradeMode{"", "", modulesv1.UpgradeAutomatic, modulesv1.UpgradeManual, modulesv1.UpgradeNever}),
			MaxStep:          pick(w, []modulesv1.UpgradeStep{"", "", modulesv1.StepPatch, modulesv1.StepMinor, modulesv1.StepMajor}),
			AllowDowngradeTo: pick(w, []string{"", "", "1.0.0", "0.9.0", "1.0.0-rc.1"}),
			Approve:          pick(w, []string{"", "plan"}),
		},
	}
	switch w.IntN(7) {
	case 0:
		r.Channel = pick(w, []string{"stable", "fast"})
	case 1:
		r.Version = pick(w, someVersions[:9])
	case 2:
		r.Range = pick(w, someRanges)
	case 3:
		r.Latest = true
	case 4:
		r.Template = fmt.Sprintf("t%d", w.IntN(6))
	case 5:
		r.Name, r.Template = "", fmt.Sprintf("t%d", w.IntN(6))
	}
	return r
}

// everywhere asks the property of every world and counts how often it said something.
func everywhere(t *testing.T, holds func(t *testing.T, w *world) (said bool)) {
	t.Helper()
	t.Parallel()
	said := 0
	for seed := range uint64(worlds) {
		if holds(t, makeWorld(seed)) {
			said++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if said < worlds/100 {
		t.Errorf("the property said something in %d of %d worlds only", said, worlds)
	}
}

func TestEveryDecisionIsSound(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		d := w.resolve()
		checkSound(t, w.installed, d)
		if d.Target == nil {
			return false
		}
		home := w.system
		if d.Catalog == modulesv1.CatalogLocal {
			home = w.local
		}
		at := slices.IndexFunc(home.releases, func(r catalog.Release) bool { return r.Template == d.Target.Template })
		if at < 0 || !cmp.Equal(home.releases[at], *d.Target) || d.Namespace != home.namespace || d.Module != d.Target.Module {
			t.Errorf("the target is not from the chosen catalogue: %+v", d)
		}
		if d.Changed && (d.Target.Deleting || d.Target.Support.State == modulesv1.SupportWithdrawn || d.Target.Readiness == catalog.NotReady) {
			t.Errorf("moved to what cannot be chosen: %+v", d.Target)
		}
		return true
	})
}

func TestOneInputHasOneAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		if diff := cmp.Diff(w.resolve(), w.resolve()); diff != "" {
			t.Error(diff)
		}
		return true
	})
}

// TestAnExplanationIsOfTheSameAnswer: it names everybody who is left out by a rule, and changes nothing.
func TestAnExplanationIsOfTheSameAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		plain := w.resolve()
		w.request.Explain = true
		told := w.resolve()
		left, said := 0, false
		for i, rule := range told.Trace {
			if rule.Name != "catalog" && rule.Name != "support" && left != rule.Kept+len(rule.Dropped) {
				t.Errorf("rule %s: of %d, %d are left and %+v are not", rule.Name, left, rule.Kept, rule.Dropped)
			}
			left, said = rule.Kept, said || len(rule.Dropped) > 0
			told.Trace[i].Dropped = nil
		}
		if diff := cmp.Diff(plain, told); diff != "" {
			t.Error(diff)
		}
		return said
	})
}

func TestOrderOfTheIndexIsIrrelevant(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		want := w.resolve()
		wantChannels := w.system.catalogue().Channels("foo", now)
		for _, releases := range [][]catalog.Release{w.local.releases, w.system.releases} {
			w.Shuffle(len(releases), func(i, j int) { releases[i], releases[j] = releases[j], releases[i] })
		}
		for _, module := range w.system.modules {
			slices.Reverse(module.Channels)
		}
		if diff := cmp.Diff(want, w.resolve()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(wantChannels, w.system.catalogue().Channels("foo", now)); diff != "" {
			t.Error(diff)
		}
		return true
	})
}

func TestUnrelatedReleaseChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		want := w.resolve()
		for _, s := range []*shelf{&w.system, &w.local} {
			stranger := w.release("stranger")
			stranger.Module = "stranger"
			s.releases = append(s.releases, stranger)
			s.modules = append(s.modules, catalog.Module{Name: "stranger"})
		}
		if diff := cmp.Diff(want, w.resolve()); diff != "" {
			t.Error(diff)
		}
		return true
	})
}

func TestOtherVersionsDoNotMovePins(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		if w.request.Version == "" {
			return false
		}
		want := w.resolve()
		w.system.releases = append(w.system.releases, of("7.7.7", named("stranger")))
		got := w.resolve()
		if diff := cmp.Diff([]any{want.Target, want.Hold, want.Warnings, want.NextCheck}, []any{got.Target, got.Hold, got.Warnings, got.NextCheck}); diff != "" && (want.Hold == nil || want.Hold.Reason != modulesv1.ModuleNotFoundReason) {
			t.Error(diff)
		}
		return true
	})
}

func TestNothingGoesBackWithoutConsent(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		d := w.resolve()
		if d.Target == nil || !d.Changed {
			return false
		}
		said := false
		for _, ran := range []*modulesv1.Release{w.installed.Current, w.installed.Attempted} {
			if ran == nil || ran.Version == d.Target.Version && ran.Digest == d.Target.Digest {
				continue
			}
			said = true
			from, fromErr := revision.ParseStrict(ran.Version)
			to, toErr := revision.ParseStrict(d.Target.Version)
			switch {
			case fromErr == nil && toErr == nil && to.Compare(from) > 0:
			case fromErr == nil && toErr == nil && to.Compare(from) == 0:
				if ran.Digest != d.Target.Digest {
					t.Errorf("other content under a version that has run: %+v", d.Target)
				}
			case (fromErr != nil || toErr != nil) && ran.Digest == d.Target.Digest:
			case w.request.Upgrade.AllowDowngradeTo != d.Target.Version && !w.returnsTo(d.Target):
				t.Errorf("from %+v to %+v without consent", ran, d.Target)
			}
		}
		return said
	})
}

// returnsTo says whether the request names the release, and it ran before what runs or was begun.
func (w *world) returnsTo(target *catalog.Release) bool {
	is := func(c *modulesv1.Release) bool {
		return c != nil && c.Content == target.Digest && c.Version == target.Version
	}
	return (w.request.Version != "" || w.request.Template != "") &&
		(is(w.installed.Previous) || w.installed.Attempted != nil && is(w.installed.Current))
}

// TestWhatWasBegunGoesOn: an attempt at what was chosen changes nothing of the choice.
func TestWhatWasBegunGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		d := w.resolve()
		if d.Target == nil || !d.Changed {
			return false
		}
		w.installed.Module, w.installed.Catalog = d.Module, d.Catalog
		w.installed.Attempted = &modulesv1.Release{
			Template: d.Target.Template, Version: d.Target.Version, Content: d.Target.Digest, Channel: d.Channel(), Namespace: d.Namespace,
		}
		if again := w.resolve(); again.Target == nil || again.Target.Version != d.Target.Version || again.Target.Digest != d.Target.Digest {
			t.Errorf("after %s was begun comes %s", d.Target.Template, w.outcome())
		}
		return true
	})
}

func TestHoldChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		var current, previous modulesv1.Release
		if w.installed.Current != nil {
			current = *w.installed.Current
		}
		if w.installed.Previous != nil {
			previous = *w.installed.Previous
		}
		d := w.resolve()
		if w.installed.Current != nil && *w.installed.Current != current || w.installed.Previous != nil && *w.installed.Previous != previous {
			t.Error("what is installed was written to")
		}
		if d.Hold != nil && (d.Target != nil || d.Changed) {
			t.Errorf("a hold moves: %+v", d)
		}
		return d.Hold != nil
	})
}

func TestOneMoveIsEnough(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		d := w.resolve()
		if d.Target == nil || !d.Changed {
			return false
		}
		w.installed = catalog.Installed{Module: d.Module, Catalog: d.Catalog, Previous: w.installed.Current, Current: &modulesv1.Release{
			Template: d.Target.Template, Version: d.Target.Version, Content: d.Target.Digest, Channel: d.Channel(), Namespace: d.Namespace,
		}}
		if again := w.resolve(); again.Target == nil || again.Changed || again.Target.Template != d.Target.Template || again.Catalog != d.Catalog {
			t.Errorf("after %s comes %s", d.Target.Template, w.outcome())
		}
		return true
	})
}

func TestAnswerHoldsUntilTheNextCheck(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		want := w.resolve()
		then := want.NextCheck.Add(-time.Nanosecond)
		if want.NextCheck.IsZero() {
			then = now.AddDate(10, 0, 0)
		}
		got := catalog.Resolve(w.request, w.installed, w.index(), then)
		if diff := cmp.Diff(outcome(w.installed, want), outcome(w.installed, got)); diff != "" {
			t.Errorf("at %s: %s", then, diff)
		}
		return true
	})
}

func TestLocalModuleShadowsCompletely(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		if w.request.Catalog == modulesv1.CatalogSystem || w.request.Catalog == modulesv1.CatalogLocal || w.installed.Catalog != "" || len(w.local.releases) == 0 {
			return false
		}
		d := w.resolve()
		has := slices.ContainsFunc(w.local.releases, func(r catalog.Release) bool {
			return r.Module == d.Module && r.Readiness != catalog.NotReady && !r.Deleting
		})
		if d.Hold != nil && d.Hold.IsMalformed() {
			return false
		}
		if has && d.Catalog != modulesv1.CatalogLocal {
			t.Errorf("a local module is passed over: %+v", d)
		}
		return has
	})
}
