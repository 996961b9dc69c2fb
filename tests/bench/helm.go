package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/source"
	helmsource "sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
)

// benchCharts is how many charts the index has.
const benchCharts = 150

// compareHelm serves an index, and has processes of their own measure both sides.
func compareHelm(ctx context.Context, out io.Writer, dir string, p plan) error {
	served, err := newHelmServer(benchCharts, max(p.files*167/5568, 2))
	if err != nil {
		return err
	}
	server := httptest.NewServer(served)
	defer server.Close()
	fmt.Fprintf(out, "an index of %d charts of %d versions, %d bytes, of which %d are sent; served from memory on loopback\n%s\n",
		benchCharts, served.versions, len(served.body), len(served.packed), machine(p))
	var rounds [][]cpuWork
	for round := range p.rounds {
		works, err := helmRound(ctx, filepath.Join(dir, fmt.Sprint(round)), server.URL)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		rounds = append(rounds, works)
		fmt.Fprintf(out, "round %d of %d done\n", round+1, p.rounds)
	}
	return printWorks(out, rounds)
}

// helmRound measures everything once. What memory is asked of has a process of its own.
func helmRound(ctx context.Context, dir, address string) ([]cpuWork, error) {
	peaks := map[jobKind]int64{}
	for _, what := range []jobKind{jobIdle, jobHelmCold, jobHelmChange} {
		if what == jobHelmChange {
			if err := next(ctx, address); err != nil {
				return nil, err
			}
		}
		cmd, err := self(ctx, job{what: what, dir: filepath.Join(dir, "peaks"), url: address})
		if err != nil {
			return nil, err
		}
		used, err := measure(cmd)
		if err != nil {
			return nil, err
		}
		peaks[what] = used.peak
	}
	cmd, err := self(ctx, job{what: jobHelm, dir: filepath.Join(dir, "warm"), url: address})
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
		switch works[i].Name {
		case indexCold:
			works[i].Peak = peaks[jobHelmCold] - peaks[jobIdle]
		case indexChange:
			works[i].Peak = peaks[jobHelmChange] - peaks[jobIdle]
		}
	}
	return works, os.RemoveAll(dir)
}

// The kinds of work with an index.
const (
	indexCold   = "index, cold"
	indexPoll   = "index, poll without news"
	indexChange = "index, one version more"
)

// next has the server publish a version.
func next(ctx context.Context, address string) error {
	return get(ctx, address+"/next", nil, func(io.Reader) error { return nil })
}

// get asks once, as anybody would, and reads the body.
func get(ctx context.Context, address string, header http.Header, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	for key := range header {
		request.Header.Set(key, header.Get(key))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return errors.Join(read(response.Body), response.Body.Close())
}

// nobody needs no login.
type nobody struct{}

func (nobody) Helm(_ context.Context, request auth.HelmRequest) (credential.Login, string, error) {
	return credential.Login{}, request.URL, nil
}

// helmBench is the pipeline as the manager wires it for HelmRepositories, without a cluster.
type helmBench struct {
	address  string
	store    *local.Store
	files    *helm.Client
	opener   *helmsource.Opener
	pipeline *source.Pipeline
}

func newHelmBench(dir, address string) (*helmBench, error) {
	root := filepath.Join(dir, "storage")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	store, err := local.Open(root, local.Options{})
	if err != nil {
		return nil, err
	}
	files := helm.NewClient(transport.New(transport.Options{AllowLoopback: true}), clock.RealClock{}, func(int64) {})
	return &helmBench{
		address: address, store: store, files: files,
		opener:   helmsource.NewOpener(helmsource.Options{Client: files, Credentials: nobody{}, Store: store}),
		pipeline: &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}},
	}, nil
}

func (b *helmBench) repository(name string) *sourcev1.HelmRepository {
	return &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: name, UID: "uid"}, Spec: sourcev1.HelmRepositorySpec{URL: b.address},
	}
}

// reconcile runs one HelmRepository, and says what CPU that took and whether an artifact was made.
func (b *helmBench) reconcile(ctx context.Context, name string) (time.Duration, bool, error) {
	obj := b.repository(name)
	return reconcileOne(ctx, b.pipeline, "helmrepository", name, func(ctx context.Context) (source.Session, error) { return b.opener.Open(ctx, obj) })
}

// reconcileOne sends an object through the pipeline, and says what CPU that took and whether an artifact was made.
func reconcileOne(
	ctx context.Context, pipeline *source.Pipeline, kind, name string, open func(context.Context) (source.Session, error),
) (time.Duration, bool, error) {
	subject := source.Subject{Object: storage.Object{Kind: kind, Namespace: "bench", Name: name}, UID: "uid", Timeout: 10 * time.Minute}
	before := ownCPU()
	outcome, err := pipeline.Run(ctx, subject, open, func(context.Context, source.Change) error { return nil })
	if err == nil && outcome.Changed {
		_, err = pipeline.Store.Collect(ctx, subject.Object, "")
	}
	return ownCPU() - before, outcome.Changed, err
}

