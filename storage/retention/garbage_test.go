package retention_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func superseded(path string, ago time.Duration) storage.Superseded {
	return storage.Superseded{Artifact: storage.Artifact{Path: path}, SupersededAt: noon.Add(-ago)}
}

func TestGarbageIsOldOrSurplus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		superseded []storage.Superseded
		named      string
		policy     retention.Policy
		now        time.Time
		want       []string
	}{
		"Nothing": {
			reason: "An object with only a current artifact has no garbage.",
			now:    noon,
		},
		"DefaultsKeepOneForAMinute": {
			reason:     "Two artifacts are kept in all, a superseded one for exactly one minute.",
			superseded: []storage.Superseded{superseded("b", time.Minute)},
			now:        noon,
		},
		"DefaultTTLPassed": {
			reason:     "More than a minute after it was superseded an artifact is garbage, however few there are.",
			superseded: []storage.Superseded{superseded("b", time.Minute+1)},
			now:        noon,
			want:       []string{"b"},
		},
		"StoredLongAgoSupersededNow": {
			reason: "Age counts from when an artifact was superseded, not from when it was stored.",
			superseded: []storage.Superseded{{
				Artifact:     storage.Artifact{Path: "b", StoredAt: noon.Add(-1000 * time.Hour)},
				SupersededAt: noon,
			}},
			now: noon,
		},
		"BeyondRecords": {
			reason:     "The longest superseded go first when there are more than Records.",
			superseded: []storage.Superseded{superseded("d", 1), superseded("c", 2), superseded("b", 3)},
			policy:     retention.Policy{Records: 3},
			now:        noon,
			want:       []string{"b"},
		},
		"OnlyTheCurrentOne": {
			reason:     "One record is the current one alone.",
			superseded: []storage.Superseded{superseded("b", 0)},
			policy:     retention.Policy{Records: 1},
			now:        noon,
			want:       []string{"b"},
		},
		"NoLimitOnRecords": {
			reason:     "A negative number of records leaves the decision to the TTL.",
			superseded: []storage.Superseded{superseded("d", 1), superseded("c", 2), superseded("b", time.Hour)},
			policy:     retention.Policy{Records: -1},
			now:        noon,
			want:       []string{"b"},
		},
		"EqualTimes": {
			reason:     "Equal times do not hide one artifact behind another; the record's order decides.",
			superseded: []storage.Superseded{superseded("d", 5), superseded("c", 5), superseded("b", 5)},
			policy:     retention.Policy{Records: 2},
			now:        noon,
			want:       []string{"c", "b"},
		},
		"ClockWentBack": {
			reason:     "A clock that was set back an hour makes nothing old.",
			superseded: []storage.Superseded{superseded("b", 0)},
			now:        noon.Add(-time.Hour),
		},
		"NamesTheCurrentPath": {
			reason:     "What the current artifact's path names is never garbage.",
			superseded: []storage.Superseded{superseded("current", time.Hour)},
			now:        noon,
		},
		"NamesAKeptPath": {
			reason:     "An old entry for a path that a newer one keeps does not take the file away.",
			superseded: []storage.Superseded{superseded("b", 0), superseded("b", time.Hour)},
			now:        noon,
		},
		"NeverNamed": {
			reason:     "What came after the named one, nobody was told of; what came before has to wait.",
			superseded: []storage.Superseded{superseded("d", 0), superseded("c", 0), superseded("b", 0), superseded("a", time.Hour)},
			named:      "b",
			now:        noon,
			want:       []string{"d", "c"},
		},
		"NoTimeAtAll": {
			reason:     "A negative TTL keeps nothing that has been superseded in the past.",
			superseded: []storage.Superseded{superseded("b", 1)},
			policy:     retention.Policy{TTL: -1},
			now:        noon,
			want:       []string{"b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := storage.Record{Current: storage.Artifact{Path: "current"}, Superseded: tc.superseded}
			var got []string
			for _, garbage := range retention.Garbage(record, tc.named, tc.policy, tc.now) {
				got = append(got, garbage.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGarbage: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGarbageHoldsForAnyHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		policy := retention.Policy{TTL: time.Duration(1+random.IntN(60)) * time.Second, Records: 1 + random.IntN(5)}
		record := storage.Record{Current: storage.Artifact{Path: "0"}}
		for range random.IntN(12) {
			ago := time.Duration(random.IntN(120)-30) * time.Second // A negative age: the clock went back since.
			record.Superseded = append(record.Superseded, superseded(strconv.Itoa(random.IntN(10)), ago))
		}

		garbage := retention.Garbage(record, "0", policy, noon)
		left := retention.Without(record, garbage)

		paths := map[string]bool{"0": true}
		for _, old := range left.Superseded {
			paths[old.Path] = true
		}
		if len(paths) > policy.Records {
			t.Fatalf("seed %d: %d artifacts are left, the policy allows %d", seed, len(paths), policy.Records)
		}
		for _, old := range garbage {
			if paths[old.Path] {
				t.Fatalf("seed %d: %q is garbage and kept", seed, old.Path)
			}
			if noon.Sub(old.SupersededAt) <= policy.TTL && len(paths) < policy.Records {
				t.Fatalf("seed %d: %q went early with room to spare", seed, old.Path)
			}
		}
		if again := retention.Garbage(left, "0", policy, noon); len(again) != 0 {
			t.Fatalf("seed %d: a second collection finds more: %v", seed, again)
		}
	}
}
