package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// happening is one thing that was told of an object, as Kubernetes keeps it for an hour.
type happening struct {
	About   ref       `json:"about"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int32     `json:"count"`
}

// ref names an object.
type ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how the object is called in text.
func (r ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// happened lists what was told of the object, the oldest first. What was told of an earlier one of its name, or of one of another
// group, has another uid.
func (s *session) happened(ctx context.Context, of ref, uid types.UID) ([]happening, error) {
	selected := fields.Set{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name}
	return s.told(ctx, of.Namespace, func(event *corev1.Event) (ref, bool) {
		return of, event.InvolvedObject.UID == "" || event.InvolvedObject.UID == uid
	},
		client.MatchingFieldsSelector{Selector: selected.AsSelector()})
}

// told lists the events of a namespace that are about objects of interest, the oldest first.
func (s *session) told(
	ctx context.Context, namespace string, interest func(*corev1.Event) (ref, bool), options ...client.ListOption,
) ([]happening, error) {
	var all []happening
	err := eachChunk(kept(ctx), s, func() *corev1.EventList { return &corev1.EventList{} }, func(list *corev1.EventList, first bool) {
		if first {
			all = nil
		}
		for i := range list.Items {
			if about, wanted := interest(&list.Items[i]); wanted {
				all = append(all, happeningOf(about, &list.Items[i]))
			}
		}
	}, append(options, client.InNamespace(namespace))...)
	if err != nil {
		return nil, explain("list the events of namespace "+namespace, err, "view")
	}
	slices.SortStableFunc(all, func(a, b happening) int { return a.Last.Compare(b.Last) })
	return all, nil
}

// happeningOf reads an event of either of the two ways in which they are written.
func happeningOf(of ref, event *corev1.Event) happening {
	told := happening{About: of, Type: event.Type, Reason: event.Reason, Message: event.Message, Count: max(1, event.Count)}
	told.First = cmp.Or(event.FirstTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
	told.Last = cmp.Or(event.LastTimestamp.Time, event.EventTime.Time, told.First)
	if event.Series != nil {
		told.Count, told.Last = max(told.Count, event.Series.Count), event.Series.LastObservedTime.Time
	}
	return told
}
