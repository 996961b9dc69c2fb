package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/tests/testenv"
)

// read is a preview by reads alone, which may send nothing else.
func (r *rig) read() engine.Preview {
	r.t.Helper()
	var told engine.Preview
	calls := r.calls(func() {
		var err error
		told, err = r.engine.Preview(r.t.Context(), r.in, engine.EvidenceRead)
		check(r.t, err)
	})
	for verb := range calls {
		if verb != "get" && verb != "list" {
			r.t.Errorf("it reads by the verb %s", verb)
		}
	}
	return told
}

// spoken is what a row says, in a form that can be compared: without what a dry run of a create makes up.
type spoken struct {
	Action  engine.Action
	Taken   []string
	Blocked bool
	After   map[string]any
}

// speech is what a preview says of each object, in words that the API server's answer and a merge have in common. What is
// created has no After: the API server's has its defaults.
func speech(t *testing.T, told engine.Preview) map[string]spoken {
	t.Helper()
	all := map[string]spoken{}
	for _, row := range told.Rows {
		one := spoken{Action: row.Action, Blocked: row.Blocked != ""}
		for _, field := range row.Taken {
			one.Taken = append(one.Taken, field.Path+" of "+field.Manager)
		}
		slices.Sort(one.Taken)
		if row.After != nil && row.Action != engine.ActionCreate {
			one.After = contentOf(row.After)
		}
		all[row.Ref.GVK.Kind+" "+row.Ref.Name] = one
	}
	return all
}

// contentOf is an object without its status, and without what each write notes. Numbers are of the types that reads give them, by
// which plans tell what has changed.
func contentOf(o *unstructured.Unstructured) map[string]any {
	copied := o.DeepCopy().Object
	delete(copied, "status")
	metadata, _ := copied["metadata"].(map[string]any)
	for _, name := range []string{"managedFields", "generation"} {
		delete(metadata, name)
	}
	return copied
}

