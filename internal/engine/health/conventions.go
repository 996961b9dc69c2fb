package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conventional judges by the conventions of status: the rules of kstatus, and where those are too kind, our own.
func conventional(object *unstructured.Unstructured) (Status, string) {
	if state, message := unsettled(object); state != "" {
		return state, message
	}
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return job(object)
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		available := condition(object, "Available")
		if isTrue(available) {
			return Current, "condition Available is true"
		}
		return InProgress, "condition Available is not true yet: " + cmp.Or(words(available), "it is not there")
	}
	if state, message := stale(object); state != "" {
		return state, message
	}
	result, err := status.Compute(object)
	if err != nil {
		return Unknown, fmt.Sprintf("the status cannot be read: %v", err)
	}
	silent := map[status.Status]string{status.InProgressStatus: "not ready yet", status.FailedStatus: "failed"}
	return Status(result.Status), cmp.Or(result.Message, silent[result.Status])
}

// unsettled tells of an object of which the status says nothing yet, or no more.
func unsettled(object *unstructured.Unstructured) (Status, string) {
	if object.GetDeletionTimestamp() != nil {
		return InProgress, "it is being deleted"
	}
	observed, told, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err == nil && told && observed < object.GetGeneration() {
		return InProgress, fmt.Sprintf("generation %d is not observed yet, only %d", object.GetGeneration(), observed)
	}
	return "", ""
}

// stale tells of an object of which the condition Ready is about an older generation, which kstatus does not look at.
func stale(object *unstructured.Unstructured) (Status, string) {
	ready := condition(object, "Ready")
	observed, told, err := unstructured.NestedInt64(ready, "observedGeneration")
	if err == nil && told && observed > 0 && observed < object.GetGeneration() {
		return InProgress, fmt.Sprintf("condition Ready is of generation %d, not yet of %d", observed, object.GetGeneration())
	}
	return "", ""
}

// job judges a Job by how it ended. kstatus takes one that runs for healthy; what waits for a Job waits for its end.
func job(object *unstructured.Unstructured) (Status, string) {
	if failed := condition(object, "Failed"); isTrue(failed) {
		return Failed, "the Job failed: " + words(failed)
	}
	if isTrue(condition(object, "Complete")) {
		return Current, "the Job is complete"
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		return InProgress, "the Job is suspended"
	}
	return InProgress, "the Job has not ended yet"
}

// because adds what the object's condition Ready says, which is often the reason.
func because(object *unstructured.Unstructured) string {
	ready := condition(object, "Ready")
	if said := words(ready); said != "" && !isTrue(ready) {
		return ": condition Ready says " + said
	}
	return ""
}

// condition is the object's condition of that type; nil when it has none.
func condition(object *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := list.([]any)
	for _, one := range conditions {
		if found, ok := one.(map[string]any); ok && found["type"] == kind {
			return found
		}
	}
	return nil
}

func isTrue(condition map[string]any) bool { return condition["status"] == "True" }

// words are the reason and the message of a condition.
func words(condition map[string]any) string {
	reason, _ := condition["reason"].(string)
	message, _ := condition["message"].(string)
	return strings.TrimSuffix(strings.TrimPrefix(reason+": "+message, ": "), ": ")
}

// plain says whether objects of the kind are healthy by being there: they have no status, or none that tells.
func plain(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return slices.Contains([]string{
			"ConfigMap", "Secret", "ServiceAccount", "Namespace", "LimitRange", "ResourceQuota", "Endpoints", "Event", "PodTemplate",
		}, kind.Kind)
	case "rbac.authorization.k8s.io", "networking.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io",
		"admissionregistration.k8s.io", "coordination.k8s.io", "discovery.k8s.io":
		return true
	case "batch":
		return kind.Kind == "CronJob"
	default:
		return false
	}
}
