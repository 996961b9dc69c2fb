package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/generator"
	"sluice.dev/sluice/internal/source/helmchart"
	"sluice.dev/sluice/storage"
)

const (
	// chartsOnIndex is how many HelmCharts look at the index.
	chartsOnIndex = 40
	// sourceFiles is how many files a source has beside a chart, and generated how many artifacts are made of one.
	sourceFiles, generated = 5000, 100
)

// storedArtifacts are those of the bench's own store, whoever they belong to.
type storedArtifacts struct{ *helmBench }

var dirs = map[string]string{"HelmRepository": "helmrepository", "GitRepository": "gitrepository"}

// Stored implements helmchart.Artifacts and generator.Artifacts.
func (a storedArtifacts) Stored(ctx context.Context, kind, namespace, name string) (storage.Artifact, error) {
	record, err := a.store.Record(ctx, storage.Object{Kind: dirs[kind], Namespace: namespace, Name: name})
	return record.Current, err
}

// Body implements both.
func (a storedArtifacts) Body(ctx context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	return a.store.Open(ctx, artifact.Path)
}

// HelmRepository implements helmchart.Artifacts.
func (a storedArtifacts) HelmRepository(_ context.Context, _, name string) (*sourcev1.HelmRepository, error) {
	return a.repository(name), nil
}

// HelmRepositories implements it too.
func (storedArtifacts) HelmRepositories(context.Context, string) ([]sourcev1.HelmRepository, error) {
	return nil, nil
}

// Foreign implements generator.Artifacts.
func (storedArtifacts) Foreign(context.Context, string, string) (generator.Foreign, error) {
	return generator.Foreign{}, source.ErrNoArtifact
}

// chartLogins are for whoever asks.
type chartLogins struct{ nobody }

// Registry implements helmchart.Credentials.
func (chartLogins) Registry(context.Context, auth.RegistryRequest) (credential.Registry, error) {
	return credential.Registry{}, nil
}

// Data implements it too.
func (chartLogins) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return nil, errors.New("there are no Secrets")
}

func (b *helmBench) charts() *helmchart.Opener {
	return helmchart.NewOpener(helmchart.Options{Artifacts: storedArtifacts{b}, Credentials: chartLogins{}, Store: b.store, Files: b.files})
}

func benchChart(kind, of, place, name string) *sourcev1.HelmChart {
	return &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: name, UID: "uid", Generation: 1},
		Spec:       sourcev1.HelmChartSpec{Chart: place, SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: kind, Name: of}},
	}
}

func (b *helmBench) chart(ctx context.Context, opener *helmchart.Opener, obj *sourcev1.HelmChart) (time.Duration, bool, error) {
	return reconcileOne(ctx, b.pipeline, "helmchart", obj.Name, func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, obj) })
}

