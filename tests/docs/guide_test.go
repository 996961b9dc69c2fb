package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/docs"
	"sluice.dev/sluice/tests/testenv"
)

var (
	digests    = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	registryAt = regexp.MustCompile(`(?m)^Registry: (\S+) `)
	kubeconfig = regexp.MustCompile(`(?m)export KUBECONFIG=(\S+)`)
	gitAt      = regexp.MustCompile(`(?m)^  git clone (\S+)/app\.git$`)
)

// reader follows a page at a terminal.
type reader struct {
	t      *testing.T
	folder string
	env    []string
	// instead is what the page tells the reader to replace, and by what.
	instead []string
}

// TestTheGuidesRun follows the guides against what make up leaves running: every block, in its order, with the replacements that
// the pages ask for and no other.
func TestTheGuidesRun(t *testing.T) {
	t.Parallel()
	up := &reader{t: t, folder: t.TempDir()}
	up.up()
	t.Run("Modules", func(t *testing.T) {
		t.Parallel()
		up.another(t).publishesModules()
	})
	t.Run("Clusters", func(t *testing.T) {
		t.Parallel()
		r := up.another(t)
		guide := page(t, "docs/forty-clusters.md")
		for _, block := range guide.Blocks("sh", "yaml") {
			r.follow(guide, block)
		}
	})
}

// another reads another page, in a folder of its own.
func (r *reader) another(t *testing.T) *reader {
	t.Helper()
	return &reader{t: t, folder: t.TempDir(), env: r.env, instead: slices.Clone(r.instead)}
}

// publishesModules follows docs/publish-a-module.md, where digests are to be replaced by those that are printed on the way.
func (r *reader) publishesModules() {
	t := r.t
	t.Helper()
	guide := page(t, "docs/publish-a-module.md")
	var named, pushed []string
	for _, block := range guide.Blocks("sh", "yaml") {
		for _, digest := range digests.FindAllString(block.Text, -1) {
			if !slices.Contains(named, digest) {
				named = append(named, digest)
			}
		}
	}
	for _, block := range guide.Blocks("sh", "yaml") {
		out := r.follow(guide, block)
		if !strings.Contains(block.Text, "sluice push") {
			continue
		}
		if pushed = append(pushed, digests.FindString(out)); len(pushed) == len(named) {
			for i, digest := range named {
				r.instead = append(r.instead, digest, pushed[i])
			}
		}
	}
	if len(pushed) != len(named) || len(named) != 2 {
		t.Errorf("%d releases are pushed, and %d named", len(pushed), len(named))
	}
	left := r.run("kubectl -n team-a get moduleinstallations,inventories,cronjobs,configmaps -o name | grep -v kube-root-ca.crt || true")
	if strings.TrimSpace(left) != "" {
		t.Errorf("the module is removed in the end, and this is left:\n%s", left)
	}
}

// up does what make up does, and takes note of what it prints.
func (r *reader) up() {
	r.t.Helper()
	if err := testenv.DependOnSources(); err != nil {
		r.t.Fatal(err)
	}
	assets, err := testenv.Assets()
	if err != nil {
		r.t.Fatal(err)
	}
	bin := filepath.Join(r.folder, "bin")
	builds, err := exec.CommandContext(r.t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	// Its state goes to a folder of the test's own: somebody may have one running.
	r.env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "GOCACHE="+strings.TrimSpace(string(builds)),
		"XDG_CACHE_HOME="+filepath.Join(r.folder, "cache"), "PATH="+strings.Join([]string{assets, os.Getenv("PATH"), bin}, ":"))
	for program, from := range map[string]string{"demo": "./tests/demo", "sluice": "."} {
		r.in(testenv.Root(), "go build -o "+filepath.Join(bin, program)+" "+from)
	}
	printed := r.in(testenv.Root(), filepath.Join(bin, "demo")+" -keep")
	r.t.Cleanup(func() {
		down := exec.CommandContext(context.WithoutCancel(r.t.Context()), filepath.Join(bin, "demo"), "-down")
		down.Env = r.env
		if out, err := down.CombinedOutput(); err != nil {
			r.t.Errorf("make down: %v: %s", err, out)
		}
	})
	for _, noise := range []string{"go: downloading", "SetLogger", "goroutine "} {
		if strings.Contains(printed, noise) {
			r.t.Errorf("make up prints %q:\n%s", noise, printed)
		}
	}
	registry, config, git := registryAt.FindStringSubmatch(printed), kubeconfig.FindStringSubmatch(printed), gitAt.FindStringSubmatch(printed)
	if registry == nil || config == nil || git == nil {
		r.t.Fatalf("make up names no registry, no kubeconfig, or no repository:\n%s", printed)
	}
	r.env = append(r.env, "KUBECONFIG="+config[1], "HOME="+r.folder)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		r.env = append(r.env, "GIT_"+who+"_NAME=Platform", "GIT_"+who+"_EMAIL=platform@example.com")
	}
	r.instead = []string{"registry.example.com", registry[1], "https://git.example.com/blueprints", git[1] + "/blueprints", "https://git.example.com/clusters", git[1] + "/clusters"}
}

// follow does what a block says: a command is run, and an object applied.
func (r *reader) follow(guide docs.Page, block docs.Block) string {
	r.t.Helper()
	r.t.Logf("%s:%d", guide.Path, block.Line)
	text := strings.NewReplacer(r.instead...).Replace(block.Text)
	if block.Info == "yaml" {
		return r.run("kubectl apply -f - <<'EOF'\n" + text + "EOF\n")
	}
	return r.run(text)
}

func (r *reader) run(script string) string {
	r.t.Helper()
	return r.in(r.folder, script)
}

// in runs a script in a folder, and returns what it printed. It has to end well.
func (r *reader) in(folder, script string) string {
	r.t.Helper()
	shell := exec.CommandContext(r.t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	shell.Dir, shell.Env = folder, r.env
	out, err := shell.CombinedOutput()
	r.t.Logf("$ %s\n%s", script, out)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out)
}
