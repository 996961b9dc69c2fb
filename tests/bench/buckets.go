package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/source"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/buckets"
)

const (
	// benchBucket has so many objects of so many bytes.
	benchBucket = "configuration"
	objectBytes = 5 << 10
	// changes is how often one object changes, and crowd how many Buckets look at the same.
	changes, crowd = 10, 20
)

// cpuWork is what a kind of work took, on both sides, in CPU time.
type cpuWork struct {
	Name         string
	Ours, Theirs time.Duration
	Against      string
	Want         float64 // of ours to theirs, at most; zero for none
	// Peak is ours over idle, in bytes.
	Peak int64
}

// compareBuckets serves objects by a real S3 server, and has a process of its own measure both sides.
func compareBuckets(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	objects := min(2000, max(p.files/2, 10))
	fmt.Fprintf(out, "making %d objects of %d bytes\n", objects, objectBytes)
	server, err := buckets.Start(ctx, testenv.Root(), "s3")
	if err != nil {
		return err
	}
	defer server.Close()
	writer, err := bucketWriter(server.Address)
	if err != nil {
		return err
	}
	if err := writer.MakeBucket(ctx, benchBucket, minio.MakeBucketOptions{}); err != nil {
		return err
	}
	for i := range objects {
		if err := putObject(ctx, writer, i, 0); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "served by versitygw from files on loopback\n%s\n", machine(p))
	var rounds [][]cpuWork
	for round := range p.rounds {
		works, err := bucketRound(ctx, filepath.Join(dir, fmt.Sprint(round)), server.Address)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		rounds = append(rounds, works)
		fmt.Fprintf(out, "round %d of %d done\n", round+1, p.rounds)
	}
	return printWorks(out, rounds)
}

// bucketRound measures everything once. Cold work has a process of its own, for its memory.
func bucketRound(ctx context.Context, dir, address string) ([]cpuWork, error) {
	var peaks []int64
	for _, what := range []jobKind{jobIdle, jobBucketCold} {
		cmd, err := self(ctx, job{what: what, dir: filepath.Join(dir, string(what)), url: address})
		if err != nil {
			return nil, err
		}
		used, err := measure(cmd)
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, used.peak)
	}
	cmd, err := self(ctx, job{what: jobBucket, dir: filepath.Join(dir, "warm"), url: address})
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var works []cpuWork
	if err := json.Unmarshal(text, &works); err != nil {
		return nil, err
	}
	for i := range works {
		if works[i].Name == "cold" {
			works[i].Peak = peaks[1] - peaks[0]
		}
	}
	return works, os.RemoveAll(dir)
}

func printWorks(out io.Writer, rounds [][]cpuWork) error {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORK\tSLUICE\tREFERENCE\tRATIO\tWANTED\tOVER IDLE\tAGAINST\t")
	for i, first := range rounds[0] {
		middle := func(of func(cpuWork) int64) int64 {
			all := make([]int64, 0, len(rounds))
			for _, round := range rounds {
				all = append(all, of(round[i]))
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		ours, theirs := middle(func(b cpuWork) int64 { return int64(b.Ours) }), middle(func(b cpuWork) int64 { return int64(b.Theirs) })
		wanted, peak := "-", "-"
		if first.Want > 0 {
			wanted = fmt.Sprintf("at most %.1f", first.Want)
		}
		if over := middle(func(b cpuWork) int64 { return b.Peak }); over > 0 {
			peak = bytesText(over)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", first.Name, timeText(time.Duration(ours)), timeText(time.Duration(theirs)), ratio(ours, theirs), wanted, peak, first.Against)
	}
	return w.Flush()
}

func bucketWriter(address string) (*minio.Client, error) {
	return minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(buckets.AccessKey, buckets.SecretKey, "")})
}

// putObject makes an object whose text compresses as configuration does.
func putObject(ctx context.Context, writer *minio.Client, i, version int) error {
	words, chance := strings.Fields("apiVersion kind metadata name namespace spec replicas image ports containers env value resources limits"), rand.New(rand.NewPCG(uint64(i), uint64(version)))
	var text strings.Builder
	for text.Len() < objectBytes {
		fmt.Fprintf(&text, "%s: %s-%d\n", words[chance.IntN(len(words))], words[chance.IntN(len(words))], chance.IntN(10000))
	}
	body := text.String()[:objectBytes]
	_, err := writer.PutObject(ctx, benchBucket, fmt.Sprintf("app-%03d/object-%05d.yaml", i/20, i), strings.NewReader(body), int64(len(body)), minio.PutObjectOptions{})
	return err
}

// keyed has the keys of the server.
type keyed struct{}

func (keyed) Bucket(context.Context, auth.BucketRequest) (credential.Bucket, error) {
	return credential.Bucket{AccessKey: buckets.AccessKey, SecretKey: credential.NewSecret(buckets.SecretKey)}, nil
}

// bucketBench is the pipeline as the manager wires it for Buckets, without a cluster.
type bucketBench struct {
	address  string
	store    *local.Store
	opener   *bucketsource.Opener
	pipeline *source.Pipeline
}

func newBucketBench(dir, address string) (*bucketBench, error) {
	root := filepath.Join(dir, "storage")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	store, err := local.Open(root, local.Options{})
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(dir, "cache")
	return &bucketBench{
		address: address, store: store,
		opener: bucketsource.NewOpener(bucketsource.Options{
			Clients:     bucket.New(bucket.Options{Transport: transport.New(transport.Options{AllowLoopback: true})}),
			Credentials: keyed{}, Stored: store, Dir: "bucket", Cache: bucket.NewCache(cache, 512<<20), IndexDir: cache,
		}),
		pipeline: &source.Pipeline{Store: store, Limits: archive.Limits{}, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}},
	}, nil
}

