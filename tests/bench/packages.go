package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// packagesPlan is how much is measured of packages.
type packagesPlan struct {
	// Variants of one package are spread over the repositories.
	variants, into int
	// The catalogue is a repository with so many packages, each of them with so many revisions.
	catalogue, revisions int
	// every is the interval of repositories that are watched at rest.
	every time.Duration
}

func (p *packagesPlan) flags() {
	flag.IntVar(&p.variants, "variants", 500, "variants that are made of one package")
	flag.IntVar(&p.into, "into", 10, "repositories that these are kept in")
	flag.IntVar(&p.catalogue, "packages", 1000, "packages of the repository that has many")
	flag.IntVar(&p.revisions, "revisions", 3, "published revisions of each of these packages")
	flag.DurationVar(&p.every, "every", 10*time.Second, "interval of the repositories that are watched at rest")
}

const (
	packagesNamespace = "packages"
	blueprintsName    = "blueprints"
	blueprintName     = "app"

	targetAllDrafts      = time.Minute
	targetVariantFetches = 2
	targetVariantPushes  = 3
	targetVariantsMemory = 300 << 20
	targetWarmSync       = 2 * time.Second
)

// packagesRun is a run of all work with packages.
type packagesRun struct {
	plan
	*fleet

	ctx     context.Context // It bounds the whole run.
	host    *gitHost
	targets []target
}

