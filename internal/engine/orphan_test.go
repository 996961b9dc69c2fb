package engine_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

// The account that an installation worked as is gone, and nothing is to be removed any more.
func TestOrphanEndsWithoutRights(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rights []rule
	for _, verb := range []string{"get", "create", "patch", "list", "watch"} {
		rights = append(rights, rule{"", "configmaps", verb})
	}
	r.grant(rights...)
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1", "b", "1"))
	r.settle("installed", settled)

	r.in.Identity.ServiceAccount = "gone"
	r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	r.in.Deleting = true
	r.fails(engine.StageDelete, modulesv1.ForbiddenReason, "is let go of")
	r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultTimeout))
	var warnings []string
	testenv.Eventually(t, "the installation is let go of", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		for _, note := range out.Notes {
			if note.Reason == modulesv1.OrphanedReason && note.Warning {
				warnings = append(warnings, note.Message)
			}
		}
		if err != nil {
			return false, err.Error()
		}
		return out.Done, ""
	})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "ConfigMap/"+r.namespace+"/a, ConfigMap/"+r.namespace+"/b") {
		t.Errorf("the objects whose labels stay are not named: %q", warnings)
	}
	if left := r.get(configMaps, "a"); left == nil || left.GetLabels()[engine.Label] == "" || r.inventory() != nil {
		t.Errorf("the object is %v, the inventory %v", left, r.inventory())
	}
}

// Rights that are missing for a moment leave no labels on for good.
func TestOrphanWaitsForRights(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grant(rule{"", "configmaps", "*"})
	r.in.Identity = cluster.Identity{Namespace: r.namespace, ServiceAccount: "deployer"}
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("installed", settled)
	r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	r.in.Deleting, r.in.Identity.ServiceAccount = true, "powerless"
	r.fails(engine.StageDelete, modulesv1.ForbiddenReason, "may not get configmaps")
	r.in.Identity.ServiceAccount = "deployer"
	r.settle("it is let go of", done)
	if left := r.get(configMaps, "a"); left == nil || len(left.GetLabels()) > 0 {
		t.Errorf("it is left as %v", left)
	}
}

// A kind whose CRD serves no version cannot be written, nor found to be gone.
func TestOrphanEndsWithoutAKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newCRDModule(r)
	r.in.Target = m.target(r, "1.0.0")
	r.in.Target.ManagedResources, r.in.Target.DefaultConfig = nil, nil
	r.settle("installed", settled)
	second := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`))
	check(t, env.Client.Patch(t.Context(), r.get(crds, "things."+m.group), second))
	r.in.Deleting, r.in.Spec.Deletion = true, &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan}
	testenv.Eventually(t, "it says what becomes of it", func(ctx context.Context) (bool, string) {
		out, err := r.engine.Reconcile(ctx, r.in)
		if out.Done {
			t.Fatal("it is over at once, and labels are left on")
		}
		return err != nil && strings.Contains(err.Error(), "is let go of"), fmt.Sprint(err)
	})
	r.clock.SetTime(r.clock.Now().Add(modulesv1.DefaultTimeout))
	r.settle("it is over", done)
	if crd := r.get(crds, "things."+m.group); crd == nil || crd.GetDeletionTimestamp() != nil || len(crd.GetLabels()) > 0 {
		t.Errorf("the definition is %v", crd)
	}
}

// An object that somebody writes while it is let go of, or deleted, is looked at once more.
func TestAChangeMeanwhileIsNoFailure(t *testing.T) {
	t.Parallel()
	for mode, verb := range map[modulesv1.DeletionMode]string{modulesv1.DeletionOrphan: "patch", modulesv1.DeletionBlock: "delete"} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
			r.settle("installed", settled)
			r.in.Spec.Deletion = &modulesv1.InstallationDeletion{Mode: mode}
			r.in.Deleting = true
			times := 0
			r.mu.Lock()
			r.onCall = func(asked string) {
				if asked != verb || times == 2 {
					return
				}
				times++
				live := r.get(configMaps, "a")
				live.SetAnnotations(map[string]string{"written": verb + strings.Repeat("!", times)})
				check(t, env.Client.Update(t.Context(), live))
			}
			r.mu.Unlock()
			testenv.Eventually(t, "it is gone", func(ctx context.Context) (bool, string) {
				out, err := r.engine.Reconcile(ctx, r.in)
				check(t, err)
				return out.Done, ""
			})
			if times != 2 {
				t.Errorf("it was written %d times meanwhile", times)
			}
			if left := r.get(configMaps, "a"); (left != nil) != (mode == modulesv1.DeletionOrphan) {
				t.Errorf("the object is %v", left)
			}
		})
	}
}

// A webhook may refuse a deletion with the code that is the answer to a change.
func TestARefusedDeletionIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.in.Target = r.target("1.0.0", configMapFiles("a", "1"))
	r.settle("installed", settled)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusConflict, Message: "it is in use"}}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	guard := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": r.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	remove := func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), guard) }
	check(t, env.Client.Create(t.Context(), guard))
	t.Cleanup(remove)
	testenv.Eventually(t, "the webhook is asked", func(ctx context.Context) (bool, string) {
		err := env.Client.Delete(ctx, r.get(configMaps, "a"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "it is in use"), ""
	})
	r.in.Deleting = true
	_, err := r.engine.Reconcile(t.Context(), r.in)
	if err == nil || !strings.Contains(err.Error(), "it is in use") {
		t.Errorf("nobody says that the deletion is refused: %v", err)
	}
	remove()
	r.settle("it is gone once it is allowed", done)
}
