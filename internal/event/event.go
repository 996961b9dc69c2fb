// Package event tells people and other programs what happened to an object: one constructor an event, and a sink that
// delivers to Kubernetes and to a receiver of Flux events without ever delaying its caller.
// It does not know what is worth telling, nor how a reconcile came to it.
package event

import (
	"slices"
	"strings"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// Type says whether an event is good or bad news, in Kubernetes' words.
type Type string

const (
	// Normal is news; receivers get it with severity info.
	Normal Type = "Normal"
	// Warning is trouble; receivers get it with severity error.
	Warning Type = "Warning"
)

// Event is something that happened to an object. Make one with a constructor, so that reasons and metadata keys are
// spelt once.
type Event struct {
	Object   corev1.ObjectReference
	Type     Type
	Trace    bool // told to Kubernetes alone, never posted to the receiver
	Reason   string
	Message  string            // plain text; the sink makes it safe to print and cuts it to what each reader takes
	Metadata map[string]string // annotations in Kubernetes, metadata at the receiver
}

// Reporter is who tells of what happened to objects of an API group, in Kubernetes and at the receiver. Of sources and of what is
// generated it is Flux's controller in whose place Sluice works: alerts and people look for that name.
func Reporter(group string) string {
	switch group {
	case sourcev1.GroupVersion.Group:
		return "source-controller"
	case extensionsv1.GroupVersion.Group:
		return "source-watcher"
	}
	return "sluice"
}

// maxUserMetadata bounds the bytes of keys and values that an object's annotations may add to each of its events:
// an object may carry 256 KiB of annotations, and a queue full of those would not fit.
const maxUserMetadata = 16 << 10

// Subject is the object that events are about, with the metadata its owner wants on each of them.
type Subject struct {
	reference corev1.ObjectReference
	metadata  map[string]string
}

// About makes the subject of an object. The kind is given because objects read from the API often lack theirs.
// Annotations under event.toolkit.fluxcd.io/ become metadata of every event, in the order of their names up to 16 KiB;
// those that do not fit are left out.
func About(obj metav1.Object, gvk schema.GroupVersionKind) Subject {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return Subject{
		reference: corev1.ObjectReference{
			Kind:            kind,
			APIVersion:      apiVersion,
			Namespace:       obj.GetNamespace(),
			Name:            obj.GetName(),
			UID:             obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(),
		},
		metadata: userMetadata(obj.GetAnnotations()),
	}
}

func userMetadata(annotations map[string]string) map[string]string {
	var keys []string
	for key := range annotations {
		if strings.HasPrefix(key, eventv1.Group+"/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)

	chosen := make(map[string]string, len(keys))
	room := maxUserMetadata
	for _, key := range keys {
		if size := len(key) + len(annotations[key]); size <= room {
			chosen[key] = annotations[key]
			room -= size
		}
	}
	return chosen
}
