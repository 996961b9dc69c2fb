package health_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine/health"
)

// object reads YAML as the API server's JSON is read: whole numbers are int64.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return read
}

// newChecker makes a Checker of a Library of its own.
func newChecker(expressions []modulesv1.HealthExpression) (*health.Checker, error) {
	library, err := health.NewLibrary()
	if err != nil {
		return nil, err
	}
	return library.Checker(expressions)
}

func TestConventionsOfStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		object string
		want   health.Status
		says   string
	}{
		"Deployment": {"all replicas are there", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2},
			spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2,
			conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`, health.Current, ""},
		"DeploymentRolls": {"a replica is missing", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2},
			spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`, health.InProgress, "Updated: 1/2"},
		"DeploymentUnseen": {"the status is about an older spec", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3},
			spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			conditions: [{type: Available, status: "True"}]}}`, health.InProgress, "generation 3 is not observed"},
		"DeploymentStuck": {"the deadline for progress is over", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
			spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1,
			conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: too slow}]}}`, health.Failed, ""},
		"DeploymentGoes": {"it will not be there for long", `{apiVersion: apps/v1, kind: Deployment,
			metadata: {generation: 1, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {replicas: 0}}`, health.InProgress, "being deleted"},
		"StatefulSet": {"all pods are of the new revision", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1},
			spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1,
			currentRevision: a, updateRevision: a}}`, health.Current, ""},
		"StatefulSetRolls": {"a pod is of the old revision", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1},
			spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 0, currentReplicas: 1,
			currentRevision: a, updateRevision: b}}`, health.InProgress, "Ready: 0/1"},
		"Job": {"it ended well", `{apiVersion: batch/v1, kind: Job, metadata: {generation: 1},
			status: {startTime: "2026-01-01T00:00:00Z", succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`, health.Current, "complete"},
		"JobRuns": {"who waits for a Job waits for its end", `{apiVersion: batch/v1, kind: Job, metadata: {generation: 1},
			status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`, health.InProgress, "not ended"},
		"JobFailed": {"it will not be tried again", `{apiVersion: batch/v1, kind: Job, metadata: {generation: 1},
			status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: no more}]}}`, health.Failed, "BackoffLimitExceeded: no more"},
		"JobSuspended": {"it cannot end", `{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}`, health.InProgress, "suspended"},
		"CRD": {"its kind is served", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
			status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, health.Current, ""},
		"CRDNew": {"its kind is not served yet", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`, health.InProgress, ""},
		"CRDClash": {"its names are another's", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
			status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict, message: taken}]}}`, health.Failed, "taken"},
		"APIService": {"it answers", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService,
			status: {conditions: [{type: Available, status: "True"}]}}`, health.Current, ""},
		"APIServiceDown": {"it does not answer", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService,
			status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: none}]}}`, health.InProgress, "MissingEndpoints"},
		"Ready": {"its condition says so", `{apiVersion: a.example.com/v1, kind: A, metadata: {generation: 1},
			status: {conditions: [{type: Ready, status: "True"}]}}`, health.Current, ""},
		"NotReady": {"its condition says why not", `{apiVersion: a.example.com/v1, kind: A, metadata: {generation: 1},
			status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: for the moon}]}}`, health.InProgress, "for the moon"},
		"ReadyOfOld": {"the condition is about an older spec", `{apiVersion: a.example.com/v1, kind: A, metadata: {generation: 5},
			status: {conditions: [{type: Ready, status: "True", observedGeneration: 4}]}}`, health.InProgress, "generation 4, not yet of 5"},
		"StatusOfOld": {"the status is about an older spec", `{apiVersion: a.example.com/v1, kind: A, metadata: {generation: 5},
			status: {observedGeneration: 4, conditions: [{type: Ready, status: "True"}]}}`, health.InProgress, "not observed"},
		"Stalled": {"it gave up", `{apiVersion: a.example.com/v1, kind: A, metadata: {generation: 1},
			status: {conditions: [{type: Stalled, status: "True", message: "no\nuse"}]}}`, health.Failed, `no\nuse`},
		"NoStatus":  {"nothing says that it is not", `{apiVersion: a.example.com/v1, kind: A}`, health.Current, ""},
		"OddStatus": {"conditions are no list", `{apiVersion: a.example.com/v1, kind: A, status: {conditions: {a: b}}}`, health.Unknown, "cannot be read"},
		"Endless": {"words of others are bounded", `{apiVersion: a.example.com/v1, kind: A,
			status: {conditions: [{type: Stalled, status: "True", message: "` + strings.Repeat("long ", 4096) + `"}]}}`, health.Failed, "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, message := (&health.Checker{}).Check(object(t, test.object))
			if got != test.want || !strings.Contains(message, test.says) || len(message) > 1024 {
				t.Errorf("%s: want %s with %q, got %s with %q", test.reason, test.want, test.says, got, message)
			}
		})
	}
}

