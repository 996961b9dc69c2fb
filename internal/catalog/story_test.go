package catalog_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/catalog"
)

// published is how the story of module foo begins, in five templates: 1.0.0 and 2.0.0 for everyone, 1.0.0 in regular,
// 2.0.0 in fast, and 2.2.0 in experimental alone.
func published() []catalog.Release {
	return append(everyone("1.0.0", "2.0.0"), in("regular", "1.0.0"), in("fast", "2.0.0"), in("experimental", "2.2.0"))
}

// moved is how it goes on: regular moves to 2.0.0, and 2.2.0 is for everyone too.
func moved() []catalog.Release {
	releases := slices.DeleteFunc(published(), func(r catalog.Release) bool { return r.Channel == "regular" })
	return append(releases, in("regular", "2.0.0", later(time.Hour)), of("2.2.0", later(time.Hour)))
}

func TestStoryOfFoo(t *testing.T) {
	t.Parallel()
	early, late := system(published()), system(moved())
	run(t, map[string]example{
		"regular": {"the channel is another version to choose from", channel("regular"), nothing, early, "install foo-regular"},
		"fast":    {"each channel has its own template", channel("fast"), nothing, early, "install foo-fast"},
		"experimental": {
			"what is for nobody else is there in its channel", channel("experimental"), nothing, early, "install foo-experimental",
		},
		"first":  {"versions are for everyone", version("1.0.0"), nothing, early, "install foo-1.0.0"},
		"second": {"versions are for everyone", version("2.0.0"), nothing, early, "install foo-2.0.0"},
		"hidden": {
			"2.2.0 is in a channel only, so it cannot be chosen by version", version("2.2.0"), nothing, early, "hold VersionNotFound",
		},
		"latest": {"latest is the highest that is for everyone", latest(), nothing, early, "install foo-2.0.0"},
		"range":  {"so is the highest of a range", within(">=2.0.0 <3.0.0"), nothing, early, "install foo-2.0.0"},

		"regular moves": {
			"who is on the channel follows it", channel("regular"), runs("1.0.0", via("regular")), late, "move foo-regular",
		},
		"fast stays":         {"another channel's move is not its own", channel("fast"), runs("2.0.0", via("fast")), late, "keep foo-fast"},
		"experimental stays": {"nor is it for the third", channel("experimental"), runs("2.2.0"), late, "keep foo-experimental"},
		"first stays":        {"a version stays what it is", version("1.0.0"), runs("1.0.0"), late, "keep foo-1.0.0"},
		"second stays":       {"an alias in a channel changes nothing", version("2.0.0"), runs("2.0.0"), late, "keep foo-2.0.0"},
		"selectable":         {"2.2.0 is for everyone now", version("2.2.0"), nothing, late, "install foo-2.2.0"},
		"latest moves":       {"and latest finds it", latest(), runs("2.0.0"), late, "move foo-2.2.0"},
		"regular by version": {
			"leaving the channel for the same content changes nothing", version("2.0.0"), runs("2.0.0", via("regular")), late, "keep foo-2.0.0",
		},
		"fast to regular": {
			"changing to a channel that is behind would go back", channel("regular"), runs("2.2.0", via("experimental")), late,
			"hold DowngradeBlocked at foo-regular",
		},
	})
}
