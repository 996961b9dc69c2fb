package merge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt/merge"
)

// body is what a case has below the head of its kind.
type bodies struct{ base, theirs, local string }

const (
	podHead       = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  volumes:\n  - name: data\n"
	containerHead = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n"
	deployHead    = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n"
	roleHead      = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: r\nrules:\n"
	policyHead    = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: n\nspec:\n  podSelector: {}\n  ingress:\n"
	configHead    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  app.conf: |\n"
	secretHead    = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: c\n"
	thingHead     = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\nspec:\n"
)

func rule(resources, verbs string) string {
	return "- apiGroups: [\"\"]\n  resources: [" + resources + "]\n  verbs: [" + verbs + "]\n"
}

// TestMergesByWhatValuesMean: texts are merged line by line, members of a union exclude each other, and no permission that people
// took away comes back without a conflict.
func TestMergesByWhatValuesMean(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, head string
		bodies
		// wantUpstream and wantLocal are by policy; the latter is the same if it is empty.
		wantUpstream, wantLocal string
		conflicts               string
	}{
		"other lines of a text": {
			reason: "Both changes fit into the text.",
			head:   configHead, bodies: bodies{"    a=1\n    b=1\n    c=1\n    d=1\n    e=1\n", "    a=2\n    b=1\n    c=1\n    d=1\n    e=1\n", "    a=1\n    b=1\n    c=1\n    d=1\n    e=mine\n"},
			wantUpstream: "    a=2\n    b=1\n    c=1\n    d=1\n    e=mine\n",
		},
		"one line of a text, and others": {
			reason: "Only the line that both changed is a conflict, and all other changes count.",
			head:   configHead, bodies: bodies{"    a=1\n    b=1\n    c=1\n    d=1\n    e=1\n", "    a=2\n    b=1\n    c=up\n    d=1\n    e=1\n", "    a=1\n    b=1\n    c=mine\n    d=1\n    e=mine\n    f=mine\n"},
			wantUpstream: "    a=2\n    b=1\n    c=up\n    d=1\n    e=mine\n    f=mine\n",
			wantLocal:    "    a=2\n    b=1\n    c=mine\n    d=1\n    e=mine\n    f=mine\n",
			conflicts:    `data["app.conf"][line 3]: c=1 | c=up | c=mine`,
		},
		"lines removed and changed": {
			reason: "What is missing on one side is shown as missing.",
			head:   configHead, bodies: bodies{"    a=1\n    b=1\n    c=1\n", "    a=1\n    c=1\n", "    a=1\n    b=mine\n    c=1\n"},
			wantUpstream: "    a=1\n    c=1\n", wantLocal: "    a=1\n    b=mine\n    c=1\n",
			conflicts: `data["app.conf"][line 2]: b=1 |  | b=mine`,
		},
		"lines of a Secret": {
			reason: "A text is merged, and its values are hidden.",
			head:   secretHead, bodies: bodies{"stringData:\n  f: |\n    a=1\n    b=1\n    c=1\n    d=1\n", "stringData:\n  f: |\n    a=up\n    b=1\n    c=up\n    d=1\n", "stringData:\n  f: |\n    a=1\n    b=1\n    c=mine\n    d=1\n"},
			wantUpstream: "stringData:\n  f: |\n    a=up\n    b=1\n    c=up\n    d=1\n", wantLocal: "stringData:\n  f: |\n    a=up\n    b=1\n    c=mine\n    d=1\n",
			conflicts: `stringData.f[line 3]: (hidden) | (hidden) | (hidden)`,
		},
		"base64 of a Secret": {
			reason: "Lines of two encoded values do not make a third.",
			head:   secretHead, bodies: bodies{"data:\n  f: |\n    YQ\n    YQ\n    YQ\n", "data:\n  f: |\n    Yg\n    YQ\n    YQ\n", "data:\n  f: |\n    YQ\n    YQ\n    Yw\n"}, //nolint:dupword // The lines are values.
			wantUpstream: "data:\n  f: |\n    Yg\n    YQ\n    YQ\n", wantLocal: "data:\n  f: |\n    YQ\n    YQ\n    Yw\n", //nolint:dupword // The lines are values.
			conflicts: `data.f: (hidden) | (hidden) | (hidden)`,
		},
		"sources of a volume": {
			reason: "A volume with two sources is invalid.",
			head:   podHead, bodies: bodies{"    emptyDir: {}\n", "    configMap:\n      name: up\n", "    persistentVolumeClaim:\n      claimName: mine\n"},
			wantUpstream: "    configMap:\n      name: up\n", wantLocal: "    persistentVolumeClaim:\n      claimName: mine\n",
			conflicts: "spec.volumes[name=data]: {emptyDir: {}} | {configMap: {name: up}} | {persistentVolumeClaim: {claimName: mine}}",
		},
		"a source changed and replaced": {
			reason: "What one side replaced and the other changed is one choice as well.",
			head:   podHead, bodies: bodies{"    emptyDir: {}\n", "    configMap:\n      name: up\n", "    emptyDir:\n      sizeLimit: 1Gi\n"},
			wantUpstream: "    configMap:\n      name: up\n", wantLocal: "    emptyDir:\n      sizeLimit: 1Gi\n",
			conflicts: "spec.volumes[name=data]: {emptyDir: {}} | {configMap: {name: up}} | {emptyDir: {sizeLimit: 1Gi}}",
		},
		"one source on both sides": {
			reason: "The same member is merged field by field.",
			head:   podHead, bodies: bodies{"    emptyDir: {}\n", "    configMap:\n      name: up\n", "    configMap:\n      name: up\n      optional: true\n"},
			wantUpstream: "    configMap:\n      name: up\n      optional: true\n",
		},
		"a value and its source": {
			reason: "A variable has a value or a source.",
			head:   containerHead, bodies: bodies{"    env:\n    - name: a\n      value: one\n", "    env:\n    - name: a\n      value: two\n", "    env:\n    - name: a\n      valueFrom:\n        fieldRef:\n          fieldPath: f\n"},
			wantUpstream: "    env:\n    - name: a\n      value: two\n", wantLocal: "    env:\n    - name: a\n      valueFrom:\n        fieldRef:\n          fieldPath: f\n",
			conflicts: "spec.containers[name=c].env[name=a]: {value: one} | {value: two} | {valueFrom: {fieldRef: {fieldPath: f}}}",
		},
		"handlers of a probe": {
			reason: "The rest of the probe is merged field by field.",
			head:   containerHead, bodies: bodies{"    livenessProbe:\n      periodSeconds: 1\n      httpGet:\n        port: 80\n", "    livenessProbe:\n      periodSeconds: 2\n      tcpSocket:\n        port: 80\n", "    livenessProbe:\n      periodSeconds: 1\n      exec:\n        command: [a]\n"},
			wantUpstream: "    livenessProbe:\n      periodSeconds: 2\n      tcpSocket:\n        port: 80\n", wantLocal: "    livenessProbe:\n      periodSeconds: 2\n      exec:\n        command: [a]\n",
			conflicts: "spec.containers[name=c].livenessProbe: {httpGet: {port: 80}} | {tcpSocket: {port: 80}} | {exec: {command: [a]}}",
		},
		"a strategy": {
			reason: "The type says which fields are allowed.",
			head:   deployHead, bodies: bodies{"  strategy:\n    rollingUpdate:\n      maxSurge: 1\n", "  strategy:\n    type: Recreate\n", "  strategy:\n    rollingUpdate:\n      maxSurge: 3\n"},
			wantUpstream: "  strategy:\n    type: Recreate\n", wantLocal: "  strategy:\n    rollingUpdate:\n      maxSurge: 3\n",
			conflicts: "spec.strategy: {rollingUpdate: {maxSurge: 1}} | {type: Recreate} | {rollingUpdate: {maxSurge: 3}}",
		},
		"a strategy with its type spelt out": {
			reason: "A type that is missing is the usual one.",
			head:   deployHead, bodies: bodies{"  strategy:\n    rollingUpdate:\n      maxSurge: 1\n", "  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 1\n", "  strategy:\n    rollingUpdate:\n      maxSurge: 3\n"},
			wantUpstream: "  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxSurge: 3\n",
		},
		"a union of an unknown kind": {
			reason: "Two different maps in the place of one are a choice.",
			head:   thingHead, bodies: bodies{"  file:\n    a: 1\n", "  url:\n    a: 2\n", "  bucket:\n    a: 3\n"},
			wantUpstream: "  url:\n    a: 2\n", wantLocal: "  bucket:\n    a: 3\n",
			conflicts: "spec: {file: {a: 1}} | {url: {a: 2}} | {bucket: {a: 3}}",
		},
		"a rule removed and moved": {
			reason: "What people took away is a conflict when upstream changes it.",
			head:   roleHead, bodies: bodies{
				rule("pods", "get, list, delete") + rule("secrets", "get"),
				rule("configmaps", "get") + rule("pods", "get, list, delete") + rule("secrets", "get, list"),
				rule("pods", "get, list"),
			},
			wantUpstream: rule("configmaps", "get") + rule("pods", "get, list") + rule("secrets", "get, list"),
			wantLocal:    rule("configmaps", "get") + rule("pods", "get, list"),
			conflicts:    `rules[1]: {apiGroups: [], resources: [secrets], verbs: [get]} | {apiGroups: [], resources: [secrets], verbs: [get, list]} | `,
		},
		"a verb removed, and the rule split": {
			reason: "The half that is new has the verb, which people took away.",
			head:   roleHead, bodies: bodies{
				rule("pods, services", "get, delete"), rule("pods", "get, delete") + rule("services", "get, delete"), rule("pods, services", "get"),
			},
			wantUpstream: rule("pods", "get") + rule("services", "get, delete"),
			wantLocal:    rule("pods, services", "get"),
			conflicts: `rules: [{apiGroups: [], resources: [pods, services], verbs: [get, delete]}] | [{apiGroups: [], resources: [pods], verbs: [get, delete]}, ` +
				`{apiGroups: [], resources: [services], verbs: [get, delete]}] | [{apiGroups: [], resources: [pods, services], verbs: [get]}]`,
		},
		"a rule removed, and another for all": {
			reason: "A pattern grants what it stands for.",
			head:   roleHead, bodies: bodies{rule("pods", "get") + rule("secrets", "get"), rule("pods", "get") + rule("secrets", "get") + rule(`"*"`, "get"), rule("pods", "get")},
			wantUpstream: rule("pods", "get") + rule(`"*"`, "get"), wantLocal: rule("pods", "get"),
			conflicts: `rules: [{apiGroups: [], resources: [pods], verbs: [get]}, {apiGroups: [], resources: [secrets], verbs: [get]}] | ` +
				`[{apiGroups: [], resources: [pods], verbs: [get]}, {apiGroups: [], resources: [secrets], verbs: [get]}, {apiGroups: [], resources: [*], verbs: [get]}] | ` +
				`[{apiGroups: [], resources: [pods], verbs: [get]}]`,
		},
		"a rule removed, and others added": {
			reason: "Nothing that is added grants what was taken away.",
			head:   roleHead, bodies: bodies{rule("pods", "get") + rule("secrets", "get"), rule("pods", "get") + rule("secrets", "get") + rule("jobs", "get"), rule("pods", "get")},
			wantUpstream: rule("pods", "get") + rule("jobs", "get"),
		},
		"a source of traffic narrowed": {
			reason: "The port is another field.",
			head:   policyHead, bodies: bodies{
				"  - from:\n    - ipBlock:\n        cidr: 0.0.0.0/0\n    ports:\n    - port: 80\n",
				"  - from:\n    - ipBlock:\n        cidr: 0.0.0.0/0\n    ports:\n    - port: 80\n    - port: 443\n",
				"  - from:\n    - ipBlock:\n        cidr: 10.0.0.0/8\n    ports:\n    - port: 80\n",
			},
			wantUpstream: "  - from:\n    - ipBlock:\n        cidr: 10.0.0.0/8\n    ports:\n    - port: 80\n    - port: 443\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := func(body string) map[string]string { return map[string]string{"one.yaml": test.head + body} }
			for policy, want := range map[merge.Policy]string{merge.Upstream: test.wantUpstream, merge.Local: test.wantLocal} {
				if want == "" {
					want = test.wantUpstream
				}
				got, conflicts, err := merge.Merge(files(one(test.base)), files(one(test.theirs)), files(one(test.local)), policy)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.head+want, string(got["one.yaml"].Content)); diff != "" {
					t.Errorf("%s %s: %s", test.reason, policy, diff)
				}
				shown := strings.ReplaceAll(told(conflicts), `apiGroups: [""]`, "apiGroups: []")
				if diff := cmp.Diff(test.conflicts, shown); diff != "" {
					t.Errorf("%s %s: other conflicts: %s", test.reason, policy, diff)
				}
			}
		})
	}
}