const widget = "apiVersion: a.example.com/v1\nkind: Widget\nmetadata: {name: a, generation: 2}\n"

func TestExpressionsTellTheHealthOfTheirKind(t *testing.T) {
	t.Parallel()
	phases := modulesv1.HealthExpression{
		APIVersion: "a.example.com/v1", Kind: "Widget",
		Failed: "status.phase == 'Broken'", InProgress: "status.phase in ['Pending', 'Starting']", Current: "status.phase == 'Up'",
	}
	tests := map[string]struct {
		reason     string
		expression modulesv1.HealthExpression
		object     string
		want       health.Status
		says       string
	}{
		"Current":    {"it is up", phases, widget + "status: {phase: Up}", health.Current, "current"},
		"InProgress": {"it starts", phases, widget + "status: {phase: Starting}", health.InProgress, "inProgress"},
		"Failed":     {"it is broken", phases, widget + "status: {phase: Broken}", health.Failed, "failed"},
		"None":       {"no expression holds", phases, widget + "status: {phase: Odd}", health.InProgress, "does not hold yet"},
		"NoField":    {"the field comes later", phases, widget + "status: {}", health.InProgress, "no such key: phase"},
		"NoStatus":   {"the status comes later", phases, widget, health.InProgress, "no such key: phase"},
		"Unseen":     {"the status is about an older spec", phases, widget + "status: {phase: Up, observedGeneration: 1}", health.InProgress, "not observed"},
		"Goes":       {"it will not be there for long", phases, strings.Replace(widget, "name: a", `name: a, deletionTimestamp: "2026-01-01T00:00:00Z"`, 1) + "status: {phase: Up}", health.InProgress, "being deleted"},
		"OtherKind":  {"other kinds keep the conventions", phases, "{apiVersion: a.example.com/v1, kind: Other, status: {conditions: [{type: Ready, status: 'False', message: nope}]}}", health.InProgress, "nope"},
		"OtherVersion": {
			"an expression is for one version", phases, "{apiVersion: a.example.com/v2, kind: Widget, status: {phase: Broken}}", health.Current, "",
		},
		"Odd": {"a list is no string", phases, widget + "status: {phase: [1]}", health.InProgress, ""},
		"Macros": {
			"conditions can be looked through",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "status.conditions.exists(c, c.type == 'Up' && c.status == 'True')"},
			widget + "status: {conditions: [{type: Up, status: 'True'}]}", health.Current, "",
		},
		"Bound": {
			"a macro's name may be that of a field",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "status.list.all(spec, spec > 1) && spec.size == 1"},
			widget + "spec: {size: 1}\nstatus: {list: [2, 3]}", health.Current, "",
		},
		"Has": {
			"a field that is not there can be asked for",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "!has(status.error) && spec.?size.orValue(7) == 7"},
			widget, health.Current, "",
		},
		"Failure": {
			"what cannot be evaluated is not healthy",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "int(status.phase) == 1"},
			widget + "status: {phase: words}", health.Unknown, "cannot be evaluated",
		},
		"NoBool": {
			"neither is what is no answer",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "status.phase"},
			widget + "status: {phase: words}", health.Unknown, "true or false",
		},
		"Sets": {
			"lists can be compared as sets are",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "spec.want.all(w, w in status.have)"},
			widget + "spec: {want: [a]}\nstatus: {have: [b, a]}", health.Current, "",
		},
		"Cost": {
			"evaluation is bounded", modulesv1.HealthExpression{
				APIVersion: "a.example.com/v1", Kind: "Widget",
				Current: "status.l.all(a, status.l.all(b, status.l.all(c, status.l.all(d, a + b + c + d >= 0))))",
			}, widget + "status: {l: [" + strings.Repeat("1,", 99) + "1]}", health.Unknown, "cost limit exceeded",
		},
		"Filter": {
			"a part of a list can be taken",
			modulesv1.HealthExpression{APIVersion: "a.example.com/v1", Kind: "Widget", Current: "status.conditions.filter(c, c.type == 'Up').all(c, c.status in [spec.want, spec.other])"},
			widget + "spec: {want: Perhaps, other: Maybe}\nstatus: {conditions: [{type: Up, status: Perhaps}, {type: Down, status: 'No'}]}", health.Current, "",
		},
		"Secret": {
			"messages quote nothing of a Secret",
			modulesv1.HealthExpression{APIVersion: "v1", Kind: "Secret", Current: "int(stringData.password) == 1"},
			"{apiVersion: v1, kind: Secret, stringData: {password: hunter2}}", health.Unknown, "cannot be evaluated",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker, err := newChecker([]modulesv1.HealthExpression{test.expression})
			if err != nil {
				t.Fatal(err)
			}
			got, message := checker.Check(object(t, test.object))
			if got != test.want || !strings.Contains(message, test.says) || strings.Contains(message, "hunter2") {
				t.Errorf("%s: want %s with %q, got %s with %q", test.reason, test.want, test.says, got, message)
			}
		})
	}
}

func TestExpressionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	of := func(current string) []modulesv1.HealthExpression {
		return []modulesv1.HealthExpression{{APIVersion: "a.example.com/v1", Kind: "Widget", Current: current}}
	}
	tests := map[string]struct {
		reason      string
		expressions []modulesv1.HealthExpression
		says        string
	}{
		"Syntax":   {"it is not CEL", of("status."), "Syntax error"},
		"Function": {"there is no such function", of("status.phase.isUp()"), "undeclared reference to 'isUp'"},
		"Type":     {"the types do not fit", of("'a' + 1 == status.phase"), "no matching overload"},
		"NotBool":  {"a string is no answer", of("'Up'"), "must be true or false"},
		"Empty":    {"current is required", of(""), "empty"},
		"Blank":    {"blanks are no expression", of("  "), "empty"},
		"Long":     {"the length is bounded", of("'" + strings.Repeat("a", 5000) + "' == status.phase"), "at most 4096"},
		"Deep":     {"the depth is bounded", of(strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300)), "recursion"},
		"Twice":    {"which of two is meant is unclear", append(of("true"), of("false")...), "twice"},
		"Version":  {"the version must be one", []modulesv1.HealthExpression{{APIVersion: "a/b/c", Kind: "Widget", Current: "true"}}, "apiVersion"},
		"Failed":   {"every expression is compiled", []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "A", Current: "true", Failed: "("}}, "failed: "},
		"Grow":     {"functions that make strings of any size are not there", of("status.phase.replace('', status.phase) == ''"), "undeclared reference to 'replace'"},
		"Sets":     {"nor are those that compare lists as sets", of("sets.intersects(spec.a, spec.b)"), "undeclared reference to 'intersects'"},
		"Pattern":  {"nor are regular expressions", of("status.phase.matches('(a*)*b')"), "regular expressions"},
		"Pattern2": {"however they are called", of("matches(status.phase, 'a')"), "regular expressions"},
		"List":     {"lists of lists grow without bounds", of("[[spec.a, spec.a]].exists(a, a == [spec.b])"), "may only be to the right of 'in'"},
		"Map":      {"so do maps of lists", of("{'a': spec.a} == {'a': spec.b}"), "may only be to the right of 'in'"},
		"Inside":   {"also inside of what is allowed", of("spec.a in [[spec.a], [spec.b]]"), "may only be to the right of 'in'"},
		"Message":  {"so do messages", of("google.protobuf.ListValue{values: spec.a} == spec.b"), "may only be to the right of 'in'"},
		"Many":     {"their number is bounded", make([]modulesv1.HealthExpression, 1000), "at most 256"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newChecker(test.expressions)
			if err == nil || !strings.Contains(err.Error(), test.says) || len(err.Error()) > 2048 {
				t.Errorf("%s: want %q, got %v", test.reason, test.says, err)
			}
		})
	}
}

