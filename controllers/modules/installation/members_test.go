package installation_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/tests/testenv"
)

// problemsOf are the problems, each as its reason and name.
func problemsOf(obj *modulesv1.ModuleInstallation) []string {
	var all []string
	for _, one := range obj.Status.Problems {
		all = append(all, one.Reason+" "+one.Name)
	}
	return all
}

func (p *plane) wantProblems(obj *modulesv1.ModuleInstallation, want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, problemsOf(obj)); diff != "" {
		p.t.Errorf("problems, -want +got:\n%s%s", diff, summary(obj))
	}
}

// statusWrites is how often the status of the installation was written.
func (p *plane) statusWrites() int {
	return len(p.wire.matching(func(r request) bool {
		return r.verb != "GET" && strings.HasSuffix(r.path, "/moduleinstallations/foo/status")
	}))
}

func TestStatusNamesTenOfThoseThatFail(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	var files, want []string
	for i := range 12 {
		files = append(files, strings.Replace(outOfReach, "name: out-of-reach", fmt.Sprintf("name: out-of-reach-%02d", i), 1))
		want = append(want, fmt.Sprintf("Forbidden out-of-reach-%02d", i))
	}
	p.release("1.0.0", "", files...)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("refused", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.ForbiddenReason))
	p.wantProblems(obj, want[:modulesv1.MaxProblems]...)
	if first := obj.Status.Problems[0]; first.Kind != "ConfigMap" || first.Namespace != "default" || !strings.Contains(first.Message, "out-of-reach-00") {
		t.Errorf("problem %+v", first)
	}
	before := p.statusWrites()
	p.more(3)
	if after := p.statusWrites(); after != before {
		t.Errorf("what fails as before took %d writes of status", after-before)
	}
}

// TestMembersThatAreWaitedForTakeNoMoreWrites: of five, messages name three. What becomes of another is told with the
// next write.
func TestMembersThatAreWaitedForTakeNoMoreWrites(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	var files []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files = append(files, strings.ReplaceAll(deployment, "server", name))
	}
	p.release("1.0.0", "", files...)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	all := []string{"Progressing a", "Progressing b", "Progressing c", "Progressing d", "Progressing e"}
	p.until("all are waited for", func(obj *modulesv1.ModuleInstallation) bool { return cmp.Equal(all, problemsOf(obj)) })
	before, rounds := p.statusWrites(), p.rounds.Load()
	p.rollOutOf("d")
	testenv.Eventually(t, "a round", func(context.Context) (bool, string) { return p.rounds.Load() > rounds, "" })
	p.wantProblems(p.get(), all...)
	if after := p.statusWrites(); after != before {
		t.Errorf("a member that status does not name took %d writes", after-before)
	}
	p.rollOutOf("a")
	p.until("the next write tells of both", func(obj *modulesv1.ModuleInstallation) bool {
		return cmp.Equal([]string{"Progressing b", "Progressing c", "Progressing e"}, problemsOf(obj))
	})
	for _, name := range []string{"b", "c", "e"} {
		p.rollOutOf(name)
	}
	obj := p.until("healthy", installed("1.0.0"))
	p.wantProblems(obj)
	want := []modulesv1.InventoryContent{
		{Version: "v1", Kind: "ConfigMap", Namespaces: []string{p.namespace}, Count: 1},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespaces: []string{p.namespace}, Count: 5},
	}
	if diff := cmp.Diff(want, obj.Status.Inventory.Contents); diff != "" {
		t.Errorf("contents, -want +got:\n%s", diff)
	}
}

func TestMembersThatAreLateFail(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(options *installation.Options) { options.MaxTimeout = time.Second })
	p.release("1.0.0", "", deployment)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("time is up", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.HealthCheckFailedReason))
	p.wantProblems(obj, "HealthCheckFailed server")
}

func TestContestedMembersAreNamed(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.wantProblems(p.get())
	obj := p.until("contested", func(obj *modulesv1.ModuleInstallation) bool {
		contested := conditions.IsTrue(obj, modulesv1.ContestedCondition)
		if !contested && p.version("settings") == "1.0.0" {
			p.tamper()
		}
		return contested
	})
	p.wantProblems(obj, "DriftContested settings")
}

// TestProblemsHoldNoSecrets: the API server quotes what it refuses.
func TestProblemsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const canary = "canary-5b1f"
	for name, secret := range map[string]string{
		"Data":    "apiVersion: v1\nkind: Secret\nmetadata: {name: refused}\ndata: {key: '" + canary + "!'}\n",
		"Invalid": "apiVersion: v1\nkind: Secret\nmetadata: {name: refused}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '" + canary + "'}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, nil)
			p.release("1.0.0", "", secret)
			p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
			obj := p.until("refused", func(obj *modulesv1.ModuleInstallation) bool {
				return conditions.IsFalse(obj, meta.ReadyCondition) && len(obj.Status.Problems) > 0
			})
			p.wantProblems(obj, "ApplyFailed refused")
			text, err := json.Marshal(obj.Status)
			check(t, err)
			for _, value := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
				if strings.Contains(string(text), value) {
					t.Errorf("status tells it: %s", text)
				}
			}
		})
	}
}
