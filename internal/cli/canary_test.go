package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/cli"
	"sluice.dev/sluice/internal/verify/verifytest"
	"sluice.dev/sluice/tests/upstream/registry"
)

// canary is what Secrets hold, and bearer a login.
const canary, bearer = "c4nary-of-a-secret", "b34rer-of-somebody"

// hostile is text that would move a terminal's cursor, or turn what is around it.
const hostile = "red\x1b[31m c1\u009b31m bell\a bidi\u202e\u2066 tag\U000e0041 sep\u2028 del\x7f back\r"

// sneaky is a namespace in which everything that may hold text holds hostile text, and an installation has a Secret.
func sneaky(t *testing.T) (namespace string) {
	t.Helper()
	namespace = rolling(t)
	said := condition("True", "Installed", hostile)
	object{t, played(t, namespace, repository("other", ", suspend: true")).kind, namespace, "app"}.patch(fmt.Sprintf("status: {conditions: %s}", said))
	foo := object{t, modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind), namespace, "foo"}
	foo.patch(fmt.Sprintf("metadata: {annotations: {note: %q}}", hostile))
	foo.patch(fmt.Sprintf("status: {conditions: %s, history: [{version: 1.0.0, outcome: Succeeded, at: '2020-01-01T00:00:00Z', digest: %q, message: %[2]q}], pending: {version: 2.0.0, reason: Held, message: %[2]q}}", said, hostile))
	member(t, namespace, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: hidden, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{\"stringData\":{\"a\":\"%s\"}}'}}\nstringData: {a: %[1]s}\ndata: {b: %s}\n",
		canary, base64.StdEncoding.EncodeToString([]byte(canary))))
	happenTo(t, namespace, "foo", foo.get().GetUID(), "Installed", hostile)
	return namespace
}

