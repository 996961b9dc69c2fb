package packages_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/tests/upstream"
)

// place is where a package is kept.
type place struct{ repository, folder string }

func (p place) String() string { return p.repository + "/" + p.folder }

// branches are those of the Repositories of the Git repository cluster.
var branches = map[string]string{"dev": "main", "prod": "prod"}

// kept is a variant as people want it.
type kept struct {
	at               place
	upstream, follow string // the Repository, and the package in it
	policy           packagesv1.ApprovalPolicy
	edit             string
	namespace        string // that all objects of the package get
	isSuspended      bool
}

// sandbox is a plane on which one sequence is played: a Git repository of blueprints, and one with two branches, each a Repository.
type sandbox struct {
	*plane

	told []string

	blueprints, cluster *upstream.Edited
	read, readUp        *bareRepository
	called              map[string]map[string]string // the refs when a webhook was called last, by repository
	ledger              *ledger

	variants  map[string]*kept
	fleet     *baseline
	suspended map[string]bool // Repositories
	tokens    int
	// isHasty says that the set does not wait for targets that are gone.
	isHasty  bool
	released map[string]int // by blueprint
}

// newSandbox makes the objects and repositories that a sequence begins with.
func newSandbox(p *plane, isHasty bool) *sandbox {
	s := &sandbox{plane: p, isHasty: isHasty, ledger: newLedger(), fleet: &baseline{excused: map[string]bool{}}, suspended: map[string]bool{}, released: map[string]int{}, called: map[string]map[string]string{}}
	s.blueprints, s.cluster = p.upstreams.Repository("blueprints.git"), p.upstreams.Repository("cluster.git")
	for _, repository := range []*upstream.Edited{s.blueprints, s.cluster} {
		repository.AcceptPushes()
		s.configure(filepath.Join(repository.Dir(), "config"))
	}
	s.read, s.readUp = readBare(s.cluster.Dir()), readBare(s.blueprints.Dir())
	for _, branch := range branches {
		s.ledger.known[s.push(s.cluster, "refs/heads/"+branch, "", map[string]string{"README.md": branch + "\n"})] = true
	}
	for _, name := range []string{"app", "base", "web"} {
		s.release(name, 0)
	}
	s.variants = map[string]*kept{
		"prod-app": {at: place{"prod", "app"}, upstream: "blueprints", follow: "app", policy: packagesv1.ApprovalInitial},
		"edge":     {at: place{"dev", "edge"}, upstream: "blueprints", follow: "base", policy: packagesv1.ApprovalAlways, namespace: "edge"},
		"edge-web": {at: place{"dev", "edge/web"}, upstream: "blueprints", follow: "web", policy: packagesv1.ApprovalInitial},
		"copy":     {at: place{"dev", "copy"}, upstream: "prod", follow: "app", policy: packagesv1.ApprovalAlways},
	}
	p.mayRead()
	p.create(p.source("blueprints", p.server), p.source("cluster", p.server), s.repositoryObject("blueprints"))
	for _, object := range s.wanted() {
		p.create(object)
	}
	return s
}

// configure has git keep each object in a file of its own, and start no maintenance after a push.
func (s *sandbox) configure(file string) {
	before, err := os.ReadFile(file)
	s.check(err)
	s.check(os.WriteFile(file, append(before, "[receive]\n\tunpackLimit = 100000\n\tautogc = false\n[fastimport]\n\tunpackLimit = 100000\n"...), 0o600))
}

// wanted are all objects as people want them, apart from the blueprints' Repository.
func (s *sandbox) wanted() []client.Object {
	objects := []client.Object{s.repositoryObject("dev"), s.repositoryObject("prod")}
	for _, name := range slices.Sorted(maps.Keys(s.variants)) {
		objects = append(objects, s.variantObject(name))
	}
	for _, name := range fleetPlaces {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"fleet": "yes"}}})
	}
	return append(objects, s.setObject())
}

func (s *sandbox) repositoryObject(name string) *packagesv1.Repository {
	made := s.packages(name)
	if branch := branches[name]; branch != "" {
		made.Spec.GitRepositoryRef.Name, made.Spec.Branch = "cluster", branch
		made.Labels = map[string]string{"member": "yes"}
	}
	made.Spec.Suspend = s.suspended[name]
	return made
}

