package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/testenv"
)

// commandsPlan is how much the commands have to read.
type commandsPlan struct {
	// listed are the installations that get lists, chosen the templates that why chooses from, and moved the installations that
	// impact chooses for.
	listed, chosen, moved int
	// members are those of the installation that is drawn, and streams the pages that are open.
	members, streams int
}

// commandsSite is a cluster with objects that no controller works on.
type commandsSite struct {
	env             *testenv.Env
	client          client.Client
	sluice, kubectl string
	kubeconfig      string
	home            string
	// paintedFew and drawnFew are how long pages of few objects take.
	paintedFew, drawnFew time.Duration
}

// The users of the commands in the audit log, and the namespaces.
const (
	commandsUser    = "commands"
	commandsTeam    = "team"
	commandsCatalog = "sluice-system"
)

// compareCommands measures commands beside kubectl's, and what they ask of the API server.
func compareCommands(ctx context.Context, out io.Writer, dir string, p plan) (err error) {
	fmt.Fprintln(out, "starting etcd and kube-apiserver with an audit log; no controller runs")
	s, err := startCommands(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.env.Stop()) }()
	var targets []target
	for _, part := range []func(context.Context, plan) ([]target, error){s.versions, s.pagesOfFew, s.lists, s.explains, s.impacts, s.pagesOfMany} {
		found, err := part(ctx, p)
		if err != nil {
			return err
		}
		targets = append(targets, found...)
	}
	return printVerdicts(out, targets)
}

func startCommands(ctx context.Context, dir string) (*commandsSite, error) {
	s := &commandsSite{sluice: filepath.Join(dir, "sluice"), home: filepath.Join(dir, "home")}
	assets, err := testenv.Assets()
	if err != nil {
		return nil, err
	}
	s.kubectl = filepath.Join(assets, "kubectl")
	if _, err := testenv.Build(ctx, dir); err != nil {
		return nil, err
	}
	if s.env, err = testenv.Start(testenv.Options{Audit: true}); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(s.env.Config)
	config.QPS = -1
	s.client, err = client.New(config, client.Options{Scheme: s.env.Scheme})
	if err == nil {
		s.kubeconfig, err = s.env.KubeconfigAs(commandsUser, "system:masters")
	}
	for _, namespace := range []string{commandsTeam, commandsCatalog} {
		if err == nil {
			err = s.client.Create(ctx, testenv.Namespace(namespace))
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.env.Stop())
	}
	return s, nil
}

// command is a program with kubectl's cache in a folder of its own.
func (s *commandsSite) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	made := exec.CommandContext(ctx, program, args...)
	made.Env = append(os.Environ(), "HOME="+s.home, "KUBECONFIG="+s.kubeconfig, "LC_ALL=C.UTF-8")
	return made
}

// run runs a program, and counts its requests. What it prints is thrown away.
func (s *commandsSite) run(ctx context.Context, program string, args ...string) (usage, int, error) {
	before, err := s.env.Requests(commandsUser)
	if err != nil {
		return usage{}, 0, err
	}
	spent, err := measure(s.command(ctx, program, args...))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		err = nil // The answer is no.
	}
	if err != nil {
		return usage{}, 0, err
	}
	after, err := s.env.Requests(commandsUser)
	return spent, len(after) - len(before), err
}

// beside runs both programs in turn, and gives the medians of their wall clocks and how many requests ours makes.
func (s *commandsSite) beside(ctx context.Context, p plan, cold bool, ours, theirs []string) (mine, other time.Duration, requests int, err error) {
	run := func(program string, args []string) (usage, int, error) {
		if cold {
			if err := os.RemoveAll(s.home); err != nil {
				return usage{}, 0, err
			}
		}
		return s.run(ctx, program, args...)
	}
	var samples []sample
	for range 2*p.rounds + 1 {
		var one sample
		if one.theirs, _, err = run(s.kubectl, theirs); err != nil {
			return 0, 0, 0, err
		}
		if one.ours, requests, err = run(s.sluice, ours); err != nil {
			return 0, 0, 0, err
		}
		samples = append(samples, one)
	}
	return medians(samples, sample.our).wall, medians(samples, sample.their).wall, requests, nil
}

func (s *commandsSite) versions(ctx context.Context, p plan) ([]target, error) {
	ours, theirs, _, err := s.beside(ctx, p, false, []string{"version", "--client"}, []string{"version", "--client"})
	if err != nil {
		return nil, err
	}
	return []target{ratioTarget("version --client", 1.5, ours, theirs)}, nil
}

func ratioTarget(work string, most float64, ours, theirs time.Duration) target {
	ratio := float64(ours) / float64(theirs)
	return target{work, fmt.Sprintf("at most %.1f of kubectl's wall clock", most), fmt.Sprintf("%.2f: %.3f s and %.3f s", ratio, ours.Seconds(), theirs.Seconds()), judge(ratio <= most)}
}