// reconcile runs one Bucket, and says what CPU that took and whether an artifact was made.
func (b *bucketBench) reconcile(ctx context.Context, name string) (time.Duration, bool, error) {
	obj := &sourcev1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: name},
		Spec:       sourcev1.BucketSpec{Endpoint: b.address, BucketName: benchBucket, Insecure: true},
	}
	return reconcileOne(ctx, b.pipeline, "bucket", name, func(ctx context.Context) (source.Session, error) { return b.opener.Open(ctx, obj) })
}

// bucketCold is the cold work alone.
func bucketCold(ctx context.Context, j job) error {
	b, err := newBucketBench(j.dir, j.url)
	if err != nil {
		return err
	}
	_, _, err = b.reconcile(ctx, "app")
	return errors.Join(err, b.store.Close())
}

// measureBuckets does all work on both sides, and prints what it took as JSON.
func measureBuckets(ctx context.Context, j job) error {
	hand, err := newByHand(j.url)
	if err != nil {
		return err
	}
	// Whatever comes first pays for the process; nothing that is measured does.
	if _, err := hand.list(ctx); err != nil {
		return err
	}
	b, err := newBucketBench(filepath.Join(j.dir, "one"), j.url)
	if err != nil {
		return err
	}
	defer b.store.Close()
	cold := cpuWork{Name: "cold", Against: "listing, a GET each, tar and gzip by hand", Want: 1.3}
	if cold.Theirs, err = spent(func() error { return hand.cold(ctx, filepath.Join(j.dir, "hand.tar.gz")) }); err != nil {
		return err
	}
	if cold.Ours, _, err = b.reconcile(ctx, "app"); err != nil {
		return err
	}
	poll, err := measurePolls(ctx, b, hand)
	if err != nil {
		return err
	}
	change, err := measureChanges(ctx, b, hand, poll.Theirs)
	if err != nil {
		return err
	}
	more, err := measureCrowd(ctx, filepath.Join(j.dir, "crowd"), j.url, cold.Ours, poll.Ours)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(append([]cpuWork{cold, poll, change}, more...))
}

// spent is the CPU that work takes.
func spent(work func() error) (time.Duration, error) {
	before := ownCPU()
	err := work()
	return ownCPU() - before, err
}

func measurePolls(ctx context.Context, b *bucketBench, hand *byHand) (poll cpuWork, err error) {
	poll = cpuWork{Name: "poll, nothing new", Against: "listing with the library", Want: 1.5}
	const times = 20
	for range times {
		one, err := spent(func() error { _, err := hand.list(ctx); return err })
		if err != nil {
			return poll, err
		}
		poll.Theirs += one / times
		one, changed, err := b.reconcile(ctx, "app")
		if err != nil || changed {
			return poll, errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		poll.Ours += one / times
	}
	return poll, nil
}

func measureChanges(ctx context.Context, b *bucketBench, hand *byHand, listing time.Duration) (change cpuWork, err error) {
	change = cpuWork{Name: "one object changed", Against: "listing with the library, one GET", Want: 2}
	for n := range changes {
		if err := putObject(ctx, hand.Client, 7, n+1); err != nil {
			return change, err
		}
		one, err := spent(func() error { return hand.get(ctx, "app-000/object-00007.yaml", io.Discard) })
		if err != nil {
			return change, err
		}
		change.Theirs += (one + listing) / changes
		one, changed, err := b.reconcile(ctx, "app")
		if err != nil || !changed {
			return change, errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		change.Ours += one / changes
	}
	return change, nil
}

// measureCrowd has many Buckets come to the same bucket at once, and then once more, where one alone has taken so much.
func measureCrowd(ctx context.Context, dir, address string, cold, poll time.Duration) (works []cpuWork, err error) {
	b, err := newBucketBench(dir, address)
	if err != nil {
		return nil, err
	}
	defer b.store.Close()
	for _, one := range []cpuWork{
		{Name: fmt.Sprintf("each further of %d Buckets, cold", crowd), Theirs: cold, Against: "the first one"},
		{Name: fmt.Sprintf("each further of %d Buckets, poll", crowd), Theirs: poll, Against: "the first one"},
	} {
		all, err := spent(func() error {
			group, together := errgroup.WithContext(ctx)
			for i := range crowd {
				group.Go(func() error {
					_, _, err := b.reconcile(together, fmt.Sprint("app-", i))
					return err
				})
			}
			return group.Wait()
		})
		if err != nil {
			return nil, err
		}
		one.Ours = max(0, all-one.Theirs) / (crowd - 1)
		works = append(works, one)
	}
	return works, nil
}
