package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFights(t *testing.T) {
	t.Parallel()
	object := key{kind: "ConfigMap", namespace: "a", name: "b"}
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
			known, now := fights{}, time.Unix(1e9, 0)
			got := make([]time.Duration, 0, len(test.after))
			for _, pause := range test.after {
				now = now.Add(pause)
				wait := known.heal(object, "", now)
				if left := known.wait(object, now, false); left != wait {
					t.Errorf("%s: wait %v, then %v", test.reason, wait, left)
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
	known, start := fights{}, time.Unix(1e9, 0)
	object, healings := key{kind: "ConfigMap", namespace: "a", name: "b"}, 0
	for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(time.Second) {
		if known.wait(object, now, false) == 0 {
			known.heal(object, "", now)
			healings++
		}
	}
	if healings < 24 || healings > 24*15 {
		t.Errorf("somebody who always writes back is answered every few minutes, not %d times a day", healings)
	}
}

func TestAFightGoesOnHoweverLateItIsHealed(t *testing.T) {
	t.Parallel()
	known, now := fights{}, time.Unix(1e9, 0)
	object := key{kind: "ConfigMap", namespace: "a", name: "b"}
	for range 4 {
		known.heal(object, "", now)
	}
	known.wait(object, now.Add(time.Second), true)
	if wait := known.heal(object, "", now.Add(time.Hour)); wait != time.Minute {
		t.Errorf("it was changed back at once, and the next pause is %v", wait)
	}
	if known.heal(object, "", now.Add(2*time.Hour)) > 0 {
		t.Error("the last healing lasted")
	}
}

func TestAFightIsAboutOneObject(t *testing.T) {
	t.Parallel()
	known, now := fights{}, time.Unix(1e9, 0)
	object, other := key{kind: "ConfigMap", name: "a"}, key{kind: "ConfigMap", name: "b"}
	for range fightFrom {
		known.heal(object, "", now)
	}
	if known.wait(other, now, false) != 0 {
		t.Error("other objects are not in the fight")
	}
	if left := known.wait(object, now.Add(20*time.Second), false); left != 10*time.Second {
		t.Errorf("the pause goes by, 10 s are left, not %v", left)
	}
	known.heal(object, "somebody", now)
	if known.heal(object, "", now); known[object].by != "somebody" {
		t.Errorf("whoever was seen once is named, not %q", known[object].by)
	}
}
