package bucket_test

import (
	"crypto/md5"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// TestRulesAreFoundBehindAnEmptyPage: Azure's listings may begin with one, and say nothing by it.
func TestRulesAreFoundBehindAnEmptyPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	r.obj.Spec.Prefix = "apps/"
	r.fake.Put(map[string]string{".sourceignore": "*.tmp\n", "apps/a": "1", "apps/a.tmp": "2"})
	r.fake.Always(func(w http.ResponseWriter, request buckets.Request) bool {
		first := request.Kind == "list" && request.URL.Query().Get("continuation-token") == ""
		if first {
			buckets.WriteListing(w, buckets.Listing{IsTruncated: true, NextContinuationToken: "!"})
		}
		return first
	})
	r.wants(r.run(), map[string]string{".sourceignore": "*.tmp\n", "apps/a": "1"})
}

// TestWhatIsListedIsNotGone: whoever stands before a storage, and answers in its place that there is nothing, has removed nothing;
// nor has who removes the bucket while it is read.
func TestWhatIsListedIsNotGone(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(r *rig) buckets.Fault{
		"AProxyKnowsNoSuchPage": func(*rig) buckets.Fault {
			return func(w http.ResponseWriter, request buckets.Request) bool {
				if request.Kind == "get" {
					http.Error(w, "default backend - 404", http.StatusNotFound)
				}
				return request.Kind == "get"
			}
		},
		"TheBucketGoes": func(*rig) buckets.Fault {
			listed := false
			return func(w http.ResponseWriter, request buckets.Request) bool {
				if request.Kind == "list" && !listed {
					listed = true
					return false
				}
				http.Error(w, `{"error":{"message":"The specified bucket does not exist."}}`, http.StatusNotFound)
				return true
			}
		},
	} {
		for _, provider := range []string{"generic", "gcp", "azure"} {
			t.Run(name+" "+provider, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, bucketsource.Options{})
				r.obj.Spec.Provider = provider
				if provider == "azure" {
					r.obj.Spec.Endpoint = r.fake.URL()
				}
				r.fake.Put(map[string]string{"a": "1"})
				before := r.run()
				r.fake.Put(map[string]string{"a": "one", "b": "2"})
				r.fake.Always(fault(r))
				if outcome, err := r.try(); err == nil {
					t.Errorf("it is an artifact of %q", r.files(outcome))
				}
				r.wants(before, map[string]string{"a": "1"})
				r.fake.Heal()
				r.wants(r.run(), map[string]string{"a": "one", "b": "2"})
			})
		}
	}
}

// TestEtagsAreOfTheirBucket: what an etag names in one bucket it does not name in another, nor at another endpoint, nor in
// another kind of storage.
func TestEtagsAreOfTheirBucket(t *testing.T) {
	t.Parallel()
	r, other := newRig(t, bucketsource.Options{}), buckets.New(t)
	r.fake.Set("a", buckets.Object{Body: "one", ETag: "v1"})
	other.Set("a", buckets.Object{Body: "two", ETag: "v1"})
	first := r.run()
	r.obj.Spec.Endpoint = other.Endpoint()
	second := r.run()
	if first.Record.Current.Revision != second.Record.Current.Revision || first.Record.Current.Path == second.Record.Current.Path {
		t.Errorf("first %+v, second %+v", first.Record.Current, second.Record.Current)
	}
	r.wants(second, map[string]string{"a": "two"})
	if r.run().Changed {
		t.Error("it does not come to rest")
	}
	r.obj.Spec.Endpoint = r.fake.Endpoint()
	r.wants(r.run(), map[string]string{"a": "one"})
}

// TestRule8AGarbledBodyIsFetchedOnceMore, and not again: of an object as of the rules.
func TestRule8AGarbledBodyIsFetchedOnceMore(t *testing.T) {
	t.Parallel()
	want := map[string]string{".sourceignore": "*.tmp\n", "a": "1"}
	for _, key := range []string{".sourceignore", "a"} {
		for times := 1; times <= 2; times++ {
			t.Run(fmt.Sprintf("%s, %d", key, times), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, bucketsource.Options{})
				r.fake.Put(want)
				r.fake.Put(map[string]string{"a.tmp": "2"})
				garbled := 0
				r.fake.Always(func(w http.ResponseWriter, request buckets.Request) bool {
					if request.Kind != "get" || request.Key != key || garbled == times {
						return false
					}
					garbled++
					buckets.WriteObject(w, fmt.Sprintf("%x", md5.Sum([]byte(want[key]))), strings.Repeat("!", len(want[key])))
					return true
				})
				outcome, err := r.try()
				if times > 1 {
					if !errors.Is(err, bucket.ErrChecksum) || garbled != 2 {
						t.Errorf("asked %d times, got %v", garbled, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r.wants(outcome, want)
			})
		}
	}
}

// TestAKeyThatIsTooDeepIsNotFetched: folders are made and compared for each of its slashes, and a page has room for millions.
func TestAKeyThatIsTooDeepIsNotFetched(t *testing.T) {
	t.Parallel()
	r := newRig(t, bucketsource.Options{})
	for _, key := range []string{strings.Repeat("a/", 100_000) + "a", strings.Repeat("a/", 300) + "a"} {
		r.fake.Clear()
		r.fake.Put(map[string]string{key: "1"})
		if _, err := r.try(); !errors.Is(err, archive.ErrLimit) || len(err.Error()) > 1000 {
			t.Errorf("%.1000v", err)
		}
		if n := r.fake.Count("get"); n != 0 {
			t.Errorf("%d objects were fetched", n)
		}
	}
}
