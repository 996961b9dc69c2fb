package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

const (
	sourceRoundsMetric = `controller_runtime_reconcile_total{controller="gitrepository"`
	fetchesMetric      = "sluice_git_fetches_total{"
	waitingMetric      = `workqueue_depth{controller="gitrepository"`
	targetEach         = 5 * time.Millisecond
	targetManySources  = 400 << 20
)

// cluster measures the program as it runs in a cluster.
func (e *engine) cluster() (err error) {
	fmt.Fprintln(e.out, "starting etcd, kube-apiserver with an audit log, and sluice")
	dir, err := e.folder("cluster")
	if err != nil {
		return err
	}
	f, err := startFleet(e.ctx, dir, e.plan)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.tell(e.out)
		}
		err = errors.Join(err, f.stop())
	}()
	s, err := serveGit(e.ctx, filepath.Join(dir, "served"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := f.settle(e.ctx); err != nil {
		return err
	}
	for _, part := range []func(*fleet, *gitHost) error{e.reconciles, e.manySources, e.sharing} {
		if err := part(f, s); err != nil {
			return err
		}
	}
	return nil
}

// followAll makes objects that follow repositories, in turn, in a namespace of their own, and waits until all are ready.
func (f *fleet) followAll(ctx context.Context, namespace string, every time.Duration, login map[string][]byte, objects int, urls ...string) error {
	if err := f.client.Create(ctx, testenv.Namespace(namespace)); err != nil {
		return err
	}
	spec := sourcev1.GitRepositorySpec{Interval: metav1.Duration{Duration: every}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}
	if login != nil {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}, Data: login}
		if err := f.client.Create(ctx, secret); err != nil {
			return err
		}
		spec.SecretRef = &meta.LocalObjectReference{Name: secret.Name}
	}
	for i := range objects {
		spec.URL = urls[i%len(urls)]
		object := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("source-%04d", i)}, Spec: spec}
		if err := f.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return f.stored(ctx, namespace, objects, "")
}

// stored waits until so many objects have an artifact of the commit, which may be empty.
func (f *fleet) stored(ctx context.Context, namespace string, objects int, commit string) error {
	ready := map[string]bool{}
	return follow(ctx, f, &sourcev1.GitRepositoryList{}, func(obj *sourcev1.GitRepository) bool {
		if conditions.IsReady(obj) && obj.Status.Artifact != nil && strings.HasSuffix(obj.Status.Artifact.Revision, commit) {
			ready[obj.Name] = true
		}
		return len(ready) == objects
	}, client.InNamespace(namespace))
}

// forget deletes the objects of a namespace.
func (f *fleet) forget(ctx context.Context, namespace string) error {
	if err := f.client.DeleteAllOf(ctx, &sourcev1.GitRepository{}, client.InNamespace(namespace)); err != nil {
		return err
	}
	return f.settle(ctx)
}