// comparePackages makes many variants of one package, follows an update, watches all of it at rest, and reads a large
// repository.
func comparePackages(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	fmt.Fprintln(out, machine(p))
	fmt.Fprintln(out, "starting etcd, kube-apiserver with an audit log, and sluice")
	f, err := startFleet(ctx, dir, p)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.tell(out)
		}
		err = errors.Join(err, f.stop())
	}()
	host, err := serveGit(ctx, filepath.Join(dir, "served"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	r := &packagesRun{plan: p, fleet: f, ctx: ctx, host: host}
	if err := f.client.Create(ctx, testenv.Namespace(packagesNamespace)); err != nil {
		return err
	}
	for _, part := range []func() error{r.fanOut, r.large} {
		if err := part(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	return printVerdicts(out, r.targets)
}

func (r *packagesRun) target(work, wanted string, met bool, measured string, args ...any) {
	r.targets = append(r.targets, target{work, wanted, fmt.Sprintf(measured, args...), met})
}

// blueprint is the package that variants are made of.
func blueprint(image string) upstream.Files {
	return upstream.Text(map[string]string{
		"app/Kptfile": `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
    - image: set-labels
      configMap:
        app: app
`,
		"app/deployment.yaml": strings.ReplaceAll(blueprintDeployment, "IMAGE", image),
		"app/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: app
spec:
  selector:
    app: app
  ports:
    - port: 80
`,
		"app/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  level: info\n",
	})
}

const blueprintDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 2 # for each cluster
  selector:
    matchLabels:
      app: app
  template:
    metadata:
      labels:
        app: app
    spec:
      containers:
        - name: app
          image: IMAGE
          ports:
            - containerPort: 8080
`

// repository serves a repository and makes its objects. Nobody fetches it as a source.
func (r *packagesRun) repository(name string, every time.Duration, files upstream.Files) (*upstream.Repository, error) {
	made, err := upstream.NewRepository(r.ctx, r.host.dir, name)
	if err != nil {
		return nil, err
	}
	if err := made.AcceptPushes(); err != nil {
		return nil, err
	}
	if files != nil {
		if _, err := made.Commit("main", "begin", files); err != nil {
			return nil, err
		}
	}
	header := metav1.ObjectMeta{Namespace: packagesNamespace, Name: name}
	err = r.client.Create(r.ctx, &sourcev1.GitRepository{ObjectMeta: header, Spec: sourcev1.GitRepositorySpec{
		URL: r.host.http.URL(name), Interval: metav1.Duration{Duration: time.Hour}, Suspend: true,
	}})
	if err == nil {
		err = r.client.Create(r.ctx, &packagesv1.Repository{ObjectMeta: header, Spec: packagesv1.RepositorySpec{
			GitRepositoryRef: packagesv1.LocalReference{Name: name}, Interval: &metav1.Duration{Duration: every},
		}})
	}
	return made, err
}

// publish tags what the repository has on its branch.
func publishAs(made *upstream.Repository, tag string, files upstream.Files) error {
	commit, err := made.Commit("main", tag, files)
	if err != nil {
		return err
	}
	_, err = made.Tag(tag, commit, false)
	return err
}

// fanOut makes variants of one package, and follows a new revision of it.
func (r *packagesRun) fanOut() error {
	blueprints, err := r.repository(blueprintsName, r.packages.every, nil)
	if err != nil {
		return err
	}
	if err := publishAs(blueprints, blueprintName+"/v1", blueprint("example.com/app:1.0.0")); err != nil {
		return err
	}
	for i := range r.packages.into {
		if _, err := r.repository(clusterName(i), r.packages.every, upstream.Text(map[string]string{"README.md": "a cluster\n"})); err != nil {
			return err
		}
	}
	if err := r.synced(1 + r.packages.into); err != nil {
		return err
	}
	name := fmt.Sprintf("%d variants in %d repositories", r.packages.variants, r.packages.into)
	if err := r.drafts(name+", all drafts", "v1", r.createVariants); err != nil {
		return err
	}
	if err := r.drafts(name+", a new revision", "v2", func() error {
		if err := publishAs(blueprints, blueprintName+"/v2", blueprint("example.com/app:2.0.0")); err != nil {
			return err
		}
		return r.ask(blueprintsName)
	}); err != nil {
		return err
	}
	return r.atRest()
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%02d", i) }

func (r *packagesRun) createVariants() error {
	for i := range r.packages.variants {
		variant := &packagesv1.PackageVariant{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesNamespace, Name: fmt.Sprintf("app-%04d", i)},
			Spec: packagesv1.PackageVariantSpec{
				Upstream:   packagesv1.Upstream{Repo: blueprintsName, Package: blueprintName},
				Downstream: packagesv1.Downstream{Repo: clusterName(i % r.packages.into), Package: fmt.Sprintf("app-%04d", i)},
				Namespace:  fmt.Sprintf("app-%04d", i), Labels: map[string]string{"cluster": clusterName(i % r.packages.into)},
				PackageContext: &packagesv1.PackageContext{Data: map[string]string{"region": fmt.Sprintf("region-%d", i%7)}},
			},
		}
		if err := r.client.Create(r.ctx, variant); err != nil {
			return err
		}
	}
	return nil
}

// drafts measures how long it takes until all drafts are of the revision.
func (r *packagesRun) drafts(work, revision string, begin func() error) error {
	before, began := r.traffic(), time.Now()
	cost, err := r.spent(r.ctx, func() (time.Duration, error) {
		if err := begin(); err != nil {
			return 0, err
		}
		drafted := map[string]bool{}
		err := follow(r.ctx, r.fleet, &packagesv1.PackageVariantList{}, func(obj *packagesv1.PackageVariant) bool {
			if conditions.IsReady(obj) && obj.Status.Upstream != nil && obj.Status.Upstream.Revision == revision && obj.Status.Change != nil {
				drafted[obj.Name] = true
			}
			return len(drafted) == r.packages.variants
		}, client.InNamespace(packagesNamespace))
		if err != nil {
			return 0, fmt.Errorf("%d of %d variants have drafts of %s: %w", len(drafted), r.packages.variants, revision, err)
		}
		return time.Since(began), nil
	})
	if err != nil {
		return err
	}
	after := r.traffic()
	fetches, pushes := after.most(before, upstream.Fetch), after.most(before, upstream.Push)
	resident, peak := r.memory()
	r.target(work, fmt.Sprintf("at most %s, %d fetches and %d pushes a repository, %s", targetAllDrafts, targetVariantFetches, targetVariantPushes, bytesText(targetVariantsMemory)),
		cost.wall <= targetAllDrafts && fetches <= targetVariantFetches && pushes <= targetVariantPushes && peak <= targetVariantsMemory,
		"%s, %s of CPU, at most %d fetches and %d pushes a repository, %d API requests, %s resident and %s at most",
		timeText(cost.wall), timeText(cost.cpu), fetches, pushes, cost.all(), bytesText(resident), bytesText(peak))
	return nil
}

// atRest watches all of it while nothing happens.
func (r *packagesRun) atRest() error {
	before := r.traffic()
	busy, rounds, err := r.fleet.window(r.ctx, 3*r.packages.every, `controller_runtime_reconcile_total{controller="packagerepository"`)
	if err != nil {
		return err
	}
	after := r.traffic()
	lists := after.sum(before, upstream.LsRefs)
	fetches := after.sum(before, upstream.Fetch)
	r.target("an interval in which nothing happens", "one ls-refs a repository, no API write",
		lists <= rounds && fetches == 0 && busy.all() == 0,
		"%d rounds, %d ls-refs, %d fetches, %d API requests, %s of CPU each", rounds, lists, fetches, busy.all(), (busy.cpu / time.Duration(max(1, rounds))).Round(time.Microsecond))
	return nil
}

// large reads a repository with many packages, and then one more commit of it.
func (r *packagesRun) large() error {
	made, err := r.repository("catalogue", time.Hour, nil)
	if err != nil {
		return err
	}
	if _, err := made.RawInput(catalogueStream(r.packages.catalogue, r.packages.revisions), "fast-import", "--quiet"); err != nil {
		return err
	}
	name := fmt.Sprintf("%d packages, %d tags", r.packages.catalogue, r.packages.catalogue*r.packages.revisions)
	cold, err := r.sync("catalogue", func() error { return nil })
	if err != nil {
		return err
	}
	if err := r.settle(r.ctx); err != nil {
		return err
	}
	warm, err := r.sync("catalogue", func() error {
		_, err := made.Commit("main", "one more", upstream.Text(map[string]string{"pkg-0001/more.yaml": "a: 1\n"}))
		return err
	})
	if err != nil {
		return err
	}
	still, err := r.sync("catalogue", func() error { return nil })
	if err != nil {
		return err
	}
	r.target(name+", synced warm", fmt.Sprintf("at most %s", targetWarmSync), warm <= targetWarmSync,
		"%s with a new commit, %s with nothing new; from the start %s", timeText(warm), timeText(still), timeText(cold))
	return nil
}

// sync asks for a round of the repository, and tells how long it takes.
func (r *packagesRun) sync(name string, change func() error) (time.Duration, error) {
	if err := change(); err != nil {
		return 0, err
	}
	began := time.Now()
	token := began.Format(time.RFC3339Nano)
	if err := r.askFor(name, token); err != nil {
		return 0, err
	}
	err := follow(r.ctx, r.fleet, &packagesv1.RepositoryList{}, func(obj *packagesv1.Repository) bool {
		return obj.Name == name && conditions.IsReady(obj) && obj.Status.LastHandledReconcileAt == token
	}, client.InNamespace(packagesNamespace))
	return time.Since(began), err
}

func (r *packagesRun) ask(name string) error {
	return r.askFor(name, time.Now().Format(time.RFC3339Nano))
}

func (r *packagesRun) askFor(name, token string) error {
	object := &packagesv1.Repository{ObjectMeta: metav1.ObjectMeta{Namespace: packagesNamespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, token)
	return r.client.Patch(r.ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// synced waits until so many repositories are read.
func (r *packagesRun) synced(repositories int) error {
	ready := map[string]bool{}
	return follow(r.ctx, r.fleet, &packagesv1.RepositoryList{}, func(obj *packagesv1.Repository) bool {
		if conditions.IsReady(obj) {
			ready[obj.Name] = true
		}
		return len(ready) == repositories
	}, client.InNamespace(packagesNamespace))
}

// traffic is what the Git server was asked, by repository and kind.
type traffic map[string]map[upstream.Kind]int

func (r *packagesRun) traffic() traffic {
	t := traffic{}
	for _, request := range r.host.http.Requests() {
		name, _, _ := strings.Cut(strings.TrimPrefix(request.URI, "/"), "/")
		if t[name] == nil {
			t[name] = map[upstream.Kind]int{}
		}
		t[name][request.Kind]++
	}
	return t
}

// most is what one repository was asked most since then.
func (t traffic) most(before traffic, kind upstream.Kind) (most int) {
	for name := range t {
		most = max(most, t[name][kind]-before[name][kind])
	}
	return most
}

// sum is what all were asked since then.
func (t traffic) sum(before traffic, kind upstream.Kind) (sum int) {
	for name := range t {
		sum += t[name][kind] - before[name][kind]
	}
	return sum
}

// catalogueStream makes a repository in which each revision of each package is a commit with a tag.
func catalogueStream(packages, revisions int) []byte {
	var s strings.Builder
	mark, from := 0, ""
	for revision := 1; revision <= revisions; revision++ {
		for i := range packages {
			name := fmt.Sprintf("pkg-%04d", i)
			kptfile := fmt.Sprintf("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: %s\n", name)
			manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  revision: \"%d\"\n", name, revision)
			mark++
			fmt.Fprintf(&s, "commit refs/heads/main\nmark :%d\ncommitter Bench <bench@example.com> %d +0000\ndata 7\npublish\n%s", mark, 1_700_000_000+mark, from)
			for path, text := range map[string]string{"Kptfile": kptfile, "configmap.yaml": manifest} {
				fmt.Fprintf(&s, "M 100644 inline %s/%s\ndata %d\n%s\n", name, path, len(text), text)
			}
			fmt.Fprintf(&s, "\nreset refs/tags/%s/v%d\nfrom :%d\n\n", name, revision, mark)
			from = fmt.Sprintf("from :%d\n", mark)
		}
	}
	return []byte(s.String())
}