func (s *commandsSite) lists(ctx context.Context, p plan) ([]target, error) {
	if err := s.installations(ctx, "listed", p.commands.listed-few); err != nil {
		return nil, err
	}
	args := []string{"get", "moduleinstallations", "-A"}
	warm, theirs, requests, err := s.beside(ctx, p, false, args, args)
	if err != nil {
		return nil, err
	}
	cold, coldTheirs, _, err := s.beside(ctx, p, true, args, args)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("get mi -A, %d objects", p.commands.listed)
	most := 1 + (p.commands.listed-1)/500
	return []target{
		ratioTarget(name+", kubectl's cache warm", 1.5, warm, theirs), ratioTarget(name+", cold", 1, cold, coldTheirs),
		{name, fmt.Sprintf("%d requests", most), fmt.Sprint(requests), judge(requests <= most)},
	}, nil
}

func (s *commandsSite) explains(ctx context.Context, p plan) ([]target, error) {
	for i := range p.commands.chosen {
		if err := s.template(ctx, fmt.Sprintf("1.%d.0", i)); err != nil {
			return nil, err
		}
	}
	_, requests, err := s.run(ctx, s.sluice, "why", "listed-0", "-n", commandsTeam, "--version", "1.0.0")
	if err != nil {
		return nil, err
	}
	return []target{{fmt.Sprintf("why, %d templates", p.commands.chosen), "at most 4 requests", fmt.Sprint(requests), judge(requests <= 4)}}, nil
}

func (s *commandsSite) impacts(ctx context.Context, p plan) ([]target, error) {
	if err := s.installations(ctx, "moved", max(0, p.commands.moved-p.commands.listed)); err != nil {
		return nil, err
	}
	file := filepath.Join(filepath.Dir(s.sluice), "edited.yaml")
	text := "apiVersion: modules.sluice.dev/v1alpha1\nkind: ModuleTemplate\nmetadata: {name: foo-9.0.0, namespace: " + commandsCatalog + "}\n" +
		"spec: {moduleName: foo, version: 9.0.0, artifact: {oci: {repository: 'oci://registry.example.com/foo', digest: 'sha256:" + strings.Repeat("9", 64) + "'}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	lists, _, err := s.run(ctx, s.sluice, "get", "moduleinstallations", "-A", "-o", "name")
	if err != nil {
		return nil, err
	}
	whole, requests, err := s.run(ctx, s.sluice, "impact", "-f", file, "-o", "json")
	if err != nil {
		return nil, err
	}
	name, beyond := fmt.Sprintf("impact, %d installations", p.commands.moved), max(0, whole.wall-lists.wall)
	return []target{
		{name, "at most 2 s more than to list them", fmt.Sprintf("%.2f s, %.2f s for the list, %d requests", whole.wall.Seconds(), lists.wall.Seconds(), requests), judge(beyond <= 2*time.Second)},
		{name, "at most 250 MiB", bytesText(whole.peak), judge(whole.peak <= 250<<20)},
	}, nil
}

// installations makes so many, each of which runs 1.0.0 and follows the latest release.
func (s *commandsSite) installations(ctx context.Context, name string, count int) error {
	for i := range count {
		obj := &modulesv1.ModuleInstallation{}
		obj.Namespace, obj.Name = commandsTeam, fmt.Sprintf("%s-%d", name, i)
		obj.Spec.Module = modulesv1.ModuleRequest{Name: "foo", Latest: true}
		if err := s.client.Create(ctx, obj); err != nil {
			return err
		}
		release := &modulesv1.Release{Module: "foo", Version: "1.0.0", Template: "foo-1.0.0", Namespace: commandsCatalog, Content: contentOf("1.0.0")}
		obj.Status.ObservedGeneration, obj.Status.Current, obj.Status.Desired = obj.Generation, release, release
		obj.Status.Resolution = &modulesv1.Resolution{Module: "foo", Catalog: modulesv1.CatalogSystem, Namespace: commandsCatalog, SelectedBy: "latest"}
		if err := s.client.Status().Update(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (s *commandsSite) template(ctx context.Context, version string) error {
	obj := &modulesv1.ModuleTemplate{}
	obj.Namespace, obj.Name = commandsCatalog, "foo-"+version
	obj.Spec = modulesv1.ModuleTemplateSpec{ModuleName: "foo", Version: version, Artifact: modulesv1.TemplateArtifact{
		OCI: &modulesv1.OCIArtifact{Repository: "oci://registry.example.com/foo", Digest: contentOf(version)},
	}}
	return s.client.Create(ctx, obj)
}

// contentOf is a digest that tells the version.
func contentOf(version string) string { return fmt.Sprintf("sha256:%064x", version) }
