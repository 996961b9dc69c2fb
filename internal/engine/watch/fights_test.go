package watch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/engine/watch"
)

func TestFights(t *testing.T) {
	t.Parallel()
	object := ref(configMaps, "a", "b")
	tests := map[string]struct {
		reason string
		// after are the pauses before each healing.
		after []time.Duration
		want  []time.Duration
	}{
		"AtOnce": {
			"healings at once are a fight from the fourth on, and wait ever longer, up to a bound",
			make([]time.Duration, 11),
			[]time.Duration{
				0, 0, 0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute,
				10 * time.Minute, 10 * time.Minute, 10 * time.Minute,
			},
		},
		"A person": {
			"edits some minutes apart are no fight, however many they are",
			slices.Repeat([]time.Duration{2 * time.Minute}, 30),
			make([]time.Duration, 30),
		},
		"After the pause": {
			"whoever waits for the end of the pause still fights",
			[]time.Duration{0, 10 * time.Second, 50 * time.Second, time.Second, 40 * time.Second, 2 * time.Minute},
			[]time.Duration{0, 0, 0, 30 * time.Second, time.Minute, 2 * time.Minute},
		},
		"Now and then": {
			"a healing an hour is no fight, however long it goes on",
			[]time.Duration{0, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour},
			make([]time.Duration, 8),
		},
		"Peace": {
			"a fight that is over is forgotten",
			[]time.Duration{0, 0, 0, 0, 0, 2*time.Minute + time.Second},
			[]time.Duration{0, 0, 0, 30 * time.Second, time.Minute, 0},
		},
		"Backwards": {
			"a clock that is set back makes nothing younger",
			[]time.Duration{0, -time.Hour, 0, 0},
			[]time.Duration{0, 0, 0, 30 * time.Second},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fights, now := watch.NewFights(watch.FightOptions{}), time.Unix(1e9, 0)
			got := make([]time.Duration, 0, len(test.after))
			for _, pause := range test.after {
				now = now.Add(pause)
				fighting, wait := fights.Healed("one", object, now)
				if fighting != (wait > 0) || fights.Wait("one", object, now, false) != wait {
					t.Errorf("%s: fighting %v, wait %v, then %v", test.reason, fighting, wait, fights.Wait("one", object, now, false))
				}
				got = append(got, wait)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s:\n%s", test.reason, diff)
			}
		})
	}
}

func TestFightThatGoesOnStaysSlow(t *testing.T) {
	t.Parallel()
	fights, start := watch.NewFights(watch.FightOptions{}), time.Unix(1e9, 0)
	object, healings := ref(configMaps, "a", "b"), 0
	for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(time.Second) {
		if fights.Wait("one", object, now, false) == 0 {
			fights.Healed("one", object, now)
			healings++
		}
	}
	if healings < 24 || healings > 24*15 {
		t.Errorf("somebody who always writes back is answered every few minutes, not %d times a day", healings)
	}
}

func TestAFightGoesOnHoweverLateItIsHealed(t *testing.T) {
	t.Parallel()
	fights, now := watch.NewFights(watch.FightOptions{}), time.Unix(1e9, 0)
	object := ref(configMaps, "a", "b")
	for range 4 {
		fights.Healed("one", object, now)
	}
	fights.Wait("one", object, now.Add(time.Second), true)
	if fighting, wait := fights.Healed("one", object, now.Add(time.Hour)); !fighting || wait != time.Minute {
		t.Errorf("it was changed back at once, and the next pause is %v", wait)
	}
	if fighting, _ := fights.Healed("one", object, now.Add(2*time.Hour)); fighting {
		t.Error("the last healing lasted")
	}
}

func TestFightsAreOfOneOwnerAndObject(t *testing.T) {
	t.Parallel()
	fights, now := watch.NewFights(watch.FightOptions{Threshold: 1}), time.Unix(1e9, 0)
	object := ref(configMaps, "a", "b")
	again := object
	again.UID = "another life"
	fights.Healed("one", object, now)
	if fights.Wait("one", again, now, false) == 0 {
		t.Error("an object that was made anew is still fought over")
	}
	if fights.Wait("two", object, now, false) != 0 || fights.Wait("one", ref(configMaps, "a", "c"), now, false) != 0 {
		t.Error("other owners and objects are not in the fight")
	}
	if wait := fights.Wait("one", object, now.Add(20*time.Second), false); wait != 10*time.Second {
		t.Errorf("the pause goes by, 10 s are left, not %v", wait)
	}
	fights.Forget("one")
	if fights.Wait("one", object, now, false) != 0 {
		t.Error("a fight can be forgotten")
	}
}
