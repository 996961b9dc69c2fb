package e2e

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
)

// kubectl runs the control plane's own kubectl in the scene's namespace.
func (s *scene) kubectl(args ...string) string {
	s.t.Helper()
	assets, err := testenv.Assets()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(assets, "kubectl"),
		append([]string{"--kubeconfig", env.Kubeconfig, "--namespace", s.namespace}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// newAppAndBroken is a scene with two GitRepositories of one URL: app is ready at the commit, and broken fails.
func newAppAndBroken(t *testing.T) (s *scene, url, commit string) {
	t.Helper()
	s = newRunning(t)
	commit = s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	url = s.upstream.HTTP(upstream.HTTPOptions{}).URL("app")
	s.create("app", url)
	s.create("broken", url, ref(sourcev1.GitRepositoryRef{Branch: "none"}))
	s.ready("app", mainAt(commit))
	s.failing("broken", fetchFailed("refs/heads/none"))
	return s, url, commit
}

func TestKubectlShowsTheColumnsOfFlux(t *testing.T) {
	t.Parallel()
	s, url, commit := newAppAndBroken(t)

	lines := strings.Split(strings.TrimSpace(s.kubectl("get", "gitrepositories")), "\n")
	if len(lines) != 3 {
		t.Fatalf("kubectl get prints %q", lines)
	}
	if diff := cmp.Diff([]string{"NAME", "URL", "AGE", "READY", "STATUS"}, strings.Fields(lines[0])); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for line, want := range map[int][]string{
		1: {"app", url, "True", "stored artifact for revision '" + mainAt(commit) + "'"},
		2: {"broken", url, "False", "refs/heads/none"},
	} {
		for _, part := range want {
			if !strings.Contains(lines[line], part) {
				t.Errorf("line %q lacks %q", lines[line], part)
			}
		}
	}
	for _, name := range []string{"gitrepo", "fluxcd", "fluxcd-sources", "all"} {
		if out := s.kubectl("get", name, "--output=name"); !strings.Contains(out, "gitrepository.source.toolkit.fluxcd.io/app") {
			t.Errorf("kubectl get %s prints %q", name, out)
		}
	}
	s.kubectl("wait", "--for=condition=Ready", "--timeout=4m", "gitrepository/app")
}

func TestAnArtifactIsTheTreeUnderTheIgnoreRules(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	tree := upstream.Files{
		"README.md":             {Content: "# app\n"},
		"run.sh":                {Mode: upstream.Executable, Content: "#!/bin/sh\n"},
		"link":                  {Mode: upstream.Symlink, Content: "deploy/app.yaml"},
		"deploy/app.yaml":       {Content: "replicas: 1\n"},
		"deploy/secret.txt":     {Content: "kept out\n"},
		"deploy/sub/secret.txt": {Content: "taken back in\n"},
		"docs/guide.md":         {Content: "kept out\n"},
		"docs/logo.png":         {Content: "kept out\n"},
		"logo.png":              {Content: "kept out by default\n"},
		".github/ci.yaml":       {Content: "kept out by default\n"},
		".gitignore":            {Content: "kept out always\n"},
		"name with ünïcode/a b": {Content: "odd names are names\n"},
	}
	commit := repository.Commit("main", "Tree", tree)
	withRules := upstream.Files{".sourceignore": {Content: "docs/\n*.txt\n"}, "deploy/sub/.sourceignore": {Content: "!secret.txt\n"}}
	repository.Commit("ruled", "Tree", tree)
	ruled := repository.Commit("ruled", "Rules", withRules)
	url := s.upstream.HTTP(upstream.HTTPOptions{}).URL("app")
	ignore := func(rules string) change { return func(spec *sourcev1.GitRepositorySpec) { spec.Ignore = &rules } }

	cases := map[string]struct {
		reason string
		branch string
		commit string
		change change
		// out is what does not get into the artifact; everything else that git lists does.
		out []string
	}{
		"defaults": {"Without rules, files of version control, images and CI stay out; links do under any rules.", "main", commit, every(1e12), []string{"link", ".gitignore", "docs/logo.png", "logo.png", ".github/ci.yaml"}},
		"empty":    {"An empty rule is a rule, in place of the defaults.", "main", commit, ignore(""), []string{"link", ".gitignore", "docs/logo.png", "logo.png", ".github/ci.yaml"}},
		"in-spec":  {"The spec's rules take the place of the defaults.", "main", commit, ignore("/docs\n*.sh\n"), []string{"link", ".gitignore", "docs/guide.md", "docs/logo.png", "run.sh"}},
		"in-tree":  {"Rules in a folder count there.", "ruled", ruled, every(1e12), []string{"link", ".gitignore", "docs/guide.md", "docs/logo.png", "deploy/secret.txt"}},
		"last":     {"The spec has the last word.", "ruled", ruled, ignore("!docs/guide.md\n!deploy/secret.txt\n"), []string{"link", ".gitignore", "docs", "docs/logo.png"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			s.create(name, url, ref(sourcev1.GitRepositoryRef{Branch: c.branch}), c.change)
			body := s.download(s.ready(name, c.branch+"@sha1:"+c.commit).Status.Artifact)
			want := repository.Tree(c.commit)
			for _, file := range c.out {
				delete(want, file)
			}
			got, err := untar(body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("contents (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(listing(want, c.out), tarList(t, body)); diff != "" {
				t.Errorf("tar tzf (-want +got):\n%s", diff)
			}
		})
	}
}

// listing is the names of files and of the folders above them, in order. A folder that is kept out has no entry of its own,
// even when a file in it is taken back in.
func listing(files upstream.Files, out []string) []string {
	names := map[string]bool{}
	for name := range files {
		for ; !names[name]; name = path.Dir(name) {
			names[name] = true
		}
	}
	for _, name := range out {
		delete(names, name)
	}
	return slices.Sorted(maps.Keys(names))
}

// tarList is what the tar program lists.
func tarList(t *testing.T, body []byte) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tar", "--quoting-style=literal", "-tzf", "-")
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tar: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(names)
	return names
}