// TestReadingAgreesWithTheServer: what is merged here from reads is what the API server answers to dry runs.
func TestReadingAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	deployment := func(replicas, image, extra string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: subject}\nspec:\n" + replicas +
			"  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - {name: main, image: '" + image + "'}\n" + extra
	}
	apps, core := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Version: "v1", Kind: kind}
	}
	service := func(ports string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: subject}\nspec: {selector: {a: b}, ports: [" + ports + "]}\n"
	}
	text := func(fields string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: subject}\nstringData: " + fields + "\n"
	}
	for name, tc := range map[string]struct {
		reason       string
		before, then string
		between      func(*rig)
		differs      string
	}{
		"Changed": {
			reason: "a field has another value", before: deployment("", "a:1", ""), then: deployment("", "a:2", ""),
		},
		"Removed": {
			reason: "an item of a list goes, and fields with it", before: deployment("", "a:1", "      - {name: side, image: b, args: [x], env: [{name: E, value: v}]}\n"),
			then: deployment("", "a:1", ""),
		},
		"TakenOver": {
			reason: "somebody has scaled it", before: deployment("  replicas: 1\n", "a:1", ""), then: deployment("  replicas: 2\n", "a:2", ""),
			between: func(r *rig) { r.edit(apps, "subject", `{"spec":{"replicas":5}}`) },
		},
		"OthersStay": {
			reason: "what others have set beside it stays", before: deployment("", "a:1", ""), then: deployment("", "a:2", ""),
			between: func(r *rig) {
				r.edit(apps, "subject", `{"metadata":{"annotations":{"x":"y"}},"spec":{"template":{"metadata":{"annotations":{"at":"1"}}}}}`)
			},
		},
		"Gone": {
			reason: "somebody has removed it", before: configMap("subject", "1"), then: configMap("subject", "2"),
			between: func(r *rig) { check(r.t, env.Client.Delete(r.t.Context(), r.get(configMaps, "subject"))) },
		},
		"Keys": {
			reason: "a list of more than one key", before: service("{name: a, port: 80, protocol: TCP}, {name: b, port: 81, protocol: UDP}"),
			then: service("{name: a, port: 80, targetPort: 9090, protocol: TCP}, {name: c, port: 82, protocol: TCP, targetPort: 82}"),
		},
		"Text": {
			reason: "a Secret's text is put into its data", before: strings.Replace(secretOnce("one"), "immutable: true\n", "", 1), then: strings.Replace(secretOnce("two"), "immutable: true\n", "", 1),
		},
		"Set": {
			reason: "a set of finalizers is others' to add to", before: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: subject, annotations: {a: '1'}}\n",
			then:    "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: subject, annotations: {b: '2'}}\nautomountServiceAccountToken: false\n",
			between: func(r *rig) { r.edit(core("ServiceAccount"), "subject", `{"imagePullSecrets":[{"name":"theirs"}]}`) },
		},
		"Adopted": {
			reason: "it is somebody's, and is taken", before: configMap("other", "1"), then: configMap("subject", "2"),
			between: func(r *rig) { r.byHand(configMap("subject", "9")) },
		},
		"Status": {
			reason: "a status in a release is not applied", before: deployment("", "a:1", ""), then: deployment("", "a:2", "") + "status: {replicas: 7}\n",
		},
		"Untidy": {
			reason: "what generators write of nothing, and numbers in other words, is no change",
			before: deployment("", "a:1', resources: {limits: {cpu: '1', memory: 1Gi}, requests: {cpu: 500m}}, workingDir: '/", ""),
			then: strings.NewReplacer("spec:\n  sel", "spec:\n  strategy: {}\n  sel", "metadata: {labels: {a: b}}", "metadata: {labels: {a: b}, creationTimestamp: null, annotations: {}}").
				Replace(deployment("", "a:2', resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.25}}, env: [], tty: false, command: null, workingDir: '/",
					"      hostNetwork: false\n      nodeSelector: {}\n      serviceAccountName: ''\n      tolerations: []\n")),
		},
		"Keyless": {
			reason: "what a Secret's text no longer has stays in its data, and what it has now is beside it", before: text("{a: one, b: two}"), then: text("{b: three, c: four}"),
		},
		"Twice": {
			reason: "a name that stands twice in a list is refused", before: deployment("", "a:1", ""), then: deployment("", "a:2', env: [{name: A, value: a}, {name: A, value: b}], workingDir: '/", ""),
		},
		"Either": {
			reason: "a number or a text", before: deployment("  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}\n", "a:1", ""), then: deployment("  strategy: {rollingUpdate: {maxSurge: 50%, maxUnavailable: 2}}\n", "a:2", ""),
		},
		"Wrong": {
			reason: "a field that the kind does not have", before: deployment("", "a:1", ""), then: strings.Replace(deployment("", "a:2", ""), "selector:", "sellector: 1\n  selector:", 1),
		},
		"Immutable": {
			reason: "a field that cannot change is only known to the API server", before: deployment("", "a:1", ""),
			then:    strings.ReplaceAll(deployment("", "a:1", ""), "{a: b}", "{a: c}"),
			differs: "Blocked",
		},
		"Defaulted": {
			reason: "a field that is given up gets its default from the API server", before: deployment("  revisionHistoryLimit: 3\n", "a:1", ""), then: deployment("", "a:1", ""),
			differs: "revisionHistoryLimit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.in.Target = r.target("1.0.0", map[string]string{"a.yaml": tc.before})
			// Nothing makes a Deployment healthy here.
			r.settle("it is applied", func(engine.Outcome) bool { return r.inventory() != nil && r.inventory().Data.Current != nil })
			if tc.between != nil {
				tc.between(r)
			}
			r.in.Spec.Force = false
			r.in.Target = r.target("2.0.0", map[string]string{"a.yaml": tc.then})
			diff := cmp.Diff(speech(t, r.preview()), speech(t, r.read()))
			if tc.differs == "" && diff != "" || !strings.Contains(diff, tc.differs) {
				t.Errorf("%s (-server +read):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReadingAgreesWithTheServerAtRandom: the same for random pairs of releases, without rights that are lost and without fields
// that cannot change, of which reads tell nothing.
func TestReadingAgreesWithTheServerAtRandom(t *testing.T) {
	t.Parallel()
	count, first := setting(t, "SLUICE_TORTURE_PREVIEWS", 4), setting(t, "SLUICE_TORTURE_SEED", 1)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			p := pairOf(uint64(seed))
			p.Lost, p.LostOf = "", ""
			for i := range p.Subjects {
				p.Subjects[i].Fixed = false
			}
			r := newRig(t)
			defer r.halt()
			p.ready(r)
			if diff := cmp.Diff(speech(t, r.preview()), speech(t, r.read())); diff != "" {
				t.Errorf("SLUICE_TORTURE_PREVIEWS=1 SLUICE_TORTURE_SEED=%d, with\n%+v (-server +read):\n%s", seed, p, diff)
			}
		})
	}
}