// reconciles measures polls that find nothing: some objects come every second for a while.
func (e *engine) reconciles(f *fleet, s *gitHost) error {
	still, err := e.windows(f)
	if err != nil {
		return err
	}
	for i, refs := range []int{fewRefs, e.engine.refs} {
		all, err := s.polled(e.ctx, refs)
		if err != nil {
			return err
		}
		for j, p := range all {
			if err := e.reconcile(f, p, fmt.Sprintf("polls-%d-%d", i, j), still); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// watched is what the program did by itself, in all windows together; the CPU is the median of one.
type watched struct {
	cost
	reconciles int
}

// windows watches the program by itself, as often as everything is measured.
func (e *engine) windows(f *fleet) (all watched, err error) {
	var cpu []int64
	for range e.rounds {
		one, rounds, err := f.window(e.ctx, e.window, sourceRoundsMetric)
		if err != nil {
			return all, err
		}
		cpu = append(cpu, int64(one.cpu))
		all.tally, all.reconciles = all.plus(one.tally), all.reconciles+rounds
	}
	all.cpu = time.Duration(median(cpu))
	return all, nil
}

// reconcile measures polls of one repository, beside what the program uses in as much time at rest.
func (e *engine) reconcile(f *fleet, p polled, namespace string, still watched) error {
	if err := f.followAll(e.ctx, namespace, time.Second, p.login, e.steady, p.url); err != nil {
		return err
	}
	if err := pause(e.ctx, f.quiet); err != nil {
		return err
	}
	before, err := p.asked()
	if err != nil {
		return err
	}
	busy, err := e.windows(f)
	if err != nil {
		return err
	}
	after, err := p.asked()
	if err != nil {
		return err
	}
	if busy.reconciles < e.rounds {
		return errors.New("there was no reconcile")
	}
	cpu := (busy.cpu - still.cpu) / time.Duration(busy.reconciles/e.rounds)
	e.spent(p.name+", whole reconcile", fmt.Sprintf("no API request, at most %s of CPU", targetReconcile), busy.all() == 0, cpu, targetReconcile,
		"%d API requests (%s) and %d upstream in %d reconciles, %d connections, %s of CPU each", busy.all(), told(busy.own),
		after.requests-before.requests, busy.reconciles, after.connections-before.connections, cpu.Round(time.Microsecond))
	return f.forget(e.ctx, namespace)
}

// manySources watches a fleet of sources that ask every minute. It begins with a new process.
func (e *engine) manySources(f *fleet, s *gitHost) error {
	objects, repositories := e.engine.sources, e.engine.repositories
	name := fmt.Sprintf("%d objects, %d repositories, every minute", objects, repositories)
	fmt.Fprintln(e.out, name)
	urls := make([]string, repositories)
	for i := range urls {
		one := fmt.Sprintf("many-%03d", i)
		repository, err := upstream.NewRepository(e.ctx, s.dir, one)
		if err != nil {
			return err
		}
		if _, err := repository.Bulk("main", moduleFiles, moduleMiB<<18); err != nil {
			return err
		}
		urls[i] = s.http.URL(one)
	}
	if err := errors.Join(f.restart(), f.settle(e.ctx)); err != nil {
		return err
	}
	if err := f.followAll(e.ctx, "many", time.Minute, nil, objects, urls...); err != nil {
		return err
	}
	ctx, done := context.WithCancel(e.ctx)
	deepest := make(chan float64, 1)
	go func() { deepest <- f.backlog(ctx) }()
	length := e.engine.watch
	busy, rounds, err := f.window(e.ctx, length, sourceRoundsMetric)
	done()
	most := <-deepest
	if err != nil {
		return err
	}
	now, err := f.metric(e.ctx, waitingMetric)
	if err != nil {
		return err
	}
	resident, peak := f.memory()
	e.target(name, "no backlog, at most "+bytesText(targetManySources), now == 0 && peak <= targetManySources,
		"%.0f waiting at the end and %.0f at most, %.0f polls a minute, %.1f %% of one CPU, %s resident and %s at most, %d API requests", now, most,
		float64(rounds)/length.Minutes(), 100*busy.cpu.Seconds()/length.Seconds(), bytesText(resident), bytesText(peak), busy.all())
	return f.forget(e.ctx, "many")
}

// backlog is the highest number of objects that waited for a worker, looked at every second.
func (f *fleet) backlog(ctx context.Context) (most float64) {
	for pause(ctx, time.Second) == nil {
		if now, err := f.metric(ctx, waitingMetric); err == nil {
			most = max(most, now)
		}
	}
	return most
}

// shared is what it took to bring a commit to objects: requests for packs, commits that the engine was asked for, and what
// the store has more of.
type shared struct {
	cost
	packs, commits, artifacts int
	bytes                     int64
}

// sharing compares many objects on one repository with one object on its copy, from the start and at a new commit.
func (e *engine) sharing(f *fleet, s *gitHost) error {
	n := e.engine.sharing
	fmt.Fprintf(e.out, "%d objects on one repository: %d files, %d MiB\n", n, e.files, e.mib)
	if err := errors.Join(f.restart(), f.settle(e.ctx)); err != nil {
		return err
	}
	cold, again := sharings{objects: n}, sharings{objects: n}
	for round := range e.rounds {
		one, err := e.shared(f, s, 1, round)
		if err != nil {
			return err
		}
		many, err := e.shared(f, s, n, round)
		if err != nil {
			return err
		}
		cold.add(one[0], many[0])
		again.add(one[1], many[1])
	}
	e.shares("cold", cold)
	e.shares("new commit", again)
	return nil
}

// sharings are what one object and many took, round by round.
type sharings struct {
	objects         int
	ones, manys     []shared
	one, many, each []int64 // CPU
}

func (s *sharings) add(one, many shared) {
	s.ones, s.manys = append(s.ones, one), append(s.manys, many)
	s.one, s.many = append(s.one, int64(one.cpu)), append(s.many, int64(many.cpu))
	s.each = append(s.each, int64(many.cpu-one.cpu)/int64(max(1, s.objects-1)))
}

// shares says what came of it: the CPU is a median, and what is counted is of the last round; it must be the same in each.
func (e *engine) shares(work string, s sharings) {
	good := true
	for i, all := range s.manys {
		good = good && all.packs == s.ones[i].packs && all.artifacts == s.ones[i].artifacts
	}
	one, all, each := s.ones[len(s.ones)-1], s.manys[len(s.manys)-1], time.Duration(median(s.each))
	e.spent(fmt.Sprintf("%d objects on one repository, %s", s.objects, work), fmt.Sprintf("1 fetch, 1 artifact, at most %s each", targetEach), good, each, targetEach,
		"%d fetches (one object: %d) for %d commits, %d more artifacts, %d more bytes (%d), %s (%s), %s for each more", all.packs, one.packs, all.commits,
		all.artifacts, all.bytes, one.bytes, timeText(time.Duration(median(s.many))), timeText(time.Duration(median(s.one))), each.Round(10*time.Microsecond))
}

// shared brings a repository of its own to so many objects, and then a commit.
func (e *engine) shared(f *fleet, s *gitHost, objects, round int) (both [2]shared, err error) {
	namespace := fmt.Sprintf("sharing-%d-%d", objects, round)
	repository, err := upstream.NewRepository(e.ctx, s.dir, namespace)
	if err != nil {
		return both, err
	}
	_, bulkErr := repository.Bulk("main", e.files, e.mib<<20)
	_, err = repository.Commit("main", "an artifact of its own", upstream.Text(map[string]string{"of.yaml": namespace}))
	if err = errors.Join(bulkErr, err); err != nil {
		return both, err
	}
	url := s.http.URL(namespace)
	both[0], err = e.brought(f, s, func() error { return f.followAll(e.ctx, namespace, time.Hour, nil, objects, url) })
	if err != nil {
		return both, err
	}
	tip, err := repository.Commit("main", "one line", upstream.Text(map[string]string{upstream.BulkPath(1): "replicas: 2\n"}))
	if err != nil {
		return both, err
	}
	both[1], err = e.brought(f, s, func() error {
		for i := range objects {
			object := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("source-%04d", i)}}
			ask := fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, meta.ReconcileRequestAnnotation)
			if err := f.client.Patch(e.ctx, object, client.RawPatch(types.MergePatchType, []byte(ask))); err != nil {
				return err
			}
		}
		return f.stored(e.ctx, namespace, objects, tip)
	})
	if err != nil {
		return both, err
	}
	return both, f.forget(e.ctx, namespace)
}

