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
					{Artifact: artifact("b", "", hour)},
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
				Superseded: []storage.Superseded{{Artifact: artifact("b", "", hour)}},
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

func TestTimeBeginsOnceStatusNamesAnother(t *testing.T) {
	t.Parallel()
	never := storage.Superseded{Artifact: storage.Artifact{Path: "c"}}
	named := storage.Superseded{Artifact: storage.Artifact{Path: "b"}}
	old := superseded("a", time.Hour)
	begun := func(s storage.Superseded) storage.Superseded {
		s.SupersededAt = noon
		return s
	}
	cases := map[string]struct {
		reason string
		named  string
		before []storage.Superseded
		want   []storage.Superseded
		begun  bool
	}{
		"Current": {
			reason: "Status names the current one: the time of all others has begun.",
			named:  "current", before: []storage.Superseded{named, old}, want: []storage.Superseded{begun(named), old}, begun: true,
		},
		"Again": {
			reason: "A time that has begun stays as it is.",
			named:  "current", before: []storage.Superseded{begun(named), old}, want: []storage.Superseded{begun(named), old},
		},
		"Named": {
			reason: "What is named has all the time.",
			named:  "b", before: []storage.Superseded{never, named, old}, want: []storage.Superseded{never, named, old},
		},
		"NamedAfterACrash": {
			reason: "Nobody saw status leave the one before.",
			named:  "c", before: []storage.Superseded{never, named, old}, want: []storage.Superseded{never, begun(named), old}, begun: true,
		},
		"Unknown": {
			reason: "A forged name keeps nothing.",
			named:  "elsewhere", before: []storage.Superseded{named}, want: []storage.Superseded{begun(named)}, begun: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := storage.Record{Current: storage.Artifact{Path: "current"}, Superseded: tc.before}
			got, begun := retention.Renamed(record, tc.named, noon)
			if diff := cmp.Diff(tc.want, got.Superseded); diff != "" || begun != tc.begun {
				t.Errorf("%s\nRenamed: begun %t; -want, +got:\n%s", tc.reason, begun, diff)
			}
		})
	}
}