// TestReadingAgreesOnKindsOfReleases: on a kind that a CRD defines, once the API server has published its schema. Before, it is
// said that there is none.
func TestReadingAgreesOnKindsOfReleases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	m.files["crd.yaml"] = strings.Replace(m.files["crd.yaml"], "{type: object, x-kubernetes-preserve-unknown-fields: true}", `{type: object, properties: {spec: {type: object, properties: {
      size: {type: integer, default: 7},
      any: {type: object, x-kubernetes-preserve-unknown-fields: true},
      maybe: {type: string, nullable: true},
      each: {type: object, additionalProperties: {type: string}},
      tags: {type: array, items: {type: string}, x-kubernetes-list-type: set},
      parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, v: {type: integer}}}}}}}}`, 1)
	thing := "apiVersion: " + m.group + "/v1\nkind: Thing\nmetadata: {name: own}\nspec: "
	m.files["thing.yaml"] = thing + "{size: 1, any: {a: 1, b: [1]}, tags: [x, y], parts: [{id: one, v: 1}, {id: two, v: 2}]}\n"
	r.in.Target = r.target("1.0.0", m.files)
	r.settle("it is installed", settled)
	r.edit(m.kind, "own", `{"spec":{"size":5,"tags":["x","y","theirs"]}}`)
	m.files["thing.yaml"] = thing + "{size: 2.0, maybe: null, each: {b: c}, any: {a: 2, n: null}, tags: [y, z], parts: [{id: two, v: 3e1}, {id: three, v: 4.0}]}\n"
	r.in.Target = r.target("2.0.0", m.files)
	testenv.Eventually(t, "the schema is published", func(context.Context) (bool, string) {
		row := rowOf(r.read(), "own")
		return row.Evidence == engine.EvidenceRead, row.Reason
	})
	if diff := cmp.Diff(speech(t, r.preview()), speech(t, r.read())); diff != "" {
		t.Errorf("-server +read:\n%s", diff)
	}
}

// TestPreviewFallsBackToReading: an object that may be read and not written is told by what is there, with the right that is
// missing, and one that may not be read either by the release alone.
func TestPreviewFallsBackToReading(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.asDeployer()
	files := configMapFiles("a", "1", "gone", "1")
	files["s.yaml"] = secretOnce("one")
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	r.grant(rule{"", "configmaps", "get"}, rule{"", "configmaps", "list"}, rule{"", "serviceaccounts", "patch"}, rule{"", "serviceaccounts", "create"})
	r.awaitRight("configmaps", "patch", false)
	files = configMapFiles("a", "2")
	files["s.yaml"], files["account.yaml"] = secretOnce("two"), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account}\n"
	r.in.Target = r.target("2.0.0", files)
	told, err := r.engine.Preview(t.Context(), r.in, engine.EvidenceAuto)
	check(t, err)
	if len(told.Blockers) > 0 {
		t.Errorf("a right that is missing here is in the way: %+v", told.Blockers)
	}
	for name, want := range map[string]struct {
		evidence engine.Evidence
		why      string
	}{
		"a": {engine.EvidenceRead, "may not patch configmaps"}, "gone": {engine.EvidenceRead, "may not delete configmaps"},
		"subject": {engine.EvidenceNone, "may not patch secrets"}, "account": {engine.EvidenceServer, ""},
	} {
		row := rowOf(told, name)
		if row.Evidence != want.evidence || !strings.Contains(row.Reason, want.why) || (row.After != nil) != (want.evidence != engine.EvidenceNone && name != "gone") {
			t.Errorf("%s: %s, %q, %v", name, row.Evidence, row.Reason, row.After)
		}
	}
}

// TestPreviewOfOneChangeAmongMany costs a request for that one, whatever else is installed.
func TestPreviewOfOneChangeAmongMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%d.yaml", i)] = configMap(fmt.Sprintf("many-%d", i), "1")
	}
	r.in.Target = r.target("1.0.0", files)
	r.settle("it is installed", settled)
	files["7.yaml"] = configMap("many-7", "2")
	r.in.Target = r.target("2.0.0", files)
	for evidence, want := range map[engine.Evidence]map[string]int{
		engine.EvidenceServer: {"apply": 1}, engine.EvidenceRead: {"get": 1}, engine.EvidenceAuto: {"apply": 1}, engine.EvidenceNone: {},
	} {
		calls := r.calls(func() {
			told, err := r.unseeing().Preview(t.Context(), r.in, evidence)
			check(t, err)
			if got := rowOf(told, "many-7"); got.Action != engine.ActionChange || got.Evidence == engine.EvidenceNone && evidence != engine.EvidenceNone {
				t.Errorf("%s: %+v", evidence, got)
			}
		})
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", evidence, diff)
		}
	}
}