// measureCharts has charts look at the index: all of the first chart in it, of which there are packages.
func measureCharts(ctx context.Context, b *helmBench, _ job) ([]cpuWork, error) {
	opener := b.charts()
	charts := make([]sourcev1.HelmChart, chartsOnIndex)
	for i := range charts {
		obj := benchChart("HelmRepository", "charts", chartOf(0), fmt.Sprint("chart-", i))
		charts[i] = *obj
		if _, _, err := b.chart(ctx, opener, obj); err != nil {
			return nil, err
		}
	}
	idle := cpuWork{Name: fmt.Sprintf("each of %d charts, nothing new", chartsOnIndex), Against: "none"}
	for i := range charts {
		took, changed, err := b.chart(ctx, opener, &charts[i])
		if err != nil || changed {
			return nil, errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		idle.Ours += took / chartsOnIndex
	}
	// From now on each is of another chart; versions are published of the first.
	for i := range charts {
		charts[i].Spec.Chart = chartOf(i)
	}
	asked := b.charts() // It has not looked at any yet.
	awake := func() (woken int) {
		wakes := asked.Moved(ctx, charts)
		for i := range charts {
			if wakes(&charts[i]) {
				woken++
			}
		}
		return woken
	}
	if awake() != chartsOnIndex {
		return nil, errors.New("charts that were never looked at are thought to be as they were")
	}
	for i := range charts {
		if session, err := asked.Open(ctx, &charts[i]); err != nil {
			return nil, err
		} else if _, err := session.Resolve(ctx); err != nil {
			return nil, err
		}
	}
	if err := next(ctx, b.address); err != nil {
		return nil, err
	}
	if _, _, err := b.reconcile(ctx, "charts"); err != nil {
		return nil, err
	}
	move := cpuWork{Name: fmt.Sprintf("one of %d charts gets a version: who wakes", chartsOnIndex), Against: "none"}
	var woken int
	var err error
	move.Ours, err = spent(func() error {
		woken = awake()
		return nil
	})
	if woken != 1 {
		err = errors.Join(err, fmt.Errorf("%d charts wake for a version of one", woken))
	}
	return []cpuWork{idle, move}, err
}

// publish stores a source's artifact.
func (b *helmBench) publish(ctx context.Context, name string, files fstest.MapFS) error {
	var packed bytes.Buffer
	if err := archive.Write(ctx, &packed, files, archive.Everything(), archive.Limits{}); err != nil {
		return err
	}
	staged, err := b.store.Stage(ctx, 0, func(w io.Writer) error {
		_, err := w.Write(packed.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	object := storage.Object{Kind: "gitrepository", Namespace: "bench", Name: name}
	_, err = b.store.Publish(ctx, object, staged, storage.Record{
		UID: "uid", Current: storage.Artifact{Path: object.File(staged.Digest.Encoded() + ".tar.gz"), Revision: "main@sha1:" + staged.Digest.Encoded()[:40]},
	})
	return err
}

// manyFiles is a repository with a chart and so many files beside it.
func manyFiles(version int) fstest.MapFS {
	files := fstest.MapFS{
		"charts/app/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: app\nversion: 1.0.0\n")},
		"charts/app/templates/a.yaml": {Data: []byte("kind: ConfigMap\n")},
	}
	for i := range sourceFiles {
		text := bytes.Repeat(fmt.Appendf(nil, "key-%d: value of version %d\n", i, 0), 60)
		if i == 0 {
			text = fmt.Appendf(text, "version: %d\n", version)
		}
		files[fmt.Sprintf("apps/a%02d/file-%04d.yaml", i%generated, i)] = &fstest.MapFile{Data: text}
	}
	return files
}

// measureChartsOfGit has a chart lie in a source of many files.
func measureChartsOfGit(ctx context.Context, b *helmBench, _ job) ([]cpuWork, error) {
	if err := b.publish(ctx, "repo", manyFiles(0)); err != nil {
		return nil, err
	}
	opener, obj := b.charts(), benchChart("GitRepository", "repo", "charts/app", "of-git")
	if _, _, err := b.chart(ctx, opener, obj); err != nil {
		return nil, err
	}
	idle := cpuWork{Name: fmt.Sprintf("chart in a source of %d files, nothing new", sourceFiles), Against: "none"}
	const times = 50
	for range times {
		took, changed, err := b.chart(ctx, opener, obj)
		if err != nil || changed {
			return nil, errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		idle.Ours += took / times
	}
	elsewhere := cpuWork{Name: "the same, a commit elsewhere in it", Against: "none"}
	for n := range changes {
		if err := b.publish(ctx, "repo", manyFiles(n+1)); err != nil {
			return nil, err
		}
		took, changed, err := b.chart(ctx, opener, obj)
		if err != nil || changed {
			return nil, errors.Join(err, fmt.Errorf("artifact made: %v", changed))
		}
		elsewhere.Ours += took / changes
	}
	return []cpuWork{idle, elsewhere}, nil
}

// shown are the ExternalArtifacts of a generator, as far as it asks for them.
type shown struct{}

func (shown) Claim(_ context.Context, name string, _ map[string]string) (generator.Claimed, error) {
	return generator.Claimed{Name: name, UID: "uid"}, nil
}
func (shown) Publish(context.Context, generator.Claimed, storage.Artifact) error { return nil }
func (shown) Prune(context.Context, map[string]bool) ([]string, error)           { return nil, nil }

// archived counts what is archived.
type archived struct {
	source.Observer
	count int
}

func (a *archived) Stored(storage.Object, int64) { a.count++ }

// measureGenerator makes many artifacts of one source, of which one file changes.
func measureGenerator(ctx context.Context, b *helmBench, _ job) ([]cpuWork, error) {
	counting := &archived{Observer: b.pipeline.Observer}
	pipeline := &source.Pipeline{Store: b.store, Clock: b.pipeline.Clock, Observer: counting}
	maker := generator.NewMaker(generator.Options{Artifacts: storedArtifacts{b}, Pipeline: pipeline})
	obj := &extensionsv1.ArtifactGenerator{ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: "apps", UID: "uid"}}
	obj.Spec.Sources = []extensionsv1.SourceReference{{Alias: "repo", Kind: "GitRepository", Name: "repo"}}
	obj.Spec.PathPattern = "@repo/apps/{app}"
	obj.Spec.OutputArtifacts = []extensionsv1.OutputArtifact{{Name: "{app}", Copy: []extensionsv1.CopyOperation{{From: "@repo/apps/{app}/**", To: "@artifact/"}}}}
	run := func() (time.Duration, error) {
		return spent(func() error {
			_, err := maker.Make(ctx, obj, shown{}, false, func(context.Context) error { return nil })
			return err
		})
	}
	cold := cpuWork{Name: fmt.Sprintf("generator of %d artifacts, cold", generated), Against: "none"}
	var err error
	if cold.Ours, err = run(); err != nil || counting.count != generated {
		return nil, errors.Join(err, fmt.Errorf("%d artifacts were made", counting.count))
	}
	idle := cpuWork{Name: "the same, nothing new", Against: "none"}
	if idle.Ours, err = run(); err != nil || counting.count != generated {
		return nil, errors.Join(err, fmt.Errorf("%d artifacts were made", counting.count))
	}
	change := cpuWork{Name: "the same, one file changed: 1 archive", Against: "none"}
	for n := range changes {
		if err := b.publish(ctx, "repo", manyFiles(100+n)); err != nil {
			return nil, err
		}
		took, err := run()
		if want := generated + n + 1; err != nil || counting.count != want {
			return nil, errors.Join(err, fmt.Errorf("%d artifacts were made, and not %d", counting.count, want))
		}
		change.Ours += took / changes
	}
	return []cpuWork{cold, idle, change}, nil
}