// TestDefinedUnions: a definition in the package says which fields exclude each other.
func TestDefinedUnions(t *testing.T) {
	t.Parallel()
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.com\nspec:\n  group: example.com\n" +
		"  names: {kind: Thing}\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        properties:\n          spec:\n            oneOf:\n" +
		"            - required: [file]\n            - required: [url]\n            properties:\n              file: {type: string}\n              url: {type: string}\n"
	side := func(body string) map[string]string {
		return map[string]string{"crd.yaml": definition, "thing.yaml": thingHead + body}
	}
	got, conflicts, err := merge.Merge(files(side("  x: 1\n")), files(side("  x: 1\n  file: up\n")), files(side("  x: 1\n  url: mine\n")), merge.Local)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("spec:  | {file: up} | {url: mine}", told(conflicts)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(thingHead+"  x: 1\n  url: mine\n", string(got["thing.yaml"].Content)); diff != "" {
		t.Error(diff)
	}
}

// TestRenamedObjectsKeepUpstreamsChanges, whether a comment says the old name or the content does.
func TestRenamedObjectsKeepUpstreamsChanges(t *testing.T) {
	t.Parallel()
	config := func(metadata, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:" + metadata + "\ndata:\n" + data
	}
	was := config("\n  name: c", "  a: '1'\n  b: '1'\n")
	for name, test := range map[string]struct {
		theirs, local, want map[string]string
		conflicts           string
	}{
		"by a comment": {
			theirs: map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n")},
			local:  map[string]string{"c.yaml": config(" # kpt-merge: /c\n  name: mine", "  x: '1'\n")},
			want:   map[string]string{"c.yaml": config(" # kpt-merge: /c\n  name: mine", "  x: '1'\n")}, conflicts: "data.a: 1 | 2 | ",
		},
		"by the content": {
			theirs: map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n")},
			local:  map[string]string{"c.yaml": config("\n  name: mine", "  a: '1'\n  b: '1'\n")},
			want:   map[string]string{"c.yaml": config("\n  name: mine", "  a: '2'\n  b: '1'\n")},
		},
		"in another file, with a change": {
			theirs: map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n")},
			local:  map[string]string{"mine.yaml": config("\n  name: mine", "  a: '3'\n  b: '1'\n")},
			want:   map[string]string{"mine.yaml": config("\n  name: mine", "  a: '3'\n  b: '1'\n")}, conflicts: "data.a: 1 | 2 | 3",
		},
		"another object in its place": {
			theirs: map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n")},
			local:  map[string]string{"c.yaml": config("\n  name: mine", "  x: '1'\n")},
			want:   map[string]string{"c.yaml": config("\n  name: mine", "  x: '1'\n")},
		},
		"beside the one it is made of": {
			theirs: map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n")},
			local:  map[string]string{"c.yaml": was + "---\n" + config("\n  name: mine", "  a: '1'\n  b: '1'\n")},
			want:   map[string]string{"c.yaml": config("\n  name: c", "  a: '2'\n  b: '1'\n") + "---\n" + config("\n  name: mine", "  a: '1'\n  b: '1'\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, conflicts, err := merge.Merge(files(map[string]string{"c.yaml": was}), files(test.theirs), files(test.local), merge.Local)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shown(files(test.want)), shown(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.conflicts, told(conflicts)); diff != "" {
				t.Errorf("other conflicts: %s", diff)
			}
		})
	}
}

// TestRenamedObjectIsTheMostAlike: of several that people added, the one that has most in common with the old one.
func TestRenamedObjectIsTheMostAlike(t *testing.T) {
	t.Parallel()
	service := func(name, port string) string {
		return "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\nspec:\n  selector:\n    app: " + name + "\n  ports:\n  - port: 80\n    targetPort: " + port + "\n"
	}
	got, conflicts, err := merge.Merge(files(map[string]string{"s.yaml": service("web", "8080")}), files(map[string]string{"s.yaml": service("web", "9090")}),
		files(map[string]string{"a.yaml": service("other", "1"), "b.yaml": service("front", "8080")}), merge.Local)
	if err != nil || len(conflicts) > 0 {
		t.Fatal(conflicts, err)
	}
	want := map[string]string{"a.yaml": service("other", "1"), "b.yaml": service("front", "9090")}
	if diff := cmp.Diff(shown(files(want)), shown(got)); diff != "" {
		t.Error(diff)
	}
}
