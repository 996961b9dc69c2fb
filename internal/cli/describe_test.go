package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// happen has an event told of an installation, long ago.
func happen(t *testing.T, namespace, name, reason, message string) {
	t.Helper()
	happenTo(t, namespace, name, "", reason, message)
}

// happenTo has it told of that one life of the name; of any without one.
func happenTo(t *testing.T, namespace, name string, uid types.UID, reason, message string) {
	t.Helper()
	long := metav1.Unix(1577836800, 0)
	if err := env.Client.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "."},
		InvolvedObject: corev1.ObjectReference{Kind: "ModuleInstallation", Namespace: namespace, Name: name, UID: uid},
		Type:           "Warning", Reason: reason, Message: message, FirstTimestamp: long, LastTimestamp: long, Count: 3,
	}); err != nil {
		t.Fatal(err)
	}
}

// TestDescribe: the state with what helps, the conditions and what happened.
func TestDescribe(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	namespace := three(t)
	happen(t, namespace, "broken", "HealthCheckFailed", "StatefulSet\n\x1b[31mredis")
	happen(t, namespace, "calm", "Installed", "of another object")
	happenTo(t, namespace, "broken", "earlier", "Installed", "of an earlier object of the name, or of another group's")
	got := run(t, env.Kubeconfig, "describe", "broken", "-n", namespace)
	want := []string{
		"ModuleInstallation " + namespace + "/broken",
		"state Failed, for AGO",
		"reason HealthCheckFailed",
		`message StatefulSet\n\x1b[31mredis\r\u202e`,
		"what helps Look at the object that the message names.",
		"module foo",
		"",
		"CONDITION STATUS SINCE REASON MESSAGE",
		`Ready False AGO HealthCheckFailed StatefulSet\n\x1b[31mredis\r\u202e`,
		"",
		"LAST TIMES TYPE REASON MESSAGE",
		`AGO 3 Warning HealthCheckFailed StatefulSet\n\x1b[31mredis`,
	}
	if diff := cmp.Diff(want, squeezed(got.out)); diff != "" || got.code != 0 || got.told != "" {
		t.Errorf("ended with %d, %s; -want +got:\n%s", got.code, got.told, diff)
	}
}

// TestDescribeSaysWhatItWasNotTold: who may not list events sees the rest, and the missing right.
func TestDescribeSaysWhatItWasNotTold(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	got := run(t, reader(t, namespace), "describe", "calm", "-n", namespace)
	if got.code != 2 || !strings.Contains(got.out, "Installed 2.0.0") ||
		!strings.Contains(got.told, "list the events of namespace "+namespace+": forbidden: ") {
		t.Errorf("ended with %d: %s, %s", got.code, got.out, got.told)
	}
}

// TestDescribeNeedsOneObject: and of a kind that is known.
func TestDescribeNeedsOneObject(t *testing.T) {
	t.Parallel()
	namespace := three(t)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"None":    {nil, 3, "one object has to be named"},
		"Two":     {[]string{"calm", "held"}, 3, "one object has to be named"},
		"Kind":    {[]string{"moduleinstallation"}, 3, "one object has to be named"},
		"Unknown": {[]string{"gitrep/a"}, 3, "similar: gitrepo"},
		"Missing": {[]string{"calms"}, 2, "similar: calm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, env.Kubeconfig, append([]string{"describe", "-n", namespace}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.told, tc.want) {
				t.Errorf("ended with %d: %s", got.code, got.told)
			}
		})
	}
}

// TestNoAddressShowsALogin: whatever form of address it stands in.
func TestNoAddressShowsALogin(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: git}\nspec: {url: 'https://writer:"+hidden+"@example.com/git', interval: 1m}\n")
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: helm}\nspec: {url: 'https://example.com/helm?token="+hidden+"', interval: 1m}\n")
	store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: minio}\nspec: {bucketName: b, endpoint: 'writer:"+hidden+"@example.com:9000', interval: 1m}\n")
	for object, address := range map[string]string{"gitrepository/git": "https://example.com/git", "helmrepository/helm": "https://example.com/helm", "bucket/minio": "example.com:9000"} {
		for _, command := range []string{"get -o wide", "describe", "describe -o json", "tree", "trace", "trace -o yaml"} {
			words := strings.Fields(command)
			got := run(t, env.Kubeconfig, append(words, object, "-n", namespace)...)
			if strings.Contains(got.out+got.told, hidden) || !strings.Contains(got.out, address) || got.code != 0 {
				t.Errorf("%s %s ended with %d: %s%s", command, object, got.code, got.out, got.told)
			}
		}
	}
}