func TestDependenciesAreReady(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		expression string
		dep        string
		want       bool
		says       string
	}{
		"Gone":       {"what does not exist is not ready", "true", "", false, "does not exist"},
		"Convention": {"without an expression its status tells", "", widget + "status: {conditions: [{type: Ready, status: 'True'}]}", true, ""},
		"NotYet":     {"its status tells why not", "", widget + "status: {conditions: [{type: Ready, status: 'False', message: no moon}]}", false, "no moon"},
		"Holds":      {"the expression sees both", "dep.status.version == self.spec.module.version", widget + "status: {version: 1.0.0}", true, ""},
		"HoldsNot":   {"another version is not ready", "dep.status.version == self.spec.module.version", widget + "status: {version: 2.0.0}", false, "does not hold"},
		"NoField":    {"a field may come later", "dep.status.version == '1'", widget, false, "no such key"},
		"Fails":      {"what cannot be evaluated is not ready", "int(dep.metadata.name) == 1", widget, false, "cannot be evaluated"},
		"Secret":     {"nothing of a Secret is quoted", "int(dep.stringData.password) == 1", "{apiVersion: v1, kind: Secret, stringData: {password: hunter2}}", false, "cannot be evaluated"},
	}
	library, err := health.NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	self := object(t, "{apiVersion: v1, kind: Self, spec: {module: {version: 1.0.0}}}")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readiness, err := library.Readiness(test.expression)
			if err != nil {
				t.Fatal(err)
			}
			var dep *unstructured.Unstructured
			if test.dep != "" {
				dep = object(t, test.dep)
			}
			got, message := readiness.Ready(dep, self)
			if got != test.want || !strings.Contains(message, test.says) || strings.Contains(message, "hunter2") {
				t.Errorf("%s: want %v with %q, got %v with %q", test.reason, test.want, test.says, got, message)
			}
		})
	}
	for _, wrong := range []string{"status.ready", "dep.", "1"} {
		if _, err := library.Readiness(wrong); err == nil {
			t.Errorf("%q is refused", wrong)
		}
	}
}

func TestKindsWithoutStatusNeedNoObject(t *testing.T) {
	t.Parallel()
	checker, err := newChecker([]modulesv1.HealthExpression{{APIVersion: "v1", Kind: "Secret", Current: "has(data.token)"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "a.example.com", Version: "v1", Kind: "ConfigMap"},
	} {
		got[gvk.GroupKind().String()] = checker.NeedsObject(gvk)
	}
	want := map[string]bool{
		"ConfigMap": false, "Secret": true, "Service": true, "Role.rbac.authorization.k8s.io": false, "Deployment.apps": true,
		"CronJob.batch": false, "Job.batch": true, "ConfigMap.a.example.com": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkChecker(b *testing.B) {
	library, err := health.NewLibrary()
	if err != nil {
		b.Fatal(err)
	}
	expressions := []modulesv1.HealthExpression{{APIVersion: "v1", Kind: "A", Failed: "status.phase == 'Broken'", Current: "status.phase == 'Up'"}}
	up := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A", "status": map[string]any{"phase": "Up"}}}
	for b.Loop() {
		checker, err := library.Checker(expressions)
		if err != nil {
			b.Fatal(err)
		}
		if status, message := checker.Check(up); status != health.Current {
			b.Fatal(message)
		}
	}
}