// TestNoCommandTellsSecrets: nor does one let text from elsewhere at the terminal. Each command has to be here.
func TestNoCommandTellsSecrets(t *testing.T) {
	namespace, site := sneaky(t), registry.ForTest(t, registry.Options{})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: %s}\n", canary)
	folder := filepath.Join(commit(t, map[string]string{"s.yaml": secret}), "deploy")
	artifact := pushedTo(t, site, "3.0.0", map[string]string{"s.yaml": secret})
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Secret\nstringData: {a: *"+canary+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logged(t, namespace, `{"level":"info","msg":"`+"bidi\u202e c1\u009b"+`","controllerKind":"ModuleInstallation","namespace":"`+namespace+`","name":"foo"}`+"\n")
	root := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(root, verifytest.NewSigstore(t).TrustedRoot(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIGSTORE_ID_TOKEN", "a."+base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"jane"}`))+"."+canary)
	typed := map[string][]string{
		"get":      {"all", "mi/foo", "mi/foo -o json", "all -o json", "all -o yaml", "mi/foo -o yaml", "all -o wide", "all -o name"},
		"describe": {"foo", "foo -o json", "foo -o yaml", "gitrepository/app"},
		"why":      {"foo", "foo -o json", "foo --version 3.0.0", "foo -f " + broken},
		"tree":     {"foo", "foo -o wide", "foo -o json", "foo -o yaml"},
		"trace":    {"secret/hidden", "secret/hidden -o json", "secret/hidden --field data.a", "secret/hidden --field metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]", "gitrepository/app"},
		"events":   {"foo", "foo -o json", "foo -o yaml"},
		// What these say once there is a plan is looked at where there is a program that has made it.
		"plan":      {"foo", "foo -o json --evidence none", "foo -f " + broken},
		"approve":   {"foo --yes", "foo --digest sha256:0"},
		"impact":    {"-f " + edited(t, namespace, template("foo-3.0.0", "3.0.0", "")), "-f " + broken},
		"build":     {folder, folder + " -f " + broken, "oci://" + artifact + " --insecure-registry", "mi/foo", "mi/foo -f " + broken},
		"check":     {"", "--pre", "-o json"},
		"install":   {"--export"},
		"verify":    {"gitrepository/app --artifact " + broken},
		"history":   {"foo", "foo -o json", "foo -o wide"},
		"logs":      {"foo --system-namespace " + namespace, "foo --json --system-namespace " + namespace},
		"export":    {"all", "mi/foo"},
		"version":   {"", "-o json"},
		"reconcile": {"foo --no-wait", "gitrepository/other"},
		"suspend":   {"gitrepository/app --reason " + strings.Join(strings.Fields(hostile), "_")},
		"resume":    {"gitrepository/app"},
		"wait":      {"foo --for version=2.0.0", "foo --for version=9.0.0 --timeout 50ms"},
		"ui":        {"--listen 0.0.0.0:0"}, // Its pages have a test of their own.
		"push": {
			folder + " " + site.URL("modules/foo") + ":3.0.0 --insecure-registry --move-tag -o json --source https://u:" + canary + "@example.com",
			folder + " " + site.URL("modules/foo") + ":4.0.0 --insecure-registry --sign-keyless --fulcio-url http://127.0.0.1:1 --trusted-root " + root,
		},
		"release": {"foo 3.0.0 " + artifact + " --insecure-registry --deprecate 2.0.0", "foo 3.0.0 " + artifact + " --insecure-registry --apply"},
	}
	asBearer := kubeconfigAs(t, &clientcmdapi.AuthInfo{Token: bearer}) // Which the API server does not take.
	for _, command := range cli.Commands(genericiooptions.NewTestIOStreamsDiscard(), runtime.NewScheme()) {
		name := command.Name()
		if len(typed[name]) == 0 {
			t.Errorf("nobody has looked whether %s tells a Secret", name)
		}
		for _, line := range typed[name] {
			args := append([]string{name}, strings.Fields(line)...)
			if name != "push" {
				args = append(args, "-n", namespace, "--kubeconfig", env.Kubeconfig, "-v=9")
			}
			got := execute(t.Context(), args)
			checkHarmless(t, name+" "+line, got)
			if got.out == "" && !strings.Contains(line, broken) && name+line != "buildmi/foo" && !strings.Contains(line, "--sign-keyless") && !slices.Contains([]string{"wait", "reconcile", "plan", "approve", "ui"}, name) {
				t.Errorf("%s %s says nothing: %s", name, line, got.told)
			}
			if name != "push" {
				checkHarmless(t, name+" "+line, execute(t.Context(), append(args, "--kubeconfig", asBearer)))
			}
		}
	}
}

// checkHarmless says that an answer has nothing of a Secret or a login, and nothing that a terminal obeys.
func checkHarmless(t *testing.T, line string, got answer) {
	t.Helper()
	said := got.out + got.told
	for _, hidden := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), bearer, "passw0rd"} {
		if at := strings.Index(said, hidden); at >= 0 && !strings.HasPrefix(line, "export") && !strings.HasPrefix(line, "get all -o") {
			t.Errorf("%s tells a secret: %s", line, said[max(0, at-100):at+len(hidden)])
		}
	}
	for at, r := range said {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s shows %U behind %q", line, r, said[max(0, at-60):at])
			return
		}
	}
}

// TestEscapesAreReadAsWhatTheyStandFor: whoever reads the objects has the text as it was, in JSON and in YAML.
func TestEscapesAreReadAsWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, repository("app", ""))
	app := object{t, repositories, namespace, "app"}
	app.patch(fmt.Sprintf("metadata: {annotations: {note: %q, list: 'a: [b]'}}", hostile))
	for _, line := range []string{"get gitrepository/app -o json", "get gitrepository/app -o yaml", "export gitrepository/app"} {
		got := run(t, env.Kubeconfig, append(strings.Fields(line), "-n", namespace)...)
		read := &unstructured.Unstructured{}
		decode := json.Unmarshal
		if !strings.HasSuffix(line, "json") {
			decode = func(text []byte, to any) error { return yaml.Unmarshal(text, to) }
		}
		if err := decode([]byte(got.out), &read.Object); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(app.get().GetAnnotations(), read.GetAnnotations()); diff != "" {
			t.Errorf("%s (-is +was read):\n%s", line, diff)
		}
	}
}
