package retention_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

func TestSupersedeKeepsHistory(t *testing.T) {
	t.Parallel()
	hour := noon.Add(-time.Hour)
	artifact := func(path, digest string, at time.Time) storage.Artifact {
		return storage.Artifact{Path: path, Digest: "sha256:" + "0", Revision: digest, StoredAt: at}
	}
	other := artifact("b", "", hour)
	other.Digest = "sha256:1"
	type want struct {
		record storage.Record
		err    error
	}
	cases := map[string]struct {
		reason   string
		previous storage.Record
		next     storage.Record
		want     want
	}{
		"First": {
			reason: "The first artifact supersedes nothing; an empty time is filled in.",
			next:   storage.Record{UID: "1", Current: artifact("a", "", time.Time{})},
			want:   want{record: storage.Record{UID: "1", Current: artifact("a", "", noon)}},
		},
		"GivenTime": {
			reason: "A given time is kept in UTC and whole seconds.",
			next:   storage.Record{Current: artifact("a", "", hour.Add(7).In(time.FixedZone("", 3600)))},
			want:   want{record: storage.Record{Current: artifact("a", "", hour)}},
		},
		"Replaced": {
			reason: "What was current goes to the front of the superseded; what the caller claims there does not count.",
			previous: storage.Record{
				Current:    artifact("b", "", hour),
				Superseded: []storage.Superseded{{Artifact: artifact("a", "", hour), SupersededAt: hour}},
			},
			next: storage.Record{Current: artifact("c", "", noon), Superseded: []storage.Superseded{superseded("x", 0)}},
			want: want{record: storage.Record{
				Current: artifact("c", "", noon),
				Superseded: []storage.Superseded{
					{Artifact: artifact("b", "", hour), SupersededAt: noon},
					{Artifact: artifact("a", "", hour), SupersededAt: hour},
				},
			}},
		},
		"SameAgain": {
			reason:   "Publishing the same body again supersedes nothing and keeps the time.",
			previous: storage.Record{Current: artifact("a", "old", hour)},
			next:     storage.Record{Current: artifact("a", "new", time.Time{})},
			want:     want{record: storage.Record{Current: artifact("a", "new", hour)}},
		},
		"BackToAnEarlierOne": {
			reason: "A superseded artifact that becomes current again is superseded no longer.",
			previous: storage.Record{
				Current:    artifact("b", "", hour),
				Superseded: []storage.Superseded{{Artifact: artifact("a", "", hour), SupersededAt: hour}},
			},
			next: storage.Record{Current: artifact("a", "", noon)},
			want: want{record: storage.Record{
				Current:    artifact("a", "", noon),
				Superseded: []storage.Superseded{{Artifact: artifact("b", "", hour), SupersededAt: noon}},
			}},
		},
		"CurrentPathTaken": {
			reason:   "The current path keeps its bytes.",
			previous: storage.Record{Current: other},
			next:     storage.Record{Current: artifact("b", "", noon)},
			want:     want{err: storage.ErrPathTaken},
		},
		"SupersededPathTaken": {
			reason: "A superseded path keeps its bytes as long as it is stored.",
			previous: storage.Record{
				Current:    artifact("c", "", hour),
				Superseded: []storage.Superseded{{Artifact: other, SupersededAt: hour}},
			},
			next: storage.Record{Current: artifact("b", "", noon)},
			want: want{err: storage.ErrPathTaken},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := retention.Supersede(tc.previous, tc.next, noon)
			if !errors.Is(err, tc.want.err) {
				t.Fatalf("%s\nSupersede: want error %v, got %v", tc.reason, tc.want.err, err)
			}
			if diff := cmp.Diff(tc.want.record, got); diff != "" {
				t.Errorf("%s\nSupersede: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