// helmOnce reconciles once, from whatever is there.
func helmOnce(ctx context.Context, j job) error {
	b, err := newHelmBench(j.dir, j.url)
	if err != nil {
		return err
	}
	_, _, err = b.reconcile(ctx, "charts")
	return errors.Join(err, b.store.Close())
}

// measureHelm does all work on both sides, and prints what it took as JSON.
func measureHelm(ctx context.Context, j job) error {
	b, err := newHelmBench(filepath.Join(j.dir, "one"), j.url)
	if err != nil {
		return err
	}
	defer b.store.Close()
	works := []cpuWork{
		{Name: indexCold, Against: "read by the YAML library, strictly and as a whole", Want: 1.1},
		{Name: indexPoll, Against: "one conditional GET"},
		{Name: indexChange, Against: "uncompress and hash the body", Want: 3},
	}
	if works[0].Theirs, err = parsing(ctx, j.url); err != nil {
		return err
	}
	if works[0].Ours, _, err = b.reconcile(ctx, "charts"); err != nil {
		return err
	}
	if err := b.polls(ctx, &works[1]); err != nil {
		return err
	}
	if err := b.changes(ctx, &works[2]); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *helmBench, job) ([]cpuWork, error){measureHelmCrowd, measureCharts, measureChartsOfGit, measureGenerator} {
		more, err := measure(ctx, b, j)
		if err != nil {
			return err
		}
		works = append(works, more...)
	}
	return json.NewEncoder(os.Stdout).Encode(works)
}

// parsing is what the library takes to read the index.
func parsing(ctx context.Context, address string) (time.Duration, error) {
	var text []byte
	err := get(ctx, address+"/index.yaml", nil, func(body io.Reader) (err error) {
		text, err = io.ReadAll(body)
		return err
	})
	if err != nil {
		return 0, err
	}
	return spent(func() error {
		var whole struct {
			APIVersion string                      `json:"apiVersion"`
			Entries    map[string][]*index.Version `json:"entries"`
			Generated  time.Time                   `json:"generated"`
		}
		return yaml.UnmarshalStrict(text, &whole)
	})
}

func (b *helmBench) polls(ctx context.Context, poll *cpuWork) error {
	var etag string
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address+"/index.yaml", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	etag = response.Header.Get("ETag")
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	const times = 50
	for range times {
		theirs, err := spent(func() error {
			return get(ctx, b.address+"/index.yaml", http.Header{"If-None-Match": {etag}}, func(body io.Reader) error {
				_, err := io.Copy(io.Discard, body)
				return err
			})
		})
		if err != nil {
			return err
		}
		ours, changed, err := b.reconcile(ctx, "charts")
		if err != nil || changed {
			return errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		poll.Theirs, poll.Ours = poll.Theirs+theirs/times, poll.Ours+ours/times
	}
	return nil
}

func (b *helmBench) changes(ctx context.Context, change *cpuWork) error {
	for range changes {
		if err := next(ctx, b.address); err != nil {
			return err
		}
		theirs, err := spent(func() error {
			return get(ctx, b.address+"/index.yaml", http.Header{"Accept-Encoding": {"gzip"}}, func(body io.Reader) error {
				plain, err := gzip.NewReader(body)
				if err != nil {
					return err
				}
				_, err = io.Copy(sha256.New(), plain)
				return err
			})
		})
		if err != nil {
			return err
		}
		ours, changed, err := b.reconcile(ctx, "charts")
		if err != nil || !changed {
			return errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		change.Theirs, change.Ours = change.Theirs+theirs/changes, change.Ours+ours/changes
	}
	return nil
}

// measureHelmCrowd has many HelmRepositories come to the same index at once, where one alone takes so much.
func measureHelmCrowd(ctx context.Context, _ *helmBench, j job) (works []cpuWork, err error) {
	one, err := newHelmBench(filepath.Join(j.dir, "alone"), j.url)
	if err != nil {
		return nil, err
	}
	alone, _, err := one.reconcile(ctx, "charts")
	if err := errors.Join(err, one.store.Close()); err != nil {
		return nil, err
	}
	all, err := newHelmBench(filepath.Join(j.dir, "crowd"), j.url)
	if err != nil {
		return nil, err
	}
	defer all.store.Close()
	took, err := spent(func() error {
		group, together := errgroup.WithContext(ctx)
		for i := range crowd {
			group.Go(func() error {
				_, _, err := all.reconcile(together, fmt.Sprint("charts-", i))
				return err
			})
		}
		return group.Wait()
	})
	further := max((took-alone)/(crowd-1), 0)
	return []cpuWork{{Name: fmt.Sprintf("each further of %d HelmRepositories, cold", crowd), Ours: further, Theirs: alone, Against: "the first one"}}, err
}