func (s *sandbox) variantObject(name string) *packagesv1.PackageVariant {
	v := s.variants[name]
	made := &packagesv1.PackageVariant{ObjectMeta: s.meta(name), Spec: packagesv1.PackageVariantSpec{
		Upstream:   packagesv1.Upstream{Repo: v.upstream, Package: v.follow},
		Downstream: packagesv1.Downstream{Repo: v.at.repository, Package: v.at.folder},
		Approval:   &packagesv1.Approval{Policy: v.policy}, Suspend: v.isSuspended,
		AdoptionPolicy: packagesv1.AdoptExisting,
	}}
	if v.namespace != "" {
		made.Spec.Namespace = v.namespace
	}
	if v.edit != "" {
		made.Spec.Labels = map[string]string{"edit": v.edit}
	}
	return made
}

// fleetPlaces are the objects that are targets of the set, and the packages in dev that it keeps for them.
var fleetPlaces = []string{"f1", "f2"}

// setObject is the set: a package for each of these, whose changes people approve, and one in each Repository that is a member.
func (s *sandbox) setObject() *packagesv1.PackageVariantSet {
	made := &packagesv1.PackageVariantSet{ObjectMeta: s.meta("fleet"), Spec: packagesv1.PackageVariantSetSpec{
		Upstream: packagesv1.Upstream{Repo: "blueprints", Package: "base"}, ServiceAccountName: "reader",
		Targets: []packagesv1.Target{
			{
				ObjectSelector: &packagesv1.ObjectSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "yes"}}},
				Template:       &packagesv1.VariantTemplate{Downstream: &packagesv1.DownstreamTemplate{Repo: "dev", PackageExpr: "target.name"}, AdoptionPolicy: packagesv1.AdoptExisting},
			},
			{
				RepositorySelector: &metav1.LabelSelector{MatchLabels: map[string]string{"member": "yes"}},
				Template: &packagesv1.VariantTemplate{
					Downstream: &packagesv1.DownstreamTemplate{Package: "shared"}, AdoptionPolicy: packagesv1.AdoptExisting,
					Approval: &packagesv1.Approval{Policy: packagesv1.ApprovalInitial},
				},
			},
		},
	}}
	if s.isHasty {
		made.Spec.DeletionGuard = hasty(packagesv1.DefaultGuardPercent)
	}
	return made
}

// token is a new value.
func (s *sandbox) token(author string) string {
	s.tokens++
	return fmt.Sprintf("%s-%d", author, s.tokens)
}

// release publishes the next revision of a blueprint. The first key is another one each time, and of the others one.
func (s *sandbox) release(name string, chosen int) {
	tip := s.tipOf(s.readUp, "refs/heads/main")
	files := map[string]string{}
	values := map[string]string{}
	if s.released[name]++; s.released[name] > 1 {
		values = settings(s.textAt(s.readUp, tip, name+"/settings.yaml"))
	} else {
		files[name+"/Kptfile"] = strings.ReplaceAll(kptfile, "app", name)
		files[name+"/extra.yaml"] = configMap("extra", map[string]string{"of": name})
		for key := range 4 {
			values[fmt.Sprintf("u%d", key)] = s.token("up")
		}
	}
	values["u0"], values[fmt.Sprintf("u%d", chosen%4)] = s.token("up"), s.token("up")
	files[name+"/settings.yaml"] = configMap("settings", values)
	commit := s.push(s.blueprints, "refs/heads/main", tip, files)
	s.moveRefs(s.blueprints, "create", fmt.Sprintf("refs/tags/%s/v%d", name, s.released[name]), commit)
}

// configMap is a manifest with the values.
func configMap(name string, values map[string]string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n", name)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "  %s: %s\n", key, values[key])
	}
	return text.String()
}

// names are those of the variants that people keep.
func (s *sandbox) names() []string { return slices.Sorted(maps.Keys(s.variants)) }

// other is the place that a variant moves to from there, or back.
func (p place) other() place {
	const moved = "moved-"
	if back, isMoved := strings.CutPrefix(p.folder, moved); isMoved {
		return place{p.repository, back}
	}
	return place{p.repository, moved + p.folder}
}