// brought measures work that brings a commit to objects.
func (e *engine) brought(f *fleet, s *gitHost, work func() error) (b shared, err error) {
	artifacts, bytes, err := f.bodies()
	if err != nil {
		return b, err
	}
	packs := s.http.Count(upstream.Fetch)
	before, err := f.fetches(e.ctx)
	if err != nil {
		return b, err
	}
	if b.cost, err = f.spent(e.ctx, func() (time.Duration, error) { return 0, work() }); err != nil {
		return b, err
	}
	b.packs = s.http.Count(upstream.Fetch) - packs
	if b.commits, err = f.fetches(e.ctx); err != nil {
		return b, err
	}
	b.commits -= before
	b.artifacts, b.bytes, err = f.bodies()
	b.artifacts, b.bytes = b.artifacts-artifacts, b.bytes-bytes
	return b, err
}

// fetches is how many commits the program has had from its cache or from upstream.
func (f *fleet) fetches(ctx context.Context) (int, error) {
	n, err := f.metric(ctx, fetchesMetric)
	return int(n), err
}

// bodies counts the artifacts in the storage, and their bytes.
func (f *fleet) bodies() (artifacts int, bytes int64, err error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, "data", ".sluice", "blobs", "sha256"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return 0, 0, err
		}
		bytes += info.Size()
	}
	return len(entries), bytes, nil
}
