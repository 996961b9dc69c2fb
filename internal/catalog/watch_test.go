package catalog_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
)

func TestOnlyTheConcernedAreWoken(t *testing.T) {
	t.Parallel()
	asleep := map[string]catalog.Request{
		"stable": channel("stable"), "fast": channel("fast"), "1.0.0": version("1.0.0"), "3.0.0": version("3.0.0+b1"), "range": within("1.x"), "latest": latest(),
		"default": ask(), "template": template("foo-3.0.0"), "other module": edit(latest(), func(r *catalog.Request) { r.Name = "bar" }),
		"broken": version("three"),
	}
	object := edit(foo("stable=1.0.0", "fast=3.0.0"), byDefault("stable"))
	shop := catalog.New(systemNamespace, everyone("1.0.0", "3.0.0"), []catalog.Module{object})
	plain := catalog.New(systemNamespace, append(everyone("1.0.0"), in("fast", "3.0.0")), nil)
	changed := func(edits ...func(*catalog.Module)) []string {
		after := object
		after.Channels = slices.Clone(object.Channels)
		after = edit(after, edits...)
		return catalog.WakesOf(&object, &after)
	}
	pointTo := func(v string) func(*modulesv1.Channel) { return func(c *modulesv1.Channel) { c.Version = v } }
	cases := map[string]struct {
		reason string
		wakes  []string
		want   []string
	}{
		"new release":       {"those on range, latest and the version, and the channel that waits for it", shop.Wakes(of("3.0.0")), []string{"3.0.0", "fast", "latest", "range", "template"}},
		"another release":   {"not those on channels and other versions", shop.Wakes(of("2.0.0")), []string{"latest", "range"}},
		"default's release": {"those who follow the default channel", shop.Wakes(of("1.0.0")), []string{"1.0.0", "default", "latest", "range", "stable"}},
		"claimed release":   {"a channel's and its version's", plain.Wakes(in("fast", "3.0.0")), []string{"3.0.0", "fast"}},
		"contested version": {"and all who follow releases where it contests one of theirs", plain.Wakes(in("fast", "1.0.0")), []string{"1.0.0", "default", "fast", "latest", "range"}},
		"first release":     {"everyone who asks for the module", catalog.New(localNamespace, nil, nil).Wakes(of("9.0.0")), []string{"1.0.0", "3.0.0", "broken", "default", "fast", "latest", "range", "stable"}},
		"nobody's":          {"a template without a module is found by name", shop.Wakes(of("3.0.0", func(r *catalog.Release) { r.Module = "" })), []string{"template"}},
		"no version":        {"one without a version by its channel", shop.Wakes(in("fast", "", unversioned)), []string{"fast"}},
		"nothing":           {"no change wakes nobody", changed(), nil},
		"channel":           {"a channel edit wakes those on it", changed(editChannel("fast", pointTo("1.0.0"))), []string{"fast"}},
		"default channel":   {"and those whose default it is", changed(editChannel("stable", pointTo("3.0.0"))), []string{"default", "stable"}},
		"suspended":         {"a stop is an edit", changed(suspend("fast")), []string{"fast"}},
		"default elsewhere": {"those without a selector", changed(byDefault("fast")), []string{"default"}},
		"channel removed":   {"those on it", changed(func(m *catalog.Module) { m.Channels = m.Channels[:1] }), []string{"fast"}},
		"one way":           {"who wants to leave asks for something else by now", changed(oneWay("fast")), []string{"1.0.0", "3.0.0", "broken", "default", "fast", "latest", "range", "stable"}},
		"created":           {"channels and shadowing begin", catalog.WakesOf(nil, &object), []string{"1.0.0", "3.0.0", "broken", "default", "fast", "latest", "range", "stable"}},
		"deleted":           {"and end", catalog.WakesOf(&object, nil), []string{"1.0.0", "3.0.0", "broken", "default", "fast", "latest", "range", "stable"}},
		"neither":           {"there is nothing to tell", catalog.WakesOf(nil, nil), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var woken []string
			for who, request := range asleep {
				if slices.ContainsFunc(request.Keys(), func(key string) bool { return slices.Contains(tc.wakes, key) }) {
					woken = append(woken, who)
				}
			}
			slices.Sort(woken)
			if diff := cmp.Diff(tc.want, woken); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, tc.wakes)
			}
		})
	}
}

// wakes says whether the request hears of the keys. One that names a template alone also listens to the module that it
// was last found to belong to.
func wakes(w *world, before catalog.Decision, keys []string) bool {
	listens := append(w.request.Keys(), catalog.ModuleKey(before.Module))
	if w.installed.Current != nil {
		listens = append(listens, catalog.TemplateKey(w.installed.Current.Template))
	}
	return slices.ContainsFunc(listens, func(key string) bool { return slices.Contains(keys, key) })
}

func TestReleasesWakeWhomTheyMove(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		before, was := w.resolve(), w.outcome()
		s := &w.system
		if w.oneIn(3) && len(w.local.releases) > 0 {
			s = &w.local
		}
		old, i := s.catalogue(), w.IntN(len(s.releases)+1)
		var keys []string
		if i < len(s.releases) {
			keys = old.Wakes(s.releases[i])
		}
		switch {
		case i == len(s.releases):
			s.releases = append(s.releases, w.release("added"))
		case w.oneIn(2):
			s.releases[i] = w.release(s.releases[i].Template)
		default:
			s.releases = slices.Delete(s.releases, i, i+1)
		}
		if i < len(s.releases) {
			keys = append(keys, s.catalogue().Wakes(s.releases[i])...)
		}
		is := w.outcome()
		if was != is && !wakes(w, before, keys) {
			t.Errorf("%v does not hear of %v: %s, then %s", w.request.Keys(), keys, was, is)
		}
		return was != is
	})
}

func TestModulesWakeWhomTheyMove(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) bool {
		t.Helper()
		before, was := w.resolve(), w.outcome()
		s := pick(w, []*shelf{&w.system, &w.local})
		var old, fresh *catalog.Module
		if len(s.modules) > 0 {
			old = &s.modules[0]
		}
		s.modules = nil
		if !w.oneIn(4) {
			module := w.module()
			fresh = &module
			s.modules = []catalog.Module{module}
		}
		if old != nil && fresh != nil {
			fresh.Admits = old.Admits
			s.modules[0].Admits = old.Admits
		}
		is := w.outcome()
		if keys := catalog.WakesOf(old, fresh); was != is && !wakes(w, before, keys) {
			t.Errorf("%v does not hear of %v: %s, then %s", w.request.Keys(), keys, was, is)
		}
		return was != is
	})
}
